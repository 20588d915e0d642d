"""ord.net's offers for a collection or for traits: drafted, signed by the buyer, checked, and put into the book."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any

from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput
from msgspec import Struct
from msgspec.structs import replace

from simulator.chain import Coin, script_of, spend
from simulator.engine import Engine, Market, Order, Refusal, takes
from simulator.handler import Routes, by_path, same
from simulator.holdings import Member, coins, members
from simulator.listing import client_order, read_drafted
from simulator.poison import another, indexes, spoiled
from simulator.sessions import Session
from simulator.taproot import LeafOutput, Unsigned, spends
from simulator.venue_scripts import ORDNET, OfferTerms, announcement, offer_output, payment_witness, redeem
from simulator.venues.ordnet.handler import PREFIX, SLUG, OrdnetHandler, ordinals_key, payment_key, signed_step, step
from simulator.wallets import Trait
from simulator.wire import MAX_SATS, ApiError, bad, items, only, text, whole

Row = dict[str, Any]
Spendable = tuple[str, int]

LEAST_PRICE, TICK = 10_000, 5_000
HOUR_MS = 3_600_000
LIVES_HOURS = (6, 12, 24, 168, 720, 2160)
DEFAULT_HOURS = 168
# Less change would be dust that no node relays.
LEAST_CHANGE = 330
MAX_VALUES, MAX_COINS, MAX_COUNT, MAX_UTXOS = 100, 50, 10, 1_000
OFFERS = f"{SLUG}/collection-offers"
# The preflight's fields that submit must repeat.
_REPEATED = ("ordinalsPublicKey", "paymentPublicKey", "target", "priceSats")
_TXID = re.compile(r"[0-9a-f]{64}")

routes = Routes(PREFIX, OrdnetHandler)


class Target(Struct, frozen=True):
    """The target of an offer. `traits` are all accepted values; empty means the whole collection."""

    traits: tuple[Trait, ...] = ()

    def as_json(self) -> Row:
        if not self.traits:
            return {"kind": "all"}
        kinds = sorted({kind for kind, _ in self.traits})
        rows = [{"type": kind, "values": [value for own, value in self.traits if own == kind]} for kind in kinds]
        return {"kind": "traits", "traits": rows}

    @property
    def label(self) -> str:
        rows = self.as_json().get("traits", [])
        return ", ".join(f"{row['type']}: {' / '.join(row['values'])}" for row in rows) or "Collection"

    def criteria(self, slug: str) -> str:
        """Returns the canonical JSON whose hash is in an offer's leaf."""
        return json.dumps({"v": 1, "collection": slug, "target": self.as_json()}, separators=(",", ":"), sort_keys=True)


def target_of(value: Any) -> Target:
    """Reads the target of a request. Raises ApiError(400)."""
    if not isinstance(value, dict) or value.get("kind") not in ("all", "traits"):
        raise bad("target.kind must be all or traits")
    if value["kind"] == "all":
        only(value, frozenset({"kind"}), "target")
        return Target()
    only(value, frozenset({"kind", "traits"}), "target")
    found: set[Trait] = set()
    for at, row in enumerate(items(value.get("traits"), "target.traits", MAX_VALUES)):
        values = row.get("values")
        if not isinstance(values, list) or not 1 <= len(values) <= MAX_VALUES:
            raise bad(f"target.traits[{at}].values must be a list of 1 to {MAX_VALUES} texts")
        kind = text(row.get("type"), f"target.traits[{at}].type")
        found |= {(kind, text(each, f"target.traits[{at}].values")) for each in values}
    if not found:
        raise bad("target.traits must not be empty")
    return Target(tuple(sorted(found)))


def of_order(bid: Order) -> Target:
    return Target(tuple(sorted(bid.traits)))


def eligible(found: list[Member], target: Target) -> list[Member]:
    """Returns the members that an offer for `target` accepts."""
    return [member for member in found if takes(target.traits, member.item.traits)]


def root(found: list[Member]) -> bytes:
    """Returns 32 bytes that commit to the eligible inscriptions."""
    return hashlib.sha256("\n".join(sorted(member.item.id for member in found)).encode()).digest()


# The funding parent pays the buyer's coins to the offer's output and back to the buyer, without a fee. From ord.net's
# documents: a transaction of version 3 that is not broadcast before the offer is filled, with the offer's output first
# and an OP_RETURN that helps to find the offer again. That the change comes last is a guess.


class Parent(Struct, frozen=True):
    """The unsigned funding parent of one offer."""

    offer: LeafOutput
    price: int
    coins: tuple[Coin, ...]
    payment: str

    @property
    def transaction(self) -> Transaction:
        outputs = [TransactionOutput(self.price, self.offer.script), TransactionOutput(0, announcement(self.offer))]
        change = sum(coin.value for coin in self.coins) - self.price
        if change:
            outputs.append(TransactionOutput(change, script_of(self.payment)))
        return Transaction(3, [spend(coin.outpoint) for coin in self.coins], outputs)

    @property
    def comes_back(self) -> int:
        """The index of the buyer's output: the change, or the offer's own output without change."""
        return 2 if len(self.transaction.vout) > 2 else 0

    @property
    def txid(self) -> str:
        return str(self.transaction.txid().hex())

    def to_sign(self, public_key: bytes) -> Unsigned:
        """Returns the PSBT that the payment key must sign at every input."""
        made = Unsigned(self.transaction, [spends(coin.output) for coin in self.coins])
        for fields, coin in zip(made.inputs, self.coins, strict=True):
            if script_sig := redeem(coin.output, public_key).data:
                fields[b"\x04"] = script_sig[1:]
        return made

    def signed(self, text: str, public_key: bytes) -> Transaction:
        """Returns the complete transaction from the signed PSBT. Raises Refusal if it differs or is unsigned."""
        psbt = read_drafted(text, "the signed funding parent", self.transaction, "preflight")
        spent = [coin.output for coin in self.coins]
        witnesses = [payment_witness(psbt, at, spent, public_key) for at in range(len(spent))]
        return with_witnesses(psbt.tx, witnesses, [redeem(own, public_key) for own in spent])


def with_witnesses(tx: Transaction, witnesses: list[Witness], script_sigs: list[Script]) -> Transaction:
    """Returns `tx` with its witnesses and script sigs in place."""
    inputs = [
        TransactionInput(source.txid, source.vout, script_sig, source.sequence, witness)
        for source, witness, script_sig in zip(tx.vin, witnesses, script_sigs, strict=True)
    ]
    return Transaction(tx.version, inputs, tx.vout, tx.locktime)


def spendable(engine: Engine, payment: str, named: tuple[Spendable, ...]) -> list[Coin]:
    """Returns the coins that a request names by outpoint and sats. Raises ApiError.

    400 for a coin that is not the payment address's, has another value or is not confirmed; 409 if it is spent.
    """
    coins(engine, payment)
    found = []
    for outpoint, sats in named:
        coin = engine.chain.coins.get(outpoint)
        if coin is None or coin.output.script_pubkey != script_of(payment) or coin.value != sats:
            raise bad(f"spendableUtxos: {outpoint} is not an output of the payment address with {sats} sats")
        if coin.inscriptions or coin.runes:
            raise bad(f"spendableUtxos: {outpoint} holds an inscription or runes")
        if coin.spent_by is not None:
            raise ApiError(409, f"{outpoint} is spent")
        if not engine.chain.confirmations(coin.txid):
            raise bad(f"spendableUtxos: {outpoint} is not confirmed")
        found.append(coin)
    return found


def select(found: list[Coin], sats: int) -> tuple[Coin, ...]:
    """Selects the fewest coins that pay `sats`, without dust as change. Raises ApiError(400)."""
    chosen: list[Coin] = []
    for coin in sorted(found, key=lambda coin: -coin.value):
        chosen.append(coin)
        left = sum(each.value for each in chosen) - sats
        if left == 0 or left >= LEAST_CHANGE:
            if len(chosen) > MAX_COINS:
                break
            return tuple(chosen)
    raise bad(f"spendableUtxos do not cover {sats} sats, or not with {MAX_COINS} of them")


class Draft(Struct, frozen=True):
    """One offer to be signed; `secret` is the venue's key to settle it."""

    session: Session
    target: Target
    parent: Parent
    expires_ms: int
    secret: bytes

    def stale(self, engine: Engine) -> str:
        """Returns why the offer can no longer be entered, however it is signed; empty if it can."""
        if any(engine.chain.coins[coin.outpoint].spent_by is not None for coin in self.parent.coins):
            return "a payment input is spent"
        return "the offer is over" if self.expires_ms <= engine.now_ms() else ""

    def order(self, engine: Engine, market: Market) -> Order:
        """Makes the order without id and signature, the form in which a refused one is recorded."""
        about = {"expires_ms": self.expires_ms, "traits": self.target.traits}
        return offer_order(engine, market, self.session, self.parent.price, self.parent.coins, **about)

    def signed(self, engine: Engine, market: Market, psbt: str, key: bytes) -> Order:
        """Makes the order of the signed funding parent, not yet in the book. Raises Refusal."""
        whole, offer = self.parent.signed(psbt, key), self.parent.offer
        signature = whole.vin[0].witness.items[0].hex()
        # A settlement needs the complete parent, the parts of its output, and the secret that opens it.
        papers = (whole.serialize().hex(), offer.internal.hex(), offer.leaf.hex(), self.secret.hex())
        made = self.order(engine, market)
        return replace(made, order_id=new_id(engine), signature=signature, psbt=psbt, papers=papers)


def offer_order(
    engine: Engine, market: Market, session: Session, price: int, coins: tuple[Coin, ...], **more: Any
) -> Order:
    """Makes an offer that ends when one of its `coins` is spent."""
    funding = tuple(coin.outpoint for coin in coins)
    wallet = {"maker": session.payment, "receive": session.ordinals}
    return client_order(engine, ORDNET, market, "bid", price, funding=funding, **wallet, **more)


def signed_order(call: OrdnetHandler, market: Market, made: Any, psbt: str, key: bytes) -> Order:
    """Makes the order of a signed draft of any kind. Records and refuses a stale or wrongly signed draft."""
    engine = call.world.engine
    reason, status = made.stale(engine), 409
    if not reason:
        try:
            return made.signed(engine, market, psbt, key)
        except Refusal as refusal:
            reason, status = str(refusal), 400
    engine.record("refused", made.order(engine, market), reason)
    raise ApiError(status, reason)


def enter(call: OrdnetHandler, market: Market, orders: list[Order]) -> None:
    """Puts orders into the book, and remembers their ids."""
    visible_ms = call.visible_ms()
    for order in orders:
        order.visible_ms = visible_ms
        call.world.engine.enter(market, order)
        call.desk.taken.add(order.order_id)


def replaced(engine: Engine, market: Market, buyer: str, target: Target, outpoints: set[str]) -> list[Order]:
    """Returns the buyer's open offers of the same scope on any of these coins, which a new offer replaces."""
    own = [bid for bid in engine.bids_of(buyer, hidden=True, venue=ORDNET) if bid.venue == ORDNET]
    same = [bid for bid in own if bid.slug == market.slug and bid.inscription is None and of_order(bid) == target]
    return [bid for bid in same if outpoints & set(bid.funding)]


def new_id(engine: Engine) -> str:
    """Makes a UUID, like the ids of the venue's offers and listings."""
    digest = hashlib.sha256(f"ordnet {engine.new_id()}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def public_id(order: Order) -> str:
    """Returns the order's id as a UUID, because scripts' and traders' ids have 24 hex digits."""
    return order.order_id if "-" in order.order_id else str(uuid.UUID(int=int(order.order_id, 16)))


@routes.post(f"{OFFERS}/target-preview", "book", by_path)
def target_preview(call: OrdnetHandler) -> Row:
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
    body = call.body()
    session, market, target = call.bound(body), call.market(), target_of(body.get("target"))
    _prices(body)
    outpoints = {outpoint for outpoint, _ in utxos(body.get("spendableUtxos"), "spendableUtxos")}
    count = len(replaced(call.engine, market, session.payment, target, outpoints))
    return {"replacementWarning": {"activeOfferCount": count}}


@routes.post(f"{OFFERS}/preflight", "place", by_path, bucket="write", drafts=True)
def offer_preflight(call: OrdnetHandler) -> Row:
    body = call.body()
    session, market = call.bound(body), call.market()
    target, drafts, found = _drafts(call, body, market, session)
    criteria, asked, key = target.criteria(market.slug), _asked(body, market), payment_key(body, session)
    return {
        "criteriaCanonicalJson": criteria,
        "offerCriteriaHash": hashlib.sha256(criteria.encode()).hexdigest(),
        "eligibleRoot": root(found).hex(),
        "eligibleCount": len(found),
        "buyerReceiveScriptHex": script_of(session.ordinals).data.hex(),
        "offers": [_to_sign(call, each, asked, key) for each in drafts],
    }


def _drafts(
    call: OrdnetHandler, body: Row, market: Market, session: Session
) -> tuple[Target, list[Draft], list[Member]]:
    """Drafts `count` offers, each one ladder step below the one before, and returns their target and members."""
    engine, (price, count, ladder) = call.world.engine, _prices(body)
    target, hours = target_of(body.get("target")), life_hours(body)
    key, _ = ordinals_key(body, session), payment_key(body, session)
    named = utxos(body.get("spendableUtxos"), "spendableUtxos")
    prices = [price - at * ladder for at in range(count)]
    if min(prices) < LEAST_PRICE:
        raise bad(f"priceSats must be at least {LEAST_PRICE}, for every offer")
    if any(each % TICK for each in prices):
        raise bad(f"priceSats must be a multiple of {TICK}, for every offer")
    found = eligible(members(engine, market, ORDNET), target)
    usable = spendable(engine, session.payment, named)
    criteria = hashlib.sha256(target.criteria(market.slug).encode()).digest()
    # because the leaf contains whole seconds
    expires_s = engine.now_ms() // 1000 + hours * 3600
    drafts = []
    for each in prices:
        secret = hashlib.sha256(f"offer secret {engine.new_id()}".encode()).digest()
        terms = OfferTerms(each, expires_s, script_of(session.ordinals).data, root(found), criteria)
        output = offer_output(key, terms, hashlib.sha256(secret).digest())
        parent = Parent(output, each, select(usable, each), session.payment)
        drafts.append(Draft(session, target, parent, expires_s * 1000, secret))
    return target, drafts, found


def _prices(body: Row) -> tuple[int, int, int]:
    return (
        whole(body.get("priceSats"), "priceSats", 1, MAX_SATS),
        whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT),
        whole(body.get("ladderStepSats", 0), "ladderStepSats", 0, MAX_SATS),
    )


def life_hours(body: Row) -> int:
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
        raise bad(f"{name}: an output is repeated")
    return tuple(found)


def utxo_row(outpoint: str, sats: int) -> Row:
    txid, vout = outpoint.split(":")
    return {"txid": txid, "vout": int(vout), "valueSats": sats}


def _asked(body: Row, market: Market) -> str:
    """Returns the fields that preflight and submit must share, as one text."""
    counts = {"offerCount": body.get("offerCount", 1), "ladderStepSats": body.get("ladderStepSats", 0)}
    return as_text({name: body.get(name) for name in _REPEATED} | counts, body, market)


def as_text(fields: Row, body: Row, market: Market) -> str:
    fields |= {"slug": market.slug, "validityHours": life_hours(body)}
    return json.dumps(fields, sort_keys=True, default=str)


def _to_sign(call: OrdnetHandler, made: Draft, asked: str, key: bytes) -> Row:
    parent, poison, session = made.parent, call.world.poison, made.session
    other = another(call.world.engine, session.payment, {coin.outpoint for coin in parent.coins})
    shown = spoiled(parent.to_sign(key), poison, parent.comes_back, other)
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
    body = call.body()
    session, market = call.bound(body), call.market()
    key = payment_key(body, session)
    rows = items(body.get("offers"), "offers", MAX_COUNT)
    if len(rows) != whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT):
        raise bad("offers must have offerCount entries")
    asked = _asked(body, market)
    orders: list[Order] = []
    for at, row in enumerate(rows):
        token = text(row.get("preflightToken"), f"offers[{at}].preflightToken")
        made: Draft = call.desk.draft(session, asked, token)
        parent, name = made.parent, f"offers[{at}]"
        named = [outpoint for outpoint, _ in utxos(row.get("selectedPaymentUtxos"), f"{name}.selectedPaymentUtxos")]
        repeated = (row.get("priceSats"), row.get("expectedFundingParentTxid"), row.get("fundingParentVout"))
        if repeated != (parent.price, parent.txid, 0) or named != [coin.outpoint for coin in parent.coins]:
            raise bad(f"{name} does not repeat what the preflight answered")
        psbt = signed_step(row.get("signedFundingParentStep"), f"offers[{at}].signedFundingParentStep")
        orders.append(signed_order(call, market, made, psbt, key))
    for row in rows:
        call.desk.used(row["preflightToken"])
    engine = call.world.engine
    outpoints = {outpoint for order in orders for outpoint in order.funding}
    for former in replaced(engine, market, session.payment, of_order(orders[0]), outpoints):
        engine.cancel(former, "replaced by a newer offer on the same coins")
    twins = [replace(order, order_id=new_id(engine)) for order in orders] if call.mode == "accept_twice" else []
    enter(call, market, [*orders, *twins])
    placed = [
        {"offerId": order.order_id, "status": "active", "priceSats": order.price}
        | {"fundingParentTxid": row["expectedFundingParentTxid"], **_UNSENT}
        for order, row in zip(orders, rows, strict=True)
    ]
    return {"status": "active", "offers": placed}


@routes.post(f"{OFFERS}/([^/]+)/cancel", "cancel", OrdnetHandler.payer, bucket="write")
def offer_cancel(call: OrdnetHandler) -> Row:
    session = call.bound(call.body())
    call.market()
    return cancelled(call, session)


def cancelled(call: OrdnetHandler, session: Session) -> Row:
    """Removes the offer of the path. Raises ApiError: 404 if unknown, 409 if over, 403 if another user's."""
    about, offer_id = call.path_args[:2]
    order = call.world.engine.order(offer_id)
    if order is None or order.side != "bid" or order.venue != ORDNET:
        known = offer_id in call.desk.taken
        raise ApiError(409, "Offer is no longer active") if known else ApiError(404, "Offer not found")
    if order.maker != session.payment or about.lower() not in (order.slug, order.inscription):
        raise ApiError(403, "Offer is not yours")
    call.end(order)
    return {"offerId": offer_id, "status": "cancelled"}
