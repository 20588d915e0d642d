"""ord.net's offers, for a collection, for traits or for one inscription: previews, drafts, submits, cancels."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from simulator.bitcoin.transactions import script_of
from simulator.members import members
from simulator.orders import Market, Order
from simulator.ordnet.funding import Spendable
from simulator.ordnet.offers import (
    DEFAULT_HOURS,
    LIVES_HOURS,
    MAX_COUNT,
    Draft,
    OfferAsk,
    draft,
    enter,
    replaced,
    signed_order,
    stale,
    unsigned_order,
)
from simulator.ordnet.targets import eligible, root, target_of
from simulator.rules import Refusal
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, ordinals_key, payment_key, signed_step, step
from simulator.venues.poison import another, indexes, spoiled
from simulator.venues.routes import Routes, by_path, same
from simulator.venues.scripts import ORDNET
from simulator.venues.sessions import Session
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

Row = dict[str, Any]

MAX_UTXOS = 1_000
OFFERS = f"{SLUG}/collection-offers"
# The preflight's fields that submit must repeat.
_REPEATED = ("ordinalsPublicKey", "paymentPublicKey", "target", "priceSats")
_TXID = re.compile(r"[0-9a-f]{64}")

routes = Routes(PREFIX, OrdnetHandler)


# Previews


@routes.post(f"{OFFERS}/target-preview", "book", by_path)
def target_preview(call: OrdnetHandler) -> Row:
    """Answers the number of inscriptions that an offer would be for."""
    target = target_of(call.body().get("target"))
    found = members(call.engine, call.market(), ORDNET)
    taken = eligible(found, target)
    sample = taken[0].item.id if taken else None
    shown = {"inscriptionId": sample, "image": f"https://ord.net/content/{sample}", "previewContentType": "image/png"}
    return {
        "target": target.as_json(),
        "eligibleCount": len(taken),
        "floorSats": min((member.ask.price for member in taken if member.ask), default=None),
        "collectionFloorSats": min((member.ask.price for member in found if member.ask), default=None),
        "sampleInscription": shown if sample else None,
    }


@routes.post(f"{OFFERS}/replacement-warning", "balance", OrdnetHandler.payer)
def replacement_warning(call: OrdnetHandler) -> Row:
    """Answers the number of own offers that new ones would replace."""
    body = call.body()
    session, market, target = call.bound(body), call.market(), target_of(body.get("target"))
    _prices(body)
    outpoints = {outpoint for outpoint, _ in utxos(body.get("spendableUtxos"), "spendableUtxos")}
    count = len(replaced(call.engine, market, session.payment, target, outpoints))
    return {"replacementWarning": {"activeOfferCount": count}}


# Offers for a collection or for traits


@routes.post(f"{OFFERS}/preflight", "place", by_path, bucket="write", drafts=True)
def offer_preflight(call: OrdnetHandler) -> Row:
    """Answers the funding parents to sign. Changes nothing."""
    body = call.body()
    session, market = call.bound(body), call.market()
    ask = _ask(body, session)
    drafts, found = draft(call.world.engine, market, ask, session)
    criteria = ask.target.criteria(market.slug)
    asked = _asked(body, market)
    return {
        "criteriaCanonicalJson": criteria,
        "offerCriteriaHash": hashlib.sha256(criteria.encode()).hexdigest(),
        "eligibleRoot": root(found).hex(),
        "eligibleCount": len(found),
        "buyerReceiveScriptHex": script_of(session.ordinals).data.hex(),
        "offers": [_to_sign(call, each, ask, asked, session) for each in drafts],
    }


def _ask(body: Row, session: Session) -> OfferAsk:
    price, count, ladder = _prices(body)
    return OfferAsk(
        target=target_of(body.get("target")),
        price=price,
        count=count,
        step=ladder,
        hours=life_hours(body),
        ordinals_key=ordinals_key(body, session),
        payment_key=payment_key(body, session),
        spendable=utxos(body.get("spendableUtxos"), "spendableUtxos"),
    )


def _prices(body: Row) -> tuple[int, int, int]:
    """Reads price, count and ladder step of offers. Raises ApiError(400)."""
    return (
        whole(body.get("priceSats"), "priceSats", 1, MAX_SATS),
        whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT),
        whole(body.get("ladderStepSats", 0), "ladderStepSats", 0, MAX_SATS),
    )


def life_hours(body: Row) -> int:
    """Reads the life of an offer in hours. Raises ApiError(400)."""
    hours = whole(body.get("validityHours", DEFAULT_HOURS), "validityHours")
    if hours not in LIVES_HOURS:
        raise bad(f"validityHours must be one of {', '.join(map(str, LIVES_HOURS))}")
    return hours


def utxos(value: Any, name: str) -> tuple[Spendable, ...]:
    """Reads the outpoints and sats of a list of `{txid, vout, valueSats}`. Raises ApiError(400)."""
    found = []
    for at, row in enumerate(items(value, name, MAX_UTXOS)):
        txid = text(row.get("txid"), f"{name}[{at}].txid")
        if not _TXID.fullmatch(txid):
            raise bad(f"{name}[{at}].txid must have 64 hex digits")
        vout = whole(row.get("vout"), f"{name}[{at}].vout", 0, 0xFFFFFFFF)
        found.append((f"{txid}:{vout}", whole(row.get("valueSats"), f"{name}[{at}].valueSats", 1, MAX_SATS)))
    if not found:
        raise bad(f"{name} is required")
    if len({outpoint for outpoint, _ in found}) < len(found):
        raise bad(f"{name}: an output stands twice")
    return tuple(found)


def utxo_row(outpoint: str, sats: int) -> Row:
    txid, vout = outpoint.split(":")
    return {"txid": txid, "vout": int(vout), "valueSats": sats}


def _asked(body: Row, market: Market) -> str:
    """Returns the fields that preflight and submit must have in common, as one text."""
    fields = {name: body.get(name) for name in _REPEATED}
    fields |= {"offerCount": body.get("offerCount", 1), "ladderStepSats": body.get("ladderStepSats", 0)}
    return as_text(fields, body, market)


def as_text(fields: Row, body: Row, market: Market) -> str:
    fields |= {"slug": market.slug, "validityHours": life_hours(body)}
    return json.dumps(fields, sort_keys=True, default=str)


def _to_sign(call: OrdnetHandler, made: Draft, ask: OfferAsk, asked: str, session: Session) -> Row:
    parent, poison = made.parent, call.world.poison
    other = another(call.world.engine, session.payment, {coin.outpoint for coin in parent.coins})
    shown = spoiled(parent.to_sign(ask.payment_key), poison, parent.comes_back, other)
    own = [{"address": session.payment, "signingIndexes": indexes(list(range(len(parent.coins))), poison)}]
    return {
        "priceSats": parent.price,
        "offerAddress": str(parent.offer.script.address()),
        "offerScriptHex": parent.offer.leaf.hex(),
        "offerAuthSecretHash": hashlib.sha256(made.secret).hexdigest(),
        "selectedPaymentUtxos": [utxo_row(coin.outpoint, coin.value) for coin in parent.coins],
        "expectedFundingParentTxid": parent.txid,
        "preflightToken": call.desk.keep(session, asked, made),
        "fundingParentStep": step(0, session.payment, own, shown.encode()),
        **_UNSENT,
    }


_UNSENT = {"fundingBroadcasted": False, **same(0, "fundingParentFeeRateSatVb fundingParentVout")}


@routes.post(f"{OFFERS}/submit", "place", by_path, bucket="write")
def offer_submit(call: OrdnetHandler) -> Row:
    """Takes the signed funding parents, all or none."""
    body = call.body()
    session, market = call.bound(body), call.market()
    key = payment_key(body, session)
    rows = items(body.get("offers"), "offers", MAX_COUNT)
    if len(rows) != whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT):
        raise bad("offers must have offerCount entries")
    asked, engine = _asked(body, market), call.world.engine
    orders = []
    for at, row in enumerate(rows):
        token = text(row.get("preflightToken"), f"offers[{at}].preflightToken")
        made: Draft = call.desk.draft(session, asked, token)
        _check_repeated(row, made, f"offers[{at}]")
        psbt = signed_step(row.get("signedFundingParentStep"), f"offers[{at}].signedFundingParentStep")
        orders.append(_signed(call, market, made, session, psbt, key))
    for row in rows:
        call.desk.used(row["preflightToken"])
    taken = enter(engine, market, orders, call.visible_ms(), twice=call.mode == "accept_twice")
    call.desk.taken |= {order.order_id for order in taken}
    return {"status": "active", "offers": [_placed(order, row) for order, row in zip(orders, rows, strict=True)]}


def _check_repeated(row: Row, made: Draft, name: str) -> None:
    parent = made.parent
    named = [outpoint for outpoint, _ in utxos(row.get("selectedPaymentUtxos"), f"{name}.selectedPaymentUtxos")]
    told = (row.get("priceSats"), row.get("expectedFundingParentTxid"), row.get("fundingParentVout"))
    if told != (parent.price, parent.txid, 0) or named != [coin.outpoint for coin in parent.coins]:
        raise bad(f"{name} does not repeat what the preflight answered")


def _signed(call: OrdnetHandler, market: Market, made: Draft, session: Session, psbt: str, key: bytes) -> Order:
    engine = call.world.engine
    reason, status = stale(engine, made), 409
    if not reason:
        try:
            return signed_order(engine, market, made, session, psbt, key)
        except Refusal as refusal:
            reason, status = str(refusal), 400
    engine.record("refused", unsigned_order(engine, market, made, session), reason)
    raise ApiError(status, reason)


def _placed(order: Order, row: Row) -> Row:
    placed = {"offerId": order.order_id, "status": "active", "priceSats": order.price}
    return placed | {"fundingParentTxid": row["expectedFundingParentTxid"], **_UNSENT}


@routes.post(f"{OFFERS}/([^/]+)/cancel", "cancel", OrdnetHandler.payer, bucket="write")
def offer_cancel(call: OrdnetHandler) -> Row:
    """Takes an own offer out of the book, without a signature."""
    session = call.bound(call.body())
    call.market()
    return cancelled(call, session)


def cancelled(call: OrdnetHandler, session: Session) -> Row:
    """Takes out the offer of the path. Raises ApiError: 404 when unknown, 409 when over, 403 when another's."""
    about, offer_id = call.path_args[:2]
    order = call.world.engine.order(offer_id)
    if order is None or order.side != "bid" or order.venue != ORDNET:
        known = offer_id in call.desk.taken
        raise ApiError(409, "Offer is no longer active") if known else ApiError(404, "Offer not found")
    if order.maker != session.payment or about.lower() not in (order.slug, order.inscription):
        raise ApiError(403, "Offer is not yours")
    call.end(order)
    return {"offerId": offer_id, "status": "cancelled"}
