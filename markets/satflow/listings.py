"""Satflow's JSON of listings to and from our types (API 1.1.4: intent/sell, list, cancel, wallet-contents).

Every function raises Unreadable for anything it does not understand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from markets.answers import each_row
from markets.orders import (
    MOST_SECURE,
    ListingDraft,
    ListingOrder,
    ListingToDraft,
    OwnListing,
    SecureDraft,
)
from markets.psbt import in_base64
from markets.satflow.wire import contents, item_id, live_listing, payload
from markets.wire import Page, Unreadable, first, identifier, rows, sats, table, text, whole

_MOST_INPUTS = 1000


def own_listings(answer: Any, owner: str, *, is_first: bool = True) -> Page[OwnListing]:
    """Reads the listings of `owner`. One that cannot be read is reported by its inscription: it may be listed."""
    found, following = contents(answer)
    read = each_row(found, "inscription", lambda row: _own_listing(row, owner), key=item_id, refuses=is_first)
    return Page(read.entries, following, read.unread)


def _own_listing(entry: Mapping[str, Any], owner: str) -> OwnListing | None:
    listing = live_listing(entry)
    if listing is None:
        return None
    inscription_id = item_id(entry)
    seller = first(listing, "sellerOrdAddress", "sellerAddress")
    if seller is not None and seller != owner:
        raise Unreadable("a listing of another seller")
    listing_id = first(listing, "_id", "id")
    slug = first(entry, "collection.id", "collection.slug")
    return OwnListing(
        listing_id=inscription_id if listing_id is None else identifier(listing_id, "listing id"),
        inscription_id=inscription_id,
        slug=None if slug is None else text(slug, "collection"),
        price=sats(listing.get("price"), "listing price", least=1),
        owner=owner,
    )


def ask_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of POST /intent/sell."""
    body = _listing(ask)
    return body if ask.slug is None else body | {"collectionSlug": ask.slug}


def draft(answer: Any) -> ListingDraft:
    """Reads the PSBTs to be signed, as texts. The signer checks them."""
    seller = table(first(table(payload(answer), "draft"), "seller"), "seller")
    secure = rows(seller.get("secureListingPSBTs") or [], "secure PSBTs", most=MOST_SECURE)
    plain = first(seller, "unsignedListingPSBTBase64", "unsignedListingPSBTHex")
    return ListingDraft(in_base64(plain), tuple(map(_secure, secure)))


def _secure(value: Any) -> SecureDraft:
    entry = table(value, "secure PSBT")
    indices = rows(entry.get("indicesToSign"), "indicesToSign", most=_MOST_INPUTS)
    return SecureDraft(in_base64(first(entry, "base64", "hex")), tuple(_index(index) for index in indices))


def _index(value: Any) -> int:
    found = whole(value, "indicesToSign")
    if found >= _MOST_INPUTS:
        raise Unreadable("indicesToSign names an input that no such PSBT has")
    return found


def order_body(order: ListingOrder) -> bytes:
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
    told = first(table(payload(answer), "list"), "listings")
    if told is None:
        return
    for row in rows(told, "listings"):
        if first({"row": row}, "row.inscriptionId") == ask.inscription_id:
            if sats(row.get("price"), "price") != ask.price:
                raise Unreadable("it is listed at another price")
            return
    raise Unreadable("it is not among the listings that were made")


def delist_body(owner: str, inscription_id: str, signature: str) -> bytes:
    """Makes the body of POST /cancel for one listing, which goes by its inscription."""
    body = {"makerAddress": owner, "orderType": "ask", "signature": signature, "inscriptionId": inscription_id}
    return json.dumps(body).encode()
