"""A PSBT as a venue sends it, in base64 or hex. Its contents are for the signer."""

from __future__ import annotations

import base64
import re
from typing import Any

from markets.base import LONGEST_PSBT
from markets.wire import Unreadable

_HEX = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_BASE64 = re.compile(r"cHNidP8[A-Za-z0-9+/]+={0,2}", re.ASCII)


def in_base64(value: Any) -> str:
    """Reads a PSBT in hex or base64; returns base64. Raises Unreadable for any other text, or a long one."""
    if isinstance(value, str) and len(value) <= 2 * LONGEST_PSBT and _HEX.fullmatch(value):
        value = base64.b64encode(bytes.fromhex(value)).decode()
    if not is_base64(value):
        raise Unreadable("a PSBT is neither hex nor base64 of a fair length")
    assert isinstance(value, str)
    return value


def is_base64(value: Any) -> bool:
    """Tells whether it is a PSBT in base64."""
    return isinstance(value, str) and len(value) <= LONGEST_PSBT and _BASE64.fullmatch(value) is not None
