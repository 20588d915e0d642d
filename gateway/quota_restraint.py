"""The effects of a short quota on requests: older reads, and a remark in each answer."""

from __future__ import annotations

import json
from typing import Any

from gateway.limits import LookupBudget, Origin, current_origin
from gateway.quota.quota import Quota
from gateway.quota_count import LONGEST_STRETCH_S
from markets import verbs

Kind = type[verbs.Args[Any]]
_OF_A_BEGINNING: frozenset[Kind] = frozenset({verbs.OwnBids, verbs.OwnListings})
_BOOKS: frozenset[Kind] = frozenset({verbs.Asks, verbs.Bids, verbs.RuneAsks})
_SPENT_LOOK_S = 60.0  # a look beyond its user's budget gets an answer of this age, if there is one
_NOW_S = 1.0  # requests for an answer younger than this look for a fresh write
# A bid is signed only on a book some seconds old; a request for one gets one young enough for that.
_FOR_PLACING_S, _STRETCHED_FOR_PLACING_S = 5.0, 8.0


class QuotaRestraint:
    """The quota of one key, if it has one, and the budget of looks, applied to reads of its source and to answers."""

    def __init__(
        self, quota: Quota | None, source: verbs.Source = "market", lookups: LookupBudget | None = None
    ) -> None:
        self._quota = quota
        self._source = source
        self._lookups = lookups

    def stretched_s(self, kind: Kind, max_age_s: float) -> float:
        """Returns the age that the quota allows an answer of a verb, for one who asks for `max_age_s`."""
        if kind.quota_of != self._source:
            return max_age_s
        errand = current_origin()
        stretch_s = 0.0 if self._quota is None else self._quota.stretch_s(errand.user)
        if errand.purpose == "look":
            return max(max_age_s, stretch_s, self._stretch_of_looks_s(errand))
        if not stretch_s or (max_age_s < _NOW_S and not self._is_begun_too_often(kind, errand)):
            return max_age_s
        if kind in _BOOKS and max_age_s < _FOR_PLACING_S:
            stretch_s = min(stretch_s, _STRETCHED_FOR_PLACING_S)
        return max(max_age_s, stretch_s)

    def remark(self) -> str:
        """Returns further members of an answer's JSON object that tell of the savings; empty without a shortage."""
        user = current_origin().user
        if self._quota is None or not (stretch_s := self._quota.stretch_s(user)):
            return ""
        return ',"quota":' + json.dumps({"stretch_s": round(stretch_s), "rungs": self._quota.rungs(user)})

    def _is_begun_too_often(self, kind: Kind, errand: Origin) -> bool:
        """Tells whether this is a read of a worker's beginning that the user's share does not pay for.

        Restarts cost such a read each, so without end they would use it up. After a write it is read anew anyway.
        """
        is_one = kind in _OF_A_BEGINNING
        return is_one and self._quota is not None and self._quota.is_beyond_share(errand.user)

    def _stretch_of_looks_s(self, errand: Origin) -> float:
        """Returns the age that is old enough for a look which would otherwise be refused."""
        if self._quota is not None and self._quota.look_wait_s(errand.user) is not None:
            return LONGEST_STRETCH_S
        return _SPENT_LOOK_S if self._lookups is not None and self._lookups.is_short(errand) else 0.0
