"""Satflow's JSON to and from our types (API 1.1.4, docs.satflow.com/reference), with shapes seen elsewhere.

Every function raises Unreadable for an answer it does not understand. The rows of a list are read one by one: one that
is not understood is left out and reported, one that is over or something else is passed over. The books of asks and
bids are in `books.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.answers import each_row, refused_with_200
from markets.base import BidOrder, Floor, Kind, OwnBid, WalletItem
from markets.satflow.rows import BID, ENDED_FIELDS, LISTING, is_ended, is_of_type, is_placeholder, only_rune, time_of
from markets.satflow.units import Units, total_of
from markets.wire import (
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
from strategy.pricing import plain

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
