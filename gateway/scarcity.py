"""What a quota that runs short means for what is asked of the gateway: older reads, and a word with each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from gateway import arguments as read
from gateway.quota.quota import Quota

# Reads whose answers are shared. A challenge and a draft go with a write and are never shared.
AT_MARKET = frozenset(
    {"floors", "asks", "bids", "traits", "sales", "own_bids", "own_listings", "wallet_contents", "item"}
)
OF_RUNES = frozenset({"rune", "rune_asks"})  # from their provider, whichever marketplace is meant
_BOOKS = frozenset({"asks", "bids", "rune_asks"})
_NOW_S = 1.0  # asked for something younger than this: what was just written is looked for
# A bid is signed on a book of some seconds ago only; who asks for one gets one that can be signed on.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class Scarcity:
    """Applies the quota of one key, if it has one, to requests for `reads` and to answers."""

    def __init__(self, quota: Quota | None, reads: Set[str] = AT_MARKET) -> None:
        self._quota = quota
        self._reads = reads

    def stretched(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The request with an age that the month allows. Raises Refused('bad_request')."""
        verb = request.get("verb")
        if self._quota is None or verb not in self._reads or not (stretch_s := self._quota.stretch_s()):
            return request
        max_age_s = read.max_age_s(request)
        if max_age_s < _NOW_S:
            return request
        if verb in _BOOKS and max_age_s < _FOR_PLACING_S:
            stretch_s = min(stretch_s, _STRETCHED_FOR_PLACING_S)
        return {**request, "max_age_s": max(max_age_s, stretch_s)}

    def remark(self) -> str:
        """Further members of an answer's JSON object, for askers to say why they do less; empty with calls enough."""
        if self._quota is None or not (stretch_s := self._quota.stretch_s()):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs()})
