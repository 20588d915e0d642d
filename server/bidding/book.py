"""The order book of a slug in levels, as marketplaces show it, with the caller's own orders marked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any, TypeVar

from core import pasted
from core.settings import VENUES
from markets.base import AskBook, BidBook, NotFound, VenueError
from markets.look import BidderWallet, kind_of
from markets.market_client import MarketClient
from models.ledger import orders
from server import task_config as bid_config
from server import task_venues
from server.bidding.lookups import MAX_AGE_S, UNKNOWN_SLUG, MarketHandler
from server.http import blocking, json_out
from server.http.api_errors import invalid, not_found
from server.http.query import Query
from strategy.bid_config import BidConfig, problems
from strategy.book import Ask, Bid

DEFAULT_LEVELS, MOST_LEVELS = 50, 200
PREVIEWED_LEVELS = 50
_MOST_READ = 200  # orders that a marketplace is asked for
_PRICE_DIGITS = 20
_NAMES = {"slug": "slug", "type": "type", "trait_type": "traitType", "trait_value": "traitValue"}
Book = TypeVar("Book", AskBook, BidBook)


class BookHandler(MarketHandler):
    """GET /api/market/book"""

    takes_query = True

    async def get(self) -> None:
        config, venue, most = self._meant()
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        wallet = own_marks(self.user, keys, venue)
        slug, kind = config.slug, kind_of(config)
        trait = (config.trait_type, config.trait_value) if config.trait_type else None
        asks, bids = await asyncio.gather(
            self._read(lambda market: _asks(market.at(venue), config, trait)),
            self._read(lambda market: market.at(venue).bids(slug, kind, MAX_AGE_S, trait)),
        )
        if isinstance(asks, VenueError) and isinstance(bids, VenueError):
            raise blocking.answer_to(asks)
        if _is_empty(asks) and _is_empty(bids):
            await self._refuse_unknown(config, venue)
        shown = {
            "slug": slug,
            "type": config.type,
            "venue": venue,
            "trait": None if trait is None else {"type": trait[0], "value": trait[1]},
        }
        self.answer(shown | book_as_json(asks, bids, wallet, most))

    def _meant(self) -> tuple[BidConfig, str, int]:
        """Returns slug and trait as a config, the venue, and how many levels are wanted. Raises ApiError (400)."""
        query = Query(self, *_NAMES.values(), "venue", "depth")
        given = {field: query.text(name) or "" for field, name in _NAMES.items() if field != "slug"}
        type_ = given["type"] = given["type"] or "ordinals"
        given["slug"] = query.pasted("slug", lambda text: pasted.slug(type_, text)) or ""
        venue = query.choice("venue", VENUES)
        most = query.whole("depth", MOST_LEVELS) or DEFAULT_LEVELS
        query.refuse_faults()
        if given["trait_type"] or given["trait_value"]:
            given["bid_type"] = "trait"
        config = BidConfig(**given)  # type: ignore[arg-type]
        found = [problem for problem in problems(config) if problem.field in (*_NAMES, "bid_type")]
        details = ["slug: is required"] if not given["slug"] else bid_config.details_of(found)
        named, unknown = task_venues.named({} if venue is None else {"venue": venue}, self.services.settings)
        if details := [*details, *unknown]:
            raise invalid(details)
        return config, named, most

    async def _read(self, question: Callable[[MarketClient], Book]) -> Book | VenueError:
        """Returns the book, or why it is not known: one side hides nothing of the other."""
        try:
            return await self.look(question)
        except NotFound:
            raise not_found(UNKNOWN_SLUG) from None
        except VenueError as error:
            return error

    async def _refuse_unknown(self, config: BidConfig, venue: str) -> None:
        """Raises ApiError (404) for a slug that the venue does not know: an empty book and a missing one look alike."""
        await self.floor_of(config.slug, kind_of(config), venue)


def own_marks(user: Any, keys: Any, venue: str) -> BidderWallet:
    """Returns everything that tells the user's own orders at the venue from others'."""
    placed = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
    return BidderWallet(
        keys.payment,
        keys.payment_pubkey,
        user.ordinals_address,
        frozenset({user.address, user.ordinals_address, keys.payment, keys.vault}),
        bid_ids=frozenset(order.venue_id for order in placed if order.venue_id),
        bid_prices=frozenset(order.price_sats for order in placed),
    )


def book_as_json(
    asks: AskBook | VenueError | str, bids: BidBook | VenueError | str, wallet: BidderWallet, most: int
) -> dict[str, Any]:
    """Returns both sides, each null with the reason beside it where it is not known."""
    return {
        "asks": _side(asks, asks.asks, wallet.owns_ask, most) if isinstance(asks, AskBook) else None,
        "asksUnknown": None if isinstance(asks, AskBook) else str(asks),
        "bids": _side(bids, bids.bids, wallet.owns_bid, most, -1) if isinstance(bids, BidBook) else None,
        "bidsUnknown": None if isinstance(bids, BidBook) else str(bids),
    }


def _asks(market: MarketClient, config: BidConfig, trait: tuple[str, str] | None) -> AskBook:
    return market.rune_asks(config.slug, MAX_AGE_S) if config.is_rune else market.asks(config.slug, MAX_AGE_S, trait)


def _is_empty(book: AskBook | BidBook | VenueError) -> bool:
    if isinstance(book, VenueError):
        return True
    return not (book.asks if isinstance(book, AskBook) else book.bids)


def _side(
    book: AskBook | BidBook,
    found: Iterable[Ask] | Iterable[Bid],
    owns: Callable[[Any], bool],
    most: int,
    sign: int = 1,
) -> dict[str, Any]:
    """Returns the best levels of one side, the best first, and how much of each is our own."""
    levels: dict[Decimal, list[Any]] = {}
    count = 0
    for order in found:
        count += 1
        level = levels.setdefault(order.unit_price, [Decimal(0), 0, Decimal(0), 0])
        level[0] += order.quantity
        level[1] += 1
        if owns(order):
            level[2] += order.quantity
            level[3] += 1
    ordered = sorted(levels, key=lambda price: sign * price)
    return {
        "takenAt": json_out.iso(book.taken_ms),
        "isWhole": len(levels) <= most and count < _MOST_READ and not book.hidden,
        "levels": [_level(price, *levels[price]) for price in ordered[:most]],
    }


def _level(price: Decimal, quantity: Decimal, count: int, own: Decimal, own_count: int) -> dict[str, Any]:
    return {"unitPrice": _shown(price), "quantity": quantity, "orders": count, "own": own, "ownOrders": own_count}


def _shown(price: Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = _PRICE_DIGITS
        return +price
