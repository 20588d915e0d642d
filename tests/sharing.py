"""Files of tests/e2e that use one installation after another, in that order: those that end it are the last.

All that want the same settings could; several such rooms are as many processes of a parallel run, since most of their
time is waiting.
"""

from __future__ import annotations

_ROOMS = (  # the longest first
    ("bidding", "trading", "withdraw", "own_ceilings", "looking_back", "pictures", "gone_back"),
    ("listing", "listing_escrow", "listing_protected", "preview_and_control", "schemathesis", "running"),
    ("listing_venues", "ordnet"),
)
SHARING = [[f"tests/e2e/test_{name}.py" for name in names] for names in _ROOMS]
