"""Ordinals Wallet's writes: sign-in, listings in the standard form, protected listings, and the end of either.

A protected listing has two PSBTs: the transfer moves the inscription into the escrow, the sale sells it from there. A
guess: the venue leaves 12 of the item's sats to the network as the fee, if enough remain.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from embit.transaction import Transaction, TransactionOutput
from msgspec import Struct
from msgspec.structs import replace

from simulator import listing
from simulator.chain import Coin, address_of, outpoint_of, script_of, spend
from simulator.engine import Engine, Order, Refusal
from simulator.handler import MAX_PSBT_TEXT, UNREADABLE, X_ONLY_KEY, Routes, by_url, hex_of, named, peek, refusals
from simulator.poison import THIEFS_KEY, Poison, another, paying, poisoned, without_leaf
from simulator.poison import spoiled as spoiled_half
from simulator.taproot import (
    LEAF_VERSION,
    SINGLE_ANYONECANPAY,
    TAP_INTERNAL_KEY,
    TAP_LEAF_SCRIPT,
    LeafOutput,
    Unsigned,
    spends,
)
from simulator.venue_scripts import COSIGNER, key_path_witness, leaf_signature, recovery_leaf, sale_output, xonly
from simulator.venues.ordinalswallet.reads import (
    PREFIX,
    VENUE,
    OrdinalsWalletHandler,
    escrow_id,
    item_on,
    mainnet_address,
    x_only_key,
)
from simulator.wallets import Item
from simulator.wire import MAX_WHOLE, ApiError, bad, text, whole

Row = dict[str, Any]

# The smallest output that the network relays to any kind of address.
LEAST_PRICE = 546
MAX_ITEMS = 100
_NONCE = re.compile(r"[0-9a-f]{16,64}")
_WORDS: dict[listing.Cause, tuple[int, str, str]] = {
    "unknown": (404, "Inscription not found", "inscription_not_found"),
    "holder": (400, "The inscription is not in this wallet", "not_the_owner"),
    "unconfirmed": (400, "The inscription is not confirmed yet", "unconfirmed"),
    "crowded": (400, "The output holds something else too", "multiple_inscriptions"),
    "script": (400, "Only inscriptions at a taproot address can be listed here", "unsupported_address"),
    "key": (400, "The public key is not that of the address", "invalid_public_key"),
}

routes = Routes(PREFIX, OrdinalsWalletHandler)
for _path in (
    "(?:market|wallet)/secure-purchase/[^/]+",
    "(?:market/purchase|wallet/purchase-bulk)[a-z-]*",
    "market/offers/(?:build|[^/]+/(?:prepare|activate|build-accept|accept))",
):
    routes.post(_path, "place", by_url)(OrdinalsWalletHandler.missing)
routes.post("market/offers/[^/]+/(?:build-cancel|cancel)", "cancel", by_url)(OrdinalsWalletHandler.missing)


@routes.post("auth/session", "challenge", named("address"))
def session(call: OrdinalsWalletHandler) -> Row:
    body = call.body()
    address = text(body.get("address"), "address")
    nonce = text(body.get("nonce"), "nonce")
    if not _NONCE.fullmatch(nonce):
        raise bad("Invalid nonce")
    issued_ms = whole(body.get("issued_at"), "issued_at", 0, MAX_WHOLE)
    signature = text(body.get("signature"), "signature", 2_000)
    if mainnet_address(address) != address:
        raise bad("Invalid Address")
    found = call.world.wallet_sessions.open(address, nonce, issued_ms, signature)
    if found is None:
        raise ApiError(401, "Invalid wallet signature")
    return {"token": found[0], "address": address, "expires_at": found[1]}


def _first_named(call: OrdinalsWalletHandler) -> str:
    try:
        ids = call.body().get("inscriptions")
    except ApiError:
        return UNREADABLE
    return str(ids[0])[:200] if isinstance(ids, list) and ids else ""


@routes.post("wallet/escrow-bulk", "list", _first_named, drafts=True)
def build_escrows(call: OrdinalsWalletHandler) -> Row:
    """Answers the PSBT (hex) that lists inscriptions of one wallet. Changes nothing."""
    wanted = _wanted(call.body())
    with refusals(_said):
        made = listing.draft_plain(call.engine, wanted)
    return {"psbt": hex_of(poisoned(made, call.world.poison, call.engine, wanted[0]).encode())}


def _wanted(body: Row) -> list[listing.AskTerms]:
    inscriptions, prices = body.get("inscriptions"), body.get("prices")
    if not isinstance(inscriptions, list) or not isinstance(prices, list) or len(inscriptions) != len(prices):
        raise bad("inscriptions and prices must be lists of one length")
    if not 1 <= len(inscriptions) <= MAX_ITEMS or len(set(map(str, inscriptions))) != len(inscriptions):
        raise bad(f"inscriptions: 1 to {MAX_ITEMS}, each once")
    seller = mainnet_address(text(body.get("from"), "from"))
    receive = body.get("receive_address")
    key = x_only_key(body, "public_key", X_ONLY_KEY)
    paid_at = mainnet_address(text(receive, "receive_address")) if receive is not None else seller
    return [
        listing.AskTerms(
            text(inscription, "inscriptions"), whole(price, "prices", LEAST_PRICE), seller, paid_at, key, VENUE
        )
        for inscription, price in zip(inscriptions, prices, strict=True)
    ]


def _said(refusal: Refusal) -> ApiError:
    return ApiError(*_WORDS[refusal.cause]) if isinstance(refusal, listing.Unlistable) else bad(str(refusal))


def _first_sold(call: OrdinalsWalletHandler) -> str:
    try:
        return item_on(call.engine, outpoint_of(_sales(call)[0].source))
    except (ApiError, Refusal):
        return UNREADABLE


@routes.post("market/escrow-bulk", "list", _first_sold)
def submit_escrows(call: OrdinalsWalletHandler) -> Row:
    """Takes a signed PSBT with listings, all or none; a new listing replaces the older one."""
    engine, visible_ms = call.world.engine, call.visible_ms()
    with refusals(_said):
        found = [(_terms(call, sale), sale) for sale in _sales(call)]
        for terms, sale in found:
            listing.check_plain(engine, terms, sale)
        orders = [listing.list_plain(engine, terms, sale, visible_ms=visible_ms) for terms, sale in found]
    answer: Row = {"success": True}
    return answer | {"escrow_id": escrow_id(orders[0].order_id)} if len(orders) == 1 else answer


def _sales(call: OrdinalsWalletHandler) -> list[listing.SignedSale]:
    psbt = listing.base64_of(text(call.body().get("psbt"), "psbt", MAX_PSBT_TEXT), "the PSBT")
    return listing.signed_sales(psbt, "the PSBT")


def _terms(call: OrdinalsWalletHandler, sale: listing.SignedSale) -> listing.AskTerms:
    """Returns the terms from the signed half itself, their only source."""
    coin = call.world.engine.chain.coins.get(outpoint_of(sale.source))
    receive = address_of(sale.payout.script_pubkey)
    if coin is None or not coin.inscriptions or coin.address is None:
        raise Refusal("the PSBT spends no output with an inscription")
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    if receive is None or sale.payout.value < LEAST_PRICE:
        raise Refusal("the PSBT pays no address, or too little")
    return listing.AskTerms(coin.inscriptions[0], sale.payout.value, coin.address, receive, venue=VENUE)


def _item_or_output(call: OrdinalsWalletHandler) -> str:
    found = peek(call.request.body, "inscription_id")
    return peek(call.request.body, "outpoint") if found in ("", UNREADABLE) else found


@routes.post("market/cancel-escrow", "cancel", _item_or_output)
def cancel_escrow(call: OrdinalsWalletHandler) -> Row:
    body = call.body()
    names = [name for name in ("inscription_id", "outpoint") if body.get(name) is not None]
    if len(names) != 1:
        raise ApiError(400, "Give an inscription id or an outpoint", "listing_identifier_required")
    wanted = text(body[names[0]], names[0])
    owner = call.world.wallet_sessions.owner(text(body.get("signature"), "signature", MAX_PSBT_TEXT))
    if owner is None:
        raise ApiError(401, "Invalid or expired session", "invalid_session")
    engine = call.world.engine
    coin = engine.chain.coins.get(wanted)
    if names[0] == "outpoint":
        ask = engine.ask_on(wanted, coin.address or owner, VENUE) if coin else None
    else:
        ask = next((each for each in engine.asks_of(wanted) if each.venue == VENUE), None)
    if ask is None or (ask.papers and names[0] != "outpoint"):  # a protected listing is found only by its output
        raise ApiError(404, "This item is not listed", "listing_not_found")
    if ask.maker != owner:
        raise ApiError(401, "This wallet does not own this item", "not_the_owner")
    call.end(ask)
    if not ask.papers:
        return {"success": True}
    about = {"escrow_id": escrow_id(ask.order_id), "secure_v2": True, "previous_state": "listed", "state": "cancelled"}
    return {"success": True, "transition": "cancelled", "listing": about}


LEAST_POSTAGE = 330
TRANSFER_FEE = 12
POLICY = "passthrough_v4"
_WHOLE = (0x00, 0x01)  # sighashes that cover the whole transaction
_MOST_DRAFTS = 5_000
_OUTPOINT = re.compile(r"[0-9a-f]{64}:\d{1,9}")
_COMPRESSED = re.compile(r"0[23]([0-9a-f]{64})")
# The poisons of the transfer into the escrow; the others apply to the sale.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output", "extra_input"})
_CODES: dict[listing.Cause, str] = {
    "unknown": "asset_not_current",
    "holder": "seller_key_does_not_control_asset",
    "unconfirmed": "unconfirmed_asset_outpoint",
    "crowded": "ambiguous_inscription_assets",
    "script": "unsupported_seller_script",
    "key": "seller_key_does_not_control_asset",
}
routes.post("market/secure-listing/recover", "list", by_url)(OrdinalsWalletHandler.missing)


class Draft(Struct, frozen=True):
    """The listing of one inscription, to be signed."""

    terms: listing.AskTerms
    coin: Coin
    item: Item

    @property
    def seller(self) -> bytes:
        return bytes.fromhex(self.terms.internal_key)

    @property
    def escrow(self) -> LeafOutput:
        return sale_output(self.seller)

    @property
    def held(self) -> TransactionOutput:
        short = self.coin.value - TRANSFER_FEE
        return TransactionOutput(short if short >= LEAST_POSTAGE else self.coin.value, self.escrow.script)

    @property
    def transfer(self) -> Transaction:
        return Transaction(2, [spend(self.coin.outpoint)], [self.held])

    @property
    def sale(self) -> Transaction:
        payout = TransactionOutput(self.terms.price, script_of(self.terms.receive))
        return Transaction(2, [spend(f"{self.transfer.txid().hex()}:0")], [payout])

    @property
    def digest(self) -> str:
        """The draft's digest, which its signed form must repeat."""
        return hashlib.sha256(self.transfer.serialize() + self.sale.serialize()).hexdigest()

    def to_sign(self) -> tuple[Unsigned, Unsigned]:
        transfer = Unsigned(self.transfer, [spends(self.coin.output) | {TAP_INTERNAL_KEY: self.seller}])
        leaf = {TAP_LEAF_SCRIPT + self.escrow.control_block: self.escrow.leaf + bytes([LEAF_VERSION])}
        about = spends(self.held, SINGLE_ANYONECANPAY) | leaf | {TAP_INTERNAL_KEY: self.escrow.internal}
        return transfer, Unsigned(self.sale, [about])


def list_protected(engine: Engine, made: Draft, transfer: str, sale: str, *, visible_ms: int = 0) -> Order:
    """Enters a listing of two signed PSBTs (hex) in place of the older one here, or raises Refusal and records why."""
    whole = made.transfer
    try:
        signed = listing.read_drafted(listing.base64_of(transfer, "psbt"), "psbt", whole, "draft")
        whole.vin[0].witness = key_path_witness(signed, 0, [made.coin.output], _WHOLE)
        half = listing.base64_of(sale, "sale_psbt")
        signed = listing.read_drafted(half, "sale_psbt", made.sale, "draft")
        signature = leaf_signature(signed, 0, made.escrow, made.held.value, made.seller)
    except Refusal as refusal:
        listing.refuse(engine, made.terms, str(refusal))
        raise
    papers = (str(whole.serialize().hex()), made.seller.hex())
    kept: Row = {"outpoint": made.coin.outpoint, "psbt": half, "signature": signature.hex(), "papers": papers}
    return listing.enter_ask(
        engine, made.terms, made.item, listing.former_asks(engine, made.terms), visible_ms=visible_ms, **kept
    )


def spoiled(made: Draft, poison: Poison | None, engine: Engine) -> tuple[Unsigned, Unsigned]:
    transfer, sale = made.to_sign()
    match poison:
        case "escrow_theirs":
            held = TransactionOutput(made.held.value, sale_output(THIEFS_KEY).script)
            return paying(transfer, [held]), sale
        case "escrow_short":
            return paying(transfer, [TransactionOutput(made.held.value - 1, made.held.script_pubkey)]), sale
        case "sale_by_key":
            return transfer, without_leaf(sale)
        case "recovery_theirs":  # asks for a signature with the recovery leaf
            leaf = recovery_leaf(made.seller)
            back = LeafOutput(made.escrow.internal, leaf, made.escrow.leaf_hash)
            shown = {TAP_LEAF_SCRIPT + back.control_block: leaf + bytes([LEAF_VERSION])}
            return transfer, replace(sale, inputs=[without_leaf(sale).inputs[0] | shown])
        case None:
            return transfer, sale
    other = another(engine, made.terms.seller, {made.coin.outpoint})
    if poison in _OF_THE_TRANSFER:
        transfer = spoiled_half(transfer, poison, 0, other)
    else:
        sale = spoiled_half(sale, poison, 0, other)
    return transfer, sale


class _Refused(Exception):
    """One item is refused, by its code; the call's other items are not affected."""


def _first_output(call: OrdinalsWalletHandler) -> str:
    try:
        rows = call.body().get("items")
    except ApiError:
        return UNREADABLE
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return item_on(call.engine, str(first.get("outpoint")))


@routes.post("market/secure-listing/build-bulk", "list", _first_output, drafts=True)
def build_protected(call: OrdinalsWalletHandler) -> Row:
    body = call.body()
    if body.get("protocol") != "ordinal":
        raise ApiError(400, "This item type cannot be protected", "protocol_mismatch")
    receive = mainnet_address(text(body.get("seller_address"), "seller_address"))
    key = x_only_key(body, "seller_public_key", _COMPRESSED)

    def drafted(item: Row, outpoint: str) -> Row:
        price = whole(item.get("escrow_price_sats"), "escrow_price_sats", 1)
        return _to_sign(call, _drafted(call, outpoint, price, receive, key))

    return {"version": 4, "policy": POLICY, "items": _each(call, drafted)}


def _each(call: OrdinalsWalletHandler, answered: Callable[[Row, str], Row]) -> list[Row]:
    """Answers each item and its output; a refused item gets its own row."""
    rows = call.body().get("items")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ITEMS:
        raise ApiError(400, "Select between 1 and 100 items", "invalid_batch_size")
    if not all(isinstance(row, dict) for row in rows):
        raise bad("items must be objects")
    found = []
    for row in rows:
        outpoint = text(row.get("outpoint"), "outpoint")
        if not _OUTPOINT.fullmatch(outpoint):
            raise bad("outpoint must be txid:vout")
        try:
            found.append(answered(row, outpoint))
        except _Refused as refused:
            found.append({"outpoint": outpoint, "error": True, "code": str(refused)})
    return found


def _drafted(call: OrdinalsWalletHandler, outpoint: str, price: int, receive: str, key: str) -> Draft:
    """Drafts a listing of the inscription on the output. Raises _Refused."""
    coin = call.engine.chain.coins.get(outpoint)
    if coin is None or not coin.inscriptions or coin.address is None:
        raise _Refused("no_supported_assets_on_output")
    if coin.spent_by is not None:
        raise _Refused("outpoint_spent_in_mempool")
    if price < LEAST_POSTAGE:
        raise _Refused("price_below_dust")
    if coin.value < LEAST_POSTAGE:
        raise _Refused("postage_too_small")
    asks = [ask for each in coin.inscriptions for ask in call.engine.asks_of(each)]
    if any(ask.at(VENUE) and ask.outpoint == outpoint and not ask.papers for ask in asks):
        raise _Refused("secure_listing_requires_fresh_outpoint")
    try:
        terms = listing.AskTerms(coin.inscriptions[0], price, coin.address, receive, key, VENUE)
        return Draft(terms, *listing.holding(call.engine, terms))
    except listing.Unlistable as refusal:
        raise _Refused(_CODES[refusal.cause]) from None


def _to_sign(call: OrdinalsWalletHandler, made: Draft) -> Row:
    kept = call.world.protected
    kept[made.digest] = made.terms
    while len(kept) > _MOST_DRAFTS:
        del kept[next(iter(kept))]
    transfer, sale = spoiled(made, call.world.poison, call.engine)
    row = _about(made) | {"state": "authorization_required", "psbt": hex_of(transfer.encode())}
    row |= {"sale_psbt": hex_of(sale.encode()), "escrow_price_sats": made.terms.price}
    row |= {"escrow_script": made.escrow.script.data.hex(), "cosigner_public_key": xonly(COSIGNER).hex()}
    return row | {"ordinal_offset": 0}


def _one_or_all(call: OrdinalsWalletHandler, value: Row) -> None:
    """Answers all rows of an authorization; for a single item only its row, and status 400 if it is refused."""
    call.send(value, 400 if value.get("error") else 200)


@routes.post("market/secure-listing/authorize-bulk", "list", _first_output, deliver=_one_or_all)
def authorize_protected(call: OrdinalsWalletHandler) -> Row:
    """Takes the signed PSBTs; a new listing replaces the older one."""
    rows = _each(call, partial(_listed_protected, call))
    return {"version": 4, "policy": POLICY, "items": rows} if len(rows) > 1 else rows[0]


def _listed_protected(call: OrdinalsWalletHandler, item: Row, outpoint: str) -> Row:
    digest = text(item.get("template_digest"), "template_digest")
    terms = call.world.protected.get(digest)
    if terms is None or item.get("protocol") != "ordinal":
        raise _Refused("template_digest_mismatch")
    made = _drafted(call, outpoint, terms.price, terms.receive, x_only_key(item, "seller_public_key", _COMPRESSED))
    asked = item.get("escrow_price_sats", terms.price)
    if made.digest != digest or asked != terms.price:
        raise _Refused("template_digest_mismatch")
    transfer, sale = (text(item.get(name), name, MAX_PSBT_TEXT) for name in ("psbt", "sale_psbt"))
    try:
        list_protected(call.world.engine, made, transfer, sale, visible_ms=call.visible_ms())
    except Refusal:
        raise _Refused("invalid_seller_authorization") from None
    del call.world.protected[digest]
    return {**_about(made), "state": "listed"}


# Declared last, because its path would match the other routes too.
@routes.get("market/secure-listing/([^/]+)", "item")
def protected_state(call: OrdinalsWalletHandler) -> Row:
    """Answers the protected listing of an output, or 404."""
    outpoint = call.path_args[0]
    coin = call.engine.chain.coins.get(outpoint)
    ask = call.engine.ask_on(outpoint, coin.address or "", VENUE) if coin else None
    if ask is None or not ask.papers:
        raise ApiError(404, "secure listing not found")
    about = {"version": 2, "state": "listed", "outpoint": outpoint, "protocol": "ordinal", "policy": POLICY}
    return {"secure_listing": about}


def _about(made: Draft) -> Row:
    row = {"version": 4, "outpoint": made.coin.outpoint, "protocol": "ordinal", "policy": POLICY}
    row |= {"template_digest": made.digest, "passthrough_txid": made.transfer.txid().hex()}
    return row | {"escrow_value": made.held.value}
