"""ord.net's offers for one inscription: the settlement is drafted immediately, and the buyer signs its own inputs.

The documents show the fields of requests and answers. The form of the settlement is a guess: inputs are the
inscription's output, then the buyer's coins; outputs are the inscription to the buyer, the price less the seller's fee
to the owner, both fees to the venue, change. It pays no network fee here.
"""

from __future__ import annotations

from typing import Any

from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionOutput
from msgspec import Struct
from msgspec.structs import replace

from simulator.chain import Coin, script_of, spend
from simulator.engine import Engine, Market, Order
from simulator.handler import Routes, by_path
from simulator.holdings import Member, members
from simulator.listing import read_drafted
from simulator.poison import another, indexes, spoiled
from simulator.sessions import Session
from simulator.taproot import Unsigned, spends
from simulator.venue_scripts import ORDNET, fee_script, payment_witness, redeem
from simulator.venues.ordnet import offers
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, payment_key, signed_step, step
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

Row = dict[str, Any]

MAX_ITEMS = 20
LEAST_PRICE, TICK = 10_000, 1_000
# In basis points of the price, from each side.
FEE_BPS = 100
# The preflight's fields that submit must repeat.
_REPEATED = ("paymentPublicKey", "inscriptionIds", "priceSats")

routes = Routes(PREFIX, OrdnetHandler)


def fee(price: int) -> int:
    return price * FEE_BPS // 10_000


class Draft(Struct, frozen=True):
    """An offer for one inscription, to be signed; `coin` holds the inscription."""

    member: Member
    coin: Coin
    coins: tuple[Coin, ...]
    price: int
    hours: int
    session: Session

    @property
    def total(self) -> int:
        """The sats that the buyer pays."""
        return self.price + fee(self.price)

    @property
    def settlement(self) -> Transaction:
        change = sum(coin.value for coin in self.coins) - self.total
        outputs = [
            TransactionOutput(self.coin.value, script_of(self.session.ordinals)),
            TransactionOutput(self.price - fee(self.price), script_of(self.member.owner)),
            TransactionOutput(2 * fee(self.price), fee_script()),
        ]
        if change:
            outputs.append(TransactionOutput(change, script_of(self.session.payment)))
        return Transaction(2, [spend(coin.outpoint) for coin in (self.coin, *self.coins)], outputs)

    def stale(self, engine: Engine) -> str:
        """Returns why the offer can no longer be entered, however it is signed; empty if it can."""
        if engine.chain.coins[self.coin.outpoint].spent_by is not None:
            return "the inscription has moved"
        spent = any(engine.chain.coins[coin.outpoint].spent_by is not None for coin in self.coins)
        return "a payment input is spent" if spent else ""

    def order(self, engine: Engine, market: Market) -> Order:
        """Makes the order without id and signature, the form in which a refused one is recorded."""
        # The inscription's own output too: when it moves, the settlement becomes impossible.
        coins, expires_ms = (self.coin, *self.coins), engine.now_ms() + self.hours * offers.HOUR_MS
        about = {"expires_ms": expires_ms, "inscription": self.member.item.id}
        return offers.offer_order(engine, market, self.session, self.price, coins, **about)

    def signed(self, engine: Engine, market: Market, psbt: str, key: bytes) -> Order:
        """Makes the order of the signed settlement, not yet in the book. Raises Refusal."""
        given = read_drafted(psbt, "the signed step", self.settlement, "preflight")
        spent = [coin.output for coin in (self.coin, *self.coins)]
        witnesses = [payment_witness(given, at, spent, key) for at in range(1, len(spent))]
        script_sigs = [Script(), *(redeem(own, key) for own in spent[1:])]
        whole = offers.with_witnesses(given.tx, [Witness([]), *witnesses], script_sigs)
        signature, papers = witnesses[0].items[0].hex(), (whole.serialize().hex(),)
        made = self.order(engine, market)
        return replace(made, order_id=offers.new_id(engine), signature=signature, psbt=psbt, papers=papers)


def draft(
    engine: Engine,
    market: Market,
    session: Session,
    wanted: list[str],
    price: int,
    hours: int,
    named: tuple[offers.Spendable, ...],
) -> list[Draft]:
    """Drafts one offer for each inscription, all on the same coins. Raises ApiError: 404 outside the collection."""
    if price < LEAST_PRICE or price % TICK:
        raise bad(f"priceSats must be at least {LEAST_PRICE} and a multiple of {TICK}")
    known = {member.item.id: member for member in members(engine, market, ORDNET)}
    chosen = offers.select(offers.spendable(engine, session.payment, named), price + fee(price))
    found = []
    for inscription in wanted:
        member = known.get(inscription)
        if member is None:
            raise ApiError(404, f"Inscription {inscription} not found in the collection")
        if member.owner == session.ordinals:
            raise bad("you hold this inscription")
        coin = engine.chain.coin_of(inscription) or engine.chain.place(inscription, member.owner)
        found.append(Draft(member, coin, chosen, price, hours, session))
    return found


@routes.post(f"{SLUG}/offers/preflight", "place", by_path, bucket="write", drafts=True)
def item_offer_preflight(call: OrdnetHandler) -> Row:
    body = call.body()
    session, market = call.bound(body), call.market()
    payment_key(body, session)
    price = whole(body.get("priceSats"), "priceSats", 1, MAX_SATS)
    hours = offers.life_hours(body)
    named = offers.utxos(body.get("spendableUtxos"), "spendableUtxos")
    drafts = draft(call.world.engine, market, session, _inscriptions(body), price, hours, named)
    rows = [_item_to_sign(call, made, _items_asked(body, market), session) for made in drafts]
    return {"selectedPaymentUtxos": [offers.utxo_row(c.outpoint, c.value) for c in drafts[0].coins], "items": rows}


def _item_to_sign(call: OrdnetHandler, made: Draft, asked: str, session: Session) -> Row:
    tx = made.settlement
    txid = tx.txid().hex()
    call.desk.keep(session, asked, made, txid)
    poison = call.world.poison
    other = another(call.world.engine, session.payment, {coin.outpoint for coin in made.coins})
    shown = spoiled(Unsigned(tx, [spends(coin.output) for coin in (made.coin, *made.coins)]), poison, 0, other)
    own = [{"address": session.payment, "signingIndexes": indexes(list(range(1, 1 + len(made.coins))), poison)}]
    return {
        "inscriptionId": made.member.item.id,
        "priceSats": made.price,
        "buyerPayTotalSats": made.total,
        "expectedSettlementTxid": txid,
        "steps": [step(0, session.payment, own, shown.encode())],
    }


def _inscriptions(body: Row) -> list[str]:
    given = body.get("inscriptionIds")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_ITEMS:
        raise bad(f"inscriptionIds must be a list of 1 to {MAX_ITEMS} ids")
    found = [text(each, "inscriptionIds") for each in given]
    if len(set(found)) < len(found):
        raise bad("inscriptionIds: an id is repeated")
    return found


def _items_asked(body: Row, market: Market) -> str:
    return offers.as_text({name: body.get(name) for name in _REPEATED}, body, market)


@routes.post(f"{SLUG}/offers/submit", "place", by_path, bucket="write")
def item_offer_submit(call: OrdnetHandler) -> Row:
    body = call.body()
    session, market = call.bound(body), call.market()
    key = payment_key(body, session)
    rows = items(body.get("signedItems"), "signedItems", MAX_ITEMS)
    if [row.get("inscriptionId") for row in rows] != _inscriptions(body):
        raise bad("signedItems must have one entry for each inscription, in the same order")
    named = [outpoint for outpoint, _ in offers.utxos(body.get("selectedPaymentUtxos"), "selectedPaymentUtxos")]
    handles = [text(row.get("expectedSettlementTxid"), "expectedSettlementTxid") for row in rows]
    orders: list[Order] = []
    for handle, row in zip(handles, rows, strict=True):
        made: Draft = call.desk.draft(session, _items_asked(body, market), handle)
        steps = items(row.get("signedSteps"), "signedSteps", 1)
        if named != [coin.outpoint for coin in made.coins] or len(steps) != 1:
            raise bad("submit must repeat what the preflight answered, with one signed step for each item")
        psbt = signed_step(steps[0], "signedSteps[0]")
        orders.append(offers.signed_order(call, market, made, psbt, key))
    for handle in handles:
        call.desk.used(handle)
    offers.enter(call, market, orders)
    done = [{"inscriptionId": o.inscription, "offerId": o.order_id, "status": "active"} for o in orders]
    return {"items": done, "status": "active"}


@routes.post("inscriptions/([^/]+)/offers/([^/]+)/cancel", "cancel", OrdnetHandler.payer, bucket="write")
def item_offer_cancel(call: OrdnetHandler) -> Row:
    return offers.cancelled(call, call.bound(call.body()))
