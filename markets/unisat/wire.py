"""Parses the answers of UniSat's collection market (open API v3, `unisat-wallet/unisat-dev-docs`).

Every answer is `{"code", "msg", "data"}`; a code other than 0 is an error. Prices are in sats: the documentation does
not say so, but all its clients assume it. Rows are read one by one, as `each_row` describes. Every function raises
Unreadable for an answer that it does not understand, and the leaves of `content`.

Each change of a listing takes two requests: `create_...` returns a PSBT, `confirm_...` submits it signed.
`create_put_on` makes an order, `create_modify_price` changes a live order's price, and `create_put_off` ends it. The
PSBTs' contents are not documented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from markets import base, parse
from markets.adapter import TraitedAsk, in_base64
from markets.base import AuthFailed, BelowMinimum, NotFound, RateLimited, Refused, Unavailable, Unknown
from markets.http import Http, Reply, error_text, is_too_many, retry_after_s
from markets.orders import ListingDraft, OwnListing
from markets.parse import Best, Foreign, Page, Unreadable
from markets.told import tell
from strategy.book import Ask

# Codes in errors/open-api-errors/marketplace-errors.yaml for the venue's own trouble: maintenance, read-only, busy,
# updating, or indexers that fail or lag.
_THEIRS_TO_MEND = frozenset({-106, -111, -116, -119, -153, -154, -158, -161, -164, -169})
_NOT_THERE = frozenset({-100, -109, -144})  # no such order, no such inscription, an ended order
_TOO_MANY = -2006  # "exceeds rate limit", with status 403 or 200; it names no time


class UnisatHttp(Http):
    """An HTTP client of the open API, which answers 403 both over its rate limit and for a wrong key.

    The answer gives no time to wait, so the gateway chooses it: 2.5 s, which exceeds the documented limit per second,
    then doubled each time up to 30 s, because the daily limit may be the cause.
    """

    def __init__(self, base: str, api_key: str | None) -> None:
        super().__init__(base, {"Authorization": f"Bearer {api_key}"} if api_key else {})

    def _raise_own(self, reply: Reply) -> None:
        if reply.status == 200 or reply.body.lstrip()[:1] != b"{":
            return
        try:
            answer = parse.table(parse.decoded(reply.body), "answer")
        except Unreadable:
            return
        if answer.get("code") == _TOO_MANY:
            raise RateLimited(retry_after_s(reply), f"UniSat: {error_text(answer) or 'too many requests'}")


def content(answer: Any) -> Any:
    """Returns `data` of a successful answer. Raises Unreadable, Unavailable, RateLimited and Refused leaves."""
    envelope = parse.table(answer, "answer")
    code = envelope.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        raise Unreadable("the answer has no code")
    if code == 0:
        return envelope.get("data")
    said = error_text({"error": envelope.get("msg")}) or f"code {code}"
    if code == _TOO_MANY or is_too_many(said):
        raise RateLimited(None, f"UniSat: {said}")
    if code in _THEIRS_TO_MEND or code > 0:
        raise Unavailable(f"UniSat: {said}")
    if code in _NOT_THERE:
        raise NotFound(said)
    if code == -132:
        raise BelowMinimum(said)
    if "api key" in said.lower() or "unauthorized" in said.lower():
        raise AuthFailed(said)
    raise Refused("refused", f"UniSat: {said}")


PAGE_SIZE = 99  # the API's maximum is below 100
STATISTICS_PAGE = 20  # maximum rows in the list of statistics
# Allowance for a trait's floor that lags behind a new listing; no lag has been observed.
LAG_MS = 86_400_000
_AUCTION_ID = parse.field(parse.identifier, "listing id", "auctionId")
_INSCRIPTION_ID = parse.field(parse.identifier, "inscription id", "inscriptionId")
_OTHER_EVENTS = frozenset({"Listed", "Cancel", "Claim", "Updated"})
_CHEAPEST_FIRST: Best[TraitedAsk] = Best(
    lambda listing: Decimal(listing.ask.price), lambda row: parse.asked_price(row.get("price"), "price"), is_lowest=True
)


def floor(answer: Any, slug: str) -> base.Floor | None:
    stats = content(answer)
    if not stats or parse.table(stats, "statistic").get("collectionId") in (None, ""):
        return None
    if parse.same(parse.text(stats["collectionId"], "collection")) != parse.same(slug):
        raise Unreadable("the answer is about another collection")
    _tell_statistic(stats, slug)
    return _floor(stats, slug)


def listed_floor(answer: Any, slug: str) -> base.Floor | None:
    """Reads the floor of one collection from the list of statistics; None if the list does not have it."""

    def read(entry: Mapping[str, Any]) -> base.Floor | None:
        _tell_statistic(entry, slug)
        is_it = parse.same(parse.text(entry.get("collectionId"), "collection")) == parse.same(slug)
        return _floor(entry, slug) if is_it else None

    data = parse.table(content(answer), "statistics")
    found = parse.each_row(parse.rows(data.get("list") or [], "statistics"), "statistic", read)
    return found.entries[0] if found.entries else None


def _tell_statistic(stats: Mapping[str, Any], asked: str) -> None:
    """Notes name, volume and icon of a collection: recorded icons are links, or ids of inscriptions."""
    icon = stats.get("icon")
    slug, volume = stats.get("collectionId"), stats.get("btcValue")
    tell(slug, name=stats.get("name"), volume=volume, item=icon, image=icon, asked=asked)


def floor_of_asks(answer: Any, slug: str, now_ms: int) -> base.Floor:
    """Reads the floor of one collection from the first page of its listings."""
    page = asks(answer, slug, 0, now_ms)
    if not page.entries and page.following is not None:
        raise Unreadable("none of the first listings is for sale, and there are more")
    prices = [Decimal(listing.ask.price) for listing in page.entries]
    return base.Floor(
        slug, min(prices, default=None), parse.how_many(parse.table(content(answer), "listings").get("total"), "total")
    )


def _floor(stats: Mapping[str, Any], slug: str) -> base.Floor:
    count = parse.if_told(parse.how_many, stats.get("listed"), "listed") or 0
    if "floorPrice" not in stats:
        raise Unreadable("the statistic has no floorPrice")
    shown = stats["floorPrice"]
    if parse.is_none_or_zero(shown):
        return base.Floor(slug, None, count)
    return base.Floor(slug, Decimal(parse.sats(parse.integral(shown), "floorPrice", least=1)), count)


def asks(answer: Any, slug: str, start: int, now_ms: int) -> Page[TraitedAsk]:
    """Reads listings at a fixed price, cheapest first, from index `start`, with the traits that they name."""
    entries, following = _page(answer, "listings", start)
    ended: list[Mapping[str, Any]] = []

    def read(entry: Mapping[str, Any]) -> TraitedAsk | None:
        listing = _listing(entry, slug)
        if listing is not None and _is_below_its_traits(entry, listing.ask.price, now_ms):
            ended.append(entry)
            return None
        return listing

    found = parse.each_row(
        entries, "listing", read, following, key=_AUCTION_ID, best=_CHEAPEST_FIRST, refuses=not start
    )
    if ended and not found.entries and (start or following is None):
        # An empty book would be wrong, because the floors of their traits show that something is for sale.
        raise Unreadable("no listing is for sale, and the floors of their traits say that some are")
    return found


def _listing(entry: Mapping[str, Any], slug: str) -> TraitedAsk | None:
    if not _is_offered(entry):
        return None
    _check_goods(entry, slug)
    _tell_item(entry)
    if not _is_single(entry):
        raise Foreign("it is several items for one price")
    price = parse.sats(entry.get("price"), "listing price", least=1)
    seller = entry.get("address")
    maker = parse.address(seller, "seller") if seller else ""
    return TraitedAsk(Ask(_AUCTION_ID(entry), price, Decimal(1), Decimal(price), maker), _traits(entry))


def _is_offered(entry: Mapping[str, Any]) -> bool:
    """Returns whether it is for sale at a fixed price; an auction's price is not an asking price."""
    is_withdrawn, kind = entry.get("notOnSale"), entry.get("marketType")
    if is_withdrawn is True or kind == "auction":
        return False
    if is_withdrawn not in (None, False) or kind not in (None, "", "fixedPrice"):
        raise Unreadable("whether it is sold at a fixed price is not clear")
    return True


def _is_below_its_traits(entry: Mapping[str, Any], price: int, now_ms: int) -> bool:
    """Returns whether a listing is cheaper than the floor of one of its own traits, which the row shows too.

    Such a listing is not counted in the venue's floor, so its item has moved. A row younger than LAG_MS, or of unknown
    age, is kept, because the floor may lag behind it.
    """
    try:
        age_ms = now_ms - parse.moment(entry.get("onSaleTime"), "onSaleTime")
    except Unreadable:
        return False
    shown = entry.get("attrs")
    attrs = [each for each in shown if isinstance(each, Mapping)] if isinstance(shown, list) else []
    floors = [
        parse.whole_or_none(each.get("floorPrice")) or 0
        for each in attrs
        if parse.whole_or_none(each.get("listingCount"))
    ]
    return age_ms > LAG_MS and max(floors, default=0) > price


def _traits(entry: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
    """Reads the traits of a row; None without any, because an empty list may mean that the traits are unknown."""
    return parse.traits_told(entry.get("attrs")) or None


def _check_goods(entry: Mapping[str, Any], slug: str) -> None:
    """Raises Foreign for a row that is not about an item of this collection."""
    named = entry.get("collectionId")
    if named is not None and parse.same(parse.text(named, "collection")) != parse.same(slug):
        raise Foreign("it is of another collection")
    if entry.get("nftType") not in (None, "", "collection"):
        raise Foreign("it is not an item of a collection")


def _tell_item(entry: Mapping[str, Any]) -> None:
    picture = entry.get("collectionHighResImgUrl")
    tell(entry.get("collectionId"), name=entry.get("collectionName"), item=entry.get("inscriptionId"), image=picture)


def _is_single(entry: Mapping[str, Any]) -> bool:
    return entry.get("amount") is None or parse.amount(entry["amount"], "amount") == 1


def own_listings(answer: Any, owner: str, start: int) -> Page[OwnListing]:
    """Reads the listings of `owner`; the key of an unread row is its inscription's id."""

    def own(entry: Mapping[str, Any]) -> OwnListing | None:
        if not _is_offered(entry):
            return None
        if parse.address(entry.get("address"), "seller") != owner:
            raise Foreign("it is another seller's")
        return OwnListing(
            listing_id=_AUCTION_ID(entry),
            inscription_id=_INSCRIPTION_ID(entry),
            slug=parse.if_told(parse.text, entry.get("collectionId"), "collection"),
            price=parse.sats(entry.get("price"), "listing price", least=1),
            owner=owner,
        )

    entries, following = _page(answer, "own listings", start)
    return parse.each_row(entries, "own listing", own, following, key=_INSCRIPTION_ID, refuses=not start)


def sales(answer: Any, slug: str, start: int) -> Page[base.Sale]:
    """Reads sales from index `start`; unread rows keep their times, so that a missing sale is not taken for no sale."""
    entries, following = _page(answer, "sales", start)
    return parse.each_row(
        entries, "sale", lambda row: _sale(row, slug), following, key=_AUCTION_ID, at_ms=_sold_ms, refuses=not start
    )


def _sale(entry: Mapping[str, Any], slug: str) -> base.Sale:
    _check_goods(entry, slug)
    if entry.get("event") in _OTHER_EVENTS:
        raise Foreign("it is an action that is no sale")
    if entry.get("event") != "Sold" or not _is_single(entry):
        raise Unreadable("whether it is a sale of one item is not clear")
    buyer = entry.get("to")
    return base.Sale(
        sale_id=_AUCTION_ID(entry),
        slug=slug,
        price=parse.sats(entry.get("price"), "sale price", least=1),
        quantity=Decimal(1),
        buyer=parse.address(buyer, "buyer") if buyer else None,
        bid_id=None,
        inscription_id=_INSCRIPTION_ID(entry),
        sold_ms=_sold_ms(entry),
        txid=parse.txid_or_none(entry.get("txid")),
    )


def item(answer: Any, inscription_id: str) -> base.Item:
    """Reads details of one inscription and checks its id.

    If it is not for sale, it has no `address`; its holder is in `utxo.address`.
    """
    found = parse.table(content(answer), "inscription")
    if found.get("inscriptionId") != inscription_id:
        raise Unreadable("the answer is about another inscription")
    try:
        is_listed = bool(found.get("auctionId")) and _is_offered(found)
    except Unreadable:
        is_listed = False
    _tell_item(found)
    output, vout = parse.first(found, "utxo.txid"), parse.first(found, "utxo.vout")
    traits = _traits(found)
    return base.Item(
        id=inscription_id,
        listed=is_listed,
        number=parse.whole_or_none(found.get("inscriptionNumber")),
        name=parse.text_or_none(found.get("collectionItemName")),
        collection_id=parse.text_or_none(found.get("collectionId")),
        collection_name=parse.text_or_none(found.get("collectionName")),
        image_url=parse.link(found.get("collectionHighResImgUrl")),
        content_type=parse.text_or_none(found.get("contentType")),
        owner=parse.text_or_none(parse.first(found, "utxo.address", "address")),
        output=parse.text_or_none(None if output is None or vout is None else f"{output}:{vout}"),
        output_value=parse.whole_or_none(parse.first(found, "utxo.satoshi", "utxo.value")),
        genesis=inscription_id.partition("i")[0],
        listing_price=parse.whole_or_none(found.get("price")) if is_listed else None,
        seller=parse.text_or_none(found.get("address")) if is_listed else None,
        traits=None if traits is None else tuple(sorted(traits)),
    )


def _page(answer: Any, what: str, start: int) -> tuple[Sequence[Any], int | None]:
    data = parse.table(content(answer), what)
    total = parse.how_many(data.get("total"), "total")
    entries = parse.rows(data.get("list") or [], what)
    reached = start + len(entries)
    if not entries and reached < total:
        raise Unreadable(f"{what}: an empty page before the end")
    return entries, reached if reached < total else None


def _sold_ms(entry: Mapping[str, Any]) -> int:
    """Reads a sale's time in milliseconds; the venue may give seconds."""
    value = entry.get("timestamp")
    if isinstance(value, int) and not isinstance(value, bool) and 10**9 <= value < 10**10:
        value *= 1000
    return parse.moment(value, "time of a sale")


_MOST_INPUTS = 1000
_UNKNOWN_ERROR = -1  # the venue's code for an internal error


class Draft(Struct, frozen=True):
    """The PSBT to be signed for the order `auction_id`; `is_new`: the order is not live yet."""

    auction_id: str
    is_new: bool
    listing: ListingDraft


def draft(answer: Any, auction_id: str | None) -> Draft:
    """Reads the PSBT for a new price of the order `auction_id`, or for a new order if that is None."""
    found = parse.table(content(answer), "draft")
    made = _AUCTION_ID(found) if auction_id is None else auction_id
    return Draft(made, auction_id is None, _draft(found, "signIndexes"))


def put_off_draft(answer: Any) -> ListingDraft:
    found = parse.table(content(answer), "draft")
    if found.get("btcSignIndexes"):
        raise Unreadable("taking it back wants coins signed: it is a transaction, not a signature")
    if found.get("nftSignIndexes") not in (None, [0]):
        raise Unreadable("taking it back wants another input signed than its only one")
    return _draft(found, "nftSignIndexes")


def _draft(found: Any, indices: str) -> ListingDraft:
    told = found.get(indices)
    # Only the number of indices is checked: a listing signs the item's input only, and the signer finds that input.
    if (
        told is not None
        and len([parse.whole(each, indices) for each in parse.rows(told, indices, most=_MOST_INPUTS)]) != 1
    ):
        raise Unreadable("the draft wants more inputs signed than one, or none")
    return ListingDraft(in_base64(found.get("psbt")), ())


def check_confirmed(answer: Any) -> None:
    """Raises RateLimited or a Refused leaf if a write was refused, Unknown if the answer is unclear."""
    try:
        content(answer)
    except RateLimited:
        raise  # the venue did not process it
    except Unavailable as error:
        raise Unknown(f"sent, but {error.message}") from error
    except AuthFailed:
        raise
    except Refused as error:
        if parse.table(answer, "answer").get("code") == _UNKNOWN_ERROR:
            raise Unknown(f"sent, but {error.message}") from error
        raise
