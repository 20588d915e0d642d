"""The two forms in which a venue may tell the same: as its documentation has it, and as its clients have seen it.

A real venue answers in one of them, and nobody here knows which: so each is practised, by the seed of the market.
"""

from __future__ import annotations

import time
from typing import Literal

Shape = Literal["documented", "seen"]


def shape_of(seed: int) -> Shape:
    """The form in which a market of this seed tells: "seen" for even ones."""
    return "documented" if seed % 2 else "seen"


def iso(time_ms: int) -> str:
    """A time as text, as JavaScript prints it."""
    seconds, ms = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03}Z"
