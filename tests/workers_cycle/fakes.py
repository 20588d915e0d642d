"""A small venue and signer in this process, scripted to fail in the ways that matter to a cycle."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from markets.base import AskBook, Balance, BidOrder, Fees, Floor, OwnBid, OwnBids, Unknown, VenueError
from strategy.book import Ask, Profile
from wallet.client import BidMessage, SignedBid, SignerError, SignerUnavailable, UserKeys

START_MS = 1_800_000_000_000
KEYS = UserKeys("bc1qpayment", "02" + "11" * 32, "bc1pvault", "22" * 32)
BIDS = Profile("simulator", 1000, 10_000, 900, equal_bids_allowed=True, balance_model="per_bid")


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


@dataclass
class FakeMarket:
    """The gateway's client. `script[operation]` holds what the next calls do, first one first.

    An exception is raised instead of doing anything; the words are told at each operation.
    """

    clock: Clock
    profile_: Profile = BIDS
    asks_: list[Ask] = field(default_factory=lambda: [ask(100_000)])
    known: set[str] = field(default_factory=lambda: {"cats"})
    balance_sats: int = 100_000_000
    fee_rate: Decimal = Decimal(2)
    bids: list[OwnBid] = field(default_factory=list)
    placed: list[BidOrder] = field(default_factory=list)
    done: list[tuple[str, int]] = field(default_factory=list)
    script: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    max_ages: list[float] = field(default_factory=list)
    peak_sats: int = 0
    witness: Callable[[str], None] = lambda operation: None
    _ids: Any = field(default_factory=lambda: (f"venue-{number:03}" for number in itertools.count()))

    @property
    def prices(self) -> list[int]:
        """Of our bids, highest first."""
        return sorted((bid.price for bid in self.bids), reverse=True)

    def fail(self, operation: str, *turns: Any) -> None:
        self.script[operation] += turns

    def _turn(self, operation: str) -> Any:
        self.clock()
        self.witness(operation)
        turn = self.script[operation].pop(0) if self.script[operation] else None
        if isinstance(turn, VenueError):
            raise turn
        return turn

    def expire(self) -> None:
        self.bids = [bid for bid in self.bids if bid.expires_ms is None or bid.expires_ms > self.clock.now_ms]

    def profile(self, kind: str = "ordinals") -> Profile:
        self._turn("profile")
        return self.profile_ if kind == "ordinals" else replace(self.profile_, tick=1, min_bid=1)

    def asks(self, slug: str, max_age_s: float) -> AskBook:
        self._turn("asks")
        return AskBook(tuple(sorted(self.asks_, key=lambda found: found.unit_price)), self.clock())

    def floors(self, slugs: Sequence[str], kind: str, max_age_s: float) -> dict[str, Floor]:
        self._turn("floors")
        return {slug: Floor(slug, None, len(self.asks_)) for slug in slugs if slug in self.known}

    def rune_asks(self, ticker: str, max_age_s: float) -> AskBook:
        return self.asks(ticker, max_age_s)

    def own_bids(self, wallet: str, max_age_s: float) -> OwnBids:
        """`empty` shows no bids though there may be some."""
        self.max_ages.append(max_age_s)
        turn = self._turn("own_bids")
        self.expire()
        return OwnBids(() if turn == "empty" else tuple(self.bids), self.clock())

    def balance(self, payment: str, receive: str, pubkey: str, max_age_s: float) -> Balance:
        self._turn("balance")
        return Balance(payment, self.balance_sats, self.clock())

    def fees(self, max_age_s: float) -> Fees:
        self._turn("fees")
        rate = self.fee_rate
        return Fees(rate, rate, rate, rate, rate, self.clock())

    def challenge(self, wallet: str) -> str:
        self._turn("challenge")
        self.done.append(("challenge", 0))
        return "please sign 1"

    def place(self, order: BidOrder, *, task: int, token: int, deadline_ms: int) -> None:
        """`lost` accepts and loses the answer, `twice` makes two bids of one, `never` sends and loses all."""
        turn = self._turn("place")
        self.done.append(("place", order.price))
        if turn == "never":
            raise Unknown("timed out")
        self.placed.append(order)
        for _ in range(2 if turn == "twice" else 1):
            self.add(order.price, order.expires_ms, order.slug, order.kind, order.quantity)
        if turn == "lost":
            raise Unknown("timed out")

    def add(
        self, price: int, expires_ms: int | None, slug: str = "cats", kind: Any = "ordinals", quantity: Any = Decimal(1)
    ) -> OwnBid:
        bid = OwnBid(next(self._ids), slug, kind, price, quantity, expires_ms, None)
        self.bids.append(bid)
        self.peak_sats = max(self.peak_sats, sum(bid.price for bid in self.bids))
        return bid

    def cancel(
        self, wallet: str, venue_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        """`lie` says it is done and keeps the bid, `no` reports a failure, `lost` does it and loses the answer."""
        price = next((bid.price for bid in self.bids if bid.venue_id in venue_ids), 0)
        self.done.append(("cancel", price))
        turn = self._turn("cancel")
        if turn not in ("lie", "no"):
            self.bids = [bid for bid in self.bids if bid.venue_id not in venue_ids]
        if turn == "lost":
            raise Unknown("timed out")
        return bool(turn != "no")


@dataclass
class FakeSigner:
    """The signer's client. `script` holds what the next signatures of bids do.

    An exception is raised instead of signing; `lost` signs and loses the answer.
    """

    script: list[Any] = field(default_factory=list)
    signed: dict[str, BidMessage] = field(default_factory=dict)
    away: SignerError | None = None
    witness: Callable[[], None] = lambda: None

    def addresses(self, user_address: str) -> UserKeys:
        self._here()
        return KEYS

    def sign_bid(self, task: int, token: int, secret: str, bid: BidMessage) -> SignedBid:
        self._here()
        self.witness()
        turn = self.script.pop(0) if self.script else None
        if isinstance(turn, SignerError):
            raise turn
        assert self.signed.setdefault(bid.intent, bid) == bid
        if turn == "lost":
            raise SignerUnavailable("no answer")
        return SignedBid("text", "c2lnbmF0dXJl")

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str) -> str:
        self._here()
        return "Y2hhbGxlbmdl"

    def was_signed(self, intent: str) -> bool:
        self._here()
        return intent in self.signed

    def _here(self) -> None:
        if self.away:
            raise self.away
