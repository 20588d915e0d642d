"""The two forms in which a venue may tell the same: as its documentation has it, and as its clients have seen it.

A real venue answers in one of them, and it is not known which: each is practised, by the seed of the market.
"""

from __future__ import annotations

import time
from typing import Literal

Shape = Literal["documented", "seen"]


def shape_of(seed: int) -> Shape:
    """Returns the form in which a market of this seed answers: "seen" for even ones."""
    return "documented" if seed % 2 else "seen"


def iso(time_ms: int) -> str:
    """Returns a time as text, as JavaScript prints it."""
    seconds, ms = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03}Z"
