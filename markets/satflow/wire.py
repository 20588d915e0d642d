"""Satflow's JSON to and from our types (API 1.1.4, docs.satflow.com/reference), with shapes seen elsewhere.

Every function raises Unreadable for an answer it does not understand. The rows of a list are read one by one: one that
is not understood is left out and reported, one that is over or something else is passed over. The books of asks, bids
and sales are in `books.py`, drafts and signed forms in `orders.py`.

The documentation names none of the fields that end an order; its own pages and other people's clients go by them. The
venue fills time fields that have no value yet with 1970-01-01T00:00:00.000Z, so a time of 0 or before does not count.
An end that is neither a time nor yes or no makes its row unreadable: in a book either guess would move the best price,
and an order of our own is then neither open nor closed. A time in the future is an end: the venue's clock counts, and
adapters compare no clocks.

The unit of a price: the documentation of bid/place says "unit bid price" of items, so a bid for five at 100,000 costs
500,000. Of runes it says the same, but Satflow's own sample bot sends the whole order's price. The practice market's
prices are the whole order's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from markets.adapter import Latest
from markets.answers import Foreign, each_row, refused_with_200
from markets.base import BidOrder, Floor, Kind, OwnBid, WalletItem
from markets.wire import (
    MAX_SATS,
    Page,
    Unread,
    Unreadable,
    address,
    amount,
    first,
    how_many,
    identifier,
    label,
    lines,
    milliseconds,
    moment,
    rows,
    same,
    sats,
    table,
    text,
    tokens,
    whole,
)
from strategy.book import plain

# A row is an order, or has it in itself: the holders of its fields, in the order in which they are looked at.
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


def told(row: Mapping[str, Any], field: str, holders: Sequence[str]) -> Any:
    """Returns the field of the order in a row, None without one."""
    return first(row, *(holder + field for holder in holders))


def is_open(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether the order can still be dealt with, as far as the row says: not while a fill waits for its block."""
    if has_any(row, holders, _UNOPEN_FIELDS):
        return False
    status = told(row, "status", holders)
    if status is None:
        return True
    named = text(status, "status").lower()
    if named not in _OPEN_STATES | _UNOPEN_STATES:
        raise Unreadable(f"status: {named[:40]!r} is not known")
    return named in _OPEN_STATES


def is_ended(row: Mapping[str, Any], holders: Sequence[str]) -> bool:
    """Tells whether it is cancelled or filled for good; an invalid one may become valid again, and a fill may fail."""
    return has_any(row, holders, ENDED_FIELDS)


def has_any(row: Mapping[str, Any], holders: Sequence[str], fields: Sequence[str]) -> bool:
    """Tells whether one of these ends has come. Raises Unreadable where none has and one is not understood."""
    fault: Unreadable | None = None
    for value in (first(row, holder + field) for holder in holders for field in fields):
        if is_placeholder(value):
            continue
        try:
            if value is not True:
                moment(value, "end")
        except Unreadable as error:
            fault = error
        else:
            return True
    if fault is not None:
        raise fault
    return False


def time_of(row: Mapping[str, Any], *names: str) -> Any:
    """Returns the first of these times that is not a placeholder, else None."""
    return next((value for name in names if not is_placeholder(value := first(row, name))), None)


def is_placeholder(value: Any) -> bool:
    """Tells whether a field for a time or a yes has no value: null, "", 0, false or a time of 1970 or before."""
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
    """Tells whether it is `wanted` ("ask" or "bid"), or does not say. Raises Unreadable for one of no known type."""
    named = told(row, "orderType", holders)
    if named is None:
        return True
    found = text(named, "orderType").lower()
    if found not in _ORDER_TYPES:
        raise Unreadable(f"orderType: {found[:40]!r} is not known")
    return found == wanted


def check_slug(row: Mapping[str, Any], slug: str, kind: Kind) -> None:
    """Raises Foreign for a row that names another collection or rune than `slug`."""
    named = first(row, *_SLUG_FIELDS)
    names = [] if named is None else [text(named, "collection")]
    if kind == "runes" and (rune := only_rune(row)) is not None:
        names += [value for name in _RUNE_NAMES if isinstance(value := rune.get(name), str)]
    if names and same(slug) not in map(same, names):
        raise Foreign(f"it is about another {'rune' if kind == 'runes' else 'collection'}: {names[0][:40]!r}")


def only_rune(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the rune that an order is for, or None when it names none."""
    found = rows(first(row, *_RUNE_FIELDS) or [], "runes of an order")
    if len(found) > 1:
        raise Unreadable(f"an order names {len(found)} runes")
    return table(found[0], "rune of an order") if found else None


_MOST_REMEMBERED = 10_000


class Units(Struct, frozen=True):
    """The unit of prices, by kind of goods: the whole "order", or one "item" or "token" of it."""

    ordinals: str
    runes: str

    def price(self, value: Any, kind: Kind, what: str) -> Decimal:
        """Reads a price: whole sats, and for a token perhaps a fraction."""
        return amount(value, what) if self._of(kind) == "token" else Decimal(sats(value, what, least=1))

    def total(self, told: Decimal, kind: Kind, quantity: Decimal) -> int:
        """Returns the whole order's price in sats; a fraction counts as one."""
        total = told if self._of(kind) == "order" else told * quantity
        if total > MAX_SATS:
            raise Unreadable(f"{told} for each of {quantity} is no amount of sats")
        return int(total.to_integral_value(ROUND_CEILING))

    def each(self, told: Decimal, kind: Kind, quantity: Decimal) -> Decimal:
        """Returns the price of one item or token."""
        return told / quantity if self._of(kind) == "order" else told

    def _of(self, kind: Kind) -> str:
        return self.ordinals if kind == "ordinals" else self.runes


PRACTICE = Units("order", "order")


def total_of(price: Decimal, unit_price: Decimal, quantity: Decimal) -> int:
    """Returns the whole order's price in sats, where the price of one is told as well: `price` is one of the two.

    Raises Unreadable when it is neither, to a sat or a thousandth: a unit price is printed rounded.
    """
    total = unit_price * quantity
    if price != unit_price:
        if abs(price - total) > max(Decimal(1), total / 1000):
            raise Unreadable(f"{quantity} at {unit_price} each cannot cost {price} sats")
        total = price
    if total > MAX_SATS:
        raise Unreadable(f"{unit_price} for each of {quantity} is no amount of sats")
    return int(total.to_integral_value(ROUND_CEILING))


class _Sent(NamedTuple):
    price: int
    quantity: Decimal


class ReadBack:
    """The rune bids that we sent, compared with those that are read. Safe in several threads.

    A bid that reads back at another price than was sent shows that the unit is not the configured one, and each further
    bid may cost a thousand times too much. `fault` says so from then on, for the life of the process.
    """

    def __init__(self) -> None:
        self.fault: str | None = None
        self._sent: Latest[_Sent] = Latest(_MOST_REMEMBERED)

    def sent(self, order: BidOrder) -> None:
        """Notes a rune bid that is about to be sent; its end, to the millisecond, identifies it."""
        key = (order.payment, same(order.slug), order.expires_ms)
        self._sent.note(key, _Sent(order.price, order.quantity))

    def checked(self, wallet: str, bids: Iterable[OwnBid]) -> tuple[OwnBid, ...]:
        """Returns the bids; one that differs from the sent one gets the larger of the two readings of its price."""
        return tuple(self._checked(wallet, bid) for bid in bids)

    def _checked(self, wallet: str, bid: OwnBid) -> OwnBid:
        if bid.kind != "runes" or bid.expires_ms is None or bid.quantity is None:
            return bid
        sent = self._sent.of((wallet, same(bid.slug), bid.expires_ms))
        # For a partly filled bid the meaning of the shown price is not known.
        if sent is None or bid.quantity != sent.quantity or bid.price == sent.price:
            return bid
        self.fault = (
            f"a bid of {sent.price} sats for {sent.quantity} tokens reads back as one of {bid.price}: "
            "BIDKEEPER_SATFLOW_RUNE_PRICE is not the unit of its prices"
        )
        each = int((bid.price * bid.quantity).to_integral_value(ROUND_CEILING))
        return replace(bid, price=min(max(bid.price, each, sent.price), MAX_SATS))


_LONG_MS = 30 * 86_400_000  # how long after a bid's expiry its sale may still be waiting for a block


def payload(answer: Any) -> Any:
    """Returns `data` of an answer's envelope. Raises RateLimited and Refused leaves for one that says no."""
    envelope = table(answer, "answer")
    if envelope.get("success") is False or ("error" in envelope and "data" not in envelope):
        raise refused_with_200(envelope)
    return envelope.get("data", envelope)


def floors(answer: Any, slugs: Sequence[str], kind: Kind) -> dict[str, Floor | Unread]:
    """Reads floors by the slug that was asked for; a slug the venue does not know is left out.

    A slug whose row cannot be read has its Unread. So has every missing slug next to a row whose slug is not readable.
    """
    asked: dict[str, list[str]] = {}
    for slug in slugs:
        asked.setdefault(same(slug), []).append(slug)

    def floor(row: Mapping[str, Any]) -> tuple[Floor, ...] | None:
        if (spellings := asked.get(same(_slug(row)))) is None:
            return None
        listed = row.get("listedCount")
        count = 0 if listed is None else how_many(listed, "listedCount")
        price = _floor_price(row.get("floor"), kind)
        return tuple(Floor(slug, price, count) for slug in spellings)

    data = payload(answer)
    told = rows(first(data, "results") if isinstance(data, dict) else data, "floors")
    read = each_row(told, "floor", floor, key=_slug, refuses=False)
    found: dict[str, Floor | Unread] = {floor.slug: floor for floors in read.entries for floor in floors}
    for unread in read.unread:
        found |= dict.fromkeys(asked.get(same(unread.key), ()), unread)
    for nameless in (unread for unread in read.unread if not unread.key):
        found |= dict.fromkeys((slug for slug in slugs if slug not in found), nameless)
    return found


def _slug(row: Mapping[str, Any]) -> str:
    return text(row.get("slug"), "floor slug")


def _floor_price(value: Any, kind: Kind) -> Decimal | None:
    if value is None or (not isinstance(value, bool) and value in (0, "0")):
        return None
    return amount(value, "floor") if kind == "runes" else Decimal(sats(value, "floor", least=1))


def own_bids(answer: Any, units: Units) -> Page[OwnBid]:
    """Reads all bids of a wallet. A bid that cannot be read is reported by its id: it is neither open nor gone."""
    data = payload(answer)
    told = data if isinstance(data, list) else first(table(data, "own bids"), "results", "bids", "items")
    found = rows(told, "own bids", most=5000)
    if isinstance(data, dict):
        _check_all(data, len(found))
    read = each_row(found, "own bid", lambda row: _own_bid(row, units), key=_own_id)
    if found and not read.unread and not any(is_of_type(row, "bid", BID) for row in found):
        raise Unreadable(f"none of {len(found)} own bids is a bid")
    return Page(read.entries, None, read.unread)


def _check_all(data: Mapping[str, Any], count: int) -> None:
    """Raises Unreadable when the answer says that there are more: a bid on another page would count as gone."""
    pages, total = first(data, "pagination.totalPages"), first(data, "pagination.total", "total")
    if (pages is not None and whole(pages, "totalPages") > 1) or (
        total is not None and how_many(total, "total") > count
    ):
        raise Unreadable("there are more own bids than it shows")


def _own_id(row: Mapping[str, Any]) -> str:
    return identifier(first(row, "bid_id", "_id", "id"), "own bid id")


def _own_bid(entry: Mapping[str, Any], units: Units) -> OwnBid | None:
    """Reads an own bid; None for one that is over and for an order of another type."""
    if not is_of_type(entry, "bid", BID) or _is_over(entry):
        return None
    venue_id, kind = _own_id(entry), entry.get("type")
    expires_ms = _expires_ms(entry, "own bid expiration")
    if kind == "rune":
        rune = only_rune(entry)
        if rune is None:
            raise Unreadable("own rune bid: which rune?")
        quantity = tokens(rune.get("amount"), rune.get("divisibility"), "own bid amount")
        name = text(rune.get("name"), "own bid rune")
        return OwnBid(venue_id, name, "runes", _own_price(entry, "runes", quantity, units), quantity, expires_ms, None)
    if kind not in ("collection", "individual"):
        raise Unreadable(f"own bid: unknown type {str(kind)[:20]!r}")
    slug = ""
    if kind == "collection":
        slug = text(first(entry, "inscription_metadata.collection.id", "collectionSlug"), "own bid collection")
    given = entry.get("quantity")
    count = None if given is None else amount(given, "own bid quantity")
    price = _own_price(entry, "ordinals", Decimal(1) if count is None else count, units)
    return OwnBid(venue_id, slug, "ordinals", price, count, expires_ms, _trait(entry))


def _is_over(entry: Mapping[str, Any]) -> bool:
    """Tells whether it is cancelled or filled. Raises Unreadable for an end long after its expiry: it may be live."""
    if not is_ended(entry, BID):
        return False
    ended, expires_ms = time_of(entry, *(h + f for h in BID for f in ENDED_FIELDS)), _expires_ms(entry, "expiration")
    if ended is not True and expires_ms is not None and moment(ended, "end") > expires_ms + _LONG_MS:
        raise Unreadable("own bid: it ended long after its expiry")
    return True


def _expires_ms(entry: Mapping[str, Any], what: str) -> int | None:
    """Reads the expiry, which a bid on a single inscription does not have."""
    value = first(entry, "expiration", "bidExpiry")
    if value is None or (entry.get("type") == "individual" and is_placeholder(value)):
        return None
    return milliseconds(value, what)


def _own_price(entry: Mapping[str, Any], kind: Kind, quantity: Decimal, units: Units) -> int:
    """Reads the whole order's price in sats."""
    if (each := entry.get("unitPrice")) is None:
        return units.total(units.price(entry.get("price"), kind, "own bid price"), kind, quantity)
    return total_of(amount(entry.get("price"), "own bid price"), amount(each, "own bid unit price"), quantity)


def _trait(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reads the trait of a bid: `attribute`, or the only one of `attributes`: the venue makes an order of each."""
    value, several = entry.get("attribute"), rows(entry.get("attributes") or [], "attributes")
    if value is None and several:
        if len(several) > 1:
            raise Unreadable(f"own bid: it asks for {len(several)} traits")
        value = several[0]
    if value is None:
        return None
    trait = table(value, "trait")
    return label(trait.get("trait_type"), "trait type"), label(trait.get("value"), "trait value")


def challenge(answer: Any) -> str:
    """Reads the text to sign before a cancel."""
    return lines(table(payload(answer), "challenge").get("challenge"), "challenge", longest=1000)


def bidding_wallet(answer: Any) -> str | None:
    """Reads the address that funds the bids of a pair of addresses, or None when there is none yet."""
    data = table(payload(answer), "bidding wallet")
    if not data.keys() & {"address", "multiSig", "multisig"}:
        raise Unreadable("the answer does not tell the bidding wallet")
    found = first(data, "address", "multiSig.address", "multisig.address")
    return None if found is None else address(found, "bidding wallet")


def wallet_items(answer: Any, *, is_first: bool = True) -> Page[WalletItem]:
    """Reads the inscriptions of a wallet. One whose listing cannot be read is there, listed at an unknown price."""
    found, following = contents(answer)
    read = each_row(found, "inscription", _wallet_item, key=item_id, refuses=is_first)
    return Page(read.entries, following, read.unread)


def contents(answer: Any) -> tuple[Sequence[Any], int | None]:
    """Returns the rows of inscriptions in a page of a wallet's contents, and the cursor of the next page."""
    data = table(payload(answer), "wallet contents")
    cursor = data.get("nextCursor")
    following = None if cursor is None else how_many(cursor, "nextCursor")
    return rows(first(data, "results.ordinals", "ordinals"), "inscriptions"), following


def item_id(entry: Mapping[str, Any]) -> str:
    """Reads the inscription's id in a row of a wallet's contents."""
    return identifier(first(entry, "token.inscription_id", "token.id"), "inscription id")


def _wallet_item(entry: Mapping[str, Any]) -> WalletItem:
    is_listed, price = True, None
    try:
        listing = live_listing(entry)
        is_listed = listing is not None
        price = None if listing is None else sats(listing.get("price"), "listing price", least=1)
    except Unreadable:
        pass
    return WalletItem(
        id=item_id(entry),
        name=_label(first(entry, "token.name")),
        collection_id=_label(first(entry, "collection.id", "collection.slug")),
        collection_name=_label(first(entry, "collection.name")),
        image_url=_link(first(entry, "token.image_url", "token.imageUrl")),
        listed=is_listed,
        listing_price=price,
    )


def live_listing(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the listing of an inscription in a wallet, None when it has none or none any more."""
    if entry.get("listing") is None:
        return None
    listing = table(entry["listing"], "listing")
    return None if is_ended(listing, LISTING) else listing


def cancelled(answer: Any, asked: int) -> bool:
    """Tells whether all `asked` orders are reported as cancelled."""
    data = table(payload(answer), "cancel")
    failed, succeeded = data.get("failedCount"), data.get("successCount")
    if failed is None and succeeded is None and not isinstance(data.get("success"), bool):
        raise Unreadable("cancel: the answer does not say what happened")
    nothing_failed = failed is None or whole(failed, "failedCount") == 0
    all_succeeded = succeeded is None or whole(succeeded, "successCount") >= asked
    told = data.get("summary")
    each = told if isinstance(told, list) else [told]
    none_is_false = all(not isinstance(one, dict) or one.get("success") is not False for one in each)
    return nothing_failed and all_succeeded and none_is_false and data.get("success") is not False


def place_body(order: BidOrder) -> bytes:
    """Makes the body of POST /bid/place; its numbers have the same digits as the signed text."""
    body: dict[str, Any] = {
        "price": order.price,
        "collectionSlug": order.slug,
        "bidderAddress": order.payment,
        "bidderAddressPublicKey": order.payment_pubkey,
        "bidderTokenReceiveAddress": order.receive,
        "metaType": order.kind,
        "signedBiddingMessage": order.signature,
        "bidExpiry": order.expires_ms,
        "timestamp": order.timestamp_ms,
        "feeRate": order.fee_rate,
    }
    if order.trait is not None:
        body["attribute"] = {"trait_type": order.trait[0], "value": order.trait[1]}
    if order.fee_rate[:1].isdigit():
        del body["feeRate"]
        return _with_numbers(body, {"quantity": order.quantity, "feeRate": Decimal(order.fee_rate)})
    return _with_numbers(body, {"quantity": order.quantity})


def cancel_body(wallet: str, venue_ids: Sequence[str], signature: str) -> bytes:
    """Makes the body of POST /cancel for bids."""
    body = {"makerAddress": wallet, "orderType": "bid", "signature": signature}
    return json.dumps(body | {"_ids": list(venue_ids), "multiple": True}).encode()


def _with_numbers(body: Mapping[str, Any], numbers: Mapping[str, Decimal]) -> bytes:
    # json can write a Decimal as a number only through float.
    tail = "".join(f", {json.dumps(name)}: {plain(number)}" for name, number in numbers.items())
    return (json.dumps(body, ensure_ascii=False)[:-1] + tail + "}").encode()


def _label(value: Any) -> str | None:
    """Reads a name to show, or None; anybody can inscribe one, so a strange one must not hide the wallet."""
    if not isinstance(value, str):
        return None
    return "".join(c for c in value[:200] if c.isprintable()) or None


def _link(value: Any) -> str | None:
    """Reads a web address to show, or None."""
    is_link = isinstance(value, str) and len(value) <= 500 and value.startswith(("https://", "http://"))
    return value if is_link and value.isprintable() else None
