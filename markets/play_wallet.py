"""The practice market's play wallet, asked over its control routes. Each method is exactly one HTTP request."""

from __future__ import annotations

from typing import Any

from markets.base import Unavailable
from markets.http import Http
from markets.wire import Unreadable, table

_ROUTE = "/sim/play-wallet"


class PlayWallet:
    """A client of the practice market at `base`, its origin. Raises Unavailable and Refused leaves."""

    def __init__(self, base: str) -> None:
        self._http = Http(base, {})

    def address(self) -> str:
        """Returns the play wallet's address."""
        return _text(self._http.read(_ROUTE), "address")

    def sign(self, message: str) -> str:
        """Returns the play wallet's BIP-322 signature (base64) of `message`."""
        return _text(self._http.read(f"{_ROUTE}/sign", post={"message": message}), "signature")


def _text(answer: Any, name: str) -> str:
    try:
        found = table(answer, "play wallet").get(name)
    except Unreadable as error:
        raise Unavailable(f"failed to understand the play wallet: {error}") from error
    if not isinstance(found, str) or not found:
        raise Unavailable(f"failed to understand the play wallet: no {name}")
    return found
