"""x"""

from __future__ import annotations

from typing import Any

from simulator.orders import Market, Order
from simulator.ordnet.item_offers import Draft, draft, signed_order, stale, unsigned_order
from simulator.rules import Refusal
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, payment_key, signed_step, step
from simulator.venues.ordnet.offers import as_text, cancelled, life_hours, utxo_row, utxos
from simulator.venues.poison import another, indexes, spoiled
from simulator.venues.routes import Routes, by_path
from simulator.venues.sessions import Session
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

Row = dict[str, Any]

MAX_ITEMS = 20
# The preflight's fields that submit must repeat.
_REPEATED = ("paymentPublicKey", "inscriptionIds", "priceSats")

routes = Routes(PREFIX, OrdnetHandler)


@routes.post(f"{SLUG}/offers/preflight", "place", by_path, bucket="write", drafts=True)
def item_offer_preflight(call: OrdnetHandler) -> Row:
    """Answers the settlements to sign. Changes no book."""
    body = call.body()
    session, market = call.bound(body), call.market()
    payment_key(body, session)
    price = whole(body.get("priceSats"), "priceSats", 1, MAX_SATS)
    hours = life_hours(body)
    named = list(utxos(body.get("spendableUtxos"), "spendableUtxos"))
    drafts = draft(call.world.engine, market, session, _inscriptions(body), price, hours, named)
    rows = [_item_to_sign(call, made, _items_asked(body, market), session) for made in drafts]
    return {"selectedPaymentUtxos": [utxo_row(c.outpoint, c.value) for c in drafts[0].coins], "items": rows}


def _item_to_sign(call: OrdnetHandler, made: Draft, asked: str, session: Session) -> Row:
    call.desk.keep(session, asked, made, made.txid)
    poison = call.world.poison
    other = another(call.world.engine, session.payment, {coin.outpoint for coin in made.coins})
    shown = spoiled(made.to_sign(), poison, 0, other)
    own = [{"address": session.payment, "signingIndexes": indexes(list(range(1, 1 + len(made.coins))), poison)}]
    return {
        "inscriptionId": made.member.item.id,
        "priceSats": made.price,
        "buyerPayTotalSats": made.total,
        "expectedSettlementTxid": made.txid,
        "steps": [step(0, session.payment, own, shown.encode())],
    }


def _inscriptions(body: Row) -> list[str]:
    given = body.get("inscriptionIds")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_ITEMS:
        raise bad(f"inscriptionIds must be a list of 1 to {MAX_ITEMS} ids")
    found = [text(each, "inscriptionIds") for each in given]
    if len(set(found)) < len(found):
        raise bad("inscriptionIds: an id stands twice")
    return found


def _items_asked(body: Row, market: Market) -> str:
    return as_text({name: body.get(name) for name in _REPEATED}, body, market)


@routes.post(f"{SLUG}/offers/submit", "place", by_path, bucket="write")
def item_offer_submit(call: OrdnetHandler) -> Row:
    """Takes the signed settlements, all or none."""
    body = call.body()
    session, market = call.bound(body), call.market()
    key, engine = payment_key(body, session), call.world.engine
    rows = items(body.get("signedItems"), "signedItems", MAX_ITEMS)
    if [row.get("inscriptionId") for row in rows] != _inscriptions(body):
        raise bad("signedItems must have one entry for each inscription, in the same order")
    told = [outpoint for outpoint, _ in utxos(body.get("selectedPaymentUtxos"), "selectedPaymentUtxos")]
    handles = [text(row.get("expectedSettlementTxid"), "expectedSettlementTxid") for row in rows]
    orders = []
    for handle, row in zip(handles, rows, strict=True):
        made: Draft = call.desk.draft(session, _items_asked(body, market), handle)
        steps = items(row.get("signedSteps"), "signedSteps", 1)
        if told != [coin.outpoint for coin in made.coins] or len(steps) != 1:
            raise bad("submit must repeat what the preflight answered, with one signed step for each item")
        orders.append(_signed_item(call, market, made, signed_step(steps[0], "signedSteps[0]"), key))
    for handle in handles:
        call.desk.used(handle)
    visible_ms = call.visible_ms()
    for order in orders:
        order.visible_ms = visible_ms
        engine.enter(market, order)
        call.desk.taken.add(order.order_id)
    done = [{"inscriptionId": o.inscription, "offerId": o.order_id, "status": "active"} for o in orders]
    return {"items": done, "status": "active"}


def _signed_item(call: OrdnetHandler, market: Market, made: Draft, psbt: str, key: bytes) -> Order:
    engine = call.world.engine
    reason, status = stale(engine, made), 409
    if not reason:
        try:
            return signed_order(engine, market, made, psbt, key)
        except Refusal as refusal:
            reason, status = str(refusal), 400
    engine.record("refused", unsigned_order(engine, market, made), reason)
    raise ApiError(status, reason)


@routes.post("inscriptions/([^/]+)/offers/([^/]+)/cancel", "cancel", OrdnetHandler.payer, bucket="write")
def item_offer_cancel(call: OrdnetHandler) -> Row:
    """Takes an own offer for one inscription out of the book."""
    return cancelled(call, call.bound(call.body()))
