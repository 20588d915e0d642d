"""Collection offers: drafted, signed by the buyer, checked, put into the book."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, replace
from decimal import Decimal

from simulator.bitcoin.psbt import parse
from simulator.bitcoin.transactions import script_of
from simulator.engine import Engine
from simulator.members import Member, members
from simulator.orders import Market, Order
from simulator.ordnet.funding import Parent, Spendable, select, spendable
from simulator.ordnet.targets import Target, eligible, of_order, root
from simulator.rules import Refusal
from simulator.venues.scripts import ORDNET, OfferTerms, offer_output
from simulator.venues.sessions import Session
from simulator.wire import bad

LEAST_PRICE, TICK = 10_000, 5_000
MAX_COUNT = 10
HOUR_MS = 3_600_000
LIVES_HOURS = (6, 12, 24, 168, 720, 2160)
DEFAULT_HOURS = 168


@dataclass(frozen=True, slots=True)
class OfferAsk:
    """A request for `count` offers of `price` sats and below, each `step` less than the one before; keys in bytes."""

    target: Target
    price: int
    count: int
    step: int
    hours: int
    ordinals_key: bytes
    payment_key: bytes
    spendable: tuple[Spendable, ...]

    @property
    def prices(self) -> list[int]:
        return [self.price - at * self.step for at in range(self.count)]

    def check(self) -> None:
        """Raises ApiError(400) when a price breaks a rule."""
        if min(self.prices) < LEAST_PRICE:
            raise bad(f"priceSats must be at least {LEAST_PRICE}, for every offer")
        if any(price % TICK for price in self.prices):
            raise bad(f"priceSats must be a multiple of {TICK}, for every offer")


@dataclass(frozen=True, slots=True)
class Draft:
    """One offer to be signed; `secret` is the venue's key to settle it."""

    target: Target
    parent: Parent
    expires_ms: int
    secret: bytes


def draft(engine: Engine, market: Market, ask: OfferAsk, session: Session) -> tuple[list[Draft], list[Member]]:
    """Drafts the offers to sign, and finds the inscriptions that they are for. Raises ApiError."""
    ask.check()
    found = eligible(members(engine, market, ORDNET), ask.target)
    usable = spendable(engine, session.payment, list(ask.spendable))
    criteria = hashlib.sha256(ask.target.criteria(market.slug).encode()).digest()
    # The leaf has whole seconds.
    expires_s = engine.now_ms() // 1000 + ask.hours * 3600
    drafts = []
    for price in ask.prices:
        secret = hashlib.sha256(f"offer secret {engine.new_id()}".encode()).digest()
        terms = OfferTerms(price, expires_s, script_of(session.ordinals).data, root(found), criteria)
        output = offer_output(ask.ordinals_key, terms, hashlib.sha256(secret).digest())
        parent = Parent(output, price, select(usable, price), session.payment)
        drafts.append(Draft(ask.target, parent, expires_s * 1000, secret))
    return drafts, found


def signed_order(engine: Engine, market: Market, made: Draft, session: Session, psbt: str, key: bytes) -> Order:
    """Makes the offer of a signed funding parent, not in the book yet. Raises Refusal."""
    try:
        read = parse(psbt)
    except ValueError as error:
        raise Refusal(f"the signed funding parent is not a PSBT in base64: {error}") from None
    whole = made.parent.signed(read, key)
    order = unsigned_order(engine, market, made, session)
    order.order_id = new_id(engine)
    order.signature = whole.vin[0].witness.items[0].hex()
    order.psbt = psbt
    # The needs of a settlement: the whole parent, the parts of its output, and the secret that opens it.
    offer = made.parent.offer
    order.papers = (whole.serialize().hex(), offer.internal.hex(), offer.leaf.hex(), made.secret.hex())
    return order


def stale(engine: Engine, made: Draft) -> str:
    """Says why a draft can no longer be entered, however it is signed; empty when it can."""
    coins = (engine.chain.coins[coin.outpoint] for coin in made.parent.coins)
    if any(coin.spent_by is not None for coin in coins):
        return "a payment input is spent"
    return "the offer is over" if made.expires_ms <= engine.now_ms() else ""


def enter(engine: Engine, market: Market, orders: list[Order], visible_ms: int, *, twice: bool) -> list[Order]:
    """Enters offers that were signed together, in place of those that they replace; returns all that now stand.

    `twice` puts each a second time, under another id.
    """
    outpoints = {outpoint for order in orders for outpoint in order.funding}
    for former in replaced(engine, market, orders[0].maker, of_order(orders[0]), outpoints):
        engine.cancel(former, "replaced by a newer offer on the same coins")
    taken = [*orders, *(replace(order, order_id=new_id(engine)) for order in orders if twice)]
    for order in taken:
        order.visible_ms = visible_ms
        engine.enter(market, order)
    return taken


def unsigned_order(engine: Engine, market: Market, made: Draft, session: Session) -> Order:
    """Makes the order without id and signature, as a refused one is noted."""
    return Order(
        order_id="",
        sequence=0,
        kind="ordinals",
        side="bid",
        slug=market.slug,
        maker=session.payment,
        receive=session.ordinals,
        price=made.parent.price,
        quantity=Decimal(1),
        unit_price=Decimal(made.parent.price),
        placed_ms=engine.now_ms(),
        expires_ms=made.expires_ms,
        traits=made.target.traits,
        origin="dialect",
        venue=ORDNET,
        funding=tuple(coin.outpoint for coin in made.parent.coins),
    )


def replaced(engine: Engine, market: Market, buyer: str, target: Target, outpoints: set[str]) -> list[Order]:
    """Returns the buyer's open offers of the same scope on one of these coins: a new one takes their place."""
    own = [bid for bid in engine.bids_of(buyer, hidden=True, venue=ORDNET) if bid.venue == ORDNET]
    same = [bid for bid in own if bid.slug == market.slug and bid.inscription is None and of_order(bid) == target]
    return [bid for bid in same if outpoints & set(bid.funding)]


def new_id(engine: Engine) -> str:
    """Makes a UUID, like those of the venue's offers and listings."""
    digest = hashlib.sha256(f"ordnet {engine.new_id()}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def public_id(order: Order) -> str:
    """Returns the order's id as a UUID: those of scripts and traders have 24 hex digits elsewhere."""
    return order.order_id if "-" in order.order_id else str(uuid.UUID(int=int(order.order_id, 16)))
