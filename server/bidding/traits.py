"""A check that a bid's trait exists, where the marketplace tells its traits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from markets.base import VenueError
from server.http.api_errors import invalid
from server.http.user_market import UserMarket
from strategy.bid_config import BidConfig

PATIENCE_S = 2.0
_MAX_AGE_S = 3600.0  # a collection's traits hardly ever change
_MOST_NEAR = 3

Catalogue = Mapping[str, Mapping[str, int]]


async def refuse_unknown_trait(
    market: UserMarket, config: BidConfig, venue: str, former: BidConfig | None = None
) -> None:
    """Raises ApiError (400) when the marketplace `venue` says that the collection has no such trait.

    A marketplace that cannot be asked, takes long, or tells no traits of this collection does not object: a bid for a
    trait that no item has is never filled, and the marketplace judges it again when it is placed. A trait that `former`
    had, too, is not looked up again.
    """
    if config.trait is None or (former and (former.slug, former.trait) == (config.slug, config.trait)):
        return
    question = market(lambda client: client.at(venue).traits(config.slug, _MAX_AGE_S))
    try:
        catalogue = await asyncio.wait_for(question, PATIENCE_S)
    except (VenueError, TimeoutError):
        return
    if catalogue and (detail := missing(config.trait, catalogue)):
        raise invalid([detail])


def missing(trait: tuple[str, str], catalogue: Catalogue) -> str | None:
    """Returns the fault of the trait (type, value) as a detail with similar names; None without a fault."""
    kind, value = trait
    if kind not in catalogue:
        return f"traitType: the collection has no trait {kind}{_near(kind, catalogue)}"
    if value not in catalogue[kind]:
        return f"traitValue: the collection has no {kind} {value}{_near(value, catalogue[kind])}"
    return None


def _near(text: str, names: Iterable[str]) -> str:
    """Returns names that differ only in capitals and spaces, which venues tell apart: all of them."""
    by_folded: dict[str, list[str]] = {}
    for name in names:
        by_folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    folded = get_close_matches(" ".join(text.casefold().split()), by_folded, _MOST_NEAR)
    near = [name for each in folded for name in by_folded[each]][:_MOST_NEAR]
    return f"; it has {', '.join(near)}" if near else ""
