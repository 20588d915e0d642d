"""The doctor on the data directory: owner, modes, room, file system, the end of the audit log. Changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from cli.doctor import database_check
from cli.doctor.check import Check, fail, ok, unreadable, warn
from core.settings import Settings
from models.database.base import is_postgresql
from wallet.signer.signer_process import KEYSTORE
from wallet.signer.start_checks import LEARNT_FILE, former_forms

_LEAST_FREE, _FEW_FREE = 100 << 20, 1 << 30
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "ncpfs", "vboxsf"}
_IN_MEMORY = {"tmpfs", "ramfs"}
_AUDIT_TAIL = 1 << 20


def examine(settings: Settings, seen: database_check.DatabaseState) -> Iterator[Check]:
    """Looks at everything; the database's contents go to `seen`."""
    directory = settings.data_dir
    if (missing := _missing(directory)) is not None:
        seen.fault = missing
        yield missing
        if is_postgresql(settings.database_url):
            yield from database_check.examine(settings, seen)
        return
    yield _directory(settings)
    yield _file_system(settings)
    yield _room(directory)
    yield from _signer_files(settings.signer_files)
    yield from _former_forms(settings.signer_files)
    yield from database_check.examine(settings, seen)
    yield _audit(settings.signer_files / "audit.jsonl")


def _missing(directory: Path) -> Check | None:
    name = "data directory"
    try:
        if stat.S_ISDIR(directory.stat().st_mode):
            return None
    except FileNotFoundError:
        return warn(name, f"{directory} does not exist yet", "bidkeeper up creates it")
    except OSError as error:
        return unreadable(name, directory, error, "set another BIDKEEPER_DATA_DIR")
    return fail(name, f"{directory} is not a directory", "move it away, or set another BIDKEEPER_DATA_DIR")


def _directory(settings: Settings) -> Check:
    name, directory = "data directory", settings.data_dir
    found = directory.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        owner = _user(found.st_uid)
        return fail(name, f"{directory} belongs to {owner}, not to {_user(os.geteuid())}", f"run it as {owner}")
    if mode & 0o007:
        return fail(name, f"{directory} has mode {mode:04o}: other users can enter it", f"chmod o-rwx {directory}")
    if mode & 0o020:
        return fail(name, f"{directory} has mode {mode:04o}: its group can write to it", f"chmod g-w {directory}")
    if mode & 0o050 and settings.signer_dir is None:
        return warn(name, f"{directory} has mode {mode:04o}: its group can enter it", f"chmod 700 {directory}")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return fail(name, f"{directory} has mode {mode:04o}: you cannot write to it", f"chmod u+rwx {directory}")
    return ok(name, f"{directory}, mode {mode:04o}")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _file_system(settings: Settings) -> Check:
    name, kind = "file system", file_system(settings.data_dir)
    if kind is None:
        return warn(name, "its type is unknown", "make sure that it is a local disk")
    if kind in _NETWORK or kind.startswith("fuse.sshfs"):
        return fail(name, f"{kind} is a network file system, where SQLite loses data", "use a local disk")
    if kind in _IN_MEMORY and settings.market != "simulator":
        return fail(name, f"{kind} is in memory: a restart of the machine deletes everything", "use a disk")
    return ok(name, f"{kind}, local")


def file_system(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Returns the kind of file system that `path` is on (ext4, nfs4, ...), None when that cannot be found out."""
    best, kind = -1, None
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].encode().decode("unicode_escape")  # a space is \040
        # Of two mounts on one point the later one hides the former.
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), rest.split(" ")[0]
    return kind


def _room(directory: Path) -> Check:
    name, free = "disk space", shutil.disk_usage(directory).free
    text, remedy = f"{free / (1 << 30):.1f} GiB free", f"free space on the disk of {directory}"
    if free < _LEAST_FREE:
        return fail(name, text + ": without space to record bids, none is placed", remedy)
    if os.statvfs(directory).f_files and not os.statvfs(directory).f_favail:
        return fail(name, "no more files can be created (no inodes left)", remedy)
    return warn(name, text, remedy) if free < _FEW_FREE else ok(name, text)


def _signer_files(directory: Path) -> Iterator[Check]:
    name = "signer's files"
    try:
        if not os.path.lexists(directory):
            yield ok(name, f"{directory} does not exist yet; the signer creates it")
            return
        files = (directory, directory / KEYSTORE)
        if not directory.is_dir():
            raise NotADirectoryError
        paths = [path for path in files if os.path.lexists(path)]
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in paths}
    except NotADirectoryError:
        yield fail(name, f"{directory} is not a directory", "move it away; the signer creates it")
        return
    except PermissionError:
        yield ok(name, f"{_user(os.geteuid())} cannot enter {directory}, as intended when the signer has its own user")
        return
    wrong = {path: mode for path, mode in modes.items() if mode & 0o077}
    for path, mode in wrong.items():
        yield fail(
            name, f"{path} has mode {mode:04o}: users other than its owner can access it", f"chmod go-rwx {path}"
        )
    if not wrong:
        yield ok(name, f"only their owner can access {directory}")


def _former_forms(directory: Path) -> Iterator[Check]:
    """Yields a line where an operator confirmed forms of drafts in a former version, which refuse nothing any more."""
    name, path = "learnt forms", directory / LEARNT_FILE
    remedy = f"see bidkeeper judge and docs/custody.md; delete {path} when you have read this"
    try:
        forms = former_forms(directory)
    except PermissionError:
        yield ok(name, f"only the signer's user can see whether {path} is there; the signer's log says so at its start")
    except NotADirectoryError:
        return  # another line says so
    except OSError as error:
        yield unreadable(name, path, error, remedy)
    else:
        if forms:
            text = f"{forms}: a draft of another form is no longer refused, and is signed when every rule holds"
            yield warn(name, text, remedy)


def _audit(path: Path) -> Check:
    name, remedy = "audit log", "run bidkeeper audit verify; keep the file, and see docs/custody.md"
    try:
        count = verify_tail(path)
    except FileNotFoundError:
        return ok(name, "nothing was signed yet")
    except PermissionError:
        return ok(name, "only the signer's user can read it; as that user: bidkeeper audit verify")
    except OSError as error:
        return unreadable(name, path, error, remedy)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        return fail(name, f"broken: {error}" if type(error) is ValueError else "broken: no line of the signer", remedy)
    return ok(name, f"the hash chain of the last {count} lines is intact" if count else "nothing was signed yet")


def verify_tail(path: Path) -> int:
    """Checks that the lines in the last megabyte follow one another and returns their number. Raises ValueError.

    An unfinished last line is being written, or was torn by a crash; the signer cuts it off.
    """
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _AUDIT_TAIL)
        file.seek(start)
        tail = file.read()
    whole = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)[1 if start else 0 :]
    entries = [json.loads(line) for line in whole]
    for at in range(1, len(entries)):
        is_next = entries[at]["number"] == entries[at - 1]["number"] + 1
        if not is_next or entries[at]["previous"] != hashlib.sha256(whole[at - 1]).hexdigest():
            raise ValueError(f"line {entries[at]['number']} does not follow the one before it")
    return len(entries)
