"""UniSat's envelope: every answer is `{"code", "msg", "data"}`, and a code other than 0 says no."""

from __future__ import annotations

from typing import Any

from markets.base import AuthFailed, BelowMinimum, NotFound, Refused, Unavailable
from markets.replies import error_text
from markets.wire import Unreadable, table

# Codes of errors/open-api-errors/marketplace-errors.yaml that the venue must mend: maintenance, read-only, busy,
# updating; indexers that fail or lag.
_THEIRS_TO_MEND = frozenset({-106, -111, -116, -119, -153, -154, -158, -161, -164, -169})
_NOT_THERE = frozenset({-100, -109, -144})  # no such order, no such inscription, an order that is over


def content(answer: Any) -> Any:
    """Returns `data` of an answer that says yes. Raises Unreadable, Unavailable and Refused leaves."""
    envelope = table(answer, "answer")
    code = envelope.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        raise Unreadable("the answer has no code")
    if code == 0:
        return envelope.get("data")
    said = error_text({"error": envelope.get("msg")}) or f"code {code}"
    if code in _THEIRS_TO_MEND or code > 0:
        raise Unavailable(f"UniSat: {said}")
    if code in _NOT_THERE:
        raise NotFound(said)
    if code == -132:
        raise BelowMinimum(said)
    if "api key" in said.lower() or "unauthorized" in said.lower():
        raise AuthFailed(said)
    raise Refused("refused", f"UniSat: {said}")
