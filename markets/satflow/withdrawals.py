"""Satflow's JSON of withdrawals from a bidding wallet to and from our types (API 1.1.4: intent/withdraw, withdraw).

Every function raises Unreadable for anything it does not understand.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markets.base import LONGEST_PSBT
from markets.satflow.wire import payload
from markets.wire import Unreadable, table, txid

_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)


def draft(answer: Any) -> str:
    """Reads the PSBT to be signed, in base64. The signer checks it."""
    psbt = table(payload(answer), "draft").get("unsignedPSBTBase64")
    if not isinstance(psbt, str) or len(psbt) > LONGEST_PSBT or not _BASE64.fullmatch(psbt):
        raise Unreadable("a PSBT is not base64 of a fair length")
    return psbt


def signed_body(payment: str, psbt: str) -> bytes:
    """Makes the body that hands over a signed draft."""
    return json.dumps({"signedWithdrawPSBT": psbt, "bidderPaymentAddress": payment}).encode()


def sent(answer: Any) -> str:
    """Reads the txid."""
    return txid(table(payload(answer), "withdrawal").get("txid"), "txid")
