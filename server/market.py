"""Market look-ups before a task is created: an order book, a floor, a rune's market, and known slugs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Annotated, Any, TypeVar

from msgspec import Meta, structs

from core import fields
from core.fields import Count, Price, Slug, Time, iso, text_of, within, words
from core.settings import VENUES
from markets import base
from markets.base import AskBook, BidBook, NotFound, VenueError
from markets.client import MarketClient
from markets.look import BidderWallet, kind_of
from models import presets
from models.accounts import READ
from models.ledger import orders
from models.ledger.limits import own_orders
from models.ledger.states import Order
from models.presets import SOURCES
from models.tasks import tasks
from models.tasks.tasks import BIDDING
from server import task_config as bid_config
from server import task_handler
from server.http import blocking
from server.http.answers import (
    INVALID,
    SIGNER_AWAY,
    TOO_MANY_LOOKUPS,
    UNREADABLE,
    Kind,
    Trait,
    Venue,
    invalid,
    not_found,
    trait_shown,
)
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Asked, Wrong, exact, one_of, own_words, read_by
from strategy.book import Ask, Bid, vwap
from strategy.config.bid import MAX_SATS, TYPES, BidConfig, is_on, load_bid_config, normal_slug, problems
from strategy.decision import pays_as_much, ranks

MAX_AGE_S = 10.0
UNKNOWN_SLUG = "The marketplace does not know this slug"
NO_SESSION = "The marketplace answers to a signed-in wallet only, and no running task has signed in there."
NO_SUCH_SLUG = "The marketplace does not know it."
DEFAULT_LEVELS, MOST_LEVELS = 50, 200
PREVIEWED_LEVELS = 50
MOST_SLUGS = 20
_MOST_READ = 200  # orders requested from a marketplace
_DEFAULT_DEPTH = 1_000_000
_PRICE_DIGITS = 20
_JUDGED = ("slug", "type", "trait_type", "trait_value", "bid_type")
_TYPES = Meta(extra_json_schema={"enum": list(TYPES)})
Book = TypeVar("Book", AskBook, BidBook)


def _slug(type_: str, text: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the slug in a pasted text, and the faults of `type` and `slug`."""
    if not text:
        return "", [("slug", "is required")]
    try:
        slug = fields.slug(type_, text)
    except fields.PasteError as error:
        return "", [("slug", str(error))]
    found = problems(BidConfig(slug, type_))
    return slug, [(problem.field, problem.text) for problem in found if problem.field in ("slug", "type")]


def _ticker(text: str) -> str:
    slug, faults = _slug("rune", text)
    if faults:
        raise Wrong(faults[0][1])
    return slug


_VENUE = words("The marketplace, by its name; the default one when left out.")
# The slug's form depends on the type, so both are checked together.
_Slug = Annotated[str, read_by(str), words("Collection slug or rune ticker.", min_length=1)]


_Some = Annotated[str, Meta(min_length=1)]


class AskedBook(Asked, frozen=True, kw_only=True):
    """The query for a market's order book."""

    type: Annotated[str, _TYPES, words("What the slug names.")] = "ordinals"
    trait_type: Annotated[_Some | None, words("Trait category, with `traitValue`.")] = None
    trait_value: Annotated[_Some | None, words("Only asks with it, and bids on it, too.")] = None
    slug: _Slug
    venue: Annotated[str | None, one_of(VENUES), _VENUE] = None
    depth: Annotated[int, within(1, MOST_LEVELS), words("Most levels of each side.")] = DEFAULT_LEVELS


class AskedFloor(Asked, frozen=True, kw_only=True):
    """The query for the floor of a collection or rune."""

    slug: _Slug
    type: Annotated[str, read_by(str), _TYPES, words("What the slug names.")] = "ordinals"
    venue: Annotated[str | None, read_by(str), Meta(extra_json_schema={"enum": list(VENUES)}), _VENUE] = None


class AskedRune(Asked, frozen=True, kw_only=True):
    """The query for a rune's market."""

    ticker: Annotated[str, read_by(_ticker), words("Rune ticker.", min_length=1)]
    depth: Annotated[int, within(1, MAX_SATS), words("How many sats of the order book the average walks.")] = (
        _DEFAULT_DEPTH
    )


class AskedSlugs(Asked, frozen=True, kw_only=True):
    """The query for a search of slugs."""

    q: Annotated[
        Annotated[str, text_of(1, 200)] | None,
        read_by(own_words),
        words("A part of the slug or name, tickers with or without bullets; all when left out."),
    ] = None
    type: Annotated[str | None, one_of(TYPES), words("Only of this type.")] = None


_Quantity = Annotated[Decimal, Meta(extra_json_schema={"minimum": 0})]


class BookLevel(Answer, frozen=True, kw_only=True):
    """All orders at one price."""

    unit_price: Annotated[Price, words("Sats of one item or token.")]
    quantity: Annotated[_Quantity, words("Items or tokens of all of them.")]
    orders: Annotated[int, Meta(ge=1)]
    own: Annotated[_Quantity, words("The part of `quantity` that is the caller's own, or may be.")]
    own_orders: Annotated[Count, words("The part of `orders` that is the caller's own, or may be.")]


class BookSide(Answer, frozen=True, kw_only=True):
    """One side of an order book, the best price first."""

    taken_at: Time
    is_whole: Annotated[bool, words("There is no level beyond these.")]
    levels: list[BookLevel]


class OrderBook(Answer, frozen=True, kw_only=True):
    """Both sides of an order book, own orders included; a side that is not known is null."""

    asks: BookSide | None
    asks_unknown: Annotated[str | None, words("Why `asks` is null; else null.")]
    bids: BookSide | None
    bids_unknown: Annotated[str | None, words("Why `bids` is null; else null.")]


class OwnRank(Answer, frozen=True, kw_only=True):
    """The place of one of the caller's bids in a book."""

    order: int
    rank: Annotated[
        int,
        Meta(ge=1),
        words("Among the bids of others and those of its task; of equal bids the older is ahead."),
    ]


class MarketBook(OrderBook, frozen=True, kw_only=True):
    """The order book of a slug, or of one of its traits."""

    slug: Slug
    type: Kind
    venue: Venue
    trait: Trait | None
    ranks: Annotated[
        list[OwnRank] | None,
        words(
            "The open orders of the caller's bidding tasks that compete in it, those of dry runs included; null where "
            "`bids` is. Orders whose rank is not known, since a bid of the book cannot be understood, are left out."
        ),
    ]


class Floor(Answer, frozen=True, kw_only=True):
    """The cheapest listing of a collection, or the best price per token of a rune."""

    floor_price: Annotated[Decimal | None, words("Sats; null when nothing is listed.")]
    listed_count: Count


class RuneMarket(Answer, frozen=True, kw_only=True):
    """The asks of a rune."""

    ticker: str
    floor: Price | None
    vwap: Price | None
    depth_sats: Annotated[Count, words("What was walked of the order book.")]


class KnownSlug(Answer, frozen=True, kw_only=True):
    """A collection or rune that the caller has had to do with here."""

    slug: Slug
    type: Kind
    name: Annotated[str | None, words("The collection's, where an item of it was seen; else null.")]
    task_id: Annotated[int | None, words("The caller's bidding task on it; null: none.")]
    sources: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"enum": list(SOURCES)})]],
        words("Where it is known from: tasks, former bids, presets, items last seen at your addresses."),
    ]
    floor: Annotated[Price | None, words("As the task saw it last; null: no task has. Not read now.")]
    floor_at: Annotated[Time | None, words("The minute of that.")]


class KnownSlugs(Answer, frozen=True, kw_only=True):
    """Slugs that a search found, the best first: those that begin with the text, then those of tasks."""

    slugs: Annotated[list[KnownSlug], Meta(max_length=MOST_SLUGS)]
    is_whole: Annotated[bool, words("There are no more than these.")]


_LOOKUP_FAILS = {400: INVALID, 404: NO_SUCH_SLUG, 429: TOO_MANY_LOOKUPS, 502: UNREADABLE}


class Market(SignedIn):
    """The operations that look up markets."""

    tag = "market"

    @route(
        "GET /api/market/book",
        READ,
        says="The best levels first.",
        errors=_LOOKUP_FAILS | {409: NO_SESSION, 503: SIGNER_AWAY},
    )
    async def get_book(self, asked: AskedBook) -> MarketBook:
        """Order book of a collection, a trait or a rune

        Asks and bids in levels with the caller's own marked, at most 10 seconds old: what a task has just read is not
        read again. A side that the marketplace does not tell is null, with the reason.
        """
        config, venue = self._meant(asked)
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        wallet = own_marks(self.user, keys, venue)
        slug, kind, trait = config.slug, kind_of(config), config.trait
        asks, bids = await asyncio.gather(
            self._read(lambda market: _asks(market.at(venue), config, trait)),
            self._read(lambda market: market.at(venue).bids(slug, kind, MAX_AGE_S, trait)),
        )
        if isinstance(asks, VenueError) and isinstance(bids, VenueError):
            raise blocking.answer_to(asks)
        if _is_empty(asks) and _is_empty(bids):
            # An empty book may also mean an unknown slug, so check for a floor, which only known slugs have.
            await self._floor_of(slug, kind, venue)
        book = order_book(asks, bids, wallet, asked.depth)
        ranked = self._ranks(config, venue, bids, wallet) if isinstance(bids, BidBook) else None
        return MarketBook(
            slug=slug,
            type=config.type,
            venue=venue,
            trait=trait_shown(trait),
            ranks=ranked,
            **structs.asdict(book),
        )

    def _ranks(self, config: BidConfig, venue: str, book: BidBook, wallet: BidderWallet) -> list[OwnRank]:
        """Returns the known ranks of the caller's open orders in the book for the config's slug and trait."""
        key = normal_slug(config.type, config.slug)
        others = [bid for bid in book.bids if not wallet.owns_bid(bid)]
        found = list[OwnRank]()
        for task in tasks.of_user(self.user.id, BIDDING):
            if task.venue != venue or task.slug_key != key or not self.may_name(task.id):
                continue
            placed, of_task = orders.open_orders(task.id), load_bid_config(task.config)
            # Hidden bids are below the best visible bid, which may be the caller's own bid of another task.
            least = book.bids if book.hidden else ()
            known = ranks_on(config, placed, of_task, others, is_whole=not book.hidden, least=least)
            found += [OwnRank(order=order, rank=rank) for order, rank in known.items()]
        return found

    @route(
        "GET /api/tasks/floor",
        READ,
        says="The floor now, at most 10 seconds old.",
        errors=_LOOKUP_FAILS | {409: NO_SESSION},
    )
    async def get_floor(self, asked: AskedFloor) -> Floor:
        """Floor of a collection or rune

        The cheapest listing, in sats; of a rune, per token.
        """
        slug, faults = _slug(asked.type, asked.slug)
        venue, unknown = self._venue(asked.venue)
        if details := [*(f"{field}: {text}" for field, text in faults), *unknown]:
            raise invalid(details)
        found = await self._floor_of(slug, "runes" if asked.type == "rune" else "ordinals", venue)
        return Floor(floor_price=exact(found.floor), listed_count=found.listed_count)

    @route("GET /api/tasks/rune-market", READ, says="The asks now, at most 10 seconds old.", errors=_LOOKUP_FAILS)
    async def get_rune_market(self, asked: AskedRune) -> RuneMarket:
        """Floor and average price of a rune

        Prices are sats per token, from the listings on UniSat's rune market.
        """
        book = await self.ask_market(lambda market: market.rune_asks(asked.ticker, MAX_AGE_S))
        if not book.asks:
            # No asks may also mean an unknown rune, so check for a floor, which only known runes have.
            await self._floor_of(asked.ticker, "runes")
        floor = min((ask.unit_price for ask in book.asks), default=None)
        average, walked = vwap(book.asks, asked.depth)
        if book.hidden:  # because a lot that could not be read may be cheaper
            average = None
        return RuneMarket(
            ticker=asked.ticker,
            floor=None if floor is None else _useful(floor),
            vwap=None if average is None else _useful(average),
            depth_sats=walked,
        )

    @route("GET /api/tasks/slugs", READ, says=f"At most {MOST_SLUGS}.", errors={400: INVALID})
    def search_slugs(self, asked: AskedSlugs) -> KnownSlugs:
        """Search what I have had to do with

        Collections and runes of the caller's own tasks, former bids, presets and items. No marketplace is asked, so it
        may be asked at every letter; what it does not know may exist all the same.
        """
        known = presets.known_slugs(self.user.id, [self.user.address, self.user.ordinals_address])
        wanted = [each for each in known if asked.type in (None, each.type)]
        ranked = [(rank, each) for each in wanted if (rank := _rank(each, asked.q or ""))]
        ranked.sort(key=lambda pair: (pair[0], pair[1].slug))
        best = [_slug_shown(each) for _, each in ranked[:MOST_SLUGS]]
        return KnownSlugs(slugs=best, is_whole=len(ranked) <= MOST_SLUGS)

    def _meant(self, asked: AskedBook) -> tuple[BidConfig, str]:
        """Returns slug and trait as a config, and the venue. Raises ApiError (400)."""
        try:
            slug = fields.slug(asked.type, asked.slug)
        except fields.PasteError as error:
            raise invalid([f"slug: {error}"]) from None
        config = BidConfig(
            slug,
            asked.type,
            bid_type="trait" if asked.trait_type or asked.trait_value else "collection",
            trait_type=asked.trait_type or "",
            trait_value=asked.trait_value or "",
        )
        found = [problem for problem in problems(config) if problem.field in _JUDGED]
        faults = ["slug: is required"] if not slug else bid_config.details_of(found)
        venue, unknown = self._venue(asked.venue)
        if details := [*faults, *unknown]:
            raise invalid(details)
        return config, venue

    def _venue(self, name: str | None) -> tuple[str, list[str]]:
        return task_handler.named_venue({} if name is None else {"venue": name}, self.services.settings)

    async def _read(self, question: Callable[[MarketClient], Book]) -> Book | VenueError:
        """Returns the book or the error, so that a failure on one side does not hide the other side."""
        try:
            return await self.look(question)
        except NotFound:
            raise not_found(UNKNOWN_SLUG) from None
        except VenueError as error:
            return error

    async def _floor_of(self, slug: str, kind: base.Kind, venue: str | None = None) -> base.Floor:
        """Returns the marketplace's floor. Raises ApiError: 404 for an unknown slug, 502."""
        floors = await self.ask_market(lambda market: market.at(venue).floors([slug], kind, MAX_AGE_S))
        if slug not in floors:
            raise not_found(UNKNOWN_SLUG)
        return floors[slug]


def ranks_on(
    market: BidConfig,
    placed: Iterable[Order],
    config: BidConfig,
    bids: Iterable[Bid],
    *,
    is_whole: bool,
    least: Iterable[Bid] = (),
) -> dict[int, int]:
    """Returns the known ranks, by id, of the orders of a task with this config on the slug and trait of `market`.

    An order stays open when its task's slug or trait changes, so the order's market is compared. With `least`, only
    orders that pay at least as much as these bids are ranked.
    """
    competing = [order for order in placed if is_on(market, order.slug) and order.trait == market.trait]
    own = [order for order in own_orders(competing, config) if all(pays_as_much(order, bid) for bid in least)]
    return ranks(own, bids, is_whole=is_whole)


def own_marks(user: Any, keys: Any, venue: str) -> BidderWallet:
    """Returns all data that identify the user's own orders at the venue."""
    placed = [order for order in orders.wallet_orders(keys.payment) if order.venue == venue]
    return BidderWallet(
        keys.payment,
        keys.payment_pubkey,
        user.ordinals_address,
        frozenset({user.address, user.ordinals_address, keys.payment, keys.vault}),
        bid_ids=frozenset(order.venue_id for order in placed if order.venue_id),
        bid_prices=frozenset(order.price_sats for order in placed),
    )


def order_book(
    asks: AskBook | VenueError | str, bids: BidBook | VenueError | str, wallet: BidderWallet, most: int
) -> OrderBook:
    """Returns both sides with at most `most` levels each; an unknown side is null, with the reason."""
    return OrderBook(
        asks=_side(asks, asks.asks, wallet.owns_ask, most) if isinstance(asks, AskBook) else None,
        asks_unknown=None if isinstance(asks, AskBook) else str(asks),
        bids=_side(bids, bids.bids, wallet.owns_bid, most, -1) if isinstance(bids, BidBook) else None,
        bids_unknown=None if isinstance(bids, BidBook) else str(bids),
    )


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
) -> BookSide:
    """Returns the best levels of one side, the best first, with the caller's own quantity in each."""
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
    return BookSide(
        taken_at=iso(book.taken_ms),
        is_whole=len(levels) <= most and count < _MOST_READ and not book.hidden,
        levels=[_level(price, *levels[price]) for price in ordered[:most]],
    )


def _level(price: Decimal, quantity: Decimal, count: int, own: Decimal, own_count: int) -> BookLevel:
    return BookLevel(
        unit_price=_useful(price), quantity=exact(quantity), orders=count, own=exact(own), own_orders=own_count
    )


def _useful(price: Decimal) -> Decimal:
    """Rounds a price to a useful number of digits."""
    with localcontext() as context:
        context.prec = _PRICE_DIGITS
        return exact(+price)


def _rank(known: presets.KnownSlug, text: str) -> tuple[int, int] | None:
    """Returns a sort key of a slug in a search; None if neither the slug nor its name contains the text."""
    texts = [normal_slug(known.type, known.slug).casefold(), (known.name or "").casefold()]
    name = fields.without_spacers(text) if known.type == "rune" else text
    wanted = [name.casefold(), text.casefold()]
    places = [whole.find(part) for whole, part in zip(texts, wanted, strict=True)]
    if max(places) < 0:
        return None
    return (0 if 0 in places else 1), min(SOURCES.index(source) for source in known.sources)


def _slug_shown(known: presets.KnownSlug) -> KnownSlug:
    floor, at_ms = (None if known.task_id is None else presets.last_floor(known.task_id)) or (None, None)
    return KnownSlug(
        slug=known.slug,
        type=known.type,
        name=known.name,
        task_id=known.task_id,
        sources=known.sources,
        floor=exact(floor),
        floor_at=None if at_ms is None else iso(at_ms),
    )
