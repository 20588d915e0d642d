"""UniSat's writes: put on sale, change the price, put off sale, each drafted and then confirmed.

To end a listing without the chain (`offChain`), its seller signs a transaction that is never sent: it pays the whole
listed output back to the seller.
"""

from __future__ import annotations

import re
from typing import Any

from embit.transaction import TransactionOutput

from simulator import listing
from simulator.chain import script_of
from simulator.engine import Order, Refusal
from simulator.handler import MAX_PSBT_TEXT, X_ONLY_KEY, Routes, hex_of, refusals
from simulator.poison import poisoned
from simulator.sessions import Asked, Step
from simulator.taproot import is_whole_signed
from simulator.venues.unisat.reads import REPRICED
from simulator.venues.unisat.runes import COLLECTIONS, PREFIX, VENUE, UnisatHandler, about, refused
from simulator.wire import ApiError, text
from wallet import address as addresses

# The range of a listing's price in sats; the venue does not publish its own.
LOWEST, HIGHEST = 1_000, 21_000_000 * 100_000_000
NOT_EXIST, SIGN_ERROR, LOW_PRICE, HIGH_PRICE = -100, -112, -132, -133
PRICE_CHANGED, GONE, REPEATED, BAD_PARAMS, LISTED = -139, -144, -145, -156, -160
_SATS = re.compile(r"[1-9][0-9]{0,15}")
_DEFAULT = 0x00
# Virtual bytes of a key path spend with one input and one output.
_TX_SIZE = 111
_WORDS: dict[listing.Cause, tuple[int, str]] = {
    "unknown": (-109, "Inscription not found, please try again later"),
    "holder": (-107, "Invalid NFT"),
    "unconfirmed": (-127, "Invalid NFT: not confirmed"),
    "crowded": (-126, "Invalid NFT: multi inscriptions"),
    "script": (-124, "Address type not supported"),
    "key": (-163, "The public key and address do not match"),
}

routes = Routes(PREFIX, UnisatHandler)
routes.post(f"{COLLECTIONS}/(?:create_bid_prepare|create_bid|confirm_bid)", "place", about("auctionId"))(
    UnisatHandler.missing
)


@routes.post(f"{COLLECTIONS}/create_put_on", "list", about("inscriptionId"), drafts=True)
def create_put_on(call: UnisatHandler) -> dict[str, Any]:
    terms, engine = _terms(call), call.world.engine
    _check_unlisted(call, terms.inscription)
    with refusals(_said):
        draft = listing.draft_plain(engine, [terms])
    auction_id = engine.new_id()
    psbt, to_sign = _shown(call, auction_id, "put_on", Asked(terms, draft))
    return {"auctionId": auction_id, "psbt": psbt, "signIndexes": to_sign}


@routes.post(f"{COLLECTIONS}/confirm_put_on", "list", about("auctionId"))
def confirm_put_on(call: UnisatHandler) -> dict[str, Any]:
    body, engine = call.body(), call.world.engine
    auction_id = text(body.get("auctionId"), "auctionId")
    if engine.order(auction_id) is not None:
        raise refused(REPEATED, "Repeated operation")
    asked = _drafted(call, auction_id, "put_on")
    _check_unlisted(call, asked.terms.inscription)
    with refusals(_said):
        listing.list_plain(engine, asked.terms, _half(body), order_id=auction_id, visible_ms=call.visible_ms())
    _place(call, auction_id, "put_on")
    return {}


def _terms(call: UnisatHandler) -> listing.AskTerms:
    body = call.body()
    inscription = text(body.get("inscriptionId"), "inscriptionId")
    if body.get("nftType") not in (None, "collection"):
        raise refused(-107, "Invalid NFT")
    if body.get("marketType") != "fixedPrice":
        raise refused(BAD_PARAMS, "User params error: marketType must be fixedPrice here")
    key = X_ONLY_KEY.fullmatch(text(body.get("pubkey"), "pubkey"))
    if key is None:
        raise refused(BAD_PARAMS, "User params error: pubkey")
    price = _price(body)
    holder = call.world.engine.wallets.holder_of(inscription)
    if holder is None:
        raise refused(*_WORDS["unknown"])
    receive = _address(body, "btcAddress", otherwise=holder[0])
    return listing.AskTerms(inscription, price, holder[0], receive, key[1], VENUE)


def _check_unlisted(call: UnisatHandler, inscription: str) -> None:
    listed = call.world.engine.ask_of(inscription, VENUE)
    if listed is not None and listed.outpoint:
        raise refused(LISTED, "Inscription is already listed on the market")


@routes.post(f"{COLLECTIONS}/create_modify_price", "list", about("auctionId"), drafts=True)
def create_modify_price(call: UnisatHandler) -> dict[str, Any]:
    body = call.body()
    auction_id, price = text(body.get("auctionId"), "auctionId"), _price(body)
    ask = _listing(call, auction_id)
    terms = _terms_of(call, ask, price)
    with refusals(_said):
        draft = listing.draft_plain(call.world.engine, [terms])
    psbt, to_sign = _shown(call, auction_id, "modify_price", Asked(terms, draft, ask.price))
    return {"psbt": psbt, "signIndexes": to_sign}


@routes.post(f"{COLLECTIONS}/confirm_modify_price", "list", about("auctionId"))
def confirm_modify_price(call: UnisatHandler) -> dict[str, Any]:
    body = call.body()
    auction_id = text(body.get("auctionId"), "auctionId")
    ask, asked = _listing(call, auction_id), _drafted(call, auction_id, "modify_price")
    if ask.price != asked.former_price:
        raise refused(PRICE_CHANGED, "The price has updated by the seller. Please refresh the page and try again")
    if not isinstance(body.get("fromBase64"), bool):
        raise refused(BAD_PARAMS, "User params error: fromBase64 is required")
    with refusals(_said):
        late_ms, half = call.visible_ms(), _half(body)
        listing.list_plain(call.world.engine, asked.terms, half, order_id=auction_id, visible_ms=late_ms, note=REPRICED)
    _place(call, auction_id, "modify_price")
    return {}


@routes.post(f"{COLLECTIONS}/create_put_off", "cancel", about("auctionId"), drafts=True)
def create_put_off(call: UnisatHandler) -> dict[str, Any]:
    body = call.body()
    ask = _listing(call, text(body.get("auctionId"), "auctionId"))
    _check_off_chain(body)
    home = _address(body, "nftAddress", otherwise=ask.maker)
    coin = call.world.engine.chain.coins[ask.outpoint]
    terms = _terms_of(call, ask, ask.price)
    payout = TransactionOutput(coin.value, script_of(home))
    draft = listing.Draft((coin,), (payout,), _DEFAULT, internal_key=terms.internal_key)
    psbt, to_sign = _shown(call, ask.order_id, "put_off", Asked(terms, draft))
    return {"psbt": psbt, "txSize": _TX_SIZE, "btcSignIndexes": [], "nftSignIndexes": to_sign}


@routes.post(f"{COLLECTIONS}/confirm_put_off", "cancel", about("auctionId"))
def confirm_put_off(call: UnisatHandler) -> dict[str, Any]:
    """Ends a listing; no transaction is sent, so its txid is empty."""
    body = call.body()
    ask = _listing(call, text(body.get("auctionId"), "auctionId"))
    _check_off_chain(body)
    asked = _drafted(call, ask.order_id, "put_off")
    with refusals(_said):
        psbt = listing.read(_signed_psbt(body), "psbt")
        if psbt.tx.serialize() != asked.draft.transaction.serialize():
            raise Refusal("the PSBT is not that of the draft")
        if not is_whole_signed(psbt.tx, 0, [asked.draft.coins[0].output], listing.signature_of(psbt.inputs[0])):
            raise Refusal("the PSBT is not signed by the seller")
    call.end(ask)
    if call.mode not in ("late", "cancel_lie"):
        _place(call, ask.order_id, "put_off")
    return {"txid": ""}


def _check_off_chain(body: dict[str, Any]) -> None:
    if body.get("offChain") is not True:
        raise ApiError(501, "only offChain is implemented by the practice market")


def _place(call: UnisatHandler, auction_id: str, step: Step) -> None:
    """Records that a draft became a listing, or ended one."""
    call.world.placed.keep(auction_id, call.world.drafts.pop((auction_id, step)).terms)


def _listing(call: UnisatHandler, auction_id: str) -> Order:
    """Returns the open listing of that id. Raises ApiError if it is unknown or has ended."""
    order = call.world.engine.order(auction_id)
    if order is not None and order.side == "ask" and order.venue == VENUE and order.inscription is not None:
        return order
    if call.world.placed.get(auction_id):
        raise refused(GONE, "The listing is not available anymore")
    raise refused(NOT_EXIST, "Order not exist")


def _drafted(call: UnisatHandler, auction_id: str, step: Step) -> Asked:
    found = call.world.drafts.get((auction_id, step))
    if found is None:
        raise refused(NOT_EXIST, "Order not exist")
    return found


def _terms_of(call: UnisatHandler, ask: Order, price: int) -> listing.AskTerms:
    """Returns the terms of an open listing at `price`, with the key that it was placed with."""
    first = call.world.placed.get(ask.order_id)
    key = first.internal_key if first else ""
    return listing.AskTerms(ask.inscription or "", price, ask.maker, ask.receive, key, VENUE)


def _shown(call: UnisatHandler, auction_id: str, step: Step, asked: Asked) -> tuple[str, list[int]]:
    """Keeps a draft for its confirmation; returns its PSBT in hex, and the inputs to sign."""
    call.world.drafts.keep((auction_id, step), asked)
    shown = poisoned(asked.draft, call.world.poison, call.world.engine, asked.terms)
    return hex_of(shown.encode()), list(shown.to_sign)


def _half(body: dict[str, Any]) -> listing.SignedSale:
    sales = listing.signed_sales(_signed_psbt(body), "psbt")
    if len(sales) != 1:
        raise Refusal("psbt must have one input and one output")
    return sales[0]


def _signed_psbt(body: dict[str, Any]) -> str:
    """Reads the PSBT of a confirmation as base64; it is hex unless `fromBase64` is set. Raises Refusal."""
    psbt = text(body.get("psbt"), "psbt", MAX_PSBT_TEXT)
    return psbt if body.get("fromBase64") is True else listing.base64_of(psbt, "psbt")


def _price(body: dict[str, Any]) -> int:
    """Reads the sats of `initPrice`, a text; `unitPrice` must equal it for a single inscription."""
    found = [body.get(name) for name in ("initPrice", "unitPrice")]
    if not all(isinstance(each, str) and _SATS.fullmatch(each) for each in found):
        raise refused(BAD_PARAMS, "User params error: initPrice and unitPrice must be whole sats in text")
    if found[0] != found[1]:
        raise refused(BAD_PARAMS, "User params error: initPrice and unitPrice differ")
    price = int(str(found[0]))
    if price < LOWEST:
        raise refused(LOW_PRICE, f"The lowest listing amount of satoshis is {LOWEST}")
    if price > HIGHEST:
        raise refused(HIGH_PRICE, f"The highest listing amount of satoshis is {HIGHEST}")
    return price


def _address(body: dict[str, Any], name: str, *, otherwise: str) -> str:
    if body.get(name) is None:
        return otherwise
    try:
        found = addresses.parse(text(body[name], name))
    except (addresses.AddressError, ApiError):
        raise refused(BAD_PARAMS, f"User params error: {name} is no address") from None
    if found.network != "mainnet":
        raise refused(BAD_PARAMS, f"User params error: {name} is not of mainnet")
    return found.text


def _said(refusal: Refusal) -> ApiError:
    if isinstance(refusal, listing.Unlistable):
        return refused(*_WORDS[refusal.cause])
    return refused(SIGN_ERROR, f"Sign error: {refusal}")
