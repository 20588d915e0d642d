"""`bidkeeper up`: runs all programs in the foreground, under supervisord, until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from pathlib import Path
from types import FrameType
from typing import IO

from cli import api
from cli.database import check_database, migrate
from core.errors import BidkeeperError, SettingsError
from core.layout import supervisor_problems
from core.process import PYTHON, hold_lock
from core.settings import Settings
from models.leases import leases

CONFIGURATION = Path(__file__).with_name("supervisord.conf")
# The programs need at most 5 + 13 s, and seldom more than 3; service managers expect an end within 15 s.
_STOP_SECONDS = 13.0
_MOST_AGAIN, _AGAIN_WITHIN_S = 3, 3_600.0  # restarts of a supervisord that ended by itself
_LIMITS = (
    ("minfds", resource.RLIMIT_NOFILE, "open files", "n", "LimitNOFILE"),
    ("minprocs", resource.RLIMIT_NPROC, "processes", "u", "LimitNPROC"),
)
_libc = ctypes.CDLL(None)


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds nothing: everything is a setting."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the ready line once all programs answer; returns when all have ended."""
    return Installation(settings, {}).run(lambda: None)


class Installation:
    """All programs of one data directory, which start and end together."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self._environment = environment
        self._lock_path = settings.run_dir / "up.lock"
        self._stop_asked = False
        self._slots = 1
        self._was_ready = False
        self._started_again: list[float] = []

    def run(self, when_ready: Callable[[], None], before_end: Callable[[], None] = lambda: None) -> int:
        """Starts all programs, prints the ready line, and calls `when_ready` repeatedly until asked to stop.

        Before it stops the programs, it calls `before_end` once. A supervisord that ends by itself after the ready line
        is restarted, at most three times an hour. Returns 0 after an orderly end; 1 if supervisord ended before the
        ready line or too often. Raises BidkeeperError if the data directory is in use, writable by others or unusable
        by supervisord, a port is taken, or the database is damaged.
        """
        self._prepare()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask_to_stop)
        supervisord = self._start()
        try:
            self._was_ready = self._wait_until_ready(supervisord)
            if self._was_ready:
                print(f"ready {self.settings.server_at().url}", flush=True)
            while not self._stop_asked:
                if supervisord.poll() is not None:
                    if not self._may_start_again():
                        said = f"supervisord exited with status {supervisord.returncode}"
                        print(f"{said}; logs: {self.settings.log_dir}", file=sys.stderr)
                        return 1
                    self._end(supervisord)
                    check_database(self.settings, of_up=True)
                    supervisord = self._start()
                when_ready()
                self._keep_lock()
                time.sleep(0.2)
            before_end()
            return 0
        finally:
            self._end(supervisord)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop_asked = True

    def _prepare(self) -> None:
        settings = self.settings
        if problems := supervisor_problems(settings):
            raise SettingsError(problems)
        os.umask(0o077)  # because one user owns everything here; supervisord and the programs inherit it
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_own(settings.data_dir)
        for directory in (settings.run_dir, settings.log_dir):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_writable(directory)
        _raise_limits()
        # This process holds the lock until it dies, and supervisord after it, because two installations in one
        # directory would be two managers of the same tasks.
        lock = hold_lock(self._lock_path)
        if lock is None:
            raise BidkeeperError(f"{settings.data_dir} is in use by another `bidkeeper up`")
        self._lock = lock
        for at, variable in api.ports(settings).items():
            if why := api.problem(at, variable):
                raise BidkeeperError(why)
        check_database(settings, of_up=True)
        migrate(settings)
        self._slots = leases.slots_at(settings.database_url)

    def _keep_lock(self) -> None:
        """Takes the lock anew where its file was removed, so that a second installation is still refused."""
        with contextlib.suppress(OSError):  # the directory may be missing or the disk full: the next call tries again
            if self.settings.run_dir.exists() and not self._lock_path.exists():
                hold_lock(self._lock_path)

    def _start(self) -> subprocess.Popen[bytes]:
        settings = self.settings
        environment = dict(os.environ) | dict(self._environment)
        environment |= {
            "BIDKEEPER_DATA_DIR": str(settings.data_dir),
            "BIDKEEPER_COMMAND": shlex.join((*PYTHON, "-m", "cli.main")),  # supervisord splits it as a shell does
            "BIDKEEPER_WITH_SIMULATOR": "true" if settings.market == "simulator" else "false",
            "BIDKEEPER_SERVER_PROCESSES": str(settings.server_processes),
            "BIDKEEPER_WITH_RELAY": "false",
            "BIDKEEPER_WITH_SERVER": "true",
            "BIDKEEPER_WITH_GATEWAY": "true",
            "BIDKEEPER_WITH_SIGNER": "true",
            "BIDKEEPER_WITH_MANAGER": "true" if self._slots == 1 else "false",
            "BIDKEEPER_SLOTS": str(self._slots) if self._slots > 1 else "0",
        }
        command = [*PYTHON, "-m", "supervisor.supervisord", "-n", "-c", str(CONFIGURATION)]
        supervisord = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            # supervisord prints lines that it cannot log, and would end if that print failed too, as on a full disk.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal signals the whole process group, but supervisord must get it only once, from us.
            start_new_session=True,
            preexec_fn=_end_with_parent,
            pass_fds=(self._lock,),
        )
        assert supervisord.stdout is not None
        threading.Thread(target=_pass_on, args=(supervisord.stdout,), daemon=True).start()
        return supervisord

    def _may_start_again(self) -> bool:
        """Returns True if supervisord, which ended by itself, may be restarted."""
        now = time.monotonic()
        self._started_again = [at for at in self._started_again if now - at < _AGAIN_WITHIN_S]
        if not self._was_ready or len(self._started_again) >= _MOST_AGAIN:
            return False
        self._started_again.append(now)
        return True

    def _wait_until_ready(self, supervisord: subprocess.Popen[bytes]) -> bool:
        began = printed = time.monotonic()
        while not self._stop_asked and supervisord.poll() is None:
            answer = readiness(self.settings)
            if answer is None:
                return True
            if time.monotonic() - printed > 10:
                printed = time.monotonic()
                print(f"not ready after {printed - began:.0f} s: {answer}; logs: {self.settings.log_dir}", flush=True)
            time.sleep(0.1)
        return False

    def _end(self, supervisord: subprocess.Popen[bytes]) -> None:
        """Ends all programs in order by SIGTERM, and kills the remaining ones after at most 13 s."""
        if supervisord.poll() is None:
            supervisord.terminate()
            try:
                supervisord.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                supervisord.kill()
                supervisord.wait()
        for pid in _processes_of(self.settings.data_dir, supervisord.pid):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)


def _pass_on(output: IO[bytes]) -> None:
    """Copies supervisord's output to stderr until it ends; drops lines that cannot be written."""
    with output:
        for line in output:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(line.decode("utf-8", "replace"))
                sys.stderr.flush()


def readiness(settings: Settings) -> str | None:
    """Returns None if `/readyz` reports that all programs answer, else the missing parts."""
    try:
        api.ask("server", settings.server_at(), "GET", "/readyz", patience_s=5)
        return None
    except BidkeeperError as error:
        return str(error)


def _require_own(directory: Path) -> None:
    """Refuses an existing data directory that others may write to, and warns about one that they may enter."""
    mode = stat.S_IMODE(directory.stat().st_mode)
    text = f"{directory} has mode {mode:04o}: other users of this machine may"
    if mode & 0o022:
        raise BidkeeperError(f"{text} write there; chmod 700 {directory}")
    if mode & 0o055:
        text = f"{text} read bids, limits and addresses there; chmod 700 {directory}"
        print(f"bidkeeper: WARNING: {text}", file=sys.stderr, flush=True)


def _require_writable(directory: Path) -> None:
    """Raises BidkeeperError if this user cannot write to the directory or to supervisord's files in it."""
    for path in (directory, directory / "supervisord.log", directory / "supervisord.pid"):
        mode = os.W_OK | os.X_OK if path == directory else os.W_OK
        if path.exists() and not os.access(path, mode):
            raise BidkeeperError(f"{path} cannot be written by this user: give it to them (chown, chmod u+w)")


def _raise_limits() -> None:
    """Raises the limits of open files and processes to supervisord's minimums. Raises BidkeeperError if it cannot."""
    configuration = RawConfigParser()
    configuration.read(CONFIGURATION)
    for wanted, limit, what, letter, setting in _LIMITS:
        least = configuration.getint("supervisord", wanted)
        soft, hard = resource.getrlimit(limit)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        try:
            resource.setrlimit(limit, (least, hard if hard == resource.RLIM_INFINITY else max(least, hard)))
        except ValueError:  # only root may raise the hard limit
            text = f"at least {least} {what} are needed, and the limit is {hard}"
            remedy = f"raise it as root: `ulimit -{letter} {least}`, or {setting}={least} in the service's unit"
            raise BidkeeperError(f"{text}: {remedy}") from None


def _end_with_parent() -> None:
    # This runs between fork and exec, so nothing may be imported here, not even core.process.
    _libc.prctl(1, signal.SIGTERM, 0, 0, 0)


def _processes_of(data_dir: Path, session: int) -> list[int]:
    """Returns the pids of the other processes that work in `data_dir` or belong to supervisord's session.

    Their environment names the directory. The signer hides its environment, but stays in the session.
    """
    mark = b"BIDKEEPER_DATA_DIR=" + os.fsencode(data_dir)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                is_ours = os.getsid(int(entry.name)) == session
                variables = [] if is_ours else (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if is_ours or (mark in variables and b"BIDKEEPER_COMMAND=" in b"\0".join(variables)):
                found.append(int(entry.name))
    return found
