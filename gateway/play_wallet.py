"""The verbs of the practice market's play wallet. Where money is real there are none."""

from __future__ import annotations

import time
from concurrent.futures import Executor

from gateway.limits import READ, CallBudget, Priority
from gateway.venue import Venue
from gateway.verbs import Call, answers
from markets import verbs
from markets.play_wallet import PlayWallet
from markets.verbs import text


class PlayWalletVerbs:
    """Answers the verbs of the play wallet at `url`.

    They have a budget of their own: whoever signs in a hundred times costs the tasks no call.
    """

    def __init__(self, url: str, threads: Executor) -> None:
        self._wallet = PlayWallet(url)
        self._venue = Venue("play wallet", CallBudget(rate=50, burst=50, slots=2, clock=time.monotonic), threads)

    @answers(verbs.PlayAddress)
    async def _address(self, call: Call[verbs.PlayAddress]) -> str:
        return text(await self._venue.ask("play_address", Priority.LOOKUP, self._wallet.address, READ))

    @answers(verbs.PlaySignature)
    async def _sign(self, call: Call[verbs.PlaySignature]) -> str:
        message = call.args.message
        return text(await self._venue.ask("play_signature", Priority.LOOKUP, lambda: self._wallet.sign(message), READ))
