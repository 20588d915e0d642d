"""The effects of a short quota on requests: older reads, and a remark in each answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any

from gateway import arguments as read
from gateway.limits.errand import Errand, current
from gateway.limits.lookup_budget import LookupBudget
from gateway.quota.quota import Quota
from gateway.quota.quota_pace import LONGEST_STRETCH_S

# Reads whose answers are shared. Challenges and drafts go with a write and are never shared.
AT_MARKET = frozenset(
    {"floors", "asks", "bids", "traits", "sales", "own_bids", "own_listings", "wallet_contents", "item"}
)
OF_RUNES = frozenset({"rune", "rune_asks"})  # from the runes' provider, whichever marketplace is meant
_OF_A_BEGINNING = frozenset({"own_bids", "own_listings"})
_BOOKS = frozenset({"asks", "bids", "rune_asks"})
_SPENT_LOOK_S = 60.0  # a look beyond its user's budget gets an answer of this age, if there is one
_NOW_S = 1.0  # requests for an answer younger than this look for a fresh write
# A bid is signed only on a book some seconds old; a request for one gets one young enough for that.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class QuotaRestraint:
    """The quota of one key, if it has one, and the budget of looks, applied to requests for `reads` and to answers."""

    def __init__(self, quota: Quota | None, reads: Set[str] = AT_MARKET, lookups: LookupBudget | None = None) -> None:
        self._quota = quota
        self._reads = reads
        self._lookups = lookups

    def stretched(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the request with an age that the quota allows. Raises Refused('bad_request')."""
        verb = request.get("verb")
        if verb not in self._reads:
            return request
        errand = current()
        stretch_s = 0.0 if self._quota is None else self._quota.stretch_s(errand.user)
        if errand.purpose == "look":
            look_s = max(stretch_s, self._stretch_of_looks_s(errand))
            return {**request, "max_age_s": max(read.max_age_s(request), look_s)} if look_s else request
        max_age_s = read.max_age_s(request)
        if not stretch_s or (max_age_s < _NOW_S and not self._is_begun_too_often(verb, errand)):
            return request
        if verb in _BOOKS and max_age_s < _FOR_PLACING_S:
            stretch_s = min(stretch_s, _STRETCHED_FOR_PLACING_S)
        return {**request, "max_age_s": max(max_age_s, stretch_s)}

    def remark(self) -> str:
        """Returns further members of an answer's JSON object that tell of the savings; empty without a shortage."""
        user = current().user
        if self._quota is None or not (stretch_s := self._quota.stretch_s(user)):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs(user)})

    def _is_begun_too_often(self, verb: Any, errand: Errand) -> bool:
        """Tells whether this is a read of a worker's beginning that the user's share does not pay for.

        Restarts cost such a read each, so without end they would use it up. After a write it is read anew anyway.
        """
        return verb in _OF_A_BEGINNING and self._quota is not None and self._quota.is_beyond_share(errand.user)

    def _stretch_of_looks_s(self, errand: Errand) -> float:
        """Returns the age that is old enough for a look which would otherwise be refused."""
        if self._quota is not None and self._quota.look_wait_s(errand.user) is not None:
            return LONGEST_STRETCH_S
        return _SPENT_LOOK_S if self._lookups is not None and self._lookups.is_short(errand) else 0.0
