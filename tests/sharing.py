"""Files of tests/e2e that use one installation after another, in that order: those that end it are the last.

All that want the same settings could; several such rooms are as many processes of a parallel run, since most of their
time is waiting.
"""

from __future__ import annotations

_ROOMS = (  # the longest first
    ("listing_venues", "ordnet"),
    ("bidding", "gone_back"),
    ("listing_escrow", "listing_protected"),
    ("trading", "withdraw", "own_ceilings", "looking_back", "pictures"),
    ("listing", "preview_and_control", "schemathesis", "running"),
)
SHARING = [[f"tests/e2e/test_{name}.py" for name in names] for names in _ROOMS]
