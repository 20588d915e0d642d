"""Ordinals Wallet's listings and sign-in: bodies of its requests, drafts, signed forms."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

from markets.answers import error_text, refusal
from markets.base import LONGEST_PSBT, AuthFailed, Refused
from markets.orders import ListingDraft, ListingOrder, ListingToDraft
from markets.ordinalswallet.wire import content
from markets.psbt import with_witnesses
from markets.wire import Unreadable, flag, table, text, whole

_PSBT = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_REFERENCE = re.compile(r"([0-9a-f]{32})\.([0-9]{13})", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{8,2000}", re.ASCII)
_CANCELLED = ("cancelled", "already_cancelled")


@dataclass(frozen=True, slots=True)
class Session:
    """A session of one address until `expires_s` (epoch seconds). `token` is never shown."""

    token: str = field(repr=False)
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
    opened = table(content(answer), "session")
    if opened.get("address") != address:
        raise Unreadable("the session is another address's")
    token = opened.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    return Session(token, whole(opened.get("expires_at"), "expires_at"))


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
    found = table(content(answer), "draft").get("psbt")
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
    said = table(content(answer), "answer")
    if flag(said.get("success"), "success"):
        return
    if (why := error_text(said)) is not None:
        raise refusal(why)
    raise Unreadable("neither taken nor refused")


def delisted(answer: Any) -> bool:
    """Tells whether the listing is gone; one that was gone before counts too."""
    said = table(content(answer), "answer")
    transition = said.get("transition")
    if transition is not None and text(transition, "transition") not in _CANCELLED:
        return False
    return flag(said.get("success"), "success")
