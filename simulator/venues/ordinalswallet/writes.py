"""Ordinals Wallet's writes: sign-in, listings in the standard form, and the return of any listing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from simulator.chain import address_of, outpoint_of
from simulator.engine import Order, Refusal
from simulator.handler import MAX_PSBT_TEXT, UNREADABLE, X_ONLY_KEY, Routes, by_url, hex_of, named, peek
from simulator.listing import (
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
from simulator.poison import poisoned
from simulator.venues.ordinalswallet.reads import (
    PREFIX,
    VENUE,
    OrdinalsWalletHandler,
    escrow_id,
    item_on,
    mainnet_address,
    x_only_key,
)
from simulator.wire import MAX_WHOLE, ApiError, bad, text, whole

Row = dict[str, Any]

# The smallest output that the network relays to any kind of address.
LEAST_PRICE = 546
MAX_ITEMS = 100
_NONCE = re.compile(r"[0-9a-f]{16,64}")
_WORDS: dict[Cause, tuple[int, str, str]] = {
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
    key = x_only_key(body, "public_key", X_ONLY_KEY)
    paid_at = mainnet_address(text(receive, "receive_address")) if receive is not None else seller
    return [
        AskTerms(text(inscription, "inscriptions"), whole(price, "prices", LEAST_PRICE), seller, paid_at, key, VENUE)
        for inscription, price in zip(inscriptions, prices, strict=True)
    ]


@contextmanager
def _in_words() -> Iterator[None]:
    """Turns the market's refusals into this venue's answers."""
    try:
        yield
    except Unlistable as refusal:
        raise ApiError(*_WORDS[refusal.cause]) from None
    except Refusal as refusal:
        raise bad(str(refusal)) from None


def _first_sold(call: OrdinalsWalletHandler) -> str:
    try:
        return item_on(call.engine, outpoint_of(_sales(call)[0].source))
    except (ApiError, Refusal):
        return UNREADABLE


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
