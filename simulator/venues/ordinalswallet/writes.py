"""Ordinals Wallet's writes: sign-in, listings in the standard form, their return, and protected listings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simulator.bitcoin.transactions import address_of, outpoint_of
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import (
    AskTerms,
    Cause,
    SignedSale,
    Unlistable,
    base64_of,
    check_plain,
    draft_plain,
    list_plain,
    signed_sales,
)
from simulator.venues.ordinalswallet.handler import PREFIX, VENUE, OrdinalsWalletHandler, escrow_id, mainnet_address
from simulator.venues.ordinalswallet.protected import LEAST_POSTAGE, Draft, as_hex, draft, list_protected, spoiled
from simulator.venues.poison import poisoned
from simulator.venues.routes import MAX_PSBT_TEXT, UNREADABLE, X_ONLY_KEY, Routes, by_url, hex_of, named, peek
from simulator.venues.scripts import cosigner
from simulator.wire import MAX_WHOLE, ApiError, bad, text, whole

Row = dict[str, Any]

# The smallest output that the network relays to any kind of address.
LEAST_PRICE = 546
MAX_ITEMS = 100
POLICY = "passthrough_v4"
_MOST_DRAFTS = 5_000
_NONCE = re.compile(r"[0-9a-f]{16,64}")
_COMPRESSED = re.compile(r"0[23]([0-9a-f]{64})")
_OUTPOINT = re.compile(r"[0-9a-f]{64}:\d{1,9}")
# Of each cause of a refusal the status, code and words of the standard form, and the code of the protected one.
_CAUSES: dict[Cause, tuple[int, str, str, str]] = {
    "unknown": (404, "inscription_not_found", "Inscription not found", "asset_not_current"),
    "holder": (400, "not_the_owner", "The inscription is not in this wallet", "seller_key_does_not_control_asset"),
    "unconfirmed": (400, "unconfirmed", "The inscription is not confirmed yet", "unconfirmed_asset_outpoint"),
    "crowded": (400, "multiple_inscriptions", "The output holds something else too", "ambiguous_inscription_assets"),
    "script": (
        400,
        "unsupported_address",
        "Only inscriptions at a taproot address can be listed here",
        "unsupported_seller_script",
    ),
    "key": (
        400,
        "invalid_public_key",
        "The public key is not that of the address",
        "seller_key_does_not_control_asset",
    ),
}

routes = Routes(PREFIX, OrdinalsWalletHandler)
for _path in (
    "(?:market|wallet)/secure-purchase/[^/]+",
    "(?:market/purchase|wallet/purchase-bulk)[a-z-]*",
    "market/offers/(?:build|[^/]+/(?:prepare|activate|build-accept|accept))",
):
    routes.post(_path, "place", by_url)(OrdinalsWalletHandler.missing)
routes.post("market/secure-listing/recover", "list", by_url)(OrdinalsWalletHandler.missing)
routes.post("market/offers/[^/]+/(?:build-cancel|cancel)", "cancel", by_url)(OrdinalsWalletHandler.missing)


@routes.post("auth/session", "challenge", named("address"))
def session(call: OrdinalsWalletHandler) -> Row:
    """Answers a token of 24 hours for a signed text with a fresh nonce."""
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


# Listings in the standard form


def _first_named(call: OrdinalsWalletHandler) -> str:
    try:
        ids = call.body().get("inscriptions")
    except ApiError:
        return UNREADABLE
    return str(ids[0])[:200] if isinstance(ids, list) and ids else ""


@routes.post("wallet/escrow-bulk", "list", _first_named, drafts=True)
def build_escrows(call: OrdinalsWalletHandler) -> Row:
    """Answers the PSBT, in hex, that lists inscriptions of one wallet. Changes nothing."""
    wanted = _wanted(call.body())
    with _in_words():
        made = draft_plain(call.engine, wanted)
    return {"psbt": hex_of(poisoned(made, call.world.poison, call.engine, wanted[0]).encode())}


def _wanted(body: Row) -> list[AskTerms]:
    inscriptions, prices = body.get("inscriptions"), body.get("prices")
    if not isinstance(inscriptions, list) or not isinstance(prices, list) or len(inscriptions) != len(prices):
        raise bad("inscriptions and prices must be lists of one length")
    if not 1 <= len(inscriptions) <= MAX_ITEMS or len(set(map(str, inscriptions))) != len(inscriptions):
        raise bad(f"inscriptions: 1 to {MAX_ITEMS}, each once")
    seller = mainnet_address(text(body.get("from"), "from"))
    receive = body.get("receive_address")
    key = _key(body, "public_key", X_ONLY_KEY)
    paid_at = mainnet_address(text(receive, "receive_address")) if receive is not None else seller
    return [
        AskTerms(text(inscription, "inscriptions"), whole(price, "prices", LEAST_PRICE), seller, paid_at, key, VENUE)
        for inscription, price in zip(inscriptions, prices, strict=True)
    ]


def _key(body: Row, name: str, form: re.Pattern[str]) -> str:
    """Reads a public key; returns it x-only."""
    found = form.fullmatch(text(body.get(name), name))
    if found is None:
        raise ApiError(400, "Invalid public key", "invalid_public_key")
    return found[1]


@contextmanager
def _in_words() -> Iterator[None]:
    """Turns the market's refusals into this venue's answers."""
    try:
        yield
    except Unlistable as refusal:
        status, code, words, _ = _CAUSES[refusal.cause]
        raise ApiError(status, words, code) from None
    except Refusal as refusal:
        raise bad(str(refusal)) from None


def _first_sold(call: OrdinalsWalletHandler) -> str:
    try:
        return _item_on(call, outpoint_of(_sales(call)[0].source))
    except (ApiError, Refusal):
        return UNREADABLE


def _item_on(call: OrdinalsWalletHandler, outpoint: str) -> str:
    coin = call.engine.chain.coins.get(outpoint)
    return coin.inscriptions[0] if coin and coin.inscriptions else ""


@routes.post("market/escrow-bulk", "list", _first_sold)
def submit_escrows(call: OrdinalsWalletHandler) -> Row:
    """Takes a signed PSBT with listings, all or none; listing again replaces."""
    engine, visible_ms = call.world.engine, call.visible_ms()
    with _in_words():
        found = [(_terms(call, sale), sale) for sale in _sales(call)]
        for terms, sale in found:
            check_plain(engine, terms, sale)
        orders = [list_plain(engine, terms, sale, visible_ms=visible_ms) for terms, sale in found]
    answer: Row = {"success": True}
    return answer | {"escrow_id": escrow_id(orders[0].order_id)} if len(orders) == 1 else answer


def _sales(call: OrdinalsWalletHandler) -> list[SignedSale]:
    psbt = base64_of(text(call.body().get("psbt"), "psbt", MAX_PSBT_TEXT), "the PSBT")
    return signed_sales(psbt, "the PSBT")


def _terms(call: OrdinalsWalletHandler, sale: SignedSale) -> AskTerms:
    """Returns the terms that a half states itself: it has no other source."""
    coin = call.world.engine.chain.coins.get(outpoint_of(sale.source))
    receive = address_of(sale.payout.script_pubkey)
    if coin is None or not coin.inscriptions or coin.address is None:
        raise Refusal("the PSBT spends no output with an inscription")
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    if receive is None or sale.payout.value < LEAST_PRICE:
        raise Refusal("the PSBT pays nobody, or too little")
    return AskTerms(coin.inscriptions[0], sale.payout.value, coin.address, receive, venue=VENUE)


# Their return


def _item_or_output(call: OrdinalsWalletHandler) -> str:
    found = peek(call.request.body, "inscription_id")
    return peek(call.request.body, "outpoint") if found in ("", UNREADABLE) else found


@routes.post("market/cancel-escrow", "cancel", _item_or_output)
def cancel_escrow(call: OrdinalsWalletHandler) -> Row:
    """Takes back a listing of the session token's owner."""
    body = call.body()
    names = [name for name in ("inscription_id", "outpoint") if body.get(name) is not None]
    if len(names) != 1:
        raise ApiError(400, "Give an inscription id or an outpoint", "listing_identifier_required")
    wanted = text(body[names[0]], names[0])
    owner = call.world.wallet_sessions.owner(text(body.get("signature"), "signature", MAX_PSBT_TEXT))
    if owner is None:
        raise ApiError(401, "Invalid or expired session", "invalid_session")
    ask = _listed(call, wanted, names[0], owner)
    if ask is None or (ask.papers and names[0] != "outpoint"):  # a protected one is known by its output
        raise ApiError(404, "This item is not listed", "listing_not_found")
    if ask.maker != owner:
        raise ApiError(401, "This wallet does not own this item", "not_the_owner")
    call.end(ask)
    if not ask.papers:
        return {"success": True}
    about = {"escrow_id": escrow_id(ask.order_id), "secure_v2": True, "previous_state": "listed"}
    return {"success": True, "transition": "cancelled", "listing": about | {"state": "cancelled"}}


def _listed(call: OrdinalsWalletHandler, wanted: str, by: str, owner: str) -> Order | None:
    engine = call.world.engine
    if by == "outpoint":
        coin = engine.chain.coins.get(wanted)
        return engine.ask_on(wanted, coin.address or owner, VENUE) if coin else None
    return next((ask for ask in engine.asks_of(wanted) if ask.venue == VENUE), None)


# Protected listings


class _Refused(Exception):
    """A refusal of one item; the other items of the call go on."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _first_output(call: OrdinalsWalletHandler) -> str:
    try:
        rows = call.body().get("items")
    except ApiError:
        return UNREADABLE
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return _item_on(call, str(first.get("outpoint")))


@routes.post("market/secure-listing/build-bulk", "list", _first_output, drafts=True)
def build_protected(call: OrdinalsWalletHandler) -> Row:
    """Answers the two PSBTs of each item, in hex. Changes nothing."""
    body = call.body()
    if body.get("protocol") != "ordinal":
        raise ApiError(400, "This item type cannot be protected", "protocol_mismatch")
    receive = mainnet_address(text(body.get("seller_address"), "seller_address"))
    key = _key(body, "seller_public_key", _COMPRESSED)
    rows = []
    for item in _items(call):
        outpoint = _outpoint(item)
        price = whole(item.get("escrow_price_sats"), "escrow_price_sats", 1)
        try:
            rows.append(_to_sign(call, _draft(call, outpoint, price, receive, key)))
        except _Refused as refused:
            rows.append({"outpoint": outpoint, "error": True, "code": refused.code})
    return {"version": 4, "policy": POLICY, "items": rows}


def _items(call: OrdinalsWalletHandler) -> list[Row]:
    rows = call.body().get("items")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ITEMS:
        raise ApiError(400, "Select between 1 and 100 items", "invalid_batch_size")
    if not all(isinstance(row, dict) for row in rows):
        raise bad("items must be objects")
    return rows


def _draft(call: OrdinalsWalletHandler, outpoint: str, price: int, receive: str, key: str) -> Draft:
    """Drafts a listing of what lies on the output. Raises _Refused."""
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
        return draft(call.engine, AskTerms(coin.inscriptions[0], price, coin.address, receive, key, VENUE))
    except Unlistable as refusal:
        raise _Refused(_CAUSES[refusal.cause][3]) from None


def _to_sign(call: OrdinalsWalletHandler, made: Draft) -> Row:
    kept = call.world.protected
    kept[made.digest] = made.terms
    while len(kept) > _MOST_DRAFTS:
        del kept[next(iter(kept))]
    transfer, sale = spoiled(made, call.world.poison, call.engine)
    return {
        **_about(made),
        "state": "authorization_required",
        "psbt": as_hex(transfer),
        "sale_psbt": as_hex(sale),
        "escrow_price_sats": made.terms.price,
        "escrow_script": made.escrow.script.data.hex(),
        "cosigner_public_key": cosigner().hex(),
        "ordinal_offset": 0,
    }


def _one_or_all(call: OrdinalsWalletHandler, value: Row) -> None:
    """Sends the answer of an authorization: of one item its row alone, with 400 when it is refused."""
    call.send(value, 400 if value.get("error") else 200)


@routes.post("market/secure-listing/authorize-bulk", "list", _first_output, deliver=_one_or_all)
def authorize_protected(call: OrdinalsWalletHandler) -> Row:
    """Takes the signed PSBTs; listing again replaces."""
    rows = [_authorized(call, item) for item in _items(call)]
    return {"version": 4, "policy": POLICY, "items": rows} if len(rows) > 1 else rows[0]


def _authorized(call: OrdinalsWalletHandler, item: Row) -> Row:
    outpoint = _outpoint(item)
    try:
        return _listed_protected(call, item, outpoint)
    except _Refused as refused:
        return {"outpoint": outpoint, "error": True, "code": refused.code}


def _listed_protected(call: OrdinalsWalletHandler, item: Row, outpoint: str) -> Row:
    digest = text(item.get("template_digest"), "template_digest")
    terms = call.world.protected.get(digest)
    if terms is None or item.get("protocol") != "ordinal":
        raise _Refused("template_digest_mismatch")
    made = _draft(call, outpoint, terms.price, terms.receive, _key(item, "seller_public_key", _COMPRESSED))
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


# Last: its path would take the others' places.
@routes.get("market/secure-listing/([^/]+)", "item")
def protected_state(call: OrdinalsWalletHandler) -> Row:
    """Answers the protected listing of an output; 404 when there is none."""
    outpoint = call.path_args[0]
    coin = call.engine.chain.coins.get(outpoint)
    ask = call.engine.ask_on(outpoint, coin.address or "", VENUE) if coin else None
    if ask is None or not ask.papers:
        raise ApiError(404, "secure listing not found")
    about = {"version": 2, "state": "listed", "outpoint": outpoint, "protocol": "ordinal", "policy": POLICY}
    return {"secure_listing": about}


def _about(made: Draft) -> Row:
    return {
        "version": 4,
        "outpoint": made.coin.outpoint,
        "protocol": "ordinal",
        "policy": POLICY,
        "template_digest": made.digest,
        "passthrough_txid": made.transfer.txid().hex(),
        "escrow_value": made.held.value,
    }


def _outpoint(item: Row) -> str:
    found = text(item.get("outpoint"), "outpoint")
    if not _OUTPOINT.fullmatch(found):
        raise bad("outpoint must be txid:vout")
    return found
