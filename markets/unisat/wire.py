"""UniSat's envelope: every answer is `{"code", "msg", "data"}`, and a code other than 0 says no."""

from __future__ import annotations

from typing import Any

from markets.answers import Reply, error_text, is_too_many, retry_after_s
from markets.base import AuthFailed, BelowMinimum, NotFound, RateLimited, Refused, Unavailable
from markets.http import Http
from markets.wire import Unreadable, parse, table

# Codes of errors/open-api-errors/marketplace-errors.yaml that the venue must mend: maintenance, read-only, busy,
# updating; indexers that fail or lag.
_THEIRS_TO_MEND = frozenset({-106, -111, -116, -119, -153, -154, -158, -161, -164, -169})
_NOT_THERE = frozenset({-100, -109, -144})  # no such order, no such inscription, an order that is over
_TOO_MANY = -2006  # "exceeds rate limit", with status 403 or 200; it names no time


class UnisatHttp(Http):
    """A client of the open API. Its answer over the rate is a 403, as that for a wrong key is.

    The gateway chooses the pause, because the answer names none: 2.5 s, which outlasts the documented limit of a
    second, and twice as long each time in a row up to 30 s, because a day's limit may be behind it.
    """

    def __init__(self, base: str, api_key: str | None) -> None:
        super().__init__(base, {"Authorization": f"Bearer {api_key}"} if api_key else {})

    def _raise_own(self, reply: Reply) -> None:
        if reply.status == 200 or reply.body.lstrip()[:1] != b"{":
            return
        try:
            answer = table(parse(reply.body), "answer")
        except Unreadable:
            return
        if answer.get("code") == _TOO_MANY:
            raise RateLimited(retry_after_s(reply), f"UniSat: {error_text(answer) or 'too many requests'}")


def content(answer: Any) -> Any:
    """Returns `data` of an answer that says yes. Raises Unreadable, Unavailable, RateLimited and Refused leaves."""
    envelope = table(answer, "answer")
    code = envelope.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        raise Unreadable("the answer has no code")
    if code == 0:
        return envelope.get("data")
    said = error_text({"error": envelope.get("msg")}) or f"code {code}"
    if code == _TOO_MANY or is_too_many(said):
        raise RateLimited(None, f"UniSat: {said}")
    if code in _THEIRS_TO_MEND or code > 0:
        raise Unavailable(f"UniSat: {said}")
    if code in _NOT_THERE:
        raise NotFound(said)
    if code == -132:
        raise BelowMinimum(said)
    if "api key" in said.lower() or "unauthorized" in said.lower():
        raise AuthFailed(said)
    raise Refused("refused", f"UniSat: {said}")
