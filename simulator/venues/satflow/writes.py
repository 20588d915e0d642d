"""Satflow's writes: bids by a signed message, cancels by a signed challenge, listings and withdrawals by PSBTs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from simulator.bidding_wallets import draft as draft_withdrawal
from simulator.bidding_wallets import submit
from simulator.engine import BidTerms, Kind, Side
from simulator.handler import X_ONLY_KEY, Routes, belongs_to, by_url, hex_of, mainnet, named, refusals, sign_in_address
from simulator.listing import AskTerms, Signed, draft, list_signed, refuse
from simulator.poison import poisoned
from simulator.venues.satflow.reads import PREFIX, VENUE, Row, SatflowHandler, kind_of, known
from simulator.wallets import Trait
from simulator.wire import MAX_WHOLE, ApiError, amount, bad, items, text, whole
from wallet.bip322 import verify_ownership

# A signed bid's maximum age, and its maximum lead over our clock.
MAX_AGE_MS = 5 * 60 * 1000
MAX_AHEAD_MS = 60 * 1000
MAX_IDS = 1_000
MAX_ATTRIBUTES = 50
FEE_TIERS = frozenset({"fastestFee", "halfHourFee", "hourFee", "minimumFee"})
_ORDER_ID = re.compile(r"[0-9a-f]{24}")
_MAX_PSBT_TEXT = 100_000
_MAX_PSBTS = 100

routes = Routes(PREFIX, SatflowHandler)
routes.post("(?:intent/(?:bid|accept-collection-bid)|bid/fill)", "place", by_url)(SatflowHandler.missing)
routes.post("(?:intent/(?:bulk-sell|external-sell)|list/external)", "list", by_url)(SatflowHandler.missing)


@routes.post("bid/place", "place", named("collectionSlug"))
def place_bid(call: SatflowHandler) -> Row:
    """Takes collection, trait and rune bids; the answer has no id, as documented."""
    body = call.body()
    (kind, terms, public_key, timestamp_ms), traits = _signed_bid(body), _traits(body)
    engine = call.world.engine
    market, now_ms = engine.market(kind, terms.slug), engine.now_ms()
    try:
        if not belongs_to(public_key, terms.maker):
            raise bad("bidderAddressPublicKey is not the key of bidderAddress")
        if not now_ms - MAX_AGE_MS <= timestamp_ms <= now_ms + MAX_AHEAD_MS:
            raise bad("timestamp is not fresh")
        if not verify_ownership(terms.maker, terms.message, terms.signature):
            raise bad("signedBiddingMessage does not match the bid")
        market = known(market)
    except ApiError as error:
        engine.refuse(kind, terms, error.text)
        raise
    visible_ms = call.visible_ms()
    for trait in traits * (2 if call.mode == "accept_twice" else 1):
        with refusals():
            engine.place_bid(market, replace(terms, trait=trait), visible_ms)
    return {"message": "Bid placed successfully"}


def _signed_bid(body: dict[str, Any]) -> tuple[Kind, BidTerms, str, int]:
    """Reads a bid with its public key and time; every number must be plain digits, because its text is signed."""
    if "inscriptionId" in body or "signedBiddingPSBT" in body:
        raise ApiError(501, "bids on one inscription are not implemented here", "NOT_IMPLEMENTED")
    if "bidChallengeId" in body and "timestamp" not in body:
        raise bad("bidChallengeId is not taken here: send timestamp")
    kind = kind_of(body.get("metaType"), "metaType")
    rate = body.get("feeRate", "fastestFee")
    if rate not in FEE_TIERS if isinstance(rate, str) else amount(rate, "feeRate") < 1:
        raise bad(f"feeRate must be one of {', '.join(sorted(FEE_TIERS))} or a number of sat/vB, at least 1")
    slug = text(body.get("collectionSlug"), "collectionSlug")
    if ":" in slug:
        raise bad("collectionSlug must not contain a colon")
    price = whole(body.get("price"), "price", 1)
    quantity, digits = _quantity(body.get("quantity"), kind)
    expires_ms = whole(body.get("bidExpiry"), "bidExpiry", 1, MAX_WHOLE)
    timestamp_ms = whole(body.get("timestamp"), "timestamp", 1, MAX_WHOLE)
    maker = sign_in_address(body.get("bidderAddress"), "bidderAddress")
    receive = sign_in_address(body.get("bidderTokenReceiveAddress"), "bidderTokenReceiveAddress")
    public_key = text(body.get("bidderAddressPublicKey"), "bidderAddressPublicKey")
    # The addresses as they were sent, because another spelling of an address makes another text.
    signers = (body["bidderAddress"], public_key, body["bidderTokenReceiveAddress"])
    message = ":".join(map(str, (*signers, price, digits, expires_ms, slug, timestamp_ms)))
    signature = text(body.get("signedBiddingMessage"), "signedBiddingMessage", 1000)
    terms = BidTerms(slug, maker, receive, price, quantity, expires_ms, message=message, signature=signature)
    return kind, terms, public_key, timestamp_ms


def _quantity(value: Any, kind: Kind) -> tuple[Decimal, str]:
    """Reads the quantity and its text in the signed message; a rune's may have decimals, as a number or text."""
    if kind == "runes" and isinstance(value, (str, Decimal)):
        # The digits as they were sent; a number with an exponent has none that could be signed.
        return amount(str(value), "quantity"), str(value)
    found = whole(value, "quantity", 1)
    return Decimal(found), str(found)


def _traits(body: dict[str, Any]) -> list[Trait | None]:
    """Reads the trait of each order that the bid makes; [None] for a plain one."""
    if body.get("attributes") is not None:
        rows = items(body["attributes"], "attributes", MAX_ATTRIBUTES)
        if rows:
            return [_trait(row, f"attributes[{at}]") for at, row in enumerate(rows)]
    if body.get("attribute") is None:
        return [None]
    if not isinstance(body["attribute"], dict):
        raise bad("attribute must be an object")
    return [_trait(body["attribute"], "attribute")]


def _trait(row: dict[str, Any], name: str) -> Trait:
    return text(row.get("trait_type"), f"{name}.trait_type"), text(row.get("value"), f"{name}.value")


@routes.post("cancel", "cancel", named("makerAddress"))
def cancel(call: SatflowHandler) -> Row:
    body = call.body()
    maker = sign_in_address(body.get("makerAddress"), "makerAddress")
    if body.get("orderType") not in ("bid", "ask"):
        raise bad("orderType must be bid or ask")
    side: Side = "bid" if body["orderType"] == "bid" else "ask"
    ids, many = _ask_ids(call, body, maker) if side == "ask" else _order_ids(body)
    signature = text(body.get("signature"), "signature", 1000)
    if not call.world.challenges.answered(maker, signature):
        raise ApiError(403, "invalid signature", "FORBIDDEN")
    done: list[Row] = []
    for at, each in enumerate(ids):
        order = call.world.engine.order(each)
        is_own = order is not None and order.maker == maker and order.side == side and order.at(VENUE)
        if order is not None and is_own:
            # Of several cancels, every other one is left out, so that one result does not predict the next.
            if call.mode == "cancel_lie" and at % 2:
                call.world.engine.cancel(order)
            else:
                call.end(order)
        done.append({"id": each, "success": is_own})
    failed = sum(not row["success"] for row in done)
    counts = {"successCount": len(done) - failed, "failedCount": failed}
    return {"success": failed == 0, "summary": done if many else done[0], **counts}


def _ask_ids(call: SatflowHandler, body: dict[str, Any], maker: str) -> tuple[list[str], bool]:
    """Reads the ids to cancel; listings may also be named by `inscriptionId`, `output` or `runesOutput`."""
    if body.get("_id") is not None or body.get("_ids") is not None:
        return _order_ids(body)
    if body.get("inscriptionId") is not None:
        wanted = text(body["inscriptionId"], "inscriptionId")
        ask = call.world.engine.ask_of(wanted, VENUE)
    elif (output := body.get("output", body.get("runesOutput"))) is not None:
        wanted = text(output, "output")
        ask = call.world.engine.ask_on(wanted, maker, VENUE)
    else:
        raise bad("_id, _ids, inscriptionId, output or runesOutput is required")
    return [ask.order_id if ask else wanted], False


def _order_ids(body: dict[str, Any]) -> tuple[list[str], bool]:
    """Reads the ids to cancel, and whether the answer's summary is a list."""
    many = body.get("multiple", False)
    if not isinstance(many, bool):
        raise bad("multiple must be true or false")
    found = body["_ids"] if body.get("_ids") is not None else [body.get("_id")]
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_IDS:
        raise bad(f"_id, or _ids with 1 to {MAX_IDS} ids, is required")
    if not all(isinstance(each, str) and _ORDER_ID.fullmatch(each) for each in found):
        raise bad("an order id has 24 hex digits")
    if len(found) > 1 and not many:
        raise bad("several _ids need multiple: true")
    return list(dict.fromkeys(found)), many


@routes.post("intent/sell", "list", named("inscriptionId"), drafts=True)
def intent_sell(call: SatflowHandler) -> Row:
    terms = _ask_terms(call.body())
    with refusals():
        wanted = draft(call.engine, terms)
    plain, secure = (poisoned(each, call.world.poison, call.engine, terms) for each in (wanted.plain, wanted.secure))
    to_sign = {"indicesToSign": list(secure.to_sign)}
    if call.is_as_seen:
        signed = [{"hex": hex_of(secure.encode())} | to_sign]
        return {"seller": {"unsignedListingPSBTHex": hex_of(plain.encode()), "secureListingPSBTs": signed}}
    signed = [{"base64": secure.encode()} | to_sign]
    return {"seller": {"unsignedListingPSBTBase64": plain.encode(), "secureListingPSBTs": signed}}


@routes.post("list", "list", named("listings", "inscriptionId"))
def list_one(call: SatflowHandler) -> Row:
    """Takes one signed listing, of which only the plain form is required; a new one replaces the older one."""
    body = call.body()
    rows = items(body.get("listings"), "listings", 100)
    if len(rows) != 1:
        raise ApiError(501, "only one listing at a time is implemented here", "NOT_IMPLEMENTED")
    terms, signed = _ask_terms(rows[0]), _signed_listing(body)
    try:
        if rows[0].get("sellerPaymentAddress") is not None:
            payment = sign_in_address(rows[0]["sellerPaymentAddress"], "sellerPaymentAddress")
            key = rows[0].get("sellerPaymentPublicKey")
            if key is not None and not belongs_to(text(key, "sellerPaymentPublicKey"), payment):
                raise bad("sellerPaymentPublicKey is not the key of sellerPaymentAddress")
    except ApiError as error:
        refuse(call.world.engine, terms, error.text)
        raise
    with refusals():
        order = list_signed(call.world.engine, terms, signed, call.visible_ms())
    row = {"_id": order.order_id, "price": order.price, "inscriptionId": order.inscription, "status": "active"}
    return {"listings": [row]}


def _ask_terms(row: dict[str, Any]) -> AskTerms:
    if row.get("runesOutput") is not None:
        raise ApiError(501, "listing runes is not implemented here", "NOT_IMPLEMENTED")
    given = row.get("tapInternalKey") or ""
    # Documented with 66 digits; without its parity (64) it is the same key.
    internal_key = X_ONLY_KEY.fullmatch(given) if isinstance(given, str) else None
    if given and internal_key is None:
        raise bad("tapInternalKey must have 66 hex digits, or 64")
    if row.get("collectionSlug") is not None:
        text(row["collectionSlug"], "collectionSlug")
    return AskTerms(
        inscription=text(row.get("inscriptionId"), "inscriptionId"),
        price=whole(row.get("price"), "price", 1),
        seller=sign_in_address(row.get("sellerOrdAddress"), "sellerOrdAddress"),
        receive=mainnet(row.get("sellerReceiveAddress"), "sellerReceiveAddress"),
        internal_key=internal_key[1] if internal_key else "",
    )


def _signed_listing(body: dict[str, Any]) -> Signed:
    secure = body.get("signedSecureListingPSBTs", [])
    if not isinstance(secure, list) or len(secure) > _MAX_PSBTS:
        raise bad("signedSecureListingPSBTs must be a list of PSBTs")
    unsigned = body.get("unsignedListingPSBT")
    return Signed(
        text(body.get("signedListingPSBT"), "signedListingPSBT", _MAX_PSBT_TEXT),
        text(unsigned, "unsignedListingPSBT", _MAX_PSBT_TEXT) if unsigned is not None else "",
        tuple(text(each, "signedSecureListingPSBTs", _MAX_PSBT_TEXT) for each in secure),
    )


@routes.post("intent/withdraw", "withdraw", named("userAddress"), drafts=True)
def intent_withdraw(call: SatflowHandler) -> Row:
    """Answers the PSBT that would withdraw `amount` sats from the bidding wallet of `userAddress`."""
    body = call.body()
    payment = sign_in_address(body.get("userAddress"), "userAddress")
    sats = whole(body.get("amount"), "amount", 1)
    with refusals():
        psbt, count = draft_withdrawal(call.world.engine, payment, sats, call.world.poison)
    return {"unsignedPSBTBase64": psbt, "unsignedPSBTHex": hex_of(psbt), "paymentUtxoCount": count}


@routes.post("withdraw", "withdraw", named("bidderPaymentAddress"))
def withdraw(call: SatflowHandler) -> Row:
    body = call.body()
    payment = sign_in_address(body.get("bidderPaymentAddress"), "bidderPaymentAddress")
    signed = text(body.get("signedWithdrawPSBT"), "signedWithdrawPSBT", _MAX_PSBT_TEXT)
    with refusals():
        return {"txid": submit(call.world.engine, payment, signed)}
