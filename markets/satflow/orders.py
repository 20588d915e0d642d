"""Satflow's listings, offers on single inscriptions, withdrawals and details of an inscription.

Of API 1.1.4: intent/sell, list, cancel, wallet-contents, intent/bid, bid/place, intent/withdraw, withdraw, item.

An offer on an inscription is a PSBT and not a message; its slug is the inscription's id. Offers have no end. A bidder
has one for each inscription: a new one replaces the one before. Every function raises Unreadable for anything it does
not understand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from markets import parse
from markets.adapter import in_base64
from markets.base import LONGEST_PSBT, LONGEST_REFERENCE, BidOrder, Item, Refused
from markets.orders import (
    MOST_SECURE,
    BidDraft,
    BidToDraft,
    DraftPsbt,
    ListingDraft,
    ListingOrder,
    ListingToDraft,
    OwnListing,
    SecureDraft,
)
from markets.parse import Page, Unreadable
from markets.satflow.books import listed_traits
from markets.satflow.wire import contents, item_id, live_listing, payload

_MOST_INPUTS = 1000


def own_listings(answer: Any, owner: str, *, is_first: bool = True) -> Page[OwnListing]:
    """Reads the listings of `owner`. One that cannot be read is reported by its inscription: it may be listed."""
    found, following = contents(answer)
    read = parse.each_row(found, "inscription", lambda row: _own_listing(row, owner), key=item_id, refuses=is_first)
    return Page(read.entries, following, read.unread)


def _own_listing(entry: Mapping[str, Any], owner: str) -> OwnListing | None:
    listing = live_listing(entry)
    if listing is None:
        return None
    inscription_id = item_id(entry)
    seller = parse.first(listing, "sellerOrdAddress", "sellerAddress")
    if seller is not None and seller != owner:
        raise Unreadable("a listing of another seller")
    listing_id = parse.first(listing, "_id", "id")
    slug = parse.first(entry, "collection.id", "collection.slug")
    return OwnListing(
        listing_id=inscription_id if listing_id is None else parse.identifier(listing_id, "listing id"),
        inscription_id=inscription_id,
        slug=None if slug is None else parse.text(slug, "collection"),
        price=parse.sats(listing.get("price"), "listing price", least=1),
        owner=owner,
    )


def listing_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of POST /intent/sell."""
    body = _listing(ask)
    return body if ask.slug is None else body | {"collectionSlug": ask.slug}


def listing_draft(answer: Any) -> ListingDraft:
    """Reads the PSBTs to be signed, as texts. The signer checks them."""
    seller = parse.table(parse.first(parse.table(payload(answer), "draft"), "seller"), "seller")
    secure = parse.rows(seller.get("secureListingPSBTs") or [], "secure PSBTs", most=MOST_SECURE)
    plain = parse.first(seller, "unsignedListingPSBTBase64", "unsignedListingPSBTHex")
    return ListingDraft(in_base64(plain), tuple(map(_secure, secure)))


def _secure(value: Any) -> SecureDraft:
    entry = parse.table(value, "secure PSBT")
    indices = parse.rows(entry.get("indicesToSign"), "indicesToSign", most=_MOST_INPUTS)
    return SecureDraft(in_base64(parse.first(entry, "base64", "hex")), tuple(_index(index) for index in indices))


def _index(value: Any) -> int:
    found = parse.whole(value, "indicesToSign")
    if found >= _MOST_INPUTS:
        raise Unreadable("indicesToSign names an input that no such PSBT has")
    return found


def signed_listing_body(order: ListingOrder) -> bytes:
    """Makes the body of POST /list."""
    payer = {"sellerPaymentAddress": order.payment, "sellerPaymentPublicKey": order.payment_pubkey}
    body = {
        "listings": [_listing(order.ask) | payer],
        "signedListingPSBT": order.signed_psbt,
        "unsignedListingPSBT": order.unsigned_psbt,
        "signedSecureListingPSBTs": list(order.signed_secure),
    }
    return json.dumps(body).encode()


def _listing(ask: ListingToDraft) -> dict[str, Any]:
    # Documented with 66 digits; its parity is of no account. A draft that nobody is to sign has none.
    key = {"tapInternalKey": "02" + ask.tap_internal_key} if ask.tap_internal_key else {}
    return {
        "price": ask.price,
        "inscriptionId": ask.inscription_id,
        "sellerOrdAddress": ask.owner,
        "sellerReceiveAddress": ask.receive,
        **key,
    }


def check_listed(answer: Any, ask: ListingToDraft) -> None:
    """Raises Unreadable when the answer to POST /list names listings, but not this one at this price."""
    told = parse.first(parse.table(payload(answer), "list"), "listings")
    if told is None:
        return
    for row in parse.rows(told, "listings"):
        if parse.first({"row": row}, "row.inscriptionId") == ask.inscription_id:
            if parse.sats(row.get("price"), "price") != ask.price:
                raise Unreadable("it is listed at another price")
            return
    raise Unreadable("it is not among the listings that were made")


def delist_body(owner: str, inscription_id: str, signature: str) -> bytes:
    """Makes the body of POST /cancel for one listing, which goes by its inscription."""
    body = {"makerAddress": owner, "orderType": "ask", "signature": signature, "inscriptionId": inscription_id}
    return json.dumps(body).encode()


_INSCRIPTION = re.compile(r"[0-9a-f]{64}i(0|[1-9][0-9]{0,9})", re.ASCII)


def is_item(slug: str) -> bool:
    """Tells whether a bid on `slug` is one on a single inscription."""
    return _INSCRIPTION.fullmatch(slug) is not None


def offer_body(ask: BidToDraft) -> dict[str, Any]:
    """Makes the body of POST /intent/bid. Raises Refused for an offer without named coins."""
    outpoints = [coin.outpoint for coin in ask.coins]
    if not outpoints or len(",".join(outpoints)) > LONGEST_REFERENCE:
        raise Refused("coins", f"an offer names 1 to {LONGEST_REFERENCE // 70} coins that may pay for it")
    return {
        "price": ask.price,
        "inscriptionId": ask.slug,
        "bidderAddress": ask.payment,
        "bidderTokenReceiveAddress": ask.ordinals,
        "bidderPublicKey": ask.payment_pubkey,
        "allowedPaymentOutpoints": outpoints,
    }


def offer_draft(answer: Any, ask: BidToDraft) -> BidDraft:
    """Reads the PSBT to be signed at the coins' inputs, which are not told. The coins go back with the signed one."""
    bidder = parse.table(parse.first(parse.table(payload(answer), "draft"), "bidder"), "bidder")
    psbt = in_base64(parse.first(bidder, "unsignedBiddingPSBTBase64", "unsignedBiddingPSBTHex"))
    drafted = DraftPsbt("bid", psbt, (), None)
    return BidDraft(",".join(coin.outpoint for coin in ask.coins), (drafted,))


def signed_offer_body(order: BidOrder) -> bytes:
    """Makes the body of POST /bid/place for an offer. Raises Refused for one that is not drafted and signed."""
    if len(order.signed_psbts) != 1 or not order.reference:
        raise Refused("not_drafted", "an offer on an inscription is one signed PSBT with the coins of its draft")
    body = {
        "price": order.price,
        "inscriptionId": order.slug,
        "bidderAddress": order.payment,
        "bidderTokenReceiveAddress": order.receive,
        "signedBiddingPSBT": order.signed_psbts[0],
        "allowedPaymentOutpoints": order.reference.split(","),
    }
    return json.dumps(body).encode()


_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)


def withdrawal_draft(answer: Any) -> str:
    """Reads the PSBT to be signed, in base64. The signer checks it."""
    psbt = parse.table(payload(answer), "draft").get("unsignedPSBTBase64")
    if not isinstance(psbt, str) or len(psbt) > LONGEST_PSBT or not _BASE64.fullmatch(psbt):
        raise Unreadable("a PSBT is not base64 of a fair length")
    return psbt


def signed_withdrawal_body(payment: str, psbt: str) -> bytes:
    """Makes the body that hands over a signed draft."""
    return json.dumps({"signedWithdrawPSBT": psbt, "bidderPaymentAddress": payment}).encode()


def withdrawal_sent(answer: Any) -> str:
    """Reads the txid."""
    return parse.txid(parse.table(payload(answer), "withdrawal").get("txid"), "txid")


def item(answer: Any, inscription_id: str) -> Item:
    """Reads details of one inscription and checks its id."""
    found = parse.table(payload(answer), "item")
    if found.get("id") != inscription_id:
        raise Unreadable("item: the answer is about another inscription")
    listing, traits = found.get("listing"), listed_traits(found)
    return Item(
        id=inscription_id,
        listed=found.get("listed") is True or (isinstance(listing, dict) and bool(listing)),
        number=parse.whole_or_none(found.get("inscriptionNumber")),
        name=parse.text_or_none(parse.first(found, "metadata.token.name")),
        collection_id=parse.text_or_none(
            parse.first(found, "metadata.collection.id") or parse.first(found, "metadata.collection.slug")
        ),
        collection_name=parse.text_or_none(parse.first(found, "metadata.collection.name")),
        image_url=parse.link(found.get("contentPreviewURI"))
        or parse.link(parse.first(found, "metadata.token.image_url")),
        content_url=parse.link(found.get("contentURI")),
        content_type=parse.text_or_none(found.get("contentType")),
        owner=parse.text_or_none(found.get("owner")),
        location=parse.text_or_none(found.get("location")),
        output=parse.text_or_none(found.get("output")),
        output_value=parse.whole_or_none(found.get("outputValue")),
        genesis=parse.text_or_none(found.get("genesisTransaction")),
        listing_price=parse.whole_or_none(parse.first(found, "listing.price")),
        seller=parse.text_or_none(parse.first(found, "listing.sellerAddress")),
        top_bid=parse.whole_or_none(parse.first(found, "topBid.price")),
        traits=None if traits is None else tuple(sorted(traits)),
    )
