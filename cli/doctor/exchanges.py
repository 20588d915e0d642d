"""The exchanges between an adapter and its venue on the wire, with the raw answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markets.answers import Reply, made_s
from markets.http import Http

MASKED = "[masked]"
_CREDENTIALS = ("Authorization", "x-api-key")
QUOTA_WORDS = ("ratelimit", "rate-limit", "quota", "credits")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its whole answer; `reply` None is no answer. Times are our clock's epoch milliseconds."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    sent_ms: int
    received_ms: int
    reply: Reply | None

    def skew_s(self) -> float | None:
        """Returns the seconds that our clock is at least ahead of the venue's (behind: below 0); None without a date.

        `Date` names a second between sending and receiving, so a difference within that span proves nothing.
        """
        made = None if self.reply is None else made_s(self.reply.headers)
        if made is None:
            return None
        told_ms = made * 1000
        ahead, behind = self.sent_ms - (told_ms + 1000), told_ms - self.received_ms
        return max(ahead, 0) / 1000 - max(behind, 0) / 1000

    def quota_headers(self) -> dict[str, str]:
        """Returns the headers in which the venue gives its remaining quota."""
        headers = {} if self.reply is None else self.reply.headers
        return {name: value for name, value in headers.items() if any(word in name.lower() for word in QUOTA_WORDS)}


class Listener:
    """A listener to the exchanges of adapters. `clock_ms` is the epoch; `before` runs ahead of each exchange."""

    def __init__(self, clock_ms: Callable[[], int], before: Callable[[], None] = lambda: None) -> None:
        self.heard: list[Exchange] = []
        self._heard_of: list[Http] = []
        self._clock_ms = clock_ms
        self._before = before

    def listen(self, http: Http) -> None:
        """Listens to the exchanges of `http` from now on."""
        self._heard_of.append(http)
        exchange = http._exchange

        def heard(how: Any, method: str, path: str, **request: Any) -> Reply:
            self._before()
            sent_ms, reply = self._clock_ms(), None
            try:
                reply = exchange(how, method, path, **request)
                return reply
            finally:
                params = request.get("params") or {}
                body = request.get("json")
                self.heard.append(Exchange(method, path, params, body, sent_ms, self._clock_ms(), reply))

        http._exchange = heard  # type: ignore[method-assign, assignment]

    def credentials(self) -> list[str]:
        """Returns the keys and tokens that the adapters send along."""
        sent = (http._session.headers.get(name) for http in self._heard_of for name in _CREDENTIALS)
        return [str(each).removeprefix("Bearer ") for each in sent if each]

    def close(self) -> None:
        """Closes the connections of the adapters."""
        for http in self._heard_of:
            http._session.close()


def masked(text: str, secrets: list[str]) -> str:
    """Returns `text` without our keys, should the venue repeat them."""
    for secret in secrets:
        text = text.replace(secret, MASKED)
    return text
