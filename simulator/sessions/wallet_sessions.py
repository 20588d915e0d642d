"""Ordinals Wallet's sign-in: a text with a nonce for one use, and a token that proves an address."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable

from wallet.bip322 import verify_ownership

# The limits of a signed text (its age, and how far ahead of our clock), and the life of a token.
MAX_AGE_MS = 5 * 60 * 1000
MAX_AHEAD_MS = 60 * 1000
LIFE_S = 24 * 3600
_MARK = "ows1"


class WalletSessions:
    """The sessions, without a store: each token is signed with a key from `seed`, so that it outlives a restart."""

    def __init__(self, clock: Callable[[], int], seed: str) -> None:
        self._clock = clock
        self._key = hashlib.sha256(f"practice sessions {seed}".encode()).digest()
        self._used: dict[tuple[str, str], int] = {}

    def open(self, address: str, nonce: str, issued_ms: int, signature: str) -> tuple[str, int] | None:
        """Returns a token and its end (unix seconds); None for a used nonce, a wrong time or another's signature."""
        now = self._clock()
        self._used = {key: used for key, used in self._used.items() if now - used <= MAX_AGE_MS + MAX_AHEAD_MS}
        if (address, nonce) in self._used or not now - MAX_AGE_MS <= issued_ms <= now + MAX_AHEAD_MS:
            return None
        # Used up at the first try, right or wrong.
        self._used[address, nonce] = now
        if not verify_ownership(address, sign_in_text(address, nonce, issued_ms), signature):
            return None
        expires = now // 1000 + LIFE_S
        return self._token(f"{address} {expires}"), expires

    def owner(self, token: str) -> str | None:
        """Returns the address of a token; None when it is over or not ours."""
        parts = token.split(".")
        if len(parts) != 3 or not token.isascii():
            return None
        try:
            address, expires = urlsafe_b64decode(parts[1]).decode().split(" ")
        except ValueError:
            return None
        if not hmac.compare_digest(self._token(f"{address} {expires}"), token) or int(expires) * 1000 < self._clock():
            return None
        return address

    def _token(self, said: str) -> str:
        proof = hmac.new(self._key, said.encode(), hashlib.sha256).hexdigest()
        return f"{_MARK}.{urlsafe_b64encode(said.encode()).decode()}.{proof}"


def sign_in_text(address: str, nonce: str, issued_ms: int) -> str:
    """Makes the text that a wallet signs, byte for byte."""
    return (
        "Sign in to Ordinals Wallet\n\n"
        "This proves you own this address. It does not move funds or cost a fee.\n\n"
        f"Address: {address}\nNonce: {nonce}\nIssued At: {issued_ms}"
    )
