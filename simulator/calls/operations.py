"""Names of the dialects' operations, and of the ways in which an answer may go wrong."""

from __future__ import annotations

from typing import Literal, get_args

_Trade = Literal["challenge", "place", "cancel", "draft", "list", "withdraw"]
_Market = Literal["floors", "book", "sales", "own_bids", "balance", "wallet", "item", "collection", "content"]
_Chain = Literal["fees", "output", "inscription", "index", "holdings", "tx", "outspend", "tip", "broadcast"]
Operation = Literal[_Trade, _Market, _Chain]

_NothingDone = Literal["timeout", "cut", "error_500", "rate_429", "refuse_400", "auth_401"]
_Done = Literal["bad_json", "slow", "stale", "late"]
_SaidOtherwise = Literal["accept_then_timeout", "accept_then_500", "accept_twice", "cancel_lie"]
Mode = Literal[_NothingDone, _Done, _SaidOtherwise]
OPERATIONS: frozenset[str] = frozenset(get_args(Operation))
MODES: frozenset[str] = frozenset(get_args(Mode))
