"""Challenges: texts that a wallet signs to prove that an address is its own."""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from collections.abc import Callable

from wallet.bip322 import verify_ownership

LIFE_MS = 10 * 60 * 1000
# One text is issued again for a while, so that many tasks of one wallet do not displace each other's.
SAME_FOR_MS = 60 * 1000
KEPT_ADDRESSES = 10_000


class Challenges:
    """The live challenges of every address, each good for LIFE_MS and for any number of uses."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._issued: OrderedDict[str, deque[tuple[int, str]]] = OrderedDict()

    def issue(self, address: str) -> str:
        """Issues a text for `address`: one printable ASCII line of less than 200 characters without a colon."""
        now = self._clock()
        issued = self._issued.setdefault(address, deque(maxlen=LIFE_MS // SAME_FOR_MS))
        self._issued.move_to_end(address)
        if len(self._issued) > KEPT_ADDRESSES:
            self._issued.popitem(last=False)
        if not issued or now - issued[-1][0] >= SAME_FOR_MS:
            text = f"Satflow practice market challenge for {address} nonce {secrets.token_hex(16)}"
            issued.append((now, text))
        return issued[-1][1]

    def answered(self, address: str, signature: str) -> bool:
        """Tells whether `signature` is by `address`, for a challenge that was issued to it and still lives."""
        now = self._clock()
        live = [text for issued_ms, text in self._issued.get(address, ()) if now - issued_ms < LIFE_MS]
        return any(verify_ownership(address, text, signature) for text in reversed(live))
