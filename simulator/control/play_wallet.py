"""The control routes of the play wallet."""

from __future__ import annotations

from simulator.handler import JsonHandler
from simulator.wire import bad

_LONGEST_TEXT = 2_000


class PlayWalletAddress(JsonHandler):
    """`GET /sim/play-wallet`: its address."""

    def get(self) -> None:
        self.send({"address": self.world.play_wallet.address})


class PlayWalletSign(JsonHandler):
    """`POST /sim/play-wallet/sign {message}`: signs it by BIP-322; the text may have line feeds."""

    def post(self) -> None:
        body = self.fields("message")
        message = body.get("message")
        if not isinstance(message, str) or not 1 <= len(message) <= _LONGEST_TEXT:
            raise bad(f"message must be a text of 1 to {_LONGEST_TEXT} characters")
        if not message.replace("\n", "").isprintable():
            raise bad("message must be lines of printable characters")
        wallet = self.world.play_wallet
        self.send({"address": wallet.address, "signature": wallet.sign(message)})
