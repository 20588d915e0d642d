"""Brakes on a whole installation: how long each kind takes, and its outcome.

Only the HTTP API is asked, and the times are the practice market's own, so any version of the service can be measured.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import requests

from drills.faults import checker, evidence
from drills.faults.evidence import Quiet
from simulator.calls import PER_SECOND
from strategy.config.bid import BidConfig, load_bid_config
from tests.databases import rows
from tests.e2e.installation import Installation, Trader, in_path, until


@dataclass
class Claims:
    """The service's own words about how far a brake is: (seconds since the request, open, unknown) of each answer."""

    found: list[tuple[float, int, int]] = field(default_factory=list)

    def add(self, seconds: float, *answers: Any) -> None:
        """Notes answers that have `closing`, where null means that nothing is open, or `openBids`.

        Under `reduce` the market decides which bids are cancelled, so that null claims nothing.
        """
        counts = [
            _open_and_unknown(answer)
            for answer in answers
            if {"closing", "openBids"} & answer.keys() and answer.get("effective", {}).get("state") != "reduce"
        ]
        if counts:
            self.found.append((seconds, sum(each[0] for each in counts), sum(each[1] for each in counts)))

    @property
    def zero_s(self) -> float | None:
        """When the service first said that no bid is open."""
        return next((seconds for seconds, still_open, unknown in self.found if not still_open and not unknown), None)

    @property
    def unknown(self) -> int:
        """The most unknown places of an answer."""
        return max((unknown for _, _, unknown in self.found), default=0)

    def lies(self, last_end_s: float) -> str:
        """Names the first answer that said 0 while a bid was open; "" without one."""
        for seconds, still_open, unknown in self.found:
            if not still_open and not unknown and seconds < last_end_s:
                return f"says 0 open at {seconds:.2f} s, the last bid ended at {last_end_s:.2f} s"
        return ""

    def __str__(self) -> str:
        if not self.found:
            return "says nothing"
        _, still_open, unknown = self.found[0]
        zero = "never 0" if self.zero_s is None else f"0 at {self.zero_s:.2f} s"
        return f"says {still_open} open, {unknown} unknown, {zero}"


@dataclass
class Outcome:
    """What one brake did. Seconds count from the request; inf is a bid that was still open when patience ended.

    `ends` are those of the bids that were open at the request, `wire` those of the bids that arrived after it. `late`
    counts places that were accepted after the answer.
    """

    name: str
    ends: list[float]
    wire: list[float]
    late: int
    statuses: list[int]
    answered_s: float
    calls: Counter[str]
    claims: Claims
    began_ms: int
    access_s: float | None = None  # of a brake that ends access

    @property
    def seconds(self) -> float:
        """The seconds until the last concerned bid was cancelled, a place on the wire apart; 0 without one."""
        return max(self.ends, default=0.0) if self.access_s is None else self.access_s

    @property
    def whole_seconds(self) -> float:
        """The same, places on the wire included."""
        return max([self.seconds, *self.wire])

    @property
    def by_pace_s(self) -> float:
        """The seconds that these calls take at the market's own pace."""
        return self.calls.total() / PER_SECOND

    @property
    def faults(self) -> list[str]:
        """Whatever is wrong, speed apart."""
        found = []
        if self.late > self.claims.unknown:  # a place on the wire that the answer counted breaks nothing
            found.append(f"{self.late} placed after the answer")
        if bad := [status for status in self.statuses if status not in (200, 503, 507)]:
            found.append(f"answered {bad}")
        if lies := self.claims.lies(max([0.0, *self.ends, *self.wire])):
            found.append(lies)
        return found

    def __str__(self) -> str:
        statuses = ",".join(str(status) for status in sorted(set(self.statuses)))
        most = ", ".join(f"{count} {name}" for name, count in self.calls.most_common(4))
        return (
            f"{self.name:<9} {len(self.ends):>4} bids {self.seconds:7.2f} s   wire {len(self.wire)}"
            f"{f' ({max(self.wire):.2f} s)' if self.wire else ''}   answer {statuses} in {self.answered_s:.2f} s"
            f"   {self.calls.total()} calls = {self.by_pace_s:.1f} s ({most})   {self.claims}"
            f"{''.join(f'   FAULT: {fault}' for fault in self.faults)}"
        )


def json_of(answer: requests.Response) -> dict[str, Any]:
    """Returns an answer's object; empty where it has none."""
    with contextlib.suppress(ValueError):
        if isinstance(found := answer.json(), dict):
            return found
    return {}


def _open_and_unknown(answer: dict[str, Any]) -> tuple[int, int]:
    of_all = answer.get("global", {}).get("closing")  # of all users, for an administrator
    closing = of_all or answer.get("closing") or {"open": answer.get("openBids", 0), "unknown": 0}
    return int(closing["open"]), int(closing["unknown"])


PLACE_SLACK_S = 2.0  # after a brake's answer and its last cancel: a place that comes late comes within it
EXPOSURE = 50_000_000  # of the plan that every user has
CLAIM_SLACK_S = 10.0  # until the service has said that no bid is open, if it ever does
# Calls of the marketplace's key. The sources of facts about the chain have a pace of their own.
KEYED = frozenset({"challenge", "floors", "book", "sales", "own_bids", "balance", "place", "cancel"})
FLOOR, LOWER_FLOOR, LOWER_CAP = 1_000_000, 600_000, 600_000
LADDER = {
    "bidPercentLow": 0.5,
    "bidPercentHigh": 0.75,
    "hardcapSats": 2_000_000,
    "maxBidTotal": 40_000_000,  # several ladders may be signed before the first signature expires
    "bidExpiryMinutes": 15,
}
_PATIENCE_S = 60.0
_STEP_S = 0.04
_ASK_EVERY_S = 0.25


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class SeenBid:
    """A signed bid, as the practice market saw it; `ended_ms` is None while it is open."""

    maker: str
    slug: str
    price: int
    accepted_ms: int
    ended_ms: int | None = None


class Market:
    """The practice market's signed bids, from its history, which is read from the last known event on."""

    def __init__(self, service: Installation) -> None:
        self.bids: dict[str, SeenBid] = {}
        self._service = service
        self._number = 0

    def read(self) -> None:
        for row in self._service.sim("GET", f"/sim/history?since={self._number}"):
            self._number = row["number"]
            if row["kind"] != "bid":
                continue
            if row["event"] == "accepted" and row["message"]:
                self.bids[row["orderId"]] = SeenBid(row["maker"], row["slug"], row["price"], row["time"])
            elif row["orderId"] in self.bids and _is_end(row):
                self.bids[row["orderId"]].ended_ms = row["time"]

    def open(self, concerns: Callable[[SeenBid], bool] = lambda bid: True) -> list[SeenBid]:
        """Returns the open bids as of the last read."""
        return [bid for bid in self.bids.values() if bid.ended_ms is None and concerns(bid)]

    def calls(self) -> Counter[str]:
        """Counts the calls of the marketplace's key so far, by operation."""
        found = self._service.sim("GET", "/sim/requests")
        return Counter({name: sum(by_key.values()) for name, by_key in found.items() if name in KEYED})


def _is_end(row: dict[str, Any]) -> bool:
    return row["event"] in ("cancelled", "expired") or (
        row["event"] == "filled" and float(row.get("remaining", 0)) == 0
    )


class Ladders:
    """A new user, whom `admin` lets in, with a task on each of `slugs`."""

    def __init__(self, service: Installation, admin: Trader, slugs: Sequence[str], **config: Any) -> None:
        self.service, self.admin, self.slugs = service, admin, slugs
        self.trader = Trader(service)
        admin.ok("POST", "/api/admin/whitelist", {"address": self.trader.address})
        self.trader.sign_in()
        self.wallet = self.trader.ok("GET", "/api/wallet")["payment"]
        self.bids_each = int(config["bidCount"])
        self.tasks = [self.trader.task(slug=slug, **(LADDER | config)) for slug in slugs]
        self.configs: dict[int, list[BidConfig]] = {}
        self.note_configs(self.tasks)

    def owns(self, bid: SeenBid) -> bool:
        return bid.maker == self.wallet and bid.slug in self.slugs

    def put_floor(self, sats: int) -> None:
        for slug in self.slugs:
            self.service.put_collection(slug, [sats])

    def start(self) -> None:
        self.of_each("POST", "/start")

    def of_each(self, method: str, path: str, body: Any = None) -> list[requests.Response]:
        """Makes the call for each task, eight at a time."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda task: self.trader.call(method, f"/api/tasks/{task}{path}", body), self.tasks))

    def until_whole(self, market: Market, seconds: float = 180) -> None:
        """Waits until every rung has its bid."""

        def is_whole() -> bool:
            market.read()
            return len(market.open(self.owns)) == self.bids_each * len(self.tasks)

        until(is_whole, f"the ladders of {self.wallet}", seconds)

    def another_session(self) -> Trader:
        """Signs the same user in once more."""
        other = Trader(self.service)
        other.key, other.address = self.trader.key, self.trader.address
        return other.sign_in()

    def note_configs(self, tasks: Iterable[int]) -> None:
        """Keeps the configs that the tasks have now, for the checker: it judges bids by all that a task had."""
        for task in tasks:
            found = rows(self.service.database_url, "SELECT config FROM tasks WHERE id = ?", [task])
            self.configs.setdefault(task, []).extend(load_bid_config(config) for (config,) in found)

    def remove(self) -> None:
        """Deletes the tasks, so that they cost the next user no call. A task may already be deleted."""
        with contextlib.suppress(requests.RequestException):
            self.of_each("DELETE", "")


Press = Callable[[Ladders], Iterable[requests.Response]]


@dataclass(frozen=True)
class Brake:
    """A way to make things safer: its request, the bids that must end, and the bids that it forbids to place.

    `access` signs the user in elsewhere and returns whether that session has ended: of a brake that is not about bids.
    """

    name: str
    press: Press
    concerns: Callable[[SeenBid], bool] = lambda bid: True
    forbids: Callable[[SeenBid], bool] = lambda bid: True
    prepare: Callable[[Ladders], None] = lambda ladders: None
    access: Callable[[Ladders], Callable[[], bool]] | None = None
    is_counted: bool = True  # whether the answer counts its open bids: the market decides what reduce cancels
    is_asked_about: bool = False  # whether GET /api/control counts them, too


def control(state: str) -> Press:
    """Returns the request that sets the user's own state."""
    return lambda ladders: [ladders.trader.call("PUT", "/api/control", {"scope": "user", "state": state})]


def _other_session(ladders: Ladders) -> Callable[[], bool]:
    """Signs the user in a second time; returns whether that session is refused by now."""
    other = ladders.another_session()
    return lambda: other.call("GET", "/api/sessions").status_code == 401


def _too_high(bid: SeenBid) -> bool:
    return bid.price > LOWER_CAP


BRAKES = (
    Brake("halt", control("halt"), is_asked_about=True),
    # Where the floor falls, a task that may only cancel takes down the bids that are above its range now.
    Brake(
        "reduce",
        control("reduce"),
        concerns=lambda bid: bid.price > LADDER["bidPercentHigh"] * LOWER_FLOOR * 1.02,
        prepare=lambda ladders: ladders.put_floor(LOWER_FLOOR),
        is_counted=False,
    ),
    Brake("stop", lambda ladders: ladders.of_each("POST", "/stop")),
    Brake("delete", lambda ladders: ladders.of_each("DELETE", "")),
    Brake(
        "cap",
        lambda ladders: ladders.of_each("PUT", "", {"hardcapSats": LOWER_CAP}),
        concerns=_too_high,
        forbids=_too_high,
    ),
    Brake(
        "ceiling",
        lambda ladders: [ladders.trader.call("PUT", "/api/ceilings", {"maxHardcap": LOWER_CAP})],
        concerns=_too_high,
        forbids=_too_high,
    ),
    # It ends sessions and API tokens; tasks trade on, so it concerns no bid.
    Brake(
        "sign-out",
        lambda ladders: [ladders.trader.call("DELETE", "/api/sessions")],
        concerns=lambda bid: False,
        forbids=lambda bid: False,
        access=_other_session,
    ),
    Brake(
        "expel",
        lambda ladders: [
            ladders.admin.call("DELETE", f"/api/admin/whitelist/{in_path(ladders.trader.address)}"),
        ],
    ),
)
BY_NAME = {brake.name: brake for brake in BRAKES}


class Asker:
    """Asks the service again and again how many bids are open, until it says 0."""

    def __init__(self, trader: Trader, claims: Claims, began_ms: int) -> None:
        self._url = trader.base_url + "/api/control"
        self._headers = {"Authorization": str(trader.session.headers["Authorization"])}
        self._claims, self._began_ms = claims, began_ms
        self._enough = threading.Event()

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        thread = threading.Thread(target=self._ask)
        thread.start()
        try:
            yield
        finally:
            self._enough.set()
            thread.join()

    def _ask(self) -> None:
        while not self._enough.wait(_ASK_EVERY_S):
            with contextlib.suppress(requests.RequestException):
                answer = requests.get(self._url, headers=self._headers, timeout=5)
                self._claims.add((now_ms() - self._began_ms) / 1000, json_of(answer))


class Fault(Protocol):
    """What strikes the moment before a brake (tests/e2e/adversity.py)."""

    def brew(self, ladders: Ladders) -> None:
        """Waits until the fault may strike."""

    def strike(self) -> None:
        """Strikes."""


def braked(
    brake: Brake,
    ladders: Ladders,
    market: Market,
    fault: Fault | None = None,
    patience_s: float = _PATIENCE_S,
) -> Outcome:
    """Presses the brake under a fault, if there is one, and follows its bids until all have ended or patience has."""
    has_ended = brake.access(ladders) if brake.access else None
    if fault is not None:
        fault.brew(ladders)
    brake.prepare(ladders)
    if fault is not None:
        fault.strike()
    before = market.calls()

    def concerned(bid: SeenBid) -> bool:
        return ladders.owns(bid) and brake.concerns(bid)

    began_ms, claims = now_ms(), Claims()
    asking = Asker(ladders.trader, claims, began_ms).asking() if brake.is_asked_about else contextlib.nullcontext()
    with ThreadPoolExecutor(1) as pool, asking:
        answers: Future[tuple[float, list[int]]] = pool.submit(_pressed, brake, ladders, claims, began_ms)
        access_s = _followed(market, concerned, has_ended, answers, began_ms, patience_s)
        calls = market.calls()
        calls.subtract(before)
        answered_s, statuses = answers.result()
        time.sleep(PLACE_SLACK_S)
        asked_until = time.monotonic() + CLAIM_SLACK_S
        while brake.is_asked_about and claims.zero_s is None and time.monotonic() < asked_until:
            time.sleep(_STEP_S)
    market.read()
    after = [bid for bid in market.bids.values() if ladders.owns(bid) and bid.accepted_ms > began_ms]
    late = [bid for bid in after if brake.forbids(bid) and bid.accepted_ms > began_ms + 1000 * answered_s]
    there = [bid for bid in market.bids.values() if concerned(bid) and _was_open(bid, began_ms)]
    return Outcome(
        brake.name,
        ends=[_seconds(bid, began_ms) for bid in there],
        wire=[_seconds(bid, began_ms) for bid in after if concerned(bid)],
        late=len(late),
        statuses=statuses,
        answered_s=answered_s,
        calls=+calls,
        claims=claims,
        began_ms=began_ms,
        access_s=access_s,
    )


def _pressed(brake: Brake, ladders: Ladders, claims: Claims, began_ms: int) -> tuple[float, list[int]]:
    """Returns the seconds to the last answer, and the statuses; 0 for a request without an answer."""
    try:
        found = list(brake.press(ladders))
    except requests.RequestException:
        found = []
    seconds = (now_ms() - began_ms) / 1000
    if brake.is_counted:
        claims.add(seconds, *map(json_of, found))
    return seconds, [answer.status_code for answer in found] or [0]


def _followed(
    market: Market,
    concerned: Callable[[SeenBid], bool],
    has_ended: Callable[[], bool] | None,
    answers: Future[Any],
    began_ms: int,
    patience_s: float,
) -> float | None:
    """Reads until the brake is answered and has done its work; returns when it ended access, if it is to."""
    access_s = math.inf if has_ended else None
    while (now_ms() - began_ms) / 1000 < patience_s:
        market.read()
        if has_ended and access_s == math.inf and has_ended():
            access_s = (now_ms() - began_ms) / 1000
        if answers.done() and not market.open(concerned) and access_s != math.inf:
            break
        time.sleep(_STEP_S)
    return access_s


def _was_open(bid: SeenBid, at_ms: int) -> bool:
    return bid.accepted_ms <= at_ms and (bid.ended_ms is None or bid.ended_ms > at_ms)


def _seconds(bid: SeenBid, began_ms: int) -> float:
    return math.inf if bid.ended_ms is None else (bid.ended_ms - began_ms) / 1000


def disagreements(
    service: Installation, configs: Mapping[int, list[BidConfig]], quiet: Sequence[Quiet] = ()
) -> list[str]:
    """Holds the ledger against the market's history; `configs` are those that changed tasks had."""
    read = evidence.read(service, EXPOSURE)
    read.quiet = list(quiet)
    read.configs |= configs
    return checker.disagreements(read)


@contextlib.contextmanager
def with_admin(
    verb: str = "up", prepare: Callable[[Installation], object] = lambda made: None, **settings: str
) -> Iterator[tuple[Installation, Trader]]:
    """Starts an installation that only its administrator lets users into; `prepare` comes before its programs."""
    made = Installation(**settings)
    try:
        admin = Trader(made)
        made.environment |= {"BIDKEEPER_ADMINS": admin.address, "BIDKEEPER_WHITELIST": admin.address} | settings
        prepare(made)
        made.up(verb)
        yield made, admin.sign_in()
    finally:
        made.destroy()
