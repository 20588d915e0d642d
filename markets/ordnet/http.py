"""ord.net over HTTP: a session's token on every request, and statuses with a meaning of their own."""

from __future__ import annotations

from markets.base import RateLimited, Refused, SignInNeeded, VenueError
from markets.http import Http
from markets.replies import Reply, error_text, retry_after_s
from markets.wire import Unreadable, parse

WINDOW_S = 60.0  # limits count in fixed windows of a minute, and a 429 does not say how much of it is left


class OrdNetHttp(Http):
    """A client with `token`, None for the requests that open a session. The token is in no error and no log."""

    def __init__(self, base: str, token: str | None = None) -> None:
        super().__init__(base, {} if token is None else {"Authorization": f"Bearer {token}"})
        self._has_session = token is not None

    def _heard(self, reply: Reply) -> Reply:
        if (fault := self._fault(reply)) is not None:
            raise fault
        return reply

    def _fault(self, reply: Reply) -> VenueError | None:
        if reply.status == 429:
            said = retry_after_s(reply)
            return RateLimited(WINDOW_S if said is None else said)
        text = _text(reply)
        if reply.status == 409:
            # The state has changed before anything was done; a stale PSBT must not be sent again.
            return Refused("changed", text or "the venue says that things have changed")
        if reply.status == 401 and self._has_session and text is not None:
            return SignInNeeded("the venue has ended this session")
        return None


def _text(reply: Reply) -> str | None:
    try:
        return error_text(parse(reply.body))
    except Unreadable:
        return None
