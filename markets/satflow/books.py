"""Parses Satflow's floors, books and own bids (API 1.1.4, docs.satflow.com/reference).

Every function raises Unreadable for an answer that it does not understand. Rows are read one by one: a row that is not
understood is left out and reported; an ended order or one of another type is skipped.

The documentation does not name the fields that show an order's end, nor all fields of sellers and bidders. The lists
below have every name seen in Satflow's pages and in other clients. A time field without a value holds
1970-01-01T00:00:00.000Z, so a time of 0 or before does not count. An end that is neither a time nor a boolean makes its
row unreadable, because either guess could move the best price, or close or reopen our own order. A time in the future
counts as an end, because adapters do not compare clocks.

The unit of a price: the documentation of bid/place says "unit bid price" for items, so a bid for five at 100,000 costs
500,000. It says the same for runes, but Satflow's own sample bot sends the whole order's price. The practice market's
prices are the whole order's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from markets import parse
from markets.adapter import Latest, TraitedAsk, TraitedBid
from markets.base import BidOrder, Floor, Kind, OwnBid, Trait
from markets.http import refused_with_200
from markets.parse import Best, Foreign, Page, Unread, Unreadable
from strategy.book import Ask, Bid

# A row is an order or contains one: the prefixes of its fields, in the order of the search.
ASK, BID, LISTING = ("ask.", "", "listing."), ("", "bid."), ("",)

ENDED_FIELDS = ("cancelledAt", "canceledAt", "fillCompletedAt")
_UNOPEN_FIELDS = (*ENDED_FIELDS, "invalidAt", "fillPendingAt", "isPending", "pending")
_UNOPEN_STATES = frozenset(
    {"pending", "fill_pending", "filled", "sold", "cancelled", "canceled", "expired", "inactive", "invalid"}
)
_OPEN_STATES = frozenset({"active", "open", "live", "listed", "valid"})
_ORDER_TYPES = frozenset({"ask", "bid"})
_SLUG_FIELDS = ("collectionSlug", "ask.collectionSlug", "bid.collectionSlug")
_RUNE_FIELDS = tuple(
    holder + field
    for holder in ("", "ask.", "bid.", "sale.")
    for field in ("runes_metadata.runes", "runes", "runesData.runes")
)
_RUNE_NAMES = ("name", "spacedName", "spaced_name", "spaced_rune", "ticker")
_EPOCH = datetime.fromtimestamp(0, UTC)
# Fields with the traits of a listing's item. They are not documented; Satflow's other answers and other markets use
# these names.
TRAIT_FIELDS = tuple(
    f"{holder}{name}"
    for holder in (
        "",
        "token.",
        "token.meta.",
        "token.metadata.",
        "inscription.",
        "item.",
        "meta.",
        "metadata.",
        "metadata.token.",
        "metadata.token.meta.",
        "inscription_metadata.",
        "ask.",
        "listing.",
    )
    for name in ("attributes", "traits")
)
BID_TRAIT_FIELDS = ("attribute", "bid.attribute", "attributes", "bid.attributes", "trait", "bid.trait")
PAGE_SIZE = 100
# A listing's seller: the ordinals address first, because it signs listings.
SELLER_FIELDS = (
    "ask.sellerOrdAddress",
    "sellerOrdAddress",
    "ask.sellerAddress",
    "sellerAddress",
    "listing.sellerAddress",
    "ask.makerAddress",
    "makerAddress",
    "maker",
    "seller.address",
    "seller",
    "ask.sellerReceiveAddress",
    "sellerReceiveAddress",
)
# A bid's payment address, which signs it, and the address that receives the item.
BIDDER_FIELDS = (
    "bidderAddress",
    "bid.bidderAddress",
    "bidder.bidderAddress",
    "bidder.address",
    "bidder",
    "makerAddress",
    "maker",
)
RECEIVER_FIELDS = ("bidderTokenReceiveAddress", "bid.bidderTokenReceiveAddress", "bidder.bidderTokenReceiveAddress")
BID_PRICE_FIELDS = ("price", "bid.price", "bidPrice", "amount")
_ASK_ID = parse.field(parse.identifier, "listing id", "ask._id", "_id", "id", "ask.inscriptionId", "inscriptionId")
_BID_ID = parse.field(parse.identifier, "bid id", "_id", "bid_id", "id", "bid._id", "orderId")
_OWN_ID = parse.field(parse.identifier, "own bid id", "bid_id", "_id", "id")
_MOST_REMEMBERED = 10_000
_LONG_MS = 30 * 86_400_000  # maximum wait of a bid's sale for its block after the bid's expiry


def payload(answer: Any) -> Any:
    """Returns `data` of an answer's envelope. Raises RateLimited and Refused leaves for a refusal."""
    envelope = parse.table(answer, "answer")
    if envelope.get("success") is False or ("error" in envelope and "data" not in envelope):
        raise refused_with_200(envelope)
    return envelope.get("data", envelope)


def is_open(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Returns whether the row shows an open order; an order whose fill waits for its block is not open."""
    if has_any(row, holders, _UNOPEN_FIELDS):
        return False
    status = parse.first(row, "status", holders=holders)
    if status is None:
        return True
    named = parse.text(status, "status").lower()
    if named not in _OPEN_STATES | _UNOPEN_STATES:
        raise Unreadable(f"status: {named[:40]!r} is not known")
    return named in _OPEN_STATES


def has_any(row: Mapping[str, Any], holders: Sequence[str], fields: Sequence[str] = ENDED_FIELDS) -> bool:
    """Returns whether one of these ends has come, by default a cancel or a confirmed fill; an invalid order may become
    valid again, and a pending fill may fail. Raises Unreadable if no end has come and a field is not understood.
    """
    fault: Unreadable | None = None
    for value in parse.each_told(row, [holder + field for holder in holders for field in fields]):
        if is_placeholder(value):
            continue
        try:
            if value is not True:
                parse.moment(value, "end")
        except Unreadable as error:
            fault = error
        else:
            return True
    if fault is not None:
        raise fault
    return False


def time_of(row: Mapping[str, Any], *names: str) -> Any:
    """Returns the first of these times that is not a placeholder, else None."""
    for value in parse.each_told(row, names):
        if not is_placeholder(value):
            return value
    return None


def is_placeholder(value: Any) -> bool:
    """Returns whether a field for a time or a boolean has no value: null, "", 0, false, or 1970's start or before."""
    if not value or value == "0" or (isinstance(value, int) and value < 0):
        return True
    if not isinstance(value, str):
        return False
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return False
    return (found if found.tzinfo else found.replace(tzinfo=UTC)) <= _EPOCH


def is_of_type(row: Mapping[str, Any], wanted: str, holders: Sequence[str]) -> bool:
    """Returns whether the row's type is `wanted` ("ask" or "bid") or missing. Raises Unreadable for an unknown type."""
    named = parse.first(row, "orderType", holders=holders)
    if named is None:
        return True
    found = parse.text(named, "orderType").lower()
    if found not in _ORDER_TYPES:
        raise Unreadable(f"orderType: {found[:40]!r} is not known")
    return found == wanted


def check_slug(row: Mapping[str, Any], slug: str, kind: Kind) -> None:
    """Raises Foreign for a row that names another collection or rune than `slug`."""
    named = parse.first(row, *_SLUG_FIELDS)
    names = [] if named is None else [parse.text(named, "collection")]
    if kind == "runes" and (rune := only_rune(row)) is not None:
        names += [value for name in _RUNE_NAMES if isinstance(value := rune.get(name), str)]
    if names and parse.same(slug) not in map(parse.same, names):
        raise Foreign(f"it is about another {'rune' if kind == 'runes' else 'collection'}: {names[0][:40]!r}")


def only_rune(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = parse.rows(parse.first(row, *_RUNE_FIELDS) or [], "runes of an order")
    if len(found) > 1:
        raise Unreadable(f"an order names {len(found)} runes")
    return parse.table(found[0], "rune of an order") if found else None


class Units(Struct, frozen=True):
    """The unit of prices, by kind of goods: the whole "order", or one "item" or "token" of it."""

    ordinals: str
    runes: str

    def price(self, value: Any, kind: Kind, what: str) -> Decimal:
        """Reads a price in sats; only a token's price may have a fraction."""
        return parse.amount(value, what) if self._of(kind) == "token" else Decimal(parse.sats(value, what, least=1))

    def total(self, told: Decimal, kind: Kind, quantity: Decimal) -> int:
        """Returns the whole order's price in sats, rounded up."""
        total = told if self._of(kind) == "order" else told * quantity
        if total > parse.MAX_SATS:
            raise Unreadable(f"{told} for each of {quantity} is no amount of sats")
        return int(total.to_integral_value(ROUND_CEILING))

    def each(self, told: Decimal, kind: Kind, quantity: Decimal) -> Decimal:
        """Returns the price of one item or token."""
        return told / quantity if self._of(kind) == "order" else told

    def _of(self, kind: Kind) -> str:
        return self.ordinals if kind == "ordinals" else self.runes


PRACTICE = Units("order", "order")


def total_of(price: Decimal, unit_price: Decimal, quantity: Decimal) -> int:
    """Returns the whole order's price in sats; `price` may be the whole order's price or the unit price.

    Raises Unreadable if it is neither, with a tolerance of one sat or 0.1 %, because unit prices are rounded.
    """
    total = unit_price * quantity
    if price != unit_price:
        if abs(price - total) > max(Decimal(1), total / 1000):
            raise Unreadable(f"{quantity} at {unit_price} each cannot cost {price} sats")
        total = price
    if total > parse.MAX_SATS:
        raise Unreadable(f"{unit_price} for each of {quantity} is no amount of sats")
    return int(total.to_integral_value(ROUND_CEILING))


class ReadBack:
    """Compares the rune bids that we sent with the bids that are read back. Thread-safe.

    A bid that reads back at another price than sent shows that the configured unit is wrong, so further bids might cost
    a thousand times too much. `fault` then holds the reason until the process ends.
    """

    def __init__(self) -> None:
        self.fault: str | None = None
        self._sent: Latest[tuple[int, Decimal]] = Latest(_MOST_REMEMBERED)

    def sent(self, order: BidOrder) -> None:
        """Notes a rune bid that is about to be sent; its expiry, in milliseconds, identifies it."""
        key = (order.payment, parse.same(order.slug), order.expires_ms)
        self._sent.note(key, (order.price, order.quantity))

    def checked(self, wallet: str, bids: Iterable[OwnBid]) -> tuple[OwnBid, ...]:
        """Returns the bids; one that reads back at another price than sent gets its highest possible price."""
        return tuple(self._checked(wallet, bid) for bid in bids)

    def _checked(self, wallet: str, bid: OwnBid) -> OwnBid:
        if bid.kind != "runes" or bid.expires_ms is None or bid.quantity is None:
            return bid
        sent = self._sent.of((wallet, parse.same(bid.slug), bid.expires_ms))
        # A partly filled bid is not compared, because the meaning of its shown price is unknown.
        if sent is None or bid.quantity != sent[1] or bid.price == sent[0]:
            return bid
        self.fault = (
            f"a bid of {sent[0]} sats for {sent[1]} tokens reads back as one of {bid.price}: "
            "BIDKEEPER_SATFLOW_RUNE_PRICE is not the unit of its prices"
        )
        each = int((bid.price * bid.quantity).to_integral_value(ROUND_CEILING))
        return replace(bid, price=min(max(bid.price, each, sent[0]), parse.MAX_SATS))


def floors(answer: Any, slugs: Sequence[str], kind: Kind) -> dict[str, Floor | Unread]:
    """Reads floors by the requested slugs; a slug that the venue does not know is left out."""

    def floor(row: Mapping[str, Any]) -> tuple[Decimal | None, int]:
        price, listed = row.get("floor"), row.get("listedCount")
        count = 0 if listed is None else parse.how_many(listed, "listedCount")
        if parse.is_none_or_zero(price):
            return None, count
        if kind == "runes":
            return parse.amount(price, "floor"), count
        return Decimal(parse.sats(price, "floor", least=1)), count

    data = payload(answer)
    told = parse.rows(parse.first(data, "results") if isinstance(data, dict) else data, "floors")
    return parse.floors_by_slug(told, slugs, floor)


def listed_traits(entry: Mapping[str, Any]) -> frozenset[Trait] | None:
    """Reads the traits of a listing's item, or None if the listing names none."""
    for given in parse.each_told(entry, TRAIT_FIELDS):
        if (found := parse.traits_told(given)) is not None:
            return found
    return None


def asks(answer: Any, slug: str, page: int) -> Page[TraitedAsk]:
    """Reads a collection's listings, without ended ones, unconfirmed sales, and unconfirmed items."""
    data = parse.table(payload(answer), "listings")
    found = parse.rows(parse.first(data, "items", "listings", "results"), "listings")
    best = Best[TraitedAsk](lambda entry: entry.ask.unit_price, _shown_ask, is_lowest=True)
    after = following(data, page, len(found))
    read = parse.each_row(
        found, "listing", lambda row: _ask(row, slug), after, key=_ASK_ID, best=best, refuses=page == 1
    )
    _check_some(read, 0, page, "listings")
    return read


def _ask(entry: Mapping[str, Any], slug: str) -> TraitedAsk | None:
    """Reads a listing; a listing of several items counts as one item at the unit price."""
    check_slug(entry, slug, "ordinals")
    unconfirmed = parse.first(entry, "unconfirmed", holders=ASK)
    if not is_open(entry, ASK) or (unconfirmed is not None and parse.flag(unconfirmed, "unconfirmed")):
        return None
    if not is_of_type(entry, "ask", ASK):
        raise Foreign("it is not a listing")
    price = _price_of_one(entry)
    ask = Ask(_ASK_ID(entry), price, Decimal(1), Decimal(price), _address(entry, SELLER_FIELDS))
    return TraitedAsk(ask, listed_traits(entry))


def _shown_ask(row: Mapping[str, Any]) -> Decimal | None:
    """Reads the lowest possible unit price of a listing left out."""
    price, each, count = (parse.first(row, field, holders=ASK) for field in ("price", "unitPrice", "quantity"))

    def of_whole() -> Decimal | None:
        whole = parse.asked_price(price, "listing price")
        return (
            whole
            if whole is None or count is None
            else whole / max(parse.amount(count, "listing quantity"), Decimal(1))
        )

    return min(_readable(lambda: parse.asked_price(each, "listing unit price"), of_whole), default=None)


def _readable(*reads: Callable[[], Decimal | None]) -> list[Decimal]:
    """Returns the readable prices. Raises Unreadable if there are prices and none is readable."""
    found: list[Decimal] = []
    fault: Unreadable | None = None
    for read in reads:
        try:
            if (price := read()) is not None:
                found.append(price)
        except Unreadable as error:
            fault = error
    if fault is not None and not found:
        raise fault
    return found


def _price_of_one(entry: Mapping[str, Any]) -> int:
    price, each, given = (parse.first(entry, field, holders=ASK) for field in ("price", "unitPrice", "quantity"))
    if each is None:
        return parse.sats(price, "listing price", least=1)
    unit_price, quantity = parse.amount(each, "listing unit price"), Decimal(1)
    if given is not None:
        quantity = parse.amount(given, "listing quantity")
    total_of(parse.amount(price, "listing price"), unit_price, quantity)
    return total_of(unit_price, unit_price, Decimal(1))


def bids(answer: Any, slug: str, kind: Kind, page: int, units: Units) -> Page[TraitedBid]:
    """Reads bids on the whole collection or rune and on traits; skips bids on single items, which do not compete."""
    data = parse.table(payload(answer), "bids")
    found = parse.rows(parse.first(data, "items", "bids", "results"), "bids")
    on_items: list[Mapping[str, Any]] = []

    def bid(row: Mapping[str, Any]) -> TraitedBid | None:
        check_slug(row, slug, kind)
        if not is_open(row, BID):
            return None
        if not is_of_type(row, "bid", BID):
            raise Foreign("it is not a bid")
        if _is_on_an_item(row):
            on_items.append(row)
            return None
        return _bid(row, kind, units)

    def shown(row: Mapping[str, Any]) -> Decimal | None:
        return None if _is_on_an_item(row) else _shown_bid(row, kind, units)

    best = Best[TraitedBid](lambda offer: offer.bid.unit_price, shown, is_lowest=False)
    after = following(data, page, len(found))
    read = parse.each_row(found, "bid", bid, after, key=_BID_ID, best=best, refuses=page == 1)
    _check_some(read, len(on_items), page, "bids")
    return read


def _is_on_an_item(row: Mapping[str, Any]) -> bool:
    return (
        bool(parse.first(row, "inscriptionId", "bid.inscriptionId", "inscription_id"))
        or row.get("type") == "individual"
    )


def _bid(entry: Mapping[str, Any], kind: Kind, units: Units) -> TraitedBid:
    # `attribute` is the documentation's older form for one trait; for each of `attributes` the venue makes an order.
    given = parse.first(entry, *BID_TRAIT_FIELDS)
    is_whole = given in (None, "", [], {}) and entry.get("type") != "trait"
    traits = frozenset() if is_whole else parse.trait_pairs(given)
    if not is_whole and not traits:
        raise Foreign("it is on a trait that is not understood")
    price, quantity, unit_price = _terms(entry, kind, units)
    maker, receive = _address(entry, BIDDER_FIELDS), _address(entry, RECEIVER_FIELDS)
    try:
        # An unreadable time is ignored, because it only breaks ties.
        placed_ms = parse.moment(time_of(entry, "placedAt", "createdAt", "timestamp", "bid.timestamp"), "time")
    except Unreadable:
        placed_ms = None
    return TraitedBid(Bid(_BID_ID(entry), price, quantity, unit_price, maker or receive, placed_ms, receive), traits)


def _shown_bid(row: Mapping[str, Any], kind: Kind, units: Units) -> Decimal | None:
    """Reads the highest possible unit price of a bid left out; an item's is at most the whole order's price."""
    given, each = parse.first(row, *BID_PRICE_FIELDS), parse.first(row, "unitPrice", holders=BID)
    try:
        return None if given is None and each is None else _terms(row, kind, units)[2]
    except Unreadable:
        if kind == "runes" and each is None and parse.asked_price(given, "bid price") is not None:
            raise  # because the number of tokens is unknown
    whole = None if kind == "runes" else given
    return max(
        _readable(lambda: parse.asked_price(whole, "bid price"), lambda: parse.asked_price(each, "unit price")),
        default=None,
    )


def _terms(entry: Mapping[str, Any], kind: Kind, units: Units) -> tuple[int, Decimal, Decimal]:
    """Reads the whole order's price, its quantity and its unit price; a given unit price overrides `units`."""
    given, each = parse.first(entry, *BID_PRICE_FIELDS), parse.first(entry, "unitPrice", holders=BID)
    if each is None:
        price = units.price(given, kind, "bid price")
        quantity = _bid_quantity(entry, kind)
        return units.total(price, kind, quantity), quantity, units.each(price, kind, quantity)
    price, unit_price = parse.amount(given, "bid price"), parse.amount(each, "bid unit price")
    quantity = _bid_quantity(entry, kind, price / unit_price)
    return total_of(price, unit_price, quantity), quantity, unit_price


def _check_some(read: Page[Any], on_items: int, page: int, what: str) -> None:
    """Raises Unreadable if a book has only rows of other kinds, because the kind may then be misread.

    `each_row` does not detect this next to ended rows, and bids on single items do not count as foreign there.
    """
    others = on_items + sum(unread.is_foreign for unread in read.unread)
    if page == 1 and others and not read.entries:
        raise Unreadable(f"none of {others} {what} is one on the whole: their kind is not understood")


def _bid_quantity(entry: Mapping[str, Any], kind: Kind, of_prices: Decimal | None = None) -> Decimal:
    """Reads the quantity of a bid; `of_prices` (price / unit price) is used for a rune bid without a quantity."""
    given = parse.first(entry, "quantity", holders=BID)
    if given is not None:
        return parse.amount(given, "bid quantity")
    if kind == "ordinals":
        return Decimal(1)
    if (rune := only_rune(entry)) is not None:
        return parse.tokens(rune.get("amount"), rune.get("divisibility"), "bid amount")
    if of_prices is None:
        raise Unreadable("a rune's bid says neither how much it asks for nor the price of a token")
    return of_prices


def following(data: Mapping[str, Any], page: int, count: int) -> int | None:
    """Returns the page after `page`, which had `count` entries, or None at the end."""
    pages = parse.first(data, "pagination.totalPages")
    if pages is not None:
        return page + 1 if page < parse.whole(pages, "totalPages") else None
    total = parse.first(data, "pagination.total", "total")
    if total is not None:
        size = parse.first(data, "pagination.pageSize", "pageSize")
        reached = page * (PAGE_SIZE if size is None else parse.whole(size, "pageSize"))
        return page + 1 if count and reached < parse.how_many(total, "total") else None
    return page + 1 if count >= PAGE_SIZE else None


def _address(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Reads the maker's address, or "" without one; it is not documented."""
    for name in names:
        value = parse.first(entry, name)
        if isinstance(value, str) and value:
            return parse.address(value, name)
    return ""


def own_bids(answer: Any, units: Units) -> Page[OwnBid]:
    """Reads all bids of a wallet. An unread bid is reported by its id, because it may be open or closed."""
    data = payload(answer)
    is_table = isinstance(data, dict)
    told = parse.first(data, "results", "bids", "items") if is_table else data
    found = parse.rows(told, "own bids", most=5000)
    if is_table:
        _check_all(data, len(found))
    read = parse.each_row(found, "own bid", lambda row: _own_bid(row, units), key=_OWN_ID)
    if found and not read.unread and not any(is_of_type(row, "bid", BID) for row in found):
        raise Unreadable(f"none of {len(found)} own bids is a bid")
    return read


def _check_all(data: Mapping[str, Any], count: int) -> None:
    """Raises Unreadable if the answer names more pages, because a bid on another page would count as ended."""
    pages, total = parse.first(data, "pagination.totalPages"), parse.first(data, "pagination.total", "total")
    if (pages is not None and parse.whole(pages, "totalPages") > 1) or (
        total is not None and parse.how_many(total, "total") > count
    ):
        raise Unreadable("there are more own bids than it shows")


def _own_bid(entry: Mapping[str, Any], units: Units) -> OwnBid | None:
    """Reads an own bid; None for an ended bid and for an order of another type."""
    if not is_of_type(entry, "bid", BID) or _is_over(entry):
        return None
    venue_id, kind = _OWN_ID(entry), entry.get("type")
    expires_ms = _expires_ms(entry, "own bid expiration")
    if kind == "rune":
        rune = only_rune(entry)
        if rune is None:
            raise Unreadable("own rune bid: which rune?")
        quantity = parse.tokens(rune.get("amount"), rune.get("divisibility"), "own bid amount")
        name = parse.text(rune.get("name"), "own bid rune")
        return OwnBid(venue_id, name, "runes", _own_price(entry, "runes", quantity, units), quantity, expires_ms, None)
    if kind not in ("collection", "individual"):
        raise Unreadable(f"own bid: unknown type {str(kind)[:20]!r}")
    slug = ""
    if kind == "collection":
        slug = parse.text(
            parse.first(entry, "inscription_metadata.collection.id", "collectionSlug"), "own bid collection"
        )
    given = entry.get("quantity")
    count = parse.if_told(parse.amount, given, "own bid quantity")
    price = _own_price(entry, "ordinals", Decimal(1) if count is None else count, units)
    return OwnBid(venue_id, slug, "ordinals", price, count, expires_ms, _trait(entry))


def _is_over(entry: Mapping[str, Any]) -> bool:
    """Returns whether it is cancelled or filled. Raises Unreadable for an end over 30 days after its expiry, because it
    may be live.
    """
    if not has_any(entry, BID):
        return False
    ended, expires_ms = time_of(entry, *(h + f for h in BID for f in ENDED_FIELDS)), _expires_ms(entry, "expiration")
    if ended is not True and expires_ms is not None and parse.moment(ended, "end") > expires_ms + _LONG_MS:
        raise Unreadable("own bid: it ended long after its expiry")
    return True


def _expires_ms(entry: Mapping[str, Any], what: str) -> int | None:
    """Reads the expiry; None if missing, or for a bid on a single inscription, which has none."""
    value = parse.first(entry, "expiration", "bidExpiry")
    if value is None or (entry.get("type") == "individual" and is_placeholder(value)):
        return None
    return parse.milliseconds(value, what)


def _own_price(entry: Mapping[str, Any], kind: Kind, quantity: Decimal, units: Units) -> int:
    """Reads the whole order's price in sats."""
    if (each := entry.get("unitPrice")) is None:
        return units.total(units.price(entry.get("price"), kind, "own bid price"), kind, quantity)
    return total_of(
        parse.amount(entry.get("price"), "own bid price"), parse.amount(each, "own bid unit price"), quantity
    )


def _trait(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reads the trait of a bid: `attribute`, or the only one of `attributes`. Raises Unreadable for several."""
    value, several = entry.get("attribute"), parse.rows(entry.get("attributes") or [], "attributes")
    if value is None and several:
        if len(several) > 1:
            raise Unreadable(f"own bid: it asks for {len(several)} traits")
        value = several[0]
    if value is None:
        return None
    trait = parse.table(value, "trait")
    return parse.label(trait.get("trait_type"), "trait type"), parse.label(trait.get("value"), "trait value")
