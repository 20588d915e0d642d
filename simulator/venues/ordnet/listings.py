"""ord.net's listings: a seller signs three transactions for one inscription; none is sent before a sale.

From "Sale PSBT Construction": TX1 moves the inscription to an output that seller and venue share, TX2 sells it from
there, TX3 returns it. Two guesses: the payout is 99 % of the price and goes to the payment address, and the recovery
(TX3) pays no fee.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from embit import script
from embit.transaction import SIGHASH, Transaction, TransactionOutput
from msgspec import Struct
from msgspec.structs import replace

from simulator.chain import Coin, script_of, spend
from simulator.engine import Engine, Order, Refusal
from simulator.handler import Routes, named
from simulator.listing import AskTerms, Unlistable, ask_order, holding, market_of, read, read_drafted
from simulator.poison import THIEF, THIEFS_KEY, another, paying, spoiled, without_leaf
from simulator.sessions import Session
from simulator.taproot import (
    LEAF_VERSION,
    SINGLE_ANYONECANPAY,
    TAP_INTERNAL_KEY,
    TAP_LEAF_SCRIPT,
    TAP_MERKLE_ROOT,
    LeafOutput,
    Map,
    Unsigned,
    spends,
    whole_digest,
)
from simulator.venue_scripts import DEFAULT, ORDNET, key_path_witness, leaf_signature, passthrough_output, practice_key
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, ordinals_key, signed_step, step
from simulator.venues.ordnet.offers import enter, new_id
from simulator.wallets import Item
from simulator.wire import MAX_SATS, ApiError, bad, items, text, whole

Row = dict[str, Any]

MAX_ITEMS = 20
DAYS = (1, 7, 30, 90, 180)
DAY_MS = 86_400_000
SELLER_FEE_BPS = 100
LEAST_PRICE = 1_000
ANCHOR = practice_key("practice market ord.net anchors")
# Sats of an anchor, and its part that pays for TX1 at a tenth of a sat per vbyte.
ANCHOR_SATS, ANCHOR_FEE = 1_000, 25
# The poisons of the step that moves the inscription; the others apply to the step that sells it.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output"})

routes = Routes(PREFIX, OrdnetHandler)


class Draft(Struct, frozen=True):
    """The listing of one inscription, to be signed; `anchor` is the venue's coin that pays for TX1."""

    terms: AskTerms
    coin: Coin
    item: Item
    anchor: Coin
    passthrough: LeafOutput
    payout: TransactionOutput

    @property
    def transfer(self) -> Transaction:
        outputs = [
            TransactionOutput(self.coin.value, self.passthrough.script),
            TransactionOutput(self.anchor.value - ANCHOR_FEE, self.anchor.output.script_pubkey),
        ]
        return Transaction(2, [spend(self.coin.outpoint), spend(self.anchor.outpoint)], outputs)

    @property
    def passed(self) -> str:
        return f"{self.transfer.txid().hex()}:0"

    @property
    def settlement(self) -> Transaction:
        """The seller's half of TX2."""
        return Transaction(2, [spend(self.passed)], [self.payout])

    def to_sign(self) -> tuple[Unsigned, Unsigned]:
        own = spends(self.coin.output, DEFAULT) | {TAP_INTERNAL_KEY: self.passthrough.internal}
        leaf = {TAP_LEAF_SCRIPT + self.passthrough.control_block: self.passthrough.leaf + bytes([LEAF_VERSION])}
        settlement = Unsigned(self.settlement, [self.passing(SINGLE_ANYONECANPAY) | leaf])
        return Unsigned(self.transfer, [own, spends(self.anchor.output)]), settlement

    def passing(self, sighash: int) -> Map:
        """Returns the fields of an input that spends the output of TX1."""
        leaf_fields = {TAP_INTERNAL_KEY: self.passthrough.internal, TAP_MERKLE_ROOT: self.passthrough.leaf_hash}
        return spends(TransactionOutput(self.coin.value, self.passthrough.script), sighash) | leaf_fields


def draft(engine: Engine, session: Session, key: bytes, wanted: list[tuple[str, int]]) -> list[Draft]:
    """Drafts listings at these prices, by the x-only key. Raises Unlistable if any item cannot be listed."""
    found = []
    for inscription, price in wanted:
        terms = AskTerms(inscription, price, session.ordinals, session.payment, key.hex(), ORDNET)
        coin, item = holding(engine, terms)
        payout = TransactionOutput(price - price * SELLER_FEE_BPS // 10_000, script_of(session.payment))
        found.append((terms, coin, item, payout))
    owner, output = str(script.p2tr(ANCHOR.get_public_key()).address()), passthrough_output(key)
    txid = engine.chain.mint("ord.net anchors", [(ANCHOR_SATS, owner)] * len(found), {})
    anchors = [engine.chain.coins[f"{txid}:{at}"] for at in range(len(found))]
    return [
        Draft(terms, coin, item, anchor, output, payout)
        for (terms, coin, item, payout), anchor in zip(found, anchors, strict=True)
    ]


def recovery(drafts: list[Draft]) -> Transaction:
    """Makes TX3, one for all drafts: every inscription returns to its address."""
    outputs = [TransactionOutput(each.coin.value, each.coin.output.script_pubkey) for each in drafts]
    return Transaction(3, [spend(each.passed) for each in drafts], outputs)


def signed_recovery(drafts: list[Draft], text: str) -> str:
    """Returns the complete recovery in hex. Raises Refusal unless `text` is it, signed at every input."""
    made = recovery(drafts)
    psbt = read_drafted(text, "signedRecoveryPsbt", made, "preflight")
    spent = [TransactionOutput(each.coin.value, each.passthrough.script) for each in drafts]
    for at in range(len(drafts)):
        made.vin[at].witness = key_path_witness(psbt, at, spent, (SIGHASH.ALL,))
    return str(made.serialize().hex())


def signed_order(engine: Engine, made: Draft, transfer: str, settlement: str, back: str) -> Order:
    """Makes the listing of two signed PSBTs, not yet in the book; `back` is the recovery in hex. Raises Refusal."""
    first, second = read(transfer, "step 0"), read(settlement, "step 1")
    if first.tx.serialize() != made.transfer.serialize() or second.tx.serialize() != made.settlement.serialize():
        raise Refusal("a signed step is not the one of the preflight")
    spent = [made.coin.output, made.anchor.output]
    witness = key_path_witness(first, 0, spent)
    signature = leaf_signature(second, 0, made.passthrough, made.coin.value, made.passthrough.internal)
    whole = made.transfer
    anchored = ANCHOR.taproot_tweak(b"").schnorr_sign(whole_digest(whole, 1, spent)).serialize()
    whole.vin[0].witness, whole.vin[1].witness = witness, script.Witness([anchored])
    # A sale needs the complete TX1 and the parts of its output; a return needs TX3.
    papers = (whole.serialize().hex(), made.passthrough.internal.hex(), made.passthrough.leaf.hex(), back)
    kept: Row = {"outpoint": made.coin.outpoint, "psbt": settlement, "signature": signature.hex(), "papers": papers}
    order = ask_order(engine, market_of(engine, made.item), made.item, made.terms)
    return replace(order, order_id=new_id(engine), **kept)


@routes.post(f"{SLUG}/listings/preflight", "list", named("items", "inscriptionId"), bucket="write", drafts=True)
def listing_preflight(call: OrdnetHandler) -> Row:
    body = call.body()
    session = call.bound(body)
    key, wanted = ordinals_key(body, session), _wanted(call, body)
    try:
        drafts = draft(call.world.engine, session, key, wanted)
    except Unlistable as refusal:
        if refusal.cause == "holder":
            raise ApiError(403, "You do not hold this inscription") from None
        raise bad(str(refusal)) from None
    poison, shown = call.world.poison, drafts
    if poison == "escrow_theirs":
        shown = [replace(each, passthrough=replace(each.passthrough, internal=THIEFS_KEY)) for each in drafts]
    recovering = [{"address": session.ordinals, "signingIndexes": list(range(len(drafts))), "sigHash": 1}]
    whole = Unsigned(recovery(shown), [each.passing(SIGHASH.ALL) for each in shown])
    if poison == "recovery_theirs":
        whole = paying(whole, [TransactionOutput(each.value, THIEF) for each in whole.tx.vout])
    back = {"signerAddress": session.ordinals, "inputsToSign": recovering, "psbtBase64": whole.encode()}
    return {"listings": [_to_sign(call, made, shown, session, _asked(body)) for made in shown], "recoveryPsbt": back}


def _wanted(call: OrdnetHandler, body: Row) -> list[tuple[str, int]]:
    """Reads inscriptions and prices. Raises ApiError: 404 outside the collection."""
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
    (transfer, settlement), poison = made.to_sign(), call.world.poison
    if poison is not None:
        other = another(call.world.engine, session.ordinals, set())
        if poison in _OF_THE_TRANSFER:
            transfer = spoiled(transfer, poison, 0, other)
        else:
            settlement = spoiled(settlement, poison, 0, other)
    if poison == "escrow_short":  # a sat of the item goes to the network as a fee
        first, *rest = transfer.tx.vout
        transfer = paying(transfer, [TransactionOutput(first.value - 1, first.script_pubkey), *rest])
    elif poison == "sale_by_key":
        settlement = without_leaf(settlement)
    indexes = [0, 2] if poison == "two_inputs" else [0]
    steps = [
        step(0, session.ordinals, [own | {"signingIndexes": indexes, "sigHash": 0}], transfer.encode()),
        step(1, session.ordinals, [own | sale], settlement.encode()),
    ]
    named = {"inscriptionId": made.item.id}
    return named | {"anchorUtxoId": anchor, "psbts": [named | each for each in steps]}


@routes.post(f"{SLUG}/listings/submit", "list", named("items", "inscriptionId"), bucket="write")
def listing_submit(call: OrdnetHandler) -> Row:
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
    engine = call.world.engine
    for order in orders:
        former = engine.ask_of(order.inscription or "", ORDNET)
        if former is not None:
            engine.cancel(former, "listed again")
        order.expires_ms = engine.now_ms() + body["durationDays"] * DAY_MS
        enter(call, engine.markets["ordinals", order.slug], [order])
    return {"listings": [{"inscriptionId": order.inscription, "listingId": order.order_id} for order in orders]}


def _by_item(body: Row, name: str, ids: list[str]) -> list[Row]:
    """Reads a list with one entry for each item, in order. Raises ApiError(400)."""
    rows = items(body.get(name), name, MAX_ITEMS)
    if [row.get("inscriptionId") for row in rows] != ids:
        raise bad(f"{name} must have one entry for each item, in the same order")
    return rows


def _signed(
    call: OrdnetHandler, made: list[tuple[Draft, list[Draft]]], signed: list[Row], recovery: str
) -> list[Order]:
    engine = call.world.engine
    drafts = [each for each, _ in made]
    for each in drafts:
        coin = engine.chain.coin_of(each.item.id)
        if coin is None or coin.outpoint != each.coin.outpoint or coin.spent_by is not None:
            raise ApiError(409, "An inscription has moved; start again")
    try:
        if drafts != made[0][1]:
            raise Refusal("anchors are not those of one preflight")
        back = signed_recovery(drafts, recovery)
        each_signed = zip(drafts, signed, strict=True)
        return [signed_order(engine, each, *_steps(row), back) for each, row in each_signed]
    except Refusal as refusal:
        made_of = drafts[0]
        engine.record("refused", ask_order(engine, call.market(), made_of.item, made_of.terms), str(refusal))
        raise bad(str(refusal)) from None


def _steps(row: Row) -> tuple[str, str]:
    """Reads the two signed PSBTs of one listing. Raises ApiError(400)."""
    rows = items(row.get("psbts"), "signed.psbts", 2)
    if [each.get("stepIndex") for each in rows] != [0, 1]:
        raise bad("signed.psbts must have the steps 0 and 1")
    return signed_step(rows[0], "signed.psbts[0]"), signed_step(rows[1], "signed.psbts[1]")


@routes.post(f"{SLUG}/listings/delist", "cancel", OrdnetHandler.payer, bucket="write")
def listing_delist(call: OrdnetHandler) -> Row:
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
