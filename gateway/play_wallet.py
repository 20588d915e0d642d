"""The verbs of the practice market's play wallet. Where money is real there are none."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from core.settings import Settings
from gateway import arguments as read
from gateway.limits.call_budget import CallBudget, Priority
from gateway.limits.windows import READ
from gateway.venue import Venue
from gateway.writes import Asker
from markets.play_wallet import PlayWallet

LONGEST_TEXT = 2_000
Verb = Callable[[Mapping[str, Any], Mapping[str, Any], Asker], Awaitable[str]]


def play_wallet_verbs(settings: Settings, threads: Executor) -> dict[str, Verb]:
    """Returns the verbs by their names on the socket: none unless this practice market's play wallet is for everybody.

    They have a budget of their own: whoever signs in a hundred times costs the tasks no call.
    """
    if not settings.has_play_wallet:
        return {}
    wallet = PlayWallet(settings.simulator_url)
    venue = Venue("play wallet", CallBudget(rate=50, burst=50, slots=2, clock=time.monotonic), threads)

    async def address(request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        return json.dumps(await venue.ask("play_address", Priority.LOOKUP, wallet.address, READ))

    async def sign(request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        message = args.get("message")
        if not isinstance(message, str) or not 0 < len(message) <= LONGEST_TEXT:
            raise read.bad(f"message is not a text of 1 to {LONGEST_TEXT} characters")
        return json.dumps(await venue.ask("play_signature", Priority.LOOKUP, lambda: wallet.sign(message), READ))

    return {"play_address": address, "play_signature": sign}
