"""The doctor on the machine: Python, libraries, limits, swap, and its clock's synchronisation."""

from __future__ import annotations

import platform
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from cli.doctor.check import Check, fail, ok, warn
from core.process import PYTHON
from core.settings import Settings
from models.database import base
from wallet.bip322 import self_test
from wallet.keystore import hardening
from wallet.signer.challenges import require_libsecp256k1

_LEAST_SQLITE = (3, 37, 0)  # STRICT tables
_NORMAL, _FULL = 1, 2  # answers of PRAGMA synchronous
_FILES_A_TASK, _OTHER_FILES = 3, 200
_CUSTOMARY_TASKS = 100
_TRY_S = 60  # for a fresh Python on a busy machine
_REINSTALL = "rebuild the environment: make clean setup, or deploy/install.sh"


def examine() -> Iterator[Check]:
    """Examines everything that needs no settings."""
    yield ok("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield _sqlite()
    yield from _libraries()
    yield _clock_sync()
    yield _network()


def examine_for(settings: Settings, tasks: int | None, manager: int | None) -> Iterator[Check]:
    """Examines room for `tasks` (None = unknown) under the settings and, if it runs, the manager's (a pid) limits."""
    yield _open_files(_CUSTOMARY_TASKS if tasks is None else tasks, manager)
    yield _memory(settings)


def _sqlite() -> Check:
    name, found = "sqlite", sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _LEAST_SQLITE:
        return fail(name, f"{found} is too old", "use a Python that is built with SQLite 3.37 or newer")
    with tempfile.TemporaryDirectory() as scratch:
        base.connect(f"sqlite:///{scratch}/scratch.db")
        try:
            mode = _pragma("journal_mode")
            usual = _pragma("synchronous")
            with base.transaction(durable=True):
                durable = _pragma("synchronous")
        finally:
            base.close()
    if (mode, usual, durable) != ("wal", _NORMAL, _FULL):
        text = f"{found}: journal_mode {mode}, synchronous {usual}, for the ledger {durable}"
        return fail(name, text, "this build of SQLite ignores its settings: use another Python")
    return ok(name, f"{found}, in WAL mode; synchronous is normal, and full for the ledger")


def _pragma(name: str) -> object:
    return base.database.execute_sql(f"PRAGMA {name}").fetchone()[0]


def _libraries() -> Iterator[Check]:
    try:
        require_libsecp256k1()
        yield ok("libsecp256k1", f"loaded by embit {version('embit')}")
    except RuntimeError as error:
        yield fail("libsecp256k1", str(error), _REINSTALL)
    try:
        self_test()
        yield ok("bip322", f"{version('bip322')} accepts valid signatures and refuses forged ones")
    except RuntimeError as error:
        yield fail("bip322", str(error), _REINSTALL)


def _clock_sync() -> Check:
    name, unknown = "time sync", "timedatectl cannot be asked; the clock is compared with the marketplaces below"
    program = shutil.which("timedatectl")
    if program is None:
        return ok(name, unknown)
    command = [program, "show", "-p", "NTPSynchronized", "--value"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ok(name, unknown)
    if said == "yes":
        return ok(name, "the clock is synchronised")
    if said == "no":
        return warn(
            name, "the clock is not synchronised, so bids may expire at the wrong time", "timedatectl set-ntp true"
        )
    return ok(name, unknown)


def _network() -> Check:
    """Tries in a child of ours whether a process can give up the network, as the signer and the workers do."""
    name, program = "network", "from core.no_network import give_up_network; print(give_up_network())"
    try:
        command = [*PYTHON, "-c", program]
        said = subprocess.run(command, capture_output=True, text=True, timeout=_TRY_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        said = f"the check failed: {error}"
    if said:
        text = f"signer and workers keep network access, so an intruder could send keys away: {said}"
        return warn(name, text, "use x86_64 or aarch64 with seccomp filters; a container must allow them")
    return ok(name, "signer and workers have no network access (seccomp)")


def _open_files(tasks: int, manager: int | None) -> Check:
    """Checks the hard limit: the manager raises its soft limit to it."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    whose = "this shell"
    if manager is not None and (found := _hard_limit(manager)) is not None:
        most, whose = found, "the manager"
    needed = _FILES_A_TASK * tasks + _OTHER_FILES
    text = f"{whose} may open {'any number' if most == resource.RLIM_INFINITY else most}; {tasks} tasks need {needed}"
    if most != resource.RLIM_INFINITY and most < needed:
        return fail("open files", text, "raise the limit: LimitNOFILE in the unit, or ulimit -Hn")
    return ok("open files", text)


def _hard_limit(pid: int) -> int | None:
    """Reads the hard limit of `Max open files` of a process; None when it cannot be read."""
    try:
        for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
            if line.startswith("Max open files"):
                hard = line.split()[4]
                return resource.RLIM_INFINITY if hard == "unlimited" else int(hard)
    except (OSError, ValueError, IndexError):
        return None
    return None


def _memory(settings: Settings) -> Check:
    """Checks memory: the signer forbids its own core dumps and locks its memory, as far as it may."""
    name = "swap"
    if not hardening.has_swap():
        return ok(name, "none; the signer writes no core dump")
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if settings.market == "simulator" or soft == resource.RLIM_INFINITY:
        return ok(name, "on; play keys are worthless, and real keys are locked in memory where the limit allows it")
    text = f"on, and only {soft // 1024} KiB of memory can be locked: keys may be written to the disk"
    return warn(name, text, "encrypt or turn off swap, or set LimitMEMLOCK=infinity in the unit")
