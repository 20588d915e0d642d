"""The spelling of a rune's name with its bullets, as the marketplace wants it in the signed text of a bid."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from markets.base import VenueError
from server.http.base import SignedIn
from strategy.bid_config import BidConfig, canonical_slug, normal_slug

PATIENCE_S = 2.0
_MAX_AGE_S = 86_400.0  # a rune's name never changes
_BULLET = "\u2022"


def is_unspelled(config: BidConfig) -> bool:
    """Tells whether the ticker may lack its bullets. Some names have none."""
    return config.is_rune and _BULLET not in config.slug


async def spelled(handler: SignedIn, config: BidConfig) -> BidConfig:
    """Returns the config with the ticker in the marketplace's spelling; unchanged where that is unknown."""
    if not is_unspelled(config):
        return config
    question = handler.act(lambda market: market.rune(config.slug, _MAX_AGE_S))
    try:
        slug = canonical_slug("rune", (await asyncio.wait_for(question, PATIENCE_S)).ticker)
    except (VenueError, TimeoutError):
        return config  # the next start asks again
    is_same = normal_slug("rune", slug) == normal_slug("rune", config.slug)
    return replace(config, slug=slug) if is_same else config
