"""An installation in one process with the practice market, and what the market's actors do.

Real are the market's handlers and engine, the adapters, the gateway's parts, the signer with its files, the ledger,
the jobs of workers and the decisions of the manager. Sockets, processes and waiting are not there.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

from msgspec import to_builtins

import simulator.handler
import wallet.signer_client
from core.call import Request
from core.errors import PeerRefused, PeerUnavailable
from core.layout import journal_path
from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from core.unix_http import NoAnswer, NotSent
from drills.faults.evidence import AskMove, Bid, Quiet, bids
from gateway.app import Gateway
from gateway.program import Asker
from gateway.quota import ORIGIN, origin_of
from markets import verbs
from markets.base import Unavailable, Unknown, VenueError, to_wire
from markets.client import MarketClient
from markets.http import Http
from models import schema
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import Task
from simulator.world import World
from strategy.config.bid import BidConfig
from tests.worlds.clockwork import HANDLERS_ASYNCIO, AtOnce, Clock, Crash, Loop, Manager, Wire
from tests.worlds.signer import read_request
from wallet.keystore.keys import Keystore
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer
from wallet.signer_client import SignerClient
from wallet.terms import ceilings_of
from workers.bidding.bidder import Bidder
from workers.bidding.moment import Journal
from workers.context import Context, Job, Kind
from workers.cycle import until_cycle
from workers.drains import BiddingDrain

EXPOSURE, INSTALLATION = 250_000, 400_000
PLAN = SubscriptionPlan("Beta", 20, 20, EXPOSURE, 0, 365)
# What the signer refuses a worker that does as its config says never asks for.
MUST_NOT_BE_ASKED = (
    "max-bid",
    "expiry-max",
    "msg-template",
    "intent-conflict",
    "bad-request",
    "market",
    "default-deny",
)
Deed = Callable[[int], None]


class _Line:
    """In the place of the client's connection to the gateway."""

    def __init__(self, post: Callable[[bytes], bytes]) -> None:
        self._post = post

    def post(self, body: bytes, *, repeatable: bool) -> bytes:
        return self._post(body)

    def close(self) -> None:
        pass


class MarketHere(MarketClient):
    """The gateway's client, to a gateway in this process."""

    def __init__(self, post: Callable[[bytes], bytes]) -> None:
        self._http = _Line(post)  # type: ignore[assignment]
        self.venue = None


class _Complaints(logging.Handler):
    """Errors that some part logged and did not expect: mistakes of ours."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(f"{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")


class House:
    """`signer_fails` and `gateway_fails` hold what becomes of the next questions: "away", or "lost" after its answer.

    `interrupt` has something happen in the middle of a coming cycle.
    """

    manager_kind: ClassVar[type[Manager]] = Manager

    def __init__(
        self,
        seed: int = 0,
        *,
        plan: SubscriptionPlan = PLAN,
        installation: int = INSTALLATION,
        background: bool = False,
        keeps_journals: bool = False,
    ) -> None:
        """`installation` is what all users' orders may sum up to; `background`: the market's own traders are there."""
        self.clock = Clock()
        self._plan, self._installation, self._background = plan, installation, background
        self._keeps_journals = keeps_journals
        self.hits: Counter[str] = Counter()
        self.signer_fails: list[str] = []
        self.gateway_fails: list[str] = []
        self.blind_ms: list[int] = []  # when somebody could not be told a book
        self._seed, self._rng = seed, random.Random(seed)
        self._interruption: tuple[int, Deed] | None = None
        self._afterwards: list[Callable[[], None]] = []
        self._complaints = _Complaints()
        self._stack = contextlib.ExitStack()
        self._signer_files = contextlib.ExitStack()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        root = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.directory = Path(tempfile.mkdtemp(prefix="bk-model-", dir=root))
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self.settings = Settings(
            data_dir=self.directory,
            whitelist=frozenset("*"),
            plans={"beta": self._plan},
            max_exposure_sats=self._installation,
        )
        logging.getLogger().addHandler(self._complaints)
        self._stack.callback(logging.getLogger().removeHandler, self._complaints)
        self.database = self.directory / "bidkeeper.db"
        shutil.copy(_empty_database(), self.database)
        base.connect(f"sqlite:///{self.database}")
        self._stack.callback(base.close)
        self.world = World(
            seed=self._seed, background=self._background, clock=self.clock.ms, monotonic=self.clock.monotonic
        )
        self.wire = Wire(self.clock, self.world)
        self._loop = Loop(self.clock)
        self._stack.callback(self._loop.close)
        self._put_in_place()
        self.open_gateway()
        self._stack.callback(self._signer_files.close)
        self.open_signer()
        self.market = MarketHere(self._ask_gateway)
        self.signer = SignerClient(self.settings.signer_socket)
        self.manager = self.manager_kind(self.clock, self.settings, self.market, self.signer, self._hire)

    def close(self) -> None:
        self._stack.close()

    def _put_in_place(self) -> None:
        """Our clock and wire, where a process has its own."""
        clock, wire = self.clock, self.wire
        times = SimpleNamespace(monotonic=clock.monotonic, time_ns=lambda: clock.now_ms * 1_000_000)
        parts = [module for name, module in sys.modules.items() if name.startswith("gateway.")]

        def at_once(*_: Any, **__: Any) -> AtOnce:
            return AtOnce()

        def exchange(http: Any, exchange: Any, method: str, path: str, **request: Any) -> Any:
            headers = dict(http._session.headers) | request.pop("headers", {})
            return wire.exchange(exchange, method, http._base + path, headers=headers, **request)

        for place, name, value in (
            *((part, "time", times) for part in parts if hasattr(part, "time")),
            *((part, "ThreadPoolExecutor", at_once) for part in parts if hasattr(part, "ThreadPoolExecutor")),
            (simulator.handler, "asyncio", HANDLERS_ASYNCIO),
            (Http, "_exchange", exchange),
            (wallet.signer_client, "call", self._ask_signer),
        ):
            self._stack.enter_context(patch.object(place, name, value))

    # Programs

    def open_gateway(self) -> None:
        """A gateway that has just started: it knows nothing."""
        self._verbs = Gateway(self.settings, tasks.least_token).verbs

    def open_signer(self) -> None:
        """A signer that has just started: it has what its files hold."""
        self._signer_files.close()
        directory = self.directory / "signer"
        directory.mkdir(mode=0o700, exist_ok=True)
        audit = self._signer_files.enter_context(contextlib.closing(AuditLog(directory / "audit.jsonl")))
        ledger = self._signer_files.enter_context(contextlib.closing(Ledger(directory / "signer.db")))
        randbytes = self._rng.randbytes
        keystore = Keystore.open_or_create_play(directory / "keystore.json", randbytes)
        self._signer = Signer(
            ledger, audit, keystore, ceilings=ceilings_of(self.settings), clock=self.clock.ms, rng_bytes=randbytes
        )

    def _ask_gateway(self, body: bytes) -> bytes:
        fails = self.gateway_fails.pop(0) if self.gateway_fails else ""
        request = verbs.read(body)
        answer = b"" if fails == "away" else self._loop.run_until_complete(self._answered(request))
        if request.verb in ("asks", "rune_asks") and (fails or answer.startswith(b'{"error"')):
            self.blind_ms.append(self.clock.now_ms)
        if fails == "away":
            raise NotSent("away")
        if fails == "lost":
            self.open_gateway()  # it died in between
            raise NoAnswer("lost")
        return answer

    async def _answered(self, request: verbs.Request) -> bytes:
        """As the gateway's handler does it."""
        try:
            ORIGIN.set(origin_of(request))
            answer = await self._verbs.answer(request, Asker(None))
            return f'{{"ok":{answer}{self._verbs.remark(request)}}}'.encode()
        except VenueError as error:
            return json.dumps({"error": to_wire(error)}).encode()
        except Exception as error:
            self._complaints.found.append(f"gateway: {request.verb}: {error!r}")
            leaf = Unknown if request.verb in verbs.WRITES else Unavailable
            return json.dumps({"error": to_wire(leaf("failed in the gateway"))}).encode()

    def _ask_signer(self, path: Path, peer: str, request: Request[Any], *, timeout: float) -> Any:
        fails = self.signer_fails.pop(0) if self.signer_fails else ""
        if fails == "away":
            raise PeerUnavailable(peer, "cannot be asked")
        try:
            answer = self._handled(read_request(to_builtins(request)))
        except PeerRefused as refused:
            if refused.code in MUST_NOT_BE_ASKED:
                self._complaints.found.append(f"signer: was asked for what it must refuse: {refused}")
            raise
        if fails == "lost":
            self.open_signer()  # it died in between
            raise PeerUnavailable(peer, "closed the connection without an answer")
        return answer

    def _handled(self, request: Request[Any]) -> Any:
        return self._signer.handle(request)

    # Workers

    def _hire(self, kind: Kind, task_id: int, token: int, secret: str) -> Job:
        def crash(point: str) -> None:
            self._pass_by(task_id, point)

        market = MarketHere(self._ask_gateway)
        market.user = Task.get_by_id(task_id).user_id
        context = Context(
            settings=self.settings,
            task_id=task_id,
            token=token,
            secret=secret,
            market=market,
            signer=self.signer,
            clock_ms=self.clock.work_ms,
            crash=crash,
        )
        rng = random.Random(self._rng.random())
        if kind == "drain":
            return BiddingDrain(context, rng=rng)
        return Bidder(
            context,
            rng=rng,
            journal=Journal(journal_path(self.directory, task_id)) if self._keeps_journals else None,
            new_intent=lambda: f"{self._rng.getrandbits(128):032x}",
            monotonic=self.clock.monotonic,
            until_cycle=until_cycle,
        )

    def interrupt(self, after: int, deed: Deed) -> None:
        """`deed` gets the task whose worker is the `after`-th to come by a crash point from now on, at that point."""
        self._interruption = after, deed

    def after_cycle(self, act: Callable[[], None]) -> None:
        """For a deed: what follows once the cycle that it happens in has ended, one way or the other."""
        self._afterwards.append(act)

    def _pass_by(self, task_id: int, point: str) -> None:
        if self._interruption is None:
            return
        left, deed = self._interruption
        if left > 1:
            self._interruption = left - 1, deed
            return
        self._interruption = None
        self.hits[point] += 1
        deed(task_id)

    # Time

    def run(self, seconds: float) -> None:
        """Lets this much time pass, with everything that happens in it."""
        end = self.clock.monotonic() + seconds
        self.manager.full_sweep()
        while (turn := self.manager.next_turn()) is not None and turn <= end:
            self.clock.reach(turn)
            self.turn()
        self.clock.reach(end)
        self.manager.full_sweep()

    def turn(self) -> None:
        """Does the work due at this moment: one worker's cycle, or starts after a rest."""
        if not self.manager.run_due():
            self.manager.sweep()
        while self._afterwards:
            self._afterwards.pop(0)()

    def next_turn(self) -> None:
        """Goes on to whatever is due next, if anything is."""
        self.manager.sweep()
        if (turn := self.manager.next_turn()) is not None:
            self.clock.reach(turn)
            self.turn()

    @property
    def complaints(self) -> list[str]:
        return self._complaints.found


def die(task_id: int) -> None:
    """A deed."""
    raise Crash


_templates: list[Path] = []


def _empty_database() -> Path:
    """Returns a database of this version, made once."""
    if not _templates:
        directory = tempfile.mkdtemp(prefix="bk-model-empty-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        path = Path(directory) / "bidkeeper.db"
        base.connect(f"sqlite:///{path}")
        schema.migrate()
        base.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()
        _templates.append(path)
    return _templates[0]


@dataclass
class Told:
    """`asks` and `rune_asks` are lowest asks: sats, and sats a token."""

    configs: dict[int, list[BidConfig]] = field(default_factory=lambda: defaultdict(list))
    asks: list[AskMove] = field(default_factory=list)
    rune_asks: list[AskMove] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    quiet_since: dict[tuple[int, str], int] = field(default_factory=dict)
    accepted_twice: bool = False
    done: Counter[str] = field(default_factory=Counter)

    def be_quiet(self, task_id: int, why: str, now_ms: int) -> None:
        self.quiet_since.setdefault((task_id, why), now_ms)

    def end_quiet(self, task_id: int, why: str, now_ms: int) -> None:
        if (since := self.quiet_since.pop((task_id, why), None)) is not None:
            self.quiet.append(Quiet(task_id, since, now_ms))

    def all_quiet(self) -> list[Quiet]:
        return self.quiet + [Quiet(task_id, since) for (task_id, _), since in self.quiet_since.items()]


NOTHING_LISTED = 1 << 62


class Market:
    """The market of a house, in which `wallets` are our users'."""

    def __init__(self, house: House, told: Told, wallets: list[str]) -> None:
        self._house = house
        self._told = told
        self._wallets = wallets

    @property
    def _now_ms(self) -> int:
        return self._house.clock.now_ms

    def collection(self, slug: str, floor: int | None, rivals: list[int], higher: int = 2) -> None:
        """Lists some from `floor` (sats) on, or nothing, and has others bid `rivals`."""
        asks = [] if floor is None else [{"price": floor + 5_000 * n} for n in range(higher + 1)]
        lowest = NOTHING_LISTED if floor is None else floor
        self._told.asks.append(AskMove(self._now_ms, slug, lowest))
        body = {"asks": asks, "bids": [{"price": price} for price in rivals]}
        self._house.wire.control("PUT", f"/sim/collections/{slug}", body)

    def rune(self, ticker: str, unit: int, rivals: list[int]) -> None:
        """Lots from `unit` sats a token on."""
        asks = [{"tokens": 300 + 200 * n, "unitPrice": unit + n} for n in range(3)]
        self._told.rune_asks.append(AskMove(self._now_ms, ticker, unit))
        body = {"divisibility": 0, "asks": asks, "bids": [{"tokens": 50, "unitPrice": price} for price in rivals]}
        self._house.wire.control("PUT", f"/sim/runes/{ticker}", body)

    def ours(self) -> list[Bid]:
        """Returns our bids that are live at the venue, without those that it made two of."""
        self._house.world.engine.expire()
        found = [bid for bid in bids(self._house.world.engine.history.rows(None)) if bid.end_ms is None]
        twice = Counter(bid.mark for bid in found)
        return [bid for bid in found if twice[bid.mark] == 1]

    def sell(self, nth: int) -> None:
        """Sells into one of our bids."""
        found = self.ours()
        if found:
            bid = found[nth % len(found)]
            with contextlib.suppress(ValueError):  # it may not be covered
                self._house.wire.control("POST", "/sim/sell", {"slug": bid.slug, "bidId": bid.order_id})
                self._told.done["sale"] += 1

    def balance(self, user: int, sats: int) -> None:
        payment = self._wallets[user]
        for address in (payment, *self._house.world.engine.wallets.bidding_wallets(payment)):
            self._house.wire.control("PUT", f"/sim/wallets/{address}", {"balance": sats})

    def fault(self, operation: str, mode: str, count: int, delay: int) -> None:
        body = {"operation": operation, "mode": mode, "count": count, "delaySeconds": delay}
        self._house.wire.control("PUT", "/sim/faults", [body])
        self._told.accepted_twice = self._told.accepted_twice or mode == "accept_twice"
        self._told.done[f"{operation} {mode}"] += 1

    def no_faults(self) -> None:
        self._house.wire.control("PUT", "/sim/faults", [])
