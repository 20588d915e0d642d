"""Offers for one inscription: the settlement is drafted at once, and the buyer signs their inputs of it.

The documents show the fields of requests and answers. The form of the settlement is a guess: the inscription's output
first, then the buyer's coins; the inscription to the buyer, the price less the seller's fee to the owner, both fees to
the venue, change. It pays no network fee here.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.psbt import parse
from simulator.bitcoin.psbt_write import Unsigned, spends
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.members import Member, members
from simulator.orders import Market, Order
from simulator.rules import Refusal
from simulator.venues.ordnet.offers import HOUR_MS, Spendable, new_id, select, spendable, with_witnesses
from simulator.venues.scripts import ORDNET, fee_script, payment_witness, redeem
from simulator.venues.sessions import Session
from simulator.wire import ApiError, bad

LEAST_PRICE, TICK = 10_000, 1_000
# Of the price, from each side.
FEE_BPS = 100


def fee(price: int) -> int:
    return price * FEE_BPS // 10_000


@dataclass(frozen=True, slots=True)
class Draft:
    """An offer for one inscription, to be signed; `coin` holds the inscription."""

    member: Member
    coin: Coin
    coins: tuple[Coin, ...]
    price: int
    hours: int
    payment: str
    receive: str

    @property
    def total(self) -> int:
        """The sats that the buyer pays."""
        return self.price + fee(self.price)

    @property
    def settlement(self) -> Transaction:
        change = sum(coin.value for coin in self.coins) - self.total
        outputs = [
            TransactionOutput(self.coin.value, script_of(self.receive)),
            TransactionOutput(self.price - fee(self.price), script_of(self.member.owner)),
            TransactionOutput(2 * fee(self.price), fee_script()),
        ]
        if change:
            outputs.append(TransactionOutput(change, script_of(self.payment)))
        return Transaction(2, [spend(coin.outpoint) for coin in (self.coin, *self.coins)], outputs)

    @property
    def txid(self) -> str:
        return str(self.settlement.txid().hex())

    def to_sign(self) -> Unsigned:
        return Unsigned(self.settlement, [spends(coin.output) for coin in (self.coin, *self.coins)])


def draft(
    engine: Engine, market: Market, session: Session, wanted: list[str], price: int, hours: int, named: list[Spendable]
) -> list[Draft]:
    """Drafts one offer for each inscription, all on the same coins. Raises ApiError: 404 for another collection's."""
    if price < LEAST_PRICE or price % TICK:
        raise bad(f"priceSats must be at least {LEAST_PRICE} and a multiple of {TICK}")
    known = {member.item.id: member for member in members(engine, market, ORDNET)}
    chosen = select(spendable(engine, session.payment, named), price + fee(price))
    found = []
    for inscription in wanted:
        member = known.get(inscription)
        if member is None:
            raise ApiError(404, f"Inscription {inscription} not found in the collection")
        if member.owner == session.ordinals:
            raise bad("you hold this inscription")
        coin = engine.chain.coin_of(inscription) or engine.chain.place(inscription, member.owner)
        found.append(Draft(member, coin, chosen, price, hours, session.payment, session.ordinals))
    return found


def stale(engine: Engine, made: Draft) -> str:
    """Says why a draft can no longer be entered, however it is signed; empty when it can."""
    if engine.chain.coins[made.coin.outpoint].spent_by is not None:
        return "the inscription has moved"
    spent = any(engine.chain.coins[coin.outpoint].spent_by is not None for coin in made.coins)
    return "a payment input is spent" if spent else ""


def signed_order(engine: Engine, market: Market, made: Draft, psbt: str, key: bytes) -> Order:
    """Makes the offer of a signed settlement, not in the book yet. Raises Refusal."""
    try:
        read = parse(psbt)
    except ValueError as error:
        raise Refusal(f"the signed step is not a PSBT in base64: {error}") from None
    if read.tx.serialize() != made.settlement.serialize():
        raise Refusal("the signed step is not the one of the preflight")
    spent = [coin.output for coin in (made.coin, *made.coins)]
    witnesses = [payment_witness(read, at, spent, key) for at in range(1, len(spent))]
    script_sigs = [Script(), *(redeem(own, key) for own in spent[1:])]
    order = unsigned_order(engine, market, made)
    order.order_id, order.psbt = new_id(engine), psbt
    order.signature = witnesses[0].items[0].hex()
    order.papers = (with_witnesses(read.tx, [Witness([]), *witnesses], script_sigs).serialize().hex(),)
    return order


def unsigned_order(engine: Engine, market: Market, made: Draft) -> Order:
    """Makes the order without id and signature, as a refused one is noted."""
    now = engine.now_ms()
    return Order(
        order_id="",
        sequence=0,
        kind="ordinals",
        side="bid",
        slug=market.slug,
        maker=made.payment,
        receive=made.receive,
        price=made.price,
        quantity=Decimal(1),
        unit_price=Decimal(made.price),
        placed_ms=now,
        expires_ms=now + made.hours * HOUR_MS,
        inscription=made.member.item.id,
        origin="dialect",
        venue=ORDNET,
        # The inscription's own output too: when it moves, the settlement becomes impossible.
        funding=tuple(coin.outpoint for coin in (made.coin, *made.coins)),
    )
