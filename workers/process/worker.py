"""A worker process: lock, token, then cycle after cycle until a stop is requested; and its sign-ins at a venue.

Stop:   SIGTERM raises StopAsked at any instruction; between cycles it ends the wait.
Wake:   SIGUSR1 ends the wait between cycles, so that the next cycle begins; during a cycle it ends the next wait.
Orphan: the kernel sends SIGTERM when the manager's thread that started us ends (PDEATHSIG), and SIGIO when the other
        end of stdin, which the manager holds open, is closed. Each alone is enough. Both are needed because PDEATHSIG
        is per thread and lost at some exec calls, and the pipe stays open if a stray process inherits its end. Between
        cycles the wait also watches the pipe. If the manager ended before PDEATHSIG was set, the parent's pid differs.
Not covered: a manager that is alive but stuck. Its workers continue, each within its grant, and can still be killed.

Also the process's title, and its network, which it gives up: it only calls gateway, signer and a database in a file.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec.structs import replace

from core import logs, process
from core.files import is_full
from core.logs import mask
from core.process import end_with_parent
from core.setting_values import database_hosts
from core.settings import SECRETS, Settings, load
from markets.base import RateLimited, Refused, SignInNeeded, Unavailable, VenueError
from markets.client import MarketClient
from markets.orders import Pair, SignInAnswer
from markets.verbs import Answer, Args
from models.database import base, servers
from models.database.base import is_postgresql
from models.tasks import tasks
from models.tasks.tasks import Outline
from strategy.reasons import FaultCode
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient, SignerError
from workers import kernel
from workers.context import BadConfig, BadCredentials, Context, Job, TaskLock
from workers.kernel import WAKE

_STDIN = 0
_LONGEST_LINE = 4096


class StopAsked(BaseException):
    """The worker must end now. It may be raised at any instruction, with the same effect as a kill -9 there."""


class LifeLine:
    """Signals and stdin of this process. Create only one, in the main thread."""

    def __init__(self, parent: int) -> None:
        """Connects signals and stdin. Ends the process (SystemExit) if `parent` (a pid) is no longer our parent."""
        self._stop_asked = False
        self._wake_asked = False
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # The C handler writes to it, because a signal just before select() would otherwise be noticed only after it.
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGINT, self._on_term)
        signal.signal(signal.SIGIO, self._on_io)
        signal.signal(WAKE, self._on_wake)
        self._parent = parent
        end_with_parent(parent)
        # The end of stdin raises SIGIO. An earlier end is noticed by read_line.
        fcntl.fcntl(_STDIN, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(_STDIN, fcntl.F_SETFL, fcntl.fcntl(_STDIN, fcntl.F_GETFL) | os.O_ASYNC)

    def die_with_parent(self) -> None:
        """Makes the kernel kill us immediately when our parent ends.

        If another machine takes over, this worker must not continue, even if it is stopped, or waits in a library that
        ignores SIGTERM.
        """
        end_with_parent(self._parent, signal.SIGKILL)

    def read_line(self, timeout_s: float) -> bytes:
        """Reads the first line of stdin. Raises StopAsked at its end, TimeoutError if the line does not come."""
        line = b""
        deadline = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([_STDIN], [], [], max(0.0, deadline - time.monotonic()))
            if not readable or len(line) > _LONGEST_LINE:
                raise TimeoutError("failed to read the first line of stdin")
            # Reads byte by byte, because anything after the line must stay unread.
            read = os.read(_STDIN, 1)
            if not read:
                raise StopAsked
            line += read
        return line

    def pause(self, seconds: float) -> None:
        """Waits for these seconds, or until it is woken. Raises StopAsked as soon as we must end."""
        deadline = time.monotonic() + seconds
        while True:
            self.check()
            left = deadline - time.monotonic()
            if left <= 0 or self._wake_asked:
                self._wake_asked = False
                return
            readable, _, _ = select.select([_STDIN, self._woken], [], [], left)
            if self._woken in readable:
                os.read(self._woken, 64)
            if _STDIN in readable and not os.read(_STDIN, 64):
                raise StopAsked

    def check(self) -> None:
        """Raises StopAsked again if the first one was swallowed."""
        if self._stop_asked:
            raise StopAsked

    def _on_term(self, number: int, frame: FrameType | None) -> None:
        # Only once, because a second one, raised while the first unwinds, would turn a clean end into a traceback.
        if not self._stop_asked:
            self._stop_asked = True
            raise StopAsked

    def _on_wake(self, number: int, frame: FrameType | None) -> None:
        self._wake_asked = True

    def _on_io(self, number: int, frame: FrameType | None) -> None:
        poll = select.poll()
        poll.register(_STDIN, 0)
        if any(event & select.POLLHUP for _, event in poll.poll(0)):
            self._on_term(number, frame)


def set_title(title: str) -> None:
    """Shows `title` as the command line; no-op if that is impossible."""
    # Otherwise the title would overwrite the environment that the kernel shows, by which operators identify the
    # process. A set variable (as under Ray) stays, because setproctitle may locate its memory by it.
    if not os.environ.get("SPT_NOENV"):
        os.environ["SPT_NOENV"] = "1"
    try:
        from setproctitle import setproctitle
    except ImportError:
        return
    setproctitle(title)


log = logging.getLogger(__name__)


def give_up_network(database_url: str) -> None:
    """Gives up the network for this process and its children permanently, unless the database is at another host.

    Logs a warning if the network stays.
    """
    if host := database_host(database_url):
        log.warning("workers keep the network: their database is at %s", host)
    elif problem := process.give_up_network():
        log.warning("the network cannot be taken from workers: %s", problem)


def database_host(database_url: str) -> str:
    """Returns the hosts of a database that is reached over a network; "" for a file and for Unix sockets."""
    if not database_url.startswith("postgresql://"):
        return ""
    return ", ".join(host for host in database_hosts(database_url) if not host.startswith("/"))


SignIn = Callable[[MarketClient], None]


class SigningInClient(MarketClient):
    """A client of the gateway that signs in when a venue requires it, and then repeats the call.

    A venue that requires a sign-in has not processed the call, so a write is repeated as safely as a read.
    """

    def __init__(self, socket_path: Path, sign_in: SignIn, timeout_s: float = 30.0, venue: str | None = None) -> None:
        super().__init__(socket_path, timeout_s, venue)
        self._sign_in = sign_in
        self._is_signing_in = False

    def call(self, args: Args[Answer], **more: Any) -> Answer:
        try:
            return super().call(args, **more)
        except SignInNeeded:
            if self._is_signing_in:
                raise
        self._is_signing_in = True
        try:
            self._sign_in(self)
        except RateLimited:
            raise
        except VenueError as error:
            # Whatever the sign-in's result, the call itself was not sent.
            raise Unavailable(f"failed to sign in: {error}") from error
        finally:
            self._is_signing_in = False
        return super().call(args, **more)


class TaskSignIn:
    """Signs a task's user in, with the payment address and the vault, under the grant of `token`.

    `owner` is the user's sign-in address; None reads it from the task's row.
    """

    def __init__(self, signer: SignerClient, task_id: int, token: int, secret: str, owner: str | None = None) -> None:
        self._signer = signer
        self._task_id = task_id
        self._token = token
        self._secret = secret
        self._owner = owner
        self._keys: UserKeys | None = None

    def __call__(self, market: MarketClient) -> None:
        """Signs in. Raises the subclasses of VenueError; Unavailable without a signature."""
        try:
            keys = self._known_keys()
            pair = Pair(keys.payment, keys.payment_pubkey, keys.vault, keys.vault_pubkey)
            wanted = market.sign_in_texts(pair)
            signatures = {text.id: self._signed(text.message, text.address, keys) for text in wanted.texts}
        except SignerError as error:
            raise Unavailable(str(error)) from error
        try:
            market.sign_in(SignInAnswer(pair, wanted.reference, signatures))
        except Refused as error:  # a venue may require some money at that address
            if "payment address" not in error.message.lower():
                raise
            raise Unavailable(f"{error.message}; the payment address is {keys.payment}") from error

    def _known_keys(self) -> UserKeys:
        if self._keys is None:
            owner = self._owner
            if owner is None:
                row = tasks.under_token(self._task_id, self._token)
                if row is None:
                    raise Unavailable("the task is no longer this worker's")
                owner = str(row.user.address)
            self._keys = self._signer.addresses(owner)
        return self._keys

    def _signed(self, message: str, address: str, keys: UserKeys) -> str:
        if address not in (keys.payment, keys.vault):
            raise Unavailable("the venue wants an address to sign that is none of ours")
        return self._signer.sign_sign_in(
            self._task_id, self._token, self._secret, message, "vault" if address == keys.vault else "payment"
        )


_SECRET_S = 10.0  # for the first line of stdin, which is written right after the start
_LONGEST_DELAY_S = 60.0
_FULL_DELAY_S = 4.0
# A worker that lost its grant runs at least this long, so that a faulty signer causes no restart loop.
_LEAST_LIFE_S = 60.0
_RESTS_FROM_S = 2.0  # for a shorter pause the connection to the database is kept
_OPEN_FILES = 64
_OOM_SCORE = 500  # a worker is killed before the programs that all workers need


class Worker:
    """One worker process. `run` runs it to its end, and raises StopAsked if it must end early."""

    def __init__(
        self,
        kind: str,
        task_id: int,
        token: int,
        life_line: LifeLine,
        rotate_log: Callable[[], None],
        settings: Settings | None = None,
    ) -> None:
        self._kind = kind
        self._task_id = task_id
        self._token = token
        self._life_line = life_line
        self._rotate_log = rotate_log
        self._settings = settings

    def run(self, make_job: Callable[[str, Context], Job], status_fd: int) -> int:
        """Runs the worker and returns the exit code."""
        _confine()
        settings = self._settings or without_secrets(load())
        logs.set_up(f"task-{self._task_id}", settings.log_level, settings.log_format)
        logs.stop_when_short(settings.log_dir)
        if is_postgresql(settings.database_url):
            self._life_line.die_with_parent()
        if self._settings is None:  # a forked worker has inherited this
            give_up_network(settings.database_url)
        given = json.loads(self._life_line.read_line(_SECRET_S))
        try:
            lock = TaskLock(kernel.lock_path(settings.run_dir, self._task_id))
        except kernel.LockHeld as held:
            log.error("%s", held)
            return kernel.EXIT_SUPERSEDED
        set_title(f"bidkeeper: {self._kind} task {self._task_id} begins")
        # Reported before the connection, because the manager waits only for the lock.
        os.write(status_fd, b"locked\n")
        os.close(status_fd)
        # A former primary that answers again may be the first host in the address.
        servers.keep_in(settings.data_dir / servers.TIMELINES_FILE)
        base.connect(settings.database_url)
        try:
            outline = tasks.outline(self._task_id)
            if outline is None or outline.token != self._token:
                log.error("token %d is not the task's any more", self._token)
                return kernel.EXIT_SUPERSEDED
            set_title(f"bidkeeper: {self._kind} task {self._task_id} {outline.subject}")
            log.info("%s worker begins, token %d, pid %d", self._kind, self._token, os.getpid())
            self._pause(given["wait_s"])
            return self._work(make_job, self._context(settings, outline, given["secret"], lock), lock)
        finally:
            base.close()

    def _work(self, make_job: Callable[[str, Context], Job], context: Context, lock: TaskLock) -> int:
        try:
            return self._cycles(make_job(self._kind, context), context, lock)
        except BadConfig as error:
            return self._give_up(kernel.EXIT_BAD_CONFIG, error)
        except BadCredentials as error:
            return self._give_up(kernel.EXIT_BAD_CREDENTIALS, error)
        except kernel.LockHeld as held:
            log.error("%s", held)
            return kernel.EXIT_SUPERSEDED

    def _cycles(self, job: Job, context: Context, lock: TaskLock) -> int:
        began, failures = time.monotonic(), 0
        while True:
            lock.touch()
            delay: float | None
            try:
                delay = job.cycle()
                failures = 0
            except (BadConfig, BadCredentials):
                raise
            except Exception as error:
                # A failed cycle never ends the process.
                log.exception("failed to finish a cycle")
                self._report(error, failed_ms=time.time_ns() // 1_000_000)
                # On a full disk the wait is short, because the next cycle sends the cancels.
                longest_s = _FULL_DELAY_S if is_full(error) else _LONGEST_DELAY_S
                delay = min(longest_s, 2.0 ** min(failures, 10))
                failures += 1
            if delay is None:
                log.info("nothing left to do")
                return kernel.EXIT_STOPPED
            if context.signer.has_lost_grant and time.monotonic() - began >= _LEAST_LIFE_S:
                log.warning("the signer no longer knows our grant: a successor gets a new one")
                return kernel.EXIT_WITHOUT_GRANT
            lock.touch()
            self._rotate_log()
            self._pause(delay)

    def _pause(self, seconds: float) -> None:
        if seconds >= _RESTS_FROM_S:
            base.rest()
        self._life_line.pause(seconds)

    def _context(self, settings: Settings, outline: Outline, secret: str, lock: TaskLock) -> Context:
        signer = SignerClient(settings.signer_socket)
        sign_in = TaskSignIn(signer, self._task_id, self._token, secret)
        market = SigningInClient(settings.gateway_socket, sign_in, venue=outline.venue)
        market.user = outline.user_id
        return Context(
            settings=settings,
            task_id=self._task_id,
            token=self._token,
            secret=secret,
            market=market,
            signer=signer,
            clock_ms=lock.now_ms,
        )

    def _give_up(self, code: int, error: Exception) -> int:
        log.error("gives up: %s", error)
        self._report(error)
        return code

    def _report(self, error: Exception, failed_ms: int | None = None) -> None:
        text = str(error) if isinstance(error, BadConfig | BadCredentials) else f"{type(error).__name__}: {error}"
        try:
            tasks.report_error(self._task_id, self._token, mask(text), (_fault_code(error), {}), failed_ms=failed_ms)
        except Exception:
            log.exception("failed to report the error")


def _fault_code(error: Exception) -> FaultCode:
    if isinstance(error, BadCredentials):
        return FaultCode.AUTH_FAILED
    if base.note_damage(error):
        return FaultCode.DATABASE_DAMAGED
    return FaultCode.BAD_CONFIG if isinstance(error, BadConfig) else FaultCode.OTHER


def _confine() -> None:
    """Limits the harm that a faulty worker can do to its host, and keeps its memory out of core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(fd, str(_OOM_SCORE).encode())
        finally:
            os.close(fd)
    except OSError as error:
        log.debug("failed to set the out-of-memory score: %s", error)


def without_secrets(settings: Settings) -> Settings:
    """Returns the settings without the venue keys, which only the gateway may have."""
    without: dict[str, Any] = dict.fromkeys(SECRETS)
    return replace(settings, **without)
