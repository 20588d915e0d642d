"""The doctor on the machine: Python, libraries, limits, swap, clock synchronisation, processes and ports."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from cli.doctor.check import Check, fail, first, named, ok, warn
from cli.doctor.data_check import CUSTOMARY_TASKS
from core.process import PYTHON
from core.settings import Settings
from models.database import base
from wallet.bip322 import self_test
from wallet.keystore import keystore
from wallet.keystore.keys import require_libsecp256k1

_LEAST_SQLITE = (3, 37, 0)  # STRICT tables
_NORMAL, _FULL = 1, 2  # results of PRAGMA synchronous
_FILES_A_TASK, _OTHER_FILES = 3, 200
_TRY_S = 60  # time for a new Python process on a busy machine


def examine() -> Iterator[Check]:
    """Examines the parts that need no settings."""
    yield ok(f"{platform.python_version()} on {platform.system()} {platform.machine()}", "python")
    yield from named("sqlite", _sqlite())
    signs = f"{metadata.version('bip322')} accepts valid signatures and refuses forged ones"
    for name, test, text in (
        ("libsecp256k1", require_libsecp256k1, f"loaded by embit {metadata.version('embit')}"),
        ("bip322", self_test, signs),
    ):
        try:
            test()
        except RuntimeError as error:
            yield fail(str(error), "rebuild the environment: make clean setup, or deploy/install.sh", name)
        else:
            yield ok(text, name)
    yield from named("time sync", _clock_sync())
    yield from named("network", _network())


def examine_for(settings: Settings, tasks: int | None, manager: int | None) -> Iterator[Check]:
    """Examines open files for `tasks` (None: unknown) and memory; `manager` is the manager's pid if it runs."""
    yield from named("open files", _open_files(CUSTOMARY_TASKS if tasks is None else tasks, manager))
    yield from named("swap", _memory(settings))


def _sqlite() -> Check:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _LEAST_SQLITE:
        return fail(f"{found} is too old", "use a Python that is built with SQLite 3.37 or newer")
    with tempfile.TemporaryDirectory() as scratch:
        base.connect(f"sqlite:///{scratch}/scratch.db")
        try:
            mode, usual = _pragma("journal_mode"), _pragma("synchronous")
            with base.transaction(durable=True):
                durable = _pragma("synchronous")
        finally:
            base.close()
    if (mode, usual, durable) != ("wal", _NORMAL, _FULL):
        text = f"{found}: journal_mode {mode}, synchronous {usual}, for the ledger {durable}"
        return fail(text, "this build of SQLite ignores its settings: use another Python")
    return ok(f"{found}, in WAL mode; synchronous is normal, and full for the ledger")


def _pragma(name: str) -> object:
    return base.database.execute_sql(f"PRAGMA {name}").fetchone()[0]


def _clock_sync() -> Check:
    program, said = shutil.which("timedatectl"), ""
    if program is not None:
        command = [program, "show", "-p", "NTPSynchronized", "--value"]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            said = ""
    text = "the clock is not synchronised, so bids may expire at the wrong time"
    return first(
        (said == "yes", ok("the clock is synchronised")),
        (said == "no", warn(text, "timedatectl set-ntp true")),
        (True, ok("timedatectl cannot be asked; the clock is compared with the marketplaces below")),
    )


def _network() -> Check:
    """Checks in a child process that a process can give up network access, as the signer and the workers do."""
    program = "from core.process import give_up_network; print(give_up_network())"
    try:
        command = [*PYTHON, "-c", program]
        said = subprocess.run(command, capture_output=True, text=True, timeout=_TRY_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        said = f"the check failed: {error}"
    if said:
        text = f"signer and workers keep network access, so an intruder could send keys away: {said}"
        return warn(text, "use x86_64 or aarch64 with seccomp filters; a container must allow them")
    return ok("signer and workers have no network access (seccomp)")


def _open_files(tasks: int, manager: int | None) -> Check:
    """Checks the hard limit, because the manager raises its soft limit to it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    whose = "this shell"
    if manager is not None and (found := _hard_limit(manager)) is not None:
        most, whose = found, "the manager"
    needed, is_endless = _FILES_A_TASK * tasks + _OTHER_FILES, most == resource.RLIM_INFINITY
    text = f"{whose} may open {'any number' if is_endless else most}; {tasks} tasks need {needed}"
    if most < needed and not is_endless:
        return fail(text, "raise the limit: LimitNOFILE in the unit, or ulimit -Hn")
    return ok(text)


def _hard_limit(pid: int) -> int | None:
    """Returns the hard limit of a process's open files; None if it cannot be read."""
    try:
        for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
            if line.startswith("Max open files"):
                hard = line.split()[4]
                return resource.RLIM_INFINITY if hard == "unlimited" else int(hard)
    except (OSError, ValueError, IndexError):
        return None
    return None


def _memory(settings: Settings) -> Check:
    """Checks for swap: the signer disables its core dumps and locks its memory, as far as its limit allows."""
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    is_safe = settings.market == "simulator" or soft == resource.RLIM_INFINITY
    safe = "on; play keys are worthless, and real keys are locked in memory where the limit allows it"
    text = f"on, and only {soft // 1024} KiB of memory can be locked: keys may be written to the disk"
    return first(
        (not keystore.has_swap(), ok("none; the signer writes no core dump")),
        (is_safe, ok(safe)),
        (True, warn(text, "encrypt or turn off swap, or set LimitMEMLOCK=infinity in the unit")),
    )


def own_processes(data_dir: Path) -> dict[int, str]:
    """Returns the command lines, by pid, of the processes whose environment names `data_dir`.

    It does not see other users' processes, or the signer, which hides even from its own user.
    """
    mark = b"BIDKEEPER_DATA_DIR=" + os.fsencode(data_dir)
    found = {}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    found.pop(os.getpid(), None)
    return found
