"""Answers as JSON text: what is kept as text is packed once for all askers."""

from __future__ import annotations

import json
from typing import Any

from markets.codec import pack


def text(value: Any) -> str:
    """`value` as the JSON text that `markets/codec.py` reads."""
    return json.dumps(pack(value), separators=(",", ":"))
