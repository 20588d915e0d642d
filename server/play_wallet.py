"""Signing in as the practice market's play wallet: the page's way in without a wallet of one's own.

The wallet is the market's; here it only signs texts of ours, so that the rest is an ordinary sign-in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from markets.base import VenueError
from markets.market_client import MarketClient
from models import sessions
from server.auth import SignInCall
from server.http.api_errors import invalid, not_found
from server.http.blocking import answer_to
from server.http.user_market import in_time
from server.schemas.auth import PlayBody

_NOT_ITS_OWN = "challengeId: is no challenge of the play wallet's, or it is used or expired"
Value = TypeVar("Value")


class PlayWalletHandler(SignInCall):
    """GET, POST /api/auth/play"""

    async def get(self) -> None:
        # The page asks wherever it is opened, and a 404 would stand in the console of each browser.
        has_one = self.services.settings.has_play_wallet
        self.answer({"address": await self._ask(lambda market: market.play_address()) if has_one else None})

    async def post(self) -> None:
        if not self.services.settings.has_play_wallet:
            raise not_found()
        challenge_id = self.body(PlayBody).challenge_id
        address = await self._ask(lambda market: market.play_address())
        challenge = sessions.usable_challenge(challenge_id, self.now_ms)
        if challenge is None or challenge.address != address:
            raise invalid([_NOT_ITS_OWN])
        signature = await self._ask(lambda market: market.play_signature(challenge.message))
        self.answer({"address": address, "signature": signature})

    async def _ask(self, question: Callable[[MarketClient], Value]) -> Value:
        try:
            return await in_time(self.services.market(question), self.until)
        except VenueError as error:
            raise answer_to(error) from error
