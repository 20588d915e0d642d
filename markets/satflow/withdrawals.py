"""Satflow's JSON of withdrawals from a bidding wallet into our types and back (API 1.1.4: intent/withdraw).

Where a signed one goes and what is answered is not documented; both are the practice market's. Every function raises
Unreadable for what it does not understand.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markets.listings import LONGEST_PSBT
from markets.satflow.wire import payload
from markets.wire import Unreadable, table, txid

_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)


def draft(answer: Any) -> str:
    """What the venue wants signed, in base64. Whoever signs reads it."""
    psbt = table(payload(answer), "draft").get("unsignedPSBTBase64")
    if not isinstance(psbt, str) or len(psbt) > LONGEST_PSBT or not _BASE64.fullmatch(psbt):
        raise Unreadable("a PSBT is not base64 of a fair length")
    return psbt


def signed_body(payment: str, psbt: str) -> bytes:
    """The body that hands over a signed draft."""
    return json.dumps({"userAddress": payment, "signedPSBT": psbt}).encode()


def sent(answer: Any) -> str:
    """The txid."""
    return txid(table(payload(answer), "withdrawal").get("txid"), "txid")
