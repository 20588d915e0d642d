"""The address that backs the caller's bids at each marketplace."""

from __future__ import annotations

import asyncio

from core.settings import Settings
from markets.base import VenueError
from markets.funding import Funding, funding_of
from markets.venues import facts
from server.http.user_market import UserMarket
from wallet.protocol import UserKeys

_MAX_AGE_S = 10.0


async def funding(
    settings: Settings, ask: UserMarket, keys: UserKeys, receive: str, payment_sats: int | None
) -> list[dict[str, object]]:
    """Returns a row for each venue that takes bids; `address` and `balanceSats` are null while they are not known."""
    known = (funding_of(facts(name, is_default=name == settings.market).capabilities) for name in settings.venues)
    return list(await asyncio.gather(*(_row(ask, each, keys, receive, payment_sats) for each in known if each)))


async def _row(
    ask: UserMarket, funding: Funding, keys: UserKeys, receive: str, payment_sats: int | None
) -> dict[str, object]:
    address: str | None = keys.payment
    sats = payment_sats
    if funding.place == "bidding":
        try:
            wallet = await ask(
                lambda market: market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
            )
            address, sats = wallet.address, wallet.sats
        except VenueError:
            address, sats = None, None
    return {
        "venue": funding.venue,
        "from": funding.place,
        "address": address,
        "balanceSats": sats,
        "backs": funding.backs,
        "wayOut": funding.way_out,
    }
