"""ord.net over HTTP: a session's token on every request, and statuses with a meaning of their own."""

from __future__ import annotations

from markets.answers import Reply, is_page, retry_after_s, words_of
from markets.base import RateLimited, Refused, SignInNeeded
from markets.http import Http

WINDOW_S = 60.0  # limits count in fixed windows of a minute, and a 429 does not say how much of it is left


class OrdNetHttp(Http):
    """A client with `token`, None for the requests that open a session. The token is in no error and no log."""

    def __init__(self, base: str, token: str | None = None) -> None:
        super().__init__(base, {} if token is None else {"Authorization": f"Bearer {token}"})
        self._has_session = token is not None

    def _raise_own(self, reply: Reply) -> None:
        if reply.status == 429:
            said = retry_after_s(reply)
            raise RateLimited(WINDOW_S if said is None else said)
        if is_page(reply):
            return
        if reply.status == 409:
            # The state has changed before anything was done; a stale PSBT must not be sent again.
            raise Refused("changed", words_of(reply) or "the venue says that things have changed")
        if reply.status == 401 and self._has_session:
            # With or without words: a session ends by itself, and another sign-in tells whether that is all.
            raise SignInNeeded("the venue has ended this session")
