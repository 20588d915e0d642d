"""The common parts of Ordinals Wallet's answers (errors with status 200, prices, a listing's state), and its listings.

Shapes are those of its official client's types and recorded answers (`ordinals-wallet/ow-cli`). Every function of these
files raises Unreadable for anything it does not understand, and a Refused leaf for an error.

The venue shows the buyer's price: the seller's and its own fee, which is 2.7 % of the whole and 1,000 sats at least
(client code; all recorded prices fit). Listings are made, and their PSBTs paid, at the seller's price. Here an
inscription's price is always the seller's, so that floors, listings of others and our own are in one unit: shown
308,324 is 300,000. Prices per token of runes are as shown.

A protected listing ("passthrough v4") is two PSBTs, of which none is broadcast before the sale. The transfer moves the
item into an escrow, the sale pays us out of it; our own key brings the item back, so the venue drafts nothing for that.
Rows are told by the output that the item was listed from. From its client's code.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from core.fields import WithSecrets
from markets import parse
from markets.adapter import with_witnesses
from markets.base import LONGEST_PSBT, AuthFailed, NotFound, Refused, Unavailable
from markets.http import error_text, refusal
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.parse import Unreadable

_LEAST_FEE = 1000
_ON_OFFER, _SOLD = ("", "listed"), ("broadcast", "settled")  # states of a protected listing; none of a plain one
_KEPT_PER_MILLE = 973  # of the buyer's price, for the seller


def content(answer: Any) -> Any:
    """Returns an answer that is no error. Raises NotFound or another Refused leaf for one that is."""
    if not isinstance(answer, dict) or not answer.get("error"):
        return answer
    code = answer.get("code")
    said = error_text(answer) or (code[:100] if isinstance(code, str) and code.isprintable() else "an error")
    if "not found" in said.lower() or (isinstance(code, str) and code.endswith("not_found")):
        raise NotFound(said)
    raise refusal(said)


def sellers(shown: Any, what: str) -> int:
    """Returns the seller's part of a shown price: the most that is shown as no more than that.

    The shown price is the seller's and 1,000 sats, or the seller's / 0.973 rounded down, whichever is higher.
    """
    price = parse.sats(shown, what, least=1)
    after_rate = ((price + 1) * _KEPT_PER_MILLE - 1) // 1000
    paid = min(price - _LEAST_FEE, after_rate)
    if paid < 1:
        raise Unreadable(f"{what}: {price} sats do not cover the venue's fee")
    return paid


def sellers_price(entry: Mapping[str, Any]) -> int:
    """Returns the seller's price of an inscription's listing or sale, which some answers give beside the buyer's."""
    told = entry.get("escrow_price")
    if told is not None:
        return parse.sats(told, "seller's price", least=1)
    return sellers(entry.get("satoshi_price"), "price")


def is_for_sale(listing: Mapping[str, Any]) -> bool:
    """Tells whether the listing is on offer: not bought, and not being bought."""
    return not _is_bought(listing) and _state(listing) in _ON_OFFER


def check_state(listing: Mapping[str, Any]) -> None:
    """Raises Unreadable for a listing that is not bought, in a state that is not known: it may be on offer later."""
    if not _is_bought(listing) and _state(listing) not in (*_ON_OFFER, *_SOLD):
        raise Unreadable("a listing is in a state that is not known")


def _is_bought(listing: Mapping[str, Any]) -> bool:
    bought_ms = parse.moment_if_any(listing.get("bought_at"), "time of a purchase")
    return bought_ms is not None or bool(_words(listing, "purchase_txid"))


def _state(listing: Mapping[str, Any]) -> str:
    return _words(listing, "secure_purchase_state")


def _words(listing: Mapping[str, Any], name: str) -> str:
    told = listing.get(name) or ""
    if not isinstance(told, str):
        raise Unreadable("what became of a listing is not told in words")
    return told


def integral(value: Any) -> Any:
    """Returns a whole number that came with decimals (2045220.0) without them."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


_PSBT = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_REFERENCE = re.compile(r"([0-9a-f]{32})\.([0-9]{13})", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{8,2000}", re.ASCII)
_CANCELLED = ("cancelled", "already_cancelled")


class Session(WithSecrets, frozen=True):
    """A session of one address until `expires_s` (epoch seconds). `token` is never shown."""

    hidden = frozenset({"token"})

    token: str
    expires_s: int


def sign_in_message(address: str, nonce: str, issued_ms: int) -> str:
    """Writes the text that the venue rebuilds and checks, byte for byte."""
    return (
        "Sign in to Ordinals Wallet\n\n"
        "This proves you own this address. It does not move funds or cost a fee.\n\n"
        f"Address: {address}\nNonce: {nonce}\nIssued At: {issued_ms}"
    )


def session_body(address: str, reference: str, signature: str) -> dict[str, Any]:
    """Makes the body of POST /auth/session for a text that we made. Raises AuthFailed for a foreign reference."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise AuthFailed("this sign-in was not begun here")
    return {"address": address, "nonce": found[1], "issued_at": int(found[2]), "signature": signature}


def session(answer: Any, address: str) -> Session:
    """Reads the session that was opened for `address`."""
    opened = parse.table(content(answer), "session")
    if opened.get("address") != address:
        raise Unreadable("the session is another address's")
    token = opened.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    return Session(token, parse.whole(opened.get("expires_at"), "expires_at"))


def draft_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of POST /wallet/escrow-bulk for one inscription."""
    return {
        "inscriptions": [ask.inscription_id],
        "from": ask.owner,
        "prices": [ask.price],
        # A compressed key; a taproot input is found by its x coordinate alone.
        "public_key": "02" + ask.tap_internal_key,
        "receive_address": ask.receive,
    }


def draft(answer: Any) -> ListingDraft:
    """Reads the PSBT to be signed, hex into our base64. The signer checks it."""
    found = parse.table(content(answer), "draft").get("psbt")
    if not isinstance(found, str) or len(found) > 2 * LONGEST_PSBT or not _PSBT.fullmatch(found):
        raise Unreadable("the draft is no PSBT in hex")
    encoded = base64.b64encode(bytes.fromhex(found)).decode()
    if len(encoded) > LONGEST_PSBT:
        raise Unreadable("the draft is too long")
    return ListingDraft(encoded, ())


def list_body(order: ListingOrder) -> bytes:
    """Makes the body of POST /market/escrow-bulk, with witnesses as the official client sends them. Raises Refused."""
    try:
        psbt = base64.b64decode(with_witnesses(order.signed_psbt))
    except ValueError as error:
        raise Refused("not_a_psbt", f"the signed listing is {error}") from error
    return json.dumps({"psbt": psbt.hex()}).encode()


def delist_body(inscription_id: str, outpoint: str | None, token: str) -> bytes:
    """Makes the body of POST /market/cancel-escrow: a protected listing goes by its output, a plain one has none."""
    named = {"inscription_id": inscription_id} if outpoint is None else {"outpoint": outpoint}
    return json.dumps({**named, "signature": token}).encode()


def check_listed(answer: Any) -> None:
    """Raises Unreadable when the answer does not say that the listing was taken, a Refused leaf when it says no."""
    said = parse.table(content(answer), "answer")
    if parse.flag(said.get("success"), "success"):
        return
    if (why := error_text(said)) is not None:
        raise refusal(why)
    raise Unreadable("neither taken nor refused")


def delisted(answer: Any) -> bool:
    """Tells whether the listing is gone; one that was gone before counts too."""
    said = parse.table(content(answer), "answer")
    transition = said.get("transition")
    if transition is not None and parse.text(transition, "transition") not in _CANCELLED:
        return False
    return parse.flag(said.get("success"), "success")


POLICY = "passthrough_v4"
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


class ProtectedDraft(Struct, frozen=True):
    """A draft, kept until it is submitted, which must repeat its digest."""

    ask: ListingToDraft
    draft: ListingDraft
    digest: str


def protected_body(ask: ListingToDraft) -> dict[str, Any]:
    """Makes the body of POST /market/secure-listing/build-bulk for one item. Raises Refused without its output."""
    if not ask.outpoint:
        raise Refused("bad_request", "which output the item is on is needed for a draft there; nothing was sent")
    return {
        "protocol": "ordinal",
        "seller_address": ask.receive,
        "seller_public_key": _compressed(ask),
        "items": [{"outpoint": ask.outpoint, "escrow_price_sats": ask.price}],
    }


def protected_draft(answer: Any, ask: ListingToDraft) -> ProtectedDraft:
    """Reads the two PSBTs to be signed. Raises a Refused leaf, or Unavailable, for an item that is not drafted."""
    row = _row(answer, ask.outpoint)
    if (code := _fault(row)) is not None:
        if code in _PASSING:
            raise Unavailable(f"no draft at the moment: {code}")
        raise Refused("refused", f"no draft of this item: {code}")
    said = (
        parse.text(row.get("state"), "state"),
        parse.text(row.get("policy"), "policy"),
        row.get("protocol", "ordinal"),
    )
    if said != ("authorization_required", POLICY, "ordinal"):
        raise Unreadable("the draft is of another form than is known")
    if parse.whole(row.get("escrow_price_sats"), "price") != ask.price:
        raise Unreadable("the draft is at another price")
    digest = row.get("template_digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Unreadable("the draft has no digest")
    return ProtectedDraft(ask, ListingDraft(_psbt(row, "sale_psbt"), (), _psbt(row, "psbt")), digest)


def drafted_for(order: ListingOrder, kept: ProtectedDraft | None) -> ProtectedDraft:
    """Returns `kept` if `order` is its signed form. Raises Refused when there is none, or of another listing."""
    if kept is None:
        raise Refused("changed", "this draft is not known here any more; nothing was sent")
    if (order.ask, order.unsigned_psbt, order.signed_recovery) != (kept.ask, kept.draft.psbt, ""):
        raise Refused("bad_request", "the draft is of another listing; nothing was sent")
    return kept


def authorize_body(order: ListingOrder, kept: ProtectedDraft) -> bytes:
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
    if parse.text(row.get("state"), "state") != "listed":
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
    told = parse.first(entry, "outpoint.outpoint", "outpoint")
    if isinstance(told, str) and _SERIALIZED.fullmatch(told):
        txid = bytes.fromhex(told[:_CHARACTERS_OF_TXID])[::-1].hex()
        return f"{txid}:{int.from_bytes(bytes.fromhex(told[_CHARACTERS_OF_TXID:]), 'little')}"
    if isinstance(told, str) and _OUTPOINT.fullmatch(told):
        return told
    return ""


def _row(answer: Any, outpoint: str) -> Mapping[str, Any]:
    """Returns the answer's row of this output; a call for one item may be answered with the row alone."""
    found = parse.table(answer, "answer")
    if "items" not in found and found.get("outpoint") == outpoint:
        return found
    listed = [
        parse.table(row, "item")
        for row in parse.rows(parse.table(content(found), "answer").get("items"), "items", most=1)
    ]
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
