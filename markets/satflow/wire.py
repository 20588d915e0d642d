"""Satflow's JSON to and from our types (API 1.1.4, docs.satflow.com/reference), with shapes seen beside the docs.

Every function raises Unreadable for anything it does not understand: an entry is never dropped because it is strange,
only because it is something else. The books of asks and bids are in `books.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from markets.base import BidOrder, Floor, Kind, OwnBid, WalletItem
from markets.replies import refused_with_200
from markets.satflow.rows import BID, LISTING, is_ended, is_of_type
from markets.satflow.units import Units, total_of
from markets.wire import (
    Page,
    Unreadable,
    address,
    amount,
    first,
    how_many,
    identifier,
    label,
    lines,
    milliseconds,
    rows,
    same,
    sats,
    table,
    text,
    tokens,
    whole,
)
from strategy.pricing import plain


def payload(answer: Any) -> Any:
    """Returns `data` of an answer's envelope. Raises RateLimited and Refused leaves for one that says no."""
    envelope = table(answer, "answer")
    if envelope.get("success") is False or ("error" in envelope and "data" not in envelope):
        raise refused_with_200(envelope)
    return envelope.get("data", envelope)


def floors(answer: Any, slugs: Sequence[str], kind: Kind) -> dict[str, Floor]:
    """Reads floors by the slug that was asked for; a slug the venue does not know is left out."""
    asked: dict[str, list[str]] = {}
    for slug in slugs:
        asked.setdefault(same(slug), []).append(slug)
    found: dict[str, Floor] = {}
    data = payload(answer)
    for row in rows(first(data, "results") if isinstance(data, dict) else data, "floors"):
        entry = table(row, "floor")
        spellings = asked.get(same(text(entry.get("slug"), "floor slug")))
        if spellings is None:
            continue
        listed = entry.get("listedCount")
        count = 0 if listed is None else how_many(listed, "listedCount")
        price = _floor_price(entry.get("floor"), kind)
        found |= {slug: Floor(slug, price, count) for slug in spellings}
    return found


def _floor_price(value: Any, kind: Kind) -> Decimal | None:
    if value is None or (not isinstance(value, bool) and value in (0, "0")):
        return None
    return amount(value, "floor") if kind == "runes" else Decimal(sats(value, "floor", least=1))


def own_bids(answer: Any, units: Units) -> tuple[OwnBid, ...]:
    """Reads all bids of a wallet. One strange entry makes the whole answer unreadable: unknown is not empty."""
    data = payload(answer)
    found = data if isinstance(data, list) else first(table(data, "own bids"), "results", "bids", "items")
    entries = [table(row, "own bid") for row in rows(found, "own bids", most=5000)]
    live = (entry for entry in entries if is_of_type(entry, "bid", BID) and not is_ended(entry, BID))
    return tuple(_own_bid(entry, units) for entry in live)


def _own_bid(entry: Mapping[str, Any], units: Units) -> OwnBid:
    venue_id = identifier(first(entry, "bid_id", "_id", "id"), "own bid id")
    expiration = first(entry, "expiration", "bidExpiry")
    expires_ms = None if expiration is None else milliseconds(expiration, "own bid expiration")
    kind = entry.get("type")
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
    return OwnBid(venue_id, slug, "ordinals", price, count, expires_ms, _trait(entry.get("attribute")))


def _own_price(entry: Mapping[str, Any], kind: Kind, quantity: Decimal, units: Units) -> int:
    """Reads the whole order's price in sats."""
    if (each := entry.get("unitPrice")) is None:
        return units.total(units.price(entry.get("price"), kind, "own bid price"), kind, quantity)
    return total_of(amount(entry.get("price"), "own bid price"), amount(each, "own bid unit price"), quantity)


def only_rune(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the rune that a bid is for, or None when it names none."""
    found = first(entry, "runes_metadata.runes", "bid.runes_metadata.runes")
    if found is None:
        return None
    runes = rows(found, "runes of a bid")
    if len(runes) != 1:
        raise Unreadable(f"a bid names {len(runes)} runes")
    return table(runes[0], "rune of a bid")


def _trait(value: Any) -> tuple[str, str] | None:
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


def wallet_items(answer: Any) -> Page[WalletItem]:
    """Reads the inscriptions of a wallet."""
    data = table(payload(answer), "wallet contents")
    entries = rows(first(data, "results.ordinals", "ordinals"), "inscriptions")
    cursor = data.get("nextCursor")
    following = None if cursor is None else how_many(cursor, "nextCursor")
    return Page(tuple(_wallet_item(table(row, "inscription")) for row in entries), following)


def _wallet_item(entry: Mapping[str, Any]) -> WalletItem:
    token = table(entry.get("token"), "token")
    listing = live_listing(entry)
    price = None if listing is None else sats(listing.get("price"), "listing price")
    collection = entry.get("collection") or {}
    return WalletItem(
        id=identifier(first(token, "inscription_id", "id"), "inscription id"),
        name=_label(token.get("name")),
        collection_id=_label(first(table(collection, "collection"), "id", "slug")),
        collection_name=_label(collection.get("name")),
        image_url=_link(first(token, "image_url", "imageUrl")),
        listed=listing is not None,
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
