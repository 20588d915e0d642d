"""The process that workers are forked from: `python -m workers.spawning.zygote LINK_FD MANAGER_PID`.

It runs one thread, and only forks, reaps and reports. It holds no descriptor that a worker must not have. It ends with
the manager (by PDEATHSIG and the end of its link), and its workers end with it (by PDEATHSIG), so it needs no SIGTERM
handler.

Its warm-up runs each kind of worker on a simulated market, in memory. Afterwards every module is imported, every query
is compiled, and the code has run; workers share that memory. No descriptor stays open.

A fork shares each page of memory until one side writes to it. A worker's allocations would use the gaps that imports
and warm-up leave all over the heap, and each touched page would be copied. So the gaps are filled before the fork,
which puts a worker's allocations on their own pages: nearly two of ten MiB less for each worker. Running a function
also writes to its code, which counts references and fills caches. So the code that workers run is copied to its own
pages: half a MiB less.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from msgspec.json import encode

from core import logs
from core.call import Request, read_answer
from core.process import end_with_parent
from core.settings import Settings, load
from markets import client, verbs
from markets.base import AskBook, Balance, Fees, OutpointFacts, OwnBid, OwnBids, Sales, Whereabouts
from markets.client import MarketClient
from markets.orders import ListingDraft, OwnListing, OwnListings
from models import schema, users
from models.database import base
from models.database.base import is_postgresql
from models.ledger import closing
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task
from strategy.book import Ask, VenueProfile
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from strategy.decision import SignedRoom
from wallet import protocol
from wallet.signer_client import SignerClient
from workers import kernel
from workers.context import Context
from workers.process import main as worker_main
from workers.process import worker
from workers.process.worker import give_up_network, set_title

log = logging.getLogger(__name__)

A = TypeVar("A")

_NOBODY = "bc1qnobody"
_VAULT = "bc1pnobody"
_INSCRIPTION = "0" * 64 + "i0"
_OUTPOINT = "0" * 64 + ":0"
_NOWHERE = Path("/nonexistent")
_SIGNED = "c2lnbmVk"  # a signed text, or a text to sign
_CYCLES = 3
_MANY_CYCLES = 12  # Python rewrites a function's code during its first eight calls; a worker then copies fewer pages


class MadeUpMarket(MarketClient):
    """A simulated gateway: a book of two hundred asks, and the bids and listings placed."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        super().__init__(_NOWHERE)
        self._clock_ms = clock_ms
        self._bids: list[OwnBid] = []
        self._listings: list[OwnListing] = []

    def _exchange(self, asked: bytes, *, repeatable: bool) -> bytes:
        request = verbs.read(asked)
        args = verbs.read_args(request, verbs.BY_NAME[request.verb])
        return verbs.text({"ok": self.answer(args)}).encode()

    def answer(self, args: Any) -> Any:
        """Answers one request to the gateway's socket."""
        rate = Decimal("2.5")
        match args:
            case verbs.Profile():
                return VenueProfile("simulator", 1000, 10_000, 900, equal_bids_allowed=True, balance_model="per_bid")
            case verbs.Asks():
                prices = range(1_000_000, 3_000_000, 10_000)
                asks = (Ask(f"{price:064x}", price, Decimal(1), Decimal(price), "bc1qsomebody") for price in prices)
                return AskBook(tuple(asks), self._clock_ms())
            case verbs.OwnBids():  # a moment later: a read in the millisecond of a cancel would prove nothing about it
                return OwnBids(tuple(self._bids), self._clock_ms() + 1)
            case verbs.Balance():
                return Balance(_NOBODY, 100_000_000, self._clock_ms())
            case verbs.Fees():
                return Fees(rate, rate, rate, rate, rate, self._clock_ms())
            case verbs.Challenge():
                return "a text to sign"
            case verbs.Place(order):
                end_ms, number = order.expires_ms, f"bid-{len(self._bids)}"
                self._bids.append(OwnBid(number, order.slug, order.kind, order.price, order.quantity, end_ms, None))
                return None
            case verbs.Cancel():
                self._bids = [bid for bid in self._bids if bid.venue_id not in args.venue_ids]
                return True
            case verbs.Sales():
                return Sales((), self._clock_ms(), args.since_ms)
            case verbs.OwnListings():
                return OwnListings(tuple(self._listings), self._clock_ms() + 1)
            case verbs.Whereabouts():
                return Whereabouts(_INSCRIPTION, _OUTPOINT, _VAULT, 546, self._clock_ms())
            case verbs.Outpoint():
                return OutpointFacts(_OUTPOINT, 546, "", True, True, (_INSCRIPTION,), (), 1, 1, None)
            case verbs.DraftListing():
                return ListingDraft(_SIGNED, ())
            case verbs.ListItem(order):
                ask = order.ask
                self._listings = [OwnListing(ask.inscription_id, ask.inscription_id, ask.slug, ask.price, ask.owner)]
                return None
            case verbs.Delist():
                self._listings = []
                return True
        raise LookupError(f"a made-up market has no answer to {args}")


class MadeUpSigner(SignerClient):
    """A simulated signer, without keys."""

    def __init__(self) -> None:
        super().__init__(_NOWHERE)

    def _ask(self, request: Request[A], looked_up: int = 0) -> A:
        answers: dict[type[Request[Any]], object] = {
            protocol.AskAddresses: protocol.UserKeys(_NOBODY, "02" + "11" * 32, _VAULT, "22" * 32),
            protocol.AskRooms: protocol.Rooms((SignedRoom("task", 1 << 40, 0),)),
            protocol.SignBid: protocol.SignedBid("what was signed", _SIGNED),
            protocol.SignChallenge: protocol.Signature(_SIGNED),
            protocol.SignListing: protocol.SignedListing(_SIGNED, ()),
            protocol.AskWasSigned: protocol.WasSigned(signed=False),
        }
        encode(request)
        return read_answer(request, "signer", encode({"ok": answers[type(request)]}))


def warm_up(gather: Callable[[Callable[[], object]], None]) -> Settings | None:
    """Runs the dry runs, whose failure costs only speed and memory; returns the settings for all workers.

    `gather` runs one more and copies its code to adjacent memory. None if the settings cannot be read; each worker then
    reports that itself.
    """
    settings = None
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            logs.set_up("zygote")
            set_title("bidkeeper: zygote warms up")
            settings = worker.without_secrets(load())
            client.prepare()
            dry_run()
            gather(dry_run)
            dry_run(_MANY_CYCLES)  # runs the copied code, so that its caches are filled
            if is_postgresql(settings.database_url):
                # Prepares the dry run's queries for the workers' database, without connecting to it.
                base.prepare_for(settings.database_url)
                base.prepare_all()
    except Exception:
        logs.set_up("zygote", form=settings.log_format if settings else "text")
        log.exception("failed to warm up")
    return settings


def dry_run(cycles: int = _CYCLES) -> list[str]:
    """Runs cycles of every kind of worker on a database in memory; returns their reports, oldest first."""
    base.connect("sqlite:///:memory:")
    try:
        schema.migrate()
        return _run_each_kind(cycles)
    finally:
        base.close()


def _run_each_kind(cycles: int) -> list[str]:
    settings = Settings(whitelist=frozenset({_NOBODY}))
    user = users.find_or_create(_NOBODY, dict(settings.plans), _clock_ms())
    bids = tasks.create_bidding_task(
        user.id,
        type="ordinals",
        slug="cats",
        slug_key="cats",
        config=dump_bid_config(BidConfig(slug="cats", hardcap_sats=900_000)),
        venue=settings.market,
        max_tasks=1,
        now_ms=_clock_ms(),
    )
    listing = tasks.create_autolist_task(
        user.id,
        inscription_id=_INSCRIPTION,
        collection_id="cats",
        config=dump_listing_config(ListingConfig()),
        venue=settings.market,
        now_ms=_clock_ms(),
    )
    market = MadeUpMarket(_clock_ms)
    reports = []
    for task, kind in ((bids, "bidder"), (bids, "drain"), (listing, "lister"), (listing, "drain")):
        tasks.set_desired(task, STOPPED if kind == "drain" else RUNNING)
        if kind == "drain" and task is listing:
            tasks.mark_deleted(listing, _clock_ms())
        reports += _work(settings, task, kind, market, cycles)
    return reports


def _work(settings: Settings, task: Task, kind: str, market: MadeUpMarket, cycles: int) -> list[str]:
    token = tasks.raise_token(task.id)
    tasks.outline(task.id)
    # The zygote has no crash points, and every cycle is due immediately.
    context = Context(settings, task.id, token, "", market, MadeUpSigner(), _clock_ms, crash=lambda point: None)
    job = worker_main.make_job(kind, context, until_cycle=lambda slug, loop_s, now_s: 0.0)
    reports = []
    for _ in range(cycles):
        job.cycle()
        reports.append(_report(task.id))
    return reports


def _report(task_id: int) -> str:
    row = tasks.with_owner(task_id)
    assert row is not None
    return f"{row.last_error or row.last_cycle_action}; {closing.count_open(task_id)} open"


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


_BYTES_HEAD = sys.getsizeof(b"")
_SMALLEST_BYTES = 48  # the smallest size class of Python's allocator that a `bytes` object fits
_HEAP_CHUNKS = [1 << power for power in range(16, 5, -1)] + [48, 32]
_HEAP_HEAD = 8  # the C library's overhead per chunk
_MOST_CHUNKS = 100_000

_fillers: list[object] = []  # kept until the process ends


def gather(run: Callable[[], object]) -> None:
    """Calls `run`, and replaces the code of the functions that it enters by copies in adjacent memory."""
    entered: set[CodeType] = set()
    copies: dict[CodeType, CodeType] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    def copied(code: CodeType) -> CodeType:
        if code not in copies:
            constants = (copied(each) if isinstance(each, CodeType) else each for each in code.co_consts)
            copies[code] = code.replace(co_consts=tuple(constants))
        return copies[code]

    profiler = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(profiler)
    fill_gaps()  # otherwise the copies would be put into the gaps
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__ in entered:
            each.__code__ = copied(each.__code__)


def fill_gaps() -> None:
    """Fills the gaps between existing objects, so that new objects are adjacent."""
    gc.collect()
    try:
        _fill_pools()
        _fill_heap()
    except (OSError, AttributeError, ValueError) as error:
        # Another interpreter or C library; workers are then larger, but work.
        log.info("gaps in memory are left as they are: %s", error)


def _fill_pools() -> None:
    """Fills the gaps of Python's own allocator, which has pools of blocks for each size up to 512 bytes."""
    for size, count in _free_blocks().items():
        if size >= _SMALLEST_BYTES:
            _fillers.append([bytes(size - _BYTES_HEAD) for _ in range(count)])
        elif size == sys.getsizeof(0.5) + 8:
            _fillers.append([float(number) for number in range(count)])


def _free_blocks() -> dict[int, int]:
    """Returns the number of free blocks by size in partly used pools; the allocator reports it only on stderr."""
    stderr = os.dup(2)
    report = os.memfd_create("allocator")
    try:
        os.dup2(report, 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stderr, 2)
        text = os.pread(report, 1 << 20, 0).decode()
    finally:
        os.close(stderr)
        os.close(report)
    rows = (line.split() for line in text.splitlines())
    return {int(row[1]): int(row[4]) for row in rows if len(row) == 5 and all(map(str.isdigit, row))}


class _HeapFacts(ctypes.Structure):
    """The result of mallinfo2(3): ten numbers, the last (keepcost) for the free bytes at the heap's end."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (*"abcdefghi", "at_end"))


def _fill_heap() -> None:
    """Fills the gaps of the C library's allocator, from large to small chunks, until each comes from the heap's end."""
    libc = ctypes.CDLL(None)
    facts, allocate, free = libc.mallinfo2, libc.malloc, libc.free
    facts.restype, facts.argtypes = _HeapFacts, []
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    libc.malloc_trim(0)
    for size in _HEAP_CHUNKS:
        for _ in range(_MOST_CHUNKS):
            end = facts().at_end
            chunk = allocate(size - _HEAP_HEAD)
            if facts().at_end != end:
                free(chunk)
                break


Run = Callable[..., int]  # like `workers.process.main.run`
_STDIN = 0
_KEPT = (0, 1, 2)


class Unfit(Exception):
    """A refusal: this process cannot fork safely, now or later."""


class Zygote:
    """Serves one manager over `link`; `run` is each worker's program."""

    def __init__(self, link: socket.socket, run: Run, settings: Settings | None) -> None:
        self._link = link
        self._run = run
        self._settings = settings
        self._workers: dict[int, int] = {}
        # The C handler writes to it at each SIGCHLD, so that poll() below wakes up.
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def serve(self) -> None:
        """Serves until the manager ends or closes its end of the link."""
        kernel.send_packet(self._link, {"ready": True})
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._link.fileno() in ready:
                received = kernel.receive_packet(self._link)
                if received is None:
                    return
                self._answer(*received)

    def _reap(self) -> None:
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._workers.pop(pid)
            kernel.send_packet(self._link, {"ended": number, "status": os.waitstatus_to_exitcode(status)})

    def _answer(self, request: dict[str, Any], descriptors: list[int]) -> None:
        number = request["start"]
        try:
            status_fd, life_line = descriptors
            # A manager that abandoned this start has closed the other end.
            if _hung_up(life_line):
                return
            pid = self._fork(request, status_fd, life_line)
        except (OSError, Unfit) as error:
            answer = {"failed": number, "text": str(error), "unfit": isinstance(error, Unfit)}
            kernel.send_packet(self._link, answer)
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self._workers[pid] = number
        # The worker is reaped only after this is sent, so its pid cannot be reused before.
        pidfd = os.pidfd_open(pid)
        kernel.send_packet(self._link, {"started": number, "pid": pid}, [pidfd])
        os.close(pidfd)

    def _fork(self, request: dict[str, Any], status_fd: int, life_line: int) -> int:
        require_one_thread()
        parent = os.getpid()
        # No handler of the zygote may run in the child, and no signal may be lost before the child sets its own
        # handlers.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _become_worker(status_fd, life_line)
                arguments = [request["kind"], *map(str, (request["task"], request["token"], parent, status_fd))]
                code = _exit_code(lambda: self._run(arguments, settings=self._settings))
            finally:
                # A worker must not unwind the zygote's stack or flush its buffers.
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        return pid


def require_one_thread() -> None:
    """Raises Unfit if there is another thread, because a lock that it holds would never be released in the child."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - a start is waiting for this
    if threads != 1:
        raise Unfit(f"the zygote has {threads} threads")


def _hung_up(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _become_worker(status_fd: int, life_line: int) -> None:
    """Prepares the child as if it was started anew: default actions for all signals, no inherited descriptor open."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(life_line, _STDIN)
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - what runs here is paid for by every worker
        if fd not in _KEPT and fd != status_fd:
            with contextlib.suppress(OSError):  # the descriptor of the directory listing itself
                os.close(fd)
    os.setsid()
    gc.enable()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _exit_code(run: Callable[[], int]) -> int:
    """Returns the exit code that the interpreter would return with `run` as its program."""
    try:
        try:
            return run()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        if end.code is None:
            return 0
        print(end.code, file=sys.stderr, flush=True)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    return 1


def main(argv: Sequence[str], run: Run = worker_main.run) -> None:
    """Runs the zygote until its end; `run` replaces that of `workers/process/main.py`."""
    link_fd, manager = map(int, argv[:2])
    end_with_parent(manager, signal.SIGKILL)  # because SIGKILL works even while it is stopped
    # Ctrl-C must reach only the manager, which ends its workers in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    link = socket.socket(fileno=link_fd)
    link.set_inheritable(False)
    settings = warm_up(gather)
    if settings:
        logs.set_up("zygote", settings.log_level, settings.log_format)
    worker.set_title("bidkeeper: zygote")
    # Once for all workers, which inherit it.
    give_up_network(settings.database_url if settings else "")
    fill_gaps()
    gc.freeze()  # so that the garbage collector never writes to existing objects
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the manager has ended
        Zygote(link, run, settings).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
