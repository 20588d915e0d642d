"""Listings at UniSat, in two steps each: a draft is asked for, and sent back signed.

`create_put_on` makes an order and drafts its PSBT, `create_modify_price` one for another price of a live order, and
`create_put_off` one to take it back; `confirm_...` sends each back signed. The PSBTs' contents are not documented.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from markets.base import AuthFailed, RateLimited, Refused, Unavailable, Unknown
from markets.orders import ListingDraft, ListingToDraft
from markets.psbt import in_base64
from markets.unisat.wire import content
from markets.wire import Unreadable, identifier, rows, table, whole

_MOST_INPUTS = 1000
_UNKNOWN_ERROR = -1  # the venue's own word for a fault


@dataclass(frozen=True, slots=True)
class Draft:
    """The PSBT to be signed for the order `auction_id`; `is_new` = the order is not live yet."""

    auction_id: str
    is_new: bool
    listing: ListingDraft


def put_on_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of create_put_on; prices are texts there."""
    return {
        "nftType": "collection",
        "inscriptionId": ask.inscription_id,
        "initPrice": str(ask.price),
        "unitPrice": str(ask.price),
        # A compressed key; the address of a taproot key follows from its x coordinate alone.
        "pubkey": "02" + ask.tap_internal_key,
        "marketType": "fixedPrice",
        "btcAddress": ask.receive,
    }


def modify_body(ask: ListingToDraft, auction_id: str) -> dict[str, Any]:
    """Makes the body of create_modify_price."""
    return {"auctionId": auction_id, "initPrice": str(ask.price), "unitPrice": str(ask.price)}


def put_off_body(owner: str, auction_id: str) -> dict[str, Any]:
    """Makes the body of create_put_off, by a signature alone: without `offChain` it costs a transaction."""
    return {"auctionId": auction_id, "nftAddress": owner, "offChain": True}


def put_on_draft(answer: Any) -> Draft:
    """Reads the new order and its PSBT."""
    found = table(content(answer), "draft")
    return Draft(identifier(found.get("auctionId"), "listing id"), True, _draft(found, "signIndexes"))


def modify_draft(answer: Any, auction_id: str) -> Draft:
    """Reads the PSBT of a live order's new price."""
    return Draft(auction_id, False, _draft(table(content(answer), "draft"), "signIndexes"))


def put_off_draft(answer: Any) -> ListingDraft:
    """Reads the PSBT that takes an order back."""
    found = table(content(answer), "draft")
    if found.get("btcSignIndexes"):
        raise Unreadable("taking it back wants coins signed: it is a transaction, not a signature")
    if found.get("nftSignIndexes") not in (None, [0]):
        raise Unreadable("taking it back wants another input signed than its only one")
    return _draft(found, "nftSignIndexes")


def _draft(found: Any, indices: str) -> ListingDraft:
    told = found.get(indices)
    # At which place the item stands the signer finds out. Signing more than the item is no listing.
    if told is not None and len([whole(each, indices) for each in rows(told, indices, most=_MOST_INPUTS)]) != 1:
        raise Unreadable("the draft wants more inputs signed than one, or none")
    return ListingDraft(in_base64(found.get("psbt")), ())


def confirm_body(auction_id: str, signed_psbt: str, *, off_chain: bool = False) -> bytes:
    """Makes the body of confirm_put_on, confirm_modify_price and confirm_put_off."""
    body = {"auctionId": auction_id, "psbt": signed_psbt, "fromBase64": True}
    return json.dumps(body | ({"offChain": True} if off_chain else {})).encode()


def check_confirmed(answer: Any) -> None:
    """Raises for a write's answer that is no yes: RateLimited or a Refused leaf for a no, else Unknown."""
    try:
        content(answer)
    except RateLimited:
        raise  # the venue did not look at it
    except Unavailable as error:
        raise Unknown(f"sent, but {error.message}") from error
    except AuthFailed:
        raise
    except Refused as error:
        if table(answer, "answer").get("code") == _UNKNOWN_ERROR:
            raise Unknown(f"sent, but {error.message}") from error
        raise
