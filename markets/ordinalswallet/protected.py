"""Ordinals Wallet's protected listings ("passthrough v4"): two PSBTs, of which none is broadcast before the sale.

The transfer moves the item into an escrow, the sale pays us out of it; our own key brings the item back, so the venue
drafts nothing for that. Rows are told by the output that the item was listed from. From its client's code.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markets.base import LONGEST_PSBT, Refused, Unavailable
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.ordinalswallet.wire import content
from markets.wire import Unreadable, first, rows, table, text, whole

POLICY = "passthrough_v4"
_PSBT = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_SERIALIZED = re.compile(r"[0-9a-f]{72}", re.ASCII)
_OUTPOINT = re.compile(r"[0-9a-f]{64}:[0-9]{1,10}", re.ASCII)
_DIGEST = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
_CODE = re.compile(r"[a-z][a-z0-9_]{1,80}", re.ASCII)
_CHARACTERS_OF_TXID = 64
# Of its client's codes those that clear by themselves: another block, an index that catches up.
_PASSING = frozenset(
    {
        "build_tip_changed",
        "build_tip",
        "authorize_tip",
        "authorize_tip_changed",
        "asset_index_tip_changed",
        "asset_index_tip_mismatch",
        "asset_index_fork_mismatch",
        "asset_index_incomplete",
        "asset_index_unavailable",
        "asset_index_stale",
        "ord_index_stale",
        "chain_tip_unavailable",
        "cosigner_unavailable",
        "secure_listing_unavailable",
        "outpoint_not_fully_indexed",
    }
)


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft, kept until it is submitted, which must repeat its digest."""

    ask: ListingToDraft
    draft: ListingDraft
    digest: str


def draft_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of POST /market/secure-listing/build-bulk for one item. Raises Refused without its output."""
    if not ask.outpoint:
        raise Refused("bad_request", "which output the item is on is needed for a draft there; nothing was sent")
    return {
        "protocol": "ordinal",
        "seller_address": ask.receive,
        "seller_public_key": _compressed(ask),
        "items": [{"outpoint": ask.outpoint, "escrow_price_sats": ask.price}],
    }


def drafted(answer: Any, ask: ListingToDraft) -> Drafted:
    """Reads the two PSBTs to be signed. Raises a Refused leaf, or Unavailable, for an item that is not drafted."""
    row = _row(answer, ask.outpoint)
    if (code := _fault(row)) is not None:
        if code in _PASSING:
            raise Unavailable(f"no draft at the moment: {code}")
        raise Refused("refused", f"no draft of this item: {code}")
    said = (text(row.get("state"), "state"), text(row.get("policy"), "policy"), row.get("protocol", "ordinal"))
    if said != ("authorization_required", POLICY, "ordinal"):
        raise Unreadable("the draft is of another form than is known")
    if whole(row.get("escrow_price_sats"), "price") != ask.price:
        raise Unreadable("the draft is at another price")
    digest = row.get("template_digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Unreadable("the draft has no digest")
    return Drafted(ask, ListingDraft(_psbt(row, "sale_psbt"), (), _psbt(row, "psbt")), digest)


def drafted_for(order: ListingOrder, kept: Drafted | None) -> Drafted:
    """Returns `kept` if `order` is its signed form. Raises Refused when there is none, or of another listing."""
    if kept is None:
        raise Refused("changed", "this draft is not known here any more; nothing was sent")
    if (order.ask, order.unsigned_psbt, order.signed_recovery) != (kept.ask, kept.draft.psbt, ""):
        raise Refused("bad_request", "the draft is of another listing; nothing was sent")
    return kept


def authorize_body(order: ListingOrder, kept: Drafted) -> bytes:
    """Makes the body of POST /market/secure-listing/authorize-bulk: the PSBTs signed, and not finalized."""
    item = {
        "outpoint": order.ask.outpoint,
        "protocol": "ordinal",
        "seller_public_key": _compressed(order.ask),
        "template_digest": kept.digest,
        "psbt": _hex(order.signed_transfer),
        "sale_psbt": _hex(order.signed_psbt),
        "escrow_price_sats": order.ask.price,
    }
    return json.dumps({"items": [item]}).encode()


def check_authorized(answer: Any, outpoint: str) -> None:
    """Raises Unreadable when the answer does not say that the listing is there, a Refused leaf when it says no."""
    row = _row(answer, outpoint)
    if (code := _fault(row)) is not None:
        raise Refused("refused", f"not listed: {code}")
    if text(row.get("state"), "state") != "listed":
        raise Unreadable("neither listed nor refused")


def protected_outpoint(entry: Mapping[str, Any]) -> str | None:
    """Returns the output that a protected listing goes by, "" when it is not told; None for a plain one.

    `entry` is an inscription of a wallet with its listing, or a listing alone.
    """
    listing = entry.get("escrow", entry)
    is_protected = isinstance(listing, Mapping) and (
        listing.get("protected") is True or listing.get("secure_purchase_version") == 2
    )
    if not is_protected:
        return None
    told = first(entry, "outpoint.outpoint", "outpoint")
    if isinstance(told, str) and _SERIALIZED.fullmatch(told):
        txid = bytes.fromhex(told[:_CHARACTERS_OF_TXID])[::-1].hex()
        return f"{txid}:{int.from_bytes(bytes.fromhex(told[_CHARACTERS_OF_TXID:]), 'little')}"
    if isinstance(told, str) and _OUTPOINT.fullmatch(told):
        return told
    return ""


def _row(answer: Any, outpoint: str) -> Mapping[str, Any]:
    """Returns the answer's row of this output; a call for one item may be answered with the row alone."""
    found = table(answer, "answer")
    if "items" not in found and found.get("outpoint") == outpoint:
        return found
    listed = [table(row, "item") for row in rows(table(content(found), "answer").get("items"), "items", most=1)]
    if len(listed) != 1 or listed[0].get("outpoint") != outpoint:
        raise Unreadable("the answer is not about this item")
    return listed[0]


def _fault(row: Mapping[str, Any]) -> str | None:
    """Returns the code of a refused item."""
    if not row.get("error"):
        return None
    code = row.get("code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else "no reason is told"


def _psbt(row: Mapping[str, Any], name: str) -> str:
    """Reads a PSBT, hex into our base64. The signer checks it."""
    found = row.get(name)
    if not isinstance(found, str) or len(found) > 2 * LONGEST_PSBT or not _PSBT.fullmatch(found):
        raise Unreadable(f"{name} is no PSBT in hex")
    encoded = base64.b64encode(bytes.fromhex(found)).decode()
    if len(encoded) > LONGEST_PSBT:
        raise Unreadable(f"{name} is too long")
    return encoded


def _hex(psbt: str) -> str:
    try:
        return base64.b64decode(psbt, validate=True).hex()
    except ValueError as error:
        raise Refused("not_a_psbt", "a signed PSBT is not base64; nothing was sent") from error


def _compressed(ask: ListingToDraft) -> str:
    # A taproot key is found by its x coordinate alone.
    return "02" + ask.tap_internal_key
