"""The address that backs the caller's bids at each marketplace, and all that lies there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from typing import NamedTuple

from core.settings import Settings
from markets.base import NotFound, VenueError
from markets.funding import Funding, funding_of
from markets.venues import facts
from server.http.user_market import UserMarket
from wallet.protocol import UserKeys

_MAX_AGE_S = 10.0


class Backing(NamedTuple):
    """The address and the sats behind the caller's bids at a venue, None while they are not known.

    Where there is no wallet yet, there are 0 sats.
    """

    funding: Funding
    address: str | None
    sats: int | None

    def as_json(self) -> dict[str, object]:
        return {
            "venue": self.funding.venue,
            "from": self.funding.place,
            "address": self.address,
            "balanceSats": self.sats,
            "backs": self.funding.backs,
            "wayOut": self.funding.way_out,
        }


async def backings(
    settings: Settings, ask: UserMarket, keys: UserKeys, receive: str, payment_sats: Awaitable[int | None]
) -> list[Backing]:
    """Returns what backs bids at each venue that takes bids."""
    known = (funding_of(facts(name, is_default=name == settings.market).capabilities) for name in settings.venues)
    return list(await asyncio.gather(*(_backing(ask, each, keys, receive, payment_sats) for each in known if each)))


class AtStake(NamedTuple):
    """The sats that bids can cost: ever, and now if every open order is filled."""

    worst_loss: int
    if_all_fill_now: int


def at_stake(found: Iterable[Backing], open_sats: Mapping[str, int]) -> AtStake | None:
    """Returns the sats at stake, where `open_sats` are those of the open orders by venue.

    An address counts once, and pays for its own orders only: whichever is less of them and its balance. None while a
    balance, or what backs some of the orders, is unknown.
    """
    balances, wanted = dict[str, int](), Counter[str]()
    for each in found:
        if each.sats is None:
            return None
        address = each.address or each.funding.venue
        balances[address] = each.sats
        wanted[address] += open_sats.get(each.funding.venue, 0)
    if wanted.total() != sum(open_sats.values()):
        return None
    return AtStake(sum(balances.values()), sum(min(sats, wanted[address]) for address, sats in balances.items()))


async def _backing(
    ask: UserMarket, funding: Funding, keys: UserKeys, receive: str, payment_sats: Awaitable[int | None]
) -> Backing:
    if funding.place == "payment":
        return Backing(funding, keys.payment, await payment_sats)
    try:
        wallet = await ask(
            lambda market: market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
        )
    except NotFound:
        return Backing(funding, None, 0)
    except VenueError:
        return Backing(funding, None, None)
    return Backing(funding, wallet.address, wallet.sats)
