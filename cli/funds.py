"""The sats behind a user's bids at each venue, as the gateway and the signer tell them."""

from __future__ import annotations

from collections.abc import Iterator

from core.settings import Settings
from markets.capabilities import Funding, funding_of
from markets.client import MarketClient
from markets.venues import facts
from wallet.protocol import UserKeys


def fundings(settings: Settings) -> Iterator[Funding]:
    """Yields the funding of bids at each venue of this installation that takes bids."""
    for venue in settings.venues:
        if funding := funding_of(facts(venue, is_default=venue == settings.market).capabilities):
            yield funding


def funds(market: MarketClient, funding: Funding, keys: UserKeys, receive: str) -> tuple[str, int]:
    """Returns the address to fund and the sats there now. Raises VenueError; NotFound where there is none yet."""
    if funding.place == "bidding":
        wallet = market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, 0.0)
        return wallet.address, wallet.sats
    return keys.payment, confirmed(market, keys.payment)


def confirmed(market: MarketClient, address: str) -> int:
    """Returns the confirmed sats at an address. Raises VenueError."""
    return sum(coin.value for coin in market.coins(address, 0.0) if coin.is_confirmed)
