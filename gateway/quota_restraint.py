"""The effects of a short quota on requests: older reads, and a remark in each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from gateway import arguments as read
from gateway.quota.quota import Quota

# Reads whose answers are shared. Challenges and drafts go with a write and are never shared.
AT_MARKET = frozenset(
    {"floors", "asks", "bids", "traits", "sales", "own_bids", "own_listings", "wallet_contents", "item"}
)
OF_RUNES = frozenset({"rune", "rune_asks"})  # from the runes' provider, whichever marketplace is meant
_BOOKS = frozenset({"asks", "bids", "rune_asks"})
_NOW_S = 1.0  # requests for an answer younger than this look for a fresh write
# A bid is signed only on a book some seconds old; a request for one gets one young enough for that.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class QuotaRestraint:
    """The quota of one key, if it has one, applied to requests for `reads` and to answers."""

    def __init__(self, quota: Quota | None, reads: Set[str] = AT_MARKET) -> None:
        self._quota = quota
        self._reads = reads

    def stretched(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the request with an age that the month allows. Raises Refused('bad_request')."""
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
        """Returns further members of an answer's JSON object that tell of the savings; empty without a shortage."""
        if self._quota is None or not (stretch_s := self._quota.stretch_s()):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs()})
