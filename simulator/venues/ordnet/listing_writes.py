"""ord.net's listings: drafted, signed by the seller, submitted, and taken down without a signature."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.psbt_write import TAP_LEAF_SCRIPT, Unsigned
from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY
from simulator.orders import Order
from simulator.ordnet.listings import (
    LEAST_PRICE,
    Draft,
    draft,
    recovery_to_sign,
    signed_order,
    signed_recovery,
    stale,
    unsigned_order,
)
from simulator.rules import Refusal
from simulator.venues.listing import Unlistable
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, ordinals_key, signed_step, step
from simulator.venues.poison import THIEF, THIEFS_KEY, Poison, another, spoiled
from simulator.venues.routes import Routes, named
from simulator.venues.scripts import ORDNET
from simulator.venues.sessions import Session
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

Row = dict[str, Any]

MAX_ITEMS = 20
DAYS = (1, 7, 30, 90, 180)
DAY_MS = 86_400_000
# The evils of the step that moves the inscription; the others are of the step that sells it.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output"})

routes = Routes(PREFIX, OrdnetHandler)


@routes.post(f"{SLUG}/listings/preflight", "list", named("items", "inscriptionId"), bucket="write", drafts=True)
def listing_preflight(call: OrdnetHandler) -> Row:
    """Answers the PSBTs to sign. Changes no book."""
    body = call.body()
    session = call.bound(body)
    key, wanted = ordinals_key(body, session), _wanted(call, body)
    try:
        drafts = draft(call.world.engine, session, key, wanted)
    except Unlistable as refusal:
        if refusal.cause == "holder":
            raise ApiError(403, "You do not hold this inscription") from None
        raise bad(str(refusal)) from None
    shown = _stolen_escrows(drafts, call.world.poison)
    recovering = [{"address": session.ordinals, "signingIndexes": list(range(len(drafts))), "sigHash": 1}]
    recovery = _stolen_recovery(recovery_to_sign(shown), call.world.poison)
    return {
        "listings": [_to_sign(call, made, shown, session, _asked(body)) for made in shown],
        "recoveryPsbt": {
            "signerAddress": session.ordinals,
            "inputsToSign": recovering,
            "psbtBase64": recovery.encode(),
        },
    }


def _wanted(call: OrdnetHandler, body: Row) -> list[tuple[str, int]]:
    """Reads inscriptions and prices. Raises ApiError: 404 for one of another collection."""
    market = call.market()
    rows = items(body.get("items"), "items", MAX_ITEMS)
    found = [
        (
            text(row.get("inscriptionId"), f"items[{at}].inscriptionId"),
            whole(row.get("priceSats"), f"items[{at}].priceSats", LEAST_PRICE, MAX_SATS),
        )
        for at, row in enumerate(rows)
    ]
    if not found or len({inscription for inscription, _ in found}) < len(found):
        raise bad(f"items: 1 to {MAX_ITEMS} different inscriptions")
    for inscription, _ in found:
        holder = call.engine.wallets.holder_of(inscription)
        if holder is None or holder[1].collection != market.slug:
            raise ApiError(404, f"Inscription {inscription} not found in the collection")
    return found


def _asked(body: Row) -> str:
    return json.dumps({name: body.get(name) for name in ("ordinalsPublicKey", "items")}, sort_keys=True, default=str)


def _to_sign(call: OrdnetHandler, made: Draft, drafts: list[Draft], session: Session, asked: str) -> Row:
    anchor = call.desk.keep(session, asked, (made, drafts), str(uuid.uuid4()))
    own = {"address": session.ordinals, "signingIndexes": [0]}
    sale = {"publicKey": made.passthrough.internal.hex(), "disableTweakSigner": True, "sigHash": SINGLE_ANYONECANPAY}
    transfer, settlement = made.transfer_to_sign(), made.settlement_to_sign()
    poison, indexes = call.world.poison, [0]
    if poison is not None:
        other = another(call.world.engine, session.ordinals, set())
        if poison in _OF_THE_TRANSFER:
            transfer = spoiled(transfer, poison, 0, other)
            indexes = [0, 2] if poison == "two_inputs" else [0]
        else:
            settlement = spoiled(settlement, poison, 0, other)
        transfer, settlement = _spoiled_steps(transfer, settlement, poison)
    steps = [
        step(0, session.ordinals, [own | {"signingIndexes": indexes, "sigHash": 0}], transfer.encode()),
        step(1, session.ordinals, [own | sale], settlement.encode()),
    ]
    named = {"inscriptionId": made.item.id}
    return named | {"anchorUtxoId": anchor, "psbts": [named | each for each in steps]}


def _stolen_escrows(drafts: list[Draft], poison: Poison | None) -> list[Draft]:
    """Gives the escrows to the thief, as its internal key, under `escrow_theirs`."""
    if poison != "escrow_theirs":
        return drafts
    return [replace(each, passthrough=replace(each.passthrough, internal=THIEFS_KEY)) for each in drafts]


def _spoiled_steps(transfer: Unsigned, sale: Unsigned, poison: Poison | None) -> tuple[Unsigned, Unsigned]:
    """Leaves a sat of the item to the network under `escrow_short`, and the leaf out under `sale_by_key`."""
    tx = transfer.tx
    if poison == "escrow_short":
        outputs = [TransactionOutput(tx.vout[0].value - 1, tx.vout[0].script_pubkey), *tx.vout[1:]]
        transfer = replace(transfer, tx=Transaction(tx.version, tx.vin, outputs, tx.locktime))
    if poison == "sale_by_key":
        first = {name: value for name, value in sale.inputs[0].items() if not name.startswith(TAP_LEAF_SCRIPT)}
        sale = replace(sale, inputs=[first])
    return transfer, sale


def _stolen_recovery(shown: Unsigned, poison: Poison | None) -> Unsigned:
    """Sends the recovery to the thief under `recovery_theirs`."""
    if poison != "recovery_theirs":
        return shown
    outputs = [TransactionOutput(each.value, THIEF) for each in shown.tx.vout]
    return replace(shown, tx=Transaction(shown.tx.version, shown.tx.vin, outputs, shown.tx.locktime))


@routes.post(f"{SLUG}/listings/submit", "list", named("items", "inscriptionId"), bucket="write")
def listing_submit(call: OrdnetHandler) -> Row:
    """Takes the signed listings, all or none."""
    body = call.body()
    session = call.bound(body)
    wanted = _wanted(call, body)
    if body.get("durationDays") not in DAYS:
        raise bad(f"durationDays must be one of {', '.join(map(str, DAYS))}")
    ids = [inscription for inscription, _ in wanted]
    anchors, signed = _by_item(body, "anchors", ids), _by_item(body, "signed", ids)
    recovery = signed_step(body.get("signedRecoveryPsbt"), "signedRecoveryPsbt")
    handles = [text(row.get("anchorUtxoId"), "anchors.anchorUtxoId") for row in anchors]
    made: list[tuple[Draft, list[Draft]]] = [call.desk.draft(session, _asked(body), each) for each in handles]
    orders = _signed(call, made, signed, recovery)
    for handle in handles:
        call.desk.used(handle)
    _take(call, orders, body["durationDays"])
    return {"listings": [{"inscriptionId": order.inscription, "listingId": order.order_id} for order in orders]}


def _by_item(body: Row, name: str, ids: list[str]) -> list[Row]:
    """Reads a list with one entry for each item, in their order. Raises ApiError(400)."""
    rows = items(body.get(name), name, MAX_ITEMS)
    if [row.get("inscriptionId") for row in rows] != ids:
        raise bad(f"{name} must have one entry for each item, in the same order")
    return rows


def _signed(
    call: OrdnetHandler, made: list[tuple[Draft, list[Draft]]], signed: list[Row], recovery: str
) -> list[Order]:
    engine = call.world.engine
    drafts = [each for each, _ in made]
    if any(stale(engine, each) for each in drafts):
        raise ApiError(409, "An inscription has moved; start again")
    try:
        if drafts != made[0][1]:
            raise Refusal("anchors are not those of one preflight")
        back = signed_recovery(drafts, recovery)
        each_signed = zip(drafts, signed, strict=True)
        return [signed_order(engine, each, *_steps(row), back) for each, row in each_signed]
    except Refusal as refusal:
        market = engine.market("ordinals", drafts[0].item.collection) or call.market()
        engine.record("refused", unsigned_order(engine, market, drafts[0]), str(refusal))
        raise bad(str(refusal)) from None


def _steps(row: Row) -> tuple[str, str]:
    """Reads the two signed PSBTs of one listing. Raises ApiError(400)."""
    rows = items(row.get("psbts"), "signed.psbts", 2)
    if [each.get("stepIndex") for each in rows] != [0, 1]:
        raise bad("signed.psbts must have the steps 0 and 1")
    return signed_step(rows[0], "signed.psbts[0]"), signed_step(rows[1], "signed.psbts[1]")


def _take(call: OrdnetHandler, orders: list[Order], days: int) -> None:
    engine, visible_ms = call.world.engine, call.visible_ms()
    for order in orders:
        former = engine.ask_of(order.inscription or "", ORDNET)
        if former is not None:
            engine.cancel(former, "listed again")
        market = engine.market("ordinals", order.slug)
        assert market is not None
        order.visible_ms, order.expires_ms = visible_ms, engine.now_ms() + days * DAY_MS
        engine.enter(market, order)
        call.desk.taken.add(order.order_id)


@routes.post(f"{SLUG}/listings/delist", "cancel", OrdnetHandler.payer, bucket="write")
def listing_delist(call: OrdnetHandler) -> Row:
    """Takes own listings down, without a signature."""
    body = call.body()
    session = call.bound(body)
    call.market()
    rows = items(body.get("listings"), "listings", MAX_ITEMS)
    pairs = [
        (text(row.get("inscriptionId"), f"listings[{at}].inscriptionId"), text(row.get("listingId"), "listingId"))
        for at, row in enumerate(rows)
    ]
    if not pairs or len({each for pair in pairs for each in pair}) < 2 * len(pairs):
        raise bad(f"listings: 1 to {MAX_ITEMS} different ones")
    for order in [_own(call, *pair, session) for pair in pairs]:
        call.end(order)
    return {"listings": [{"inscriptionId": each, "listingId": listing} for each, listing in pairs]}


def _own(call: OrdnetHandler, inscription: str, listing: str, session: Session) -> Order:
    order = call.world.engine.order(listing)
    if order is None or order.side != "ask" or order.venue != ORDNET or order.inscription != inscription:
        known = listing in call.desk.taken
        raise ApiError(409, "Listing is no longer active") if known else ApiError(404, "Listing not found")
    if order.maker != session.ordinals:
        raise ApiError(403, "Listing is not yours")
    return order
