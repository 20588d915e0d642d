"""A worker's cycles with the real database, and a fake venue, signer and clock."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec import structs

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from markets import base
from markets.client import AMPLE, MarketClient, Scarcity
from models import users
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.cycles import cycles_of
from models.tasks.tasks import RUNNING, Task
from strategy.book import Ask, Bid, VenueProfile
from strategy.config.bid import BidConfig, dump_bid_config, normal_slug
from strategy.decision import SignedRoom
from wallet.protocol import BidMessage, SignedBid, UserKeys
from wallet.signer_client import SignerClient, SignerError, SignerUnavailable
from workers.bidding.bidder import Bidder
from workers.context import Context, Job, crashpoint
from workers.drains import BiddingDrain

START_MS = 1_800_000_000_000
KEYS = UserKeys("bc1qpayment", "02" + "11" * 32, "bc1pvault", "22" * 32)
BIDS = VenueProfile("simulator", 1000, 10_000, 900, equal_bids_allowed=True, balance_model="per_bid")


class Clock:
    """Epoch milliseconds; every look at it takes one."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def advance(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


def ask(price: int, maker: str = "bc1qseller", quantity: int = 1) -> Ask:
    return Ask(f"ask-{price}-{maker}", price, Decimal(quantity), Decimal(price) / quantity, maker)


def bid(price: int, maker: str = "bc1qrival", quantity: int = 1, placed_ms: int | None = START_MS - 60_000) -> Bid:
    return Bid(f"bid-{price}-{maker}", price, Decimal(quantity), Decimal(price) / quantity, maker, placed_ms)


@dataclass
class FakeMarket:
    """The gateway's client. `script[operation]` holds what the next calls do, first one first.

    An exception is raised instead of doing anything; the words are told at each operation. `bids_` are others' bids,
    to which `asks` with a trait and `bids` add `trait_asks_` and `trait_bids_`. With `shares` a book is kept for as
    long as its age satisfies the asker, as the gateway keeps it.
    """

    clock: Clock
    venue: str | None = None
    profile_: VenueProfile = BIDS
    asks_: list[Ask] = field(default_factory=lambda: [ask(100_000)])
    bids_: list[Bid] = field(default_factory=list)
    trait_asks_: list[Ask] | None = None
    trait_bids_: list[Bid] = field(default_factory=list)
    sales_: list[base.Sale] = field(default_factory=list)
    # Rows that cannot be read: the times of such sales, the number of such offers in the books, own bids (by their
    # venue ids) with what is readable of their ids, and ids of rows about other bids.
    unread_sales: tuple[int | None, ...] = ()
    hidden_asks: int = 0
    hidden_bids: int = 0
    odd_own: dict[str, str] = field(default_factory=dict)
    odd_rows: tuple[str, ...] = ()
    tells_makers: bool = True
    divisibility: int = 0
    shares: bool = False
    reads: list[tuple[str, float]] = field(default_factory=list)
    known: set[str] = field(default_factory=lambda: {"cats"})
    balance_sats: int = 100_000_000
    fee_rate: Decimal = Decimal(2)
    own_: list[base.OwnBid] = field(default_factory=list)
    placed: list[base.BidOrder] = field(default_factory=list)
    done: list[tuple[str | int, ...]] = field(default_factory=list)
    script: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    max_ages: list[float] = field(default_factory=list)
    peak_sats: int = 0
    scarcity: Scarcity = AMPLE
    rune_scarcity: Scarcity = AMPLE
    skew_s: float = 0.0
    witness: Callable[[str], None] = lambda operation: None
    _kept: dict[str, Any] = field(default_factory=dict)
    _ids: Any = field(default_factory=lambda: (f"venue-{number:03}" for number in itertools.count()))

    @property
    def prices(self) -> list[int]:
        """Of our bids, highest first."""
        return sorted((bid.price for bid in self.own_), reverse=True)

    def fail(self, operation: str, *turns: Any) -> None:
        self.script[operation] += turns

    def _turn(self, operation: str) -> Any:
        self.clock()
        self.witness(operation)
        turn = self.script[operation].pop(0) if self.script[operation] else None
        if isinstance(turn, base.VenueError):
            raise turn
        return turn

    def expire(self) -> None:
        self.own_ = [bid for bid in self.own_ if bid.expires_ms is None or bid.expires_ms > self.clock.now_ms]

    def profile(self, kind: str = "ordinals") -> VenueProfile:
        self._turn("profile")
        return self.profile_ if kind == "ordinals" else structs.replace(self.profile_, tick=1, min_bid=1)

    def asks(
        self, slug: str, max_age_s: float, trait: tuple[str, str] | None = None, *, by_floor: bool = False
    ) -> base.AskBook:
        if trait is None:
            return self._book("asks", max_age_s, lambda: self._asks(self.asks_), base.AskBook)
        if self.trait_asks_ is None:
            raise base.NotSupported("the listings tell no traits")
        found = self.trait_asks_
        return self._book("trait_asks", max_age_s, lambda: self._asks(found), base.AskBook)

    def _asks(self, found: list[Ask]) -> tuple[Any, ...]:
        return _cheapest_first(found), self.clock(), None, self.hidden_asks, self.hidden_asks

    def bids(self, slug: str, kind: str, max_age_s: float, trait: tuple[str, str] | None = None) -> base.BidBook:
        """Others' bids and ours."""
        maker = KEYS.payment if self.tells_makers else ""

        def read() -> tuple[tuple[Bid, ...], int, int, int]:
            ours = [
                Bid(each.venue_id, each.price, amount, each.price / amount, maker, None)
                for each in self.own_
                if (amount := each.quantity or Decimal(1))
            ]
            found = [*self.bids_, *(self.trait_bids_ if trait else ()), *ours]
            ranked = tuple(sorted(found, key=lambda each: -each.unit_price))
            return ranked, self.clock(), self.hidden_bids, self.hidden_bids

        return self._book("bids", max_age_s, read, base.BidBook)

    def _book(self, operation: str, max_age_s: float, read: Callable[[], Any], make: Callable[..., Any]) -> Any:
        self.reads.append((operation, max_age_s))
        self._turn(operation)
        kept = self._kept.get(operation)
        if not self.shares or kept is None or self.clock.now_ms - kept.taken_ms >= max_age_s * 1000:
            kept = self._kept[operation] = make(*read())
        return kept

    def sales(self, slug: str, kind: str, since_ms: int, max_age_s: float) -> base.Sales:
        self._turn("sales")
        found = tuple(sale for sale in self.sales_ if sale.slug == slug and sale.sold_ms >= since_ms)
        return base.Sales(found, self.clock(), since_ms, self.unread_sales)

    def rune(self, ticker: str, max_age_s: float) -> base.Rune:
        self._turn("rune")
        return base.Rune(ticker, self.divisibility, self.clock())

    def floors(self, slugs: Sequence[str], kind: str, max_age_s: float) -> dict[str, base.Floor]:
        self._turn("floors")
        return {slug: base.Floor(slug, None, len(self.asks_)) for slug in slugs if slug in self.known}

    def rune_asks(self, ticker: str, max_age_s: float) -> base.AskBook:
        return self.asks(ticker, max_age_s)

    def own_bids(self, wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> base.OwnBids:
        """`empty` shows no bids though there may be some."""
        self.max_ages.append(max_age_s)
        turn = self._turn("own_bids")
        self.expire()
        if turn == "empty":
            return base.OwnBids((), self.clock())
        odd = (self.odd_own[bid.venue_id] for bid in self.own_ if bid.venue_id in self.odd_own)
        shown = tuple(bid for bid in self.own_ if bid.venue_id not in self.odd_own)
        return base.OwnBids(shown, self.clock(), (*odd, *self.odd_rows))

    def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> base.Balance:
        self._turn("balance")
        return base.Balance(payment, self.balance_sats, self.clock())

    def fees(self, max_age_s: float) -> base.Fees:
        self._turn("fees")
        rate = self.fee_rate
        return base.Fees(rate, rate, rate, rate, rate, self.clock())

    def challenge(self, wallet: str) -> str:
        self._turn("challenge")
        self.done.append(("challenge", 0))
        return "please sign 1"

    def place(self, order: base.BidOrder, *, task: int, token: int, deadline_ms: int, rung: int = 0) -> None:
        """`lost` accepts and loses the answer, `twice` makes two bids of one, `never` sends and loses all."""
        turn = self._turn("place")
        self.done.append(("place", order.price))
        if turn == "never":
            raise base.Unknown("timed out")
        self.placed.append(order)
        for _ in range(2 if turn == "twice" else 1):
            self.add(order.price, order.expires_ms, order.slug, order.kind, order.quantity)
        if turn == "lost":
            raise base.Unknown("timed out")

    def sell(self, price: int, *, buyer: str | None = None, tells_bid: bool = False, sale_id: str = "") -> base.Sale:
        """Sells into our bid of this price: it is gone, and the sale can be read."""
        sold = next(bid for bid in self.own_ if bid.price == price)
        self.own_.remove(sold)
        sale = base.Sale(
            sale_id or f"sale-{len(self.sales_)}",
            sold.slug,
            price,
            sold.quantity,
            buyer or KEYS.payment,
            sold.venue_id if tells_bid else None,
            None,
            self.clock(),
        )
        self.sales_.append(sale)
        return sale

    def add(
        self, price: int, expires_ms: int | None, slug: str = "cats", kind: Any = "ordinals", quantity: Any = Decimal(1)
    ) -> base.OwnBid:
        bid = base.OwnBid(next(self._ids), slug, kind, price, quantity, expires_ms, None)
        self.own_.append(bid)
        self.peak_sats = max(self.peak_sats, sum(bid.price for bid in self.own_))
        return bid

    def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """`lie` says it is done and keeps the first of the bids, `no` reports a failure and keeps it, `lost` does it
        and loses the answer. A bid that is not there is a failure, too; neither keeps the others from being cancelled.
        """
        shown = {bid.venue_id: bid.price for bid in self.own_}
        self.done.append(("cancel", *(shown.get(each, 0) for each in venue_ids)))
        turn = self._turn("cancel")
        gone = venue_ids[1:] if turn in ("lie", "no") else venue_ids
        self.own_ = [bid for bid in self.own_ if bid.venue_id not in gone]
        if turn == "lost":
            raise base.Unknown("timed out")
        return turn != "no" and shown.keys() >= set(venue_ids)


def _cheapest_first(asks: list[Ask]) -> tuple[Ask, ...]:
    return tuple(sorted(asks, key=lambda found: found.unit_price))


@dataclass
class FakeSigner:
    """The signer's client. `script` holds what the next signatures of bids do.

    An exception is raised instead of signing; `lost` signs and loses the answer.
    """

    script: list[Any] = field(default_factory=list)
    signed: dict[str, BidMessage] = field(default_factory=dict)
    away: SignerError | None = None
    rooms_: tuple[SignedRoom, ...] = ()
    asked_rooms: int = 0
    witness: Callable[[], None] = lambda: None

    def addresses(self, user_address: str) -> UserKeys:
        self._here()
        return KEYS

    def rooms(self, task: int, token: int, secret: str) -> tuple[SignedRoom, ...]:
        self._here()
        self.asked_rooms += 1
        return self.rooms_

    def sign_bid(self, task: int, token: int, secret: str, bid: BidMessage) -> SignedBid:
        self._sign(self.script, self.signed, bid)
        return SignedBid("text", "c2lnbmF0dXJl")

    def _sign(self, script: list[Any], signed: dict[str, Any], asked: Any) -> None:
        self._here()
        self.witness()
        turn = script.pop(0) if script else None
        if isinstance(turn, SignerError):
            raise turn
        assert signed.setdefault(asked.intent, asked) == asked
        if turn == "lost":
            raise SignerUnavailable("no answer")

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str) -> str:
        self._here()
        return "Y2hhbGxlbmdl"

    def was_signed(self, intent: str) -> bool:
        self._here()
        return intent in self.signed

    def _here(self) -> None:
        if self.away:
            raise self.away


CATS = BidConfig(slug="cats", hardcap_sats=100_000)
ONE = BidConfig(slug="cats", hardcap_sats=100_000, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000)
LADDER = [75_000, 60_000, 45_000, 30_000, 15_000]  # what CATS bids below an ask of 100,000


class Crash(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class CrashAt:
    """Dies the `turn`-th time it comes by `point`; `has_hit` says that it did."""

    def __init__(self, point: str, turn: int = 1) -> None:
        self.point, self.left, self.has_hit = point, turn, False

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.has_hit = True
                raise Crash(point)


def context_at(now_ms: int, task_id: int, venue: str = "simulator") -> Context:
    """Where there is nobody to ask."""
    nobody: Any = SimpleNamespace(venue=venue)
    return Context(Settings(data_dir=Path("unused")), task_id, 1, "", nobody, nobody, lambda: now_ms)


@dataclass
class World:
    max_exposure: int = 50_000_000
    clock: Clock = field(default_factory=Clock)
    signer: FakeSigner = field(default_factory=FakeSigner)
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self.market = FakeMarket(self.clock)
        self.intents = (f"{number:032x}" for number in range(1, 10_000))
        self.user = users.find_or_create("bc1quser", dict(self.settings.plans), self.clock())

    @property
    def settings(self) -> Settings:
        plans = {"beta": SubscriptionPlan("Beta", 20, 20, self.max_exposure, 0, 365)}
        return Settings(data_dir=Path("unused"), whitelist=frozenset("*"), plans=plans)

    def task(self, config: BidConfig = CATS) -> int:
        task = tasks.create_bidding_task(
            self.user.id,
            type=config.type,
            slug=config.slug,
            slug_key=normal_slug(config.type, config.slug),
            config=dump_bid_config(config),
            venue=self.settings.market,
            max_tasks=20,
            now_ms=self.clock(),
            budget_id=config.budget_id,
        )
        tasks.set_desired(task, RUNNING)
        return int(task.id)

    def context(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> Context:
        """Makes a new worker's context: every start raises the token."""
        return Context(
            settings=self.settings,
            task_id=task_id,
            token=tasks.raise_token(task_id),
            secret="s" * 64,
            market=cast(MarketClient, self.market),
            signer=cast(SignerClient, self.signer),
            clock_ms=self.clock,
            crash=crash,
        )

    def bidder(self, task_id: int, crash: Callable[[str], None] = crashpoint) -> Bidder:
        return Bidder(
            self.context(task_id, crash),
            rng=self.rng,
            new_intent=lambda: next(self.intents),
            monotonic=lambda: self.clock.now_ms / 1000,
        )

    def begun(self, config: BidConfig = CATS) -> tuple[int, Bidder]:
        """A task, and its bidder after the first cycle."""
        task = self.task(config)
        bidder = self.bidder(task)
        bidder.cycle()
        return task, bidder

    def later(self, seconds: float, worker: Job, *, times: int = 1) -> float | None:
        """The worker's next cycle, when so much time has passed; so many times."""
        for _ in range(times):
            self.clock.advance(seconds)
            pause = worker.cycle()
        return pause

    def drain(self, task_id: int) -> BiddingDrain:
        return BiddingDrain(self.context(task_id), rng=self.rng)

    def row(self, task_id: int) -> Task:
        return Task.get_by_id(task_id)

    def action(self, task_id: int) -> str:
        """Of the newest cycle."""
        return str(self.row(task_id).last_cycle_action)

    def open(self, task_id: int) -> dict[int, str]:
        """State of each open order, by price."""
        return {order.price_sats: order.state for order in orders.open_orders(task_id)}

    def closed(self) -> list[tuple[int, str]]:
        found = Order.select().where(Order.state == "closed").order_by(Order.id)
        return [(order.price_sats, str(order.close_reason)) for order in found]

    def detail(self, task_id: int) -> Any:
        """Of the newest cycle."""
        return json.loads(cycles_of(task_id, 1)[0].detail)

    def untracked(self) -> list[int]:
        """Prices of bids at the venue that no open order stands for."""
        known = {order.expires_ms for order in Order.select().where(Order.state != "closed")}
        return [bid.price for bid in self.market.own_ if bid.expires_ms not in known]


def seconds(delay: float | None) -> float:
    assert delay is not None
    return delay
