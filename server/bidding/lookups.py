"""Lookups of a slug on the market, before a task is made for it."""

from __future__ import annotations

from decimal import Decimal, localcontext

from core import pasted
from markets.base import Floor, Kind
from server import task_venues
from server.http.api_errors import invalid, not_found
from server.http.base import SignedIn
from strategy.bid_config import MAX_SATS, BidConfig, problems
from strategy.pricing import vwap

MAX_AGE_S = 10.0
UNKNOWN_SLUG = "The marketplace does not know this slug"
_DEFAULT_DEPTH = 1_000_000
_VWAP_DIGITS = 20


def read_slug(name: str, type_: str, text: str) -> tuple[str, list[str]]:
    """Returns the slug that was pasted into the field `name`, and the faults of type and slug as details."""
    if not text:
        return "", [f"{name}: is required"]
    try:
        slug = pasted.slug(type_, text)
    except pasted.PasteError as error:
        return "", [f"{name}: {error}"]
    names = {"slug": name, "type": "type"}
    found = problems(BidConfig(slug, type_))
    return slug, [f"{names[problem.field]}: {problem.text}" for problem in found if problem.field in names]


class MarketHandler(SignedIn):
    """The common part of the lookups."""

    async def floor_of(self, slug: str, kind: Kind, venue: str | None = None) -> Floor:
        """Returns the floor by the marketplace. Raises ApiError: 404 for an unknown slug, 502."""
        floors = await self.ask_market(lambda market: market.at(venue).floors([slug], kind, MAX_AGE_S))
        if slug not in floors:
            raise not_found(UNKNOWN_SLUG)
        return floors[slug]


class FloorHandler(MarketHandler):
    """GET /api/tasks/floor"""

    takes_query = True

    async def get(self) -> None:
        query = self.query("slug", "type", "venue")
        type_ = query.get("type", "ordinals")
        slug, details = read_slug("slug", type_, query.get("slug", ""))
        venue, unknown = task_venues.named(query, self.services.settings)
        if details := [*details, *unknown]:
            raise invalid(details)
        found = await self.floor_of(slug, "runes" if type_ == "rune" else "ordinals", venue)
        self.answer({"floorPrice": found.floor, "listedCount": found.listed_count})


class RuneMarketHandler(MarketHandler):
    """GET /api/tasks/rune-market"""

    takes_query = True

    async def get(self) -> None:
        query = self.query("ticker", "depth")
        ticker, details = read_slug("ticker", "rune", query.get("ticker", ""))
        depth_sats = _depth(query.get("depth", str(_DEFAULT_DEPTH)))
        if depth_sats is None:
            details.append(f"depth: must be a whole number from 1 to {MAX_SATS}")
        if details or depth_sats is None:
            raise invalid(details)
        book = await self.ask_market(lambda market: market.rune_asks(ticker, MAX_AGE_S))
        if not book.asks:
            # The data provider has no asks for an unknown rune, either; the marketplace tells them apart.
            await self.floor_of(ticker, "runes")
        floor = min((ask.unit_price for ask in book.asks), default=None)
        average, walked = vwap(book.asks, depth_sats)
        if book.hidden:  # a lot that could not be read would lower it
            average = None
        self.answer({"ticker": ticker, "floor": _shown(floor), "vwap": _shown(average), "depthSats": walked})


def _depth(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        return None
    return int(text) if 1 <= int(text) <= MAX_SATS else None


def _shown(price: Decimal | None) -> Decimal | None:
    """Returns a price per token with as many digits as are useful."""
    if price is None:
        return None
    with localcontext() as context:
        context.prec = _VWAP_DIGITS
        return +price
