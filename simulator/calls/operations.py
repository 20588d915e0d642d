"""Names of the dialects' operations, and of the ways in which an answer may go wrong."""

from __future__ import annotations

from typing import Literal, get_args

Operation = Literal[
    "challenge",
    "floors",
    "book",
    "sales",
    "own_bids",
    "balance",
    "place",
    "cancel",
    "list",
    "draft",
    "wallet",
    "item",
    "collection",
    "fees",
    "output",
    "inscription",
    "index",
    "holdings",
    "tx",
    "outspend",
    "tip",
    "withdraw",
    "broadcast",
    "content",
]
Mode = Literal[
    "timeout",
    "cut",
    "error_500",
    "rate_429",
    "refuse_400",
    "auth_401",
    "bad_json",
    "slow",
    "stale",
    "late",
    "accept_then_timeout",
    "accept_then_500",
    "accept_twice",
    "cancel_lie",
]
OPERATIONS: frozenset[str] = frozenset(get_args(Operation))
MODES: frozenset[str] = frozenset(get_args(Mode))
