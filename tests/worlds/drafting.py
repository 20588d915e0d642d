"""A worker's world at a venue that drafts bids, and orders of such a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from markets.base import BidOrder, OutpointFacts, OwnBid, OwnBids, Refused, Unknown, Utxo
from markets.orders import BidDraft, BidToDraft, DraftPsbt
from models.ledger import orders
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import Order
from models.tasks.tasks import Task
from strategy.book import VenueProfile
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, START_MS, FakeMarket, FakeSigner, World
from wallet.protocol import OfferToSign, SignedOffer

VENUE = "simulator-ordnet"
BIDS = VenueProfile(VENUE, 1000, 10_000, 21_600, equal_bids_allowed=True, balance_model="per_bid")
HOUR_MS = 3_600_000
LEAF = "51"


def outpoint(number: int) -> str:
    return f"{number:064x}:0"


@dataclass
class DraftMarket(FakeMarket):
    """The gateway's client. `holds` says what lies on a coin: inscriptions and runes, None for not known."""

    venue: str | None = VENUE
    profile_: VenueProfile = BIDS
    coins_: list[Utxo] = field(default_factory=lambda: [Utxo(outpoint(n), 100_000, True) for n in range(1, 21)])
    holds: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    drafted: list[BidToDraft] = field(default_factory=list)
    asked_slugs: list[tuple[str, ...]] = field(default_factory=list)
    unknown: dict[str, Refused] = field(default_factory=dict)
    ends_ms: dict[str, int] = field(default_factory=dict)
    spends: dict[str, set[str]] = field(default_factory=dict)
    replaced: list[int] = field(default_factory=list)
    _drafts: dict[str, BidToDraft] = field(default_factory=dict)

    def expire(self) -> None:
        self.own_ = [bid for bid in self.own_ if self.ends_ms[bid.venue_id] > self.clock.now_ms]

    def coins(self, address: str, max_age_s: float) -> tuple[Utxo, ...]:
        self._turn("coins")
        return tuple(self.coins_)

    def outpoint(self, outpoint: str, max_age_s: float) -> OutpointFacts:
        self._turn("outpoint")
        inscriptions, runes = self.holds.get(outpoint, ((), ()))
        return OutpointFacts(outpoint, 1, "", True, True, inscriptions, runes, 1, 1, None)

    def own_bids(self, wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> OwnBids:
        self.asked_slugs.append(tuple(slugs))
        for slug in self.unknown.keys() & set(slugs):
            raise self.unknown[slug]
        found = super().own_bids(wallet, max_age_s, slugs)
        return structs.replace(found, bids=tuple(bid for bid in found.bids if bid.slug in slugs))

    def challenge(self, wallet: str) -> str:
        raise AssertionError("nothing is signed here for a cancel")

    def draft_bid(self, ask: BidToDraft) -> BidDraft:
        """`empty` drafts nothing that could be signed."""
        self._turn("draft")
        self.drafted.append(ask)
        reference = f"draft-{len(self.drafted)}"
        self._drafts[reference] = ask
        return BidDraft(reference, (DraftPsbt("funding", f"psbt of {reference}", (0,), None),), LEAF)

    def place(self, order: BidOrder, *, task: int, token: int, deadline_ms: int, rung: int = 0) -> str:
        """`lost` accepts and loses the answer, `never` sends and loses all. As the venue does, a bid that stands on a
        coin of another with its scope takes the other's place.
        """
        turn = self._turn("place")
        self.done.append(("place", order.price))
        if turn == "never":
            raise Unknown("timed out")
        ask = self._drafts.get(order.reference)
        if ask is None or order.signature or order.signed_psbts != (f"signed psbt of {order.reference}",):
            raise Refused("changed", "not what was drafted")
        assert (order.price, order.slug, order.trait, order.receive) == (ask.price, ask.slug, ask.trait, ask.ordinals)
        self.placed.append(order)
        spent = {coin.outpoint for coin in ask.coins}
        for former in [each for each in self.own_ if self.spends.get(each.venue_id, set()) & spent]:
            if (former.slug, former.trait) == (order.slug, order.trait):
                self.own_.remove(former)
                self.replaced.append(former.price)
        bid = self.show(order.price, order.slug, order.trait, hours=ask.valid_hours)
        self.spends[bid.venue_id] = spent
        if turn == "lost":
            raise Unknown("timed out")
        return bid.venue_id

    def show(self, price: int, slug: str = "cats", trait: tuple[str, str] | None = None, hours: int = 6) -> OwnBid:
        """Returns a bid that is there from now on."""
        bid = structs.replace(self.add(price, None, slug), trait=trait)
        self.own_[-1] = bid
        self.ends_ms[bid.venue_id] = self.clock() + hours * HOUR_MS
        return bid


@dataclass
class DraftSigner(FakeSigner):
    offers: dict[str, OfferToSign] = field(default_factory=dict)

    def sign_offer(self, task: int, token: int, secret: str, offer: OfferToSign) -> SignedOffer:
        assert offer.leaf == LEAF
        self._sign(self.script, self.offers, offer)
        return SignedOffer(tuple(f"signed {psbt}" for psbt in offer.psbts))

    def was_signed(self, intent: str) -> bool:
        return intent in self.offers or super().was_signed(intent)


class DraftWorld(World):
    market: DraftMarket
    signer: DraftSigner

    def __post_init__(self) -> None:
        super().__post_init__()
        self.market = DraftMarket(self.clock)
        self.signer = DraftSigner()

    def untracked(self) -> list[int]:
        """Prices of bids at the venue beyond those that open orders stand for."""
        left = [(order.venue_id, order.price_sats) for order in Order.select().where(Order.state != "closed")]
        found = []
        for bid in self.market.own_:
            known = (bid.venue_id, bid.price) if (bid.venue_id, bid.price) in left else (None, bid.price)
            if known in left:
                left.remove(known)
            else:
                found.append(bid.price)
        return found


ONE = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=50_000)


def put(
    task_id: int,
    state: str,
    price: int = 50_000,
    *,
    venue_id: str | None = None,
    slug: str = "cats",
    trait: tuple[str, str] | None = None,
    venue: str = VENUE,
) -> int:
    """Puts an order in this state since START_MS; returns its id."""
    new = NewOrder(
        intent=f"{10_000 + Order.select().count():032x}",
        task_id=task_id,
        user_id=1,
        venue=venue,
        wallet=KEYS.payment,
        slug=slug,
        price_sats=price,
        quantity="1",
        expires_ms=START_MS + HOUR_MS,
        token=Task.get_by_id(task_id).token,
        trait=trait,
    )
    order = orders.reserve(new, ExposureLimits(0, 10**12, 0), START_MS)
    reason = "lost" if state == "closed" else None
    Order.update(state=state, venue_id=venue_id, close_reason=reason).where(Order.id == order.id).execute()
    return int(order.id)
