"""The form of venue values on the gateway's socket: short JSON rows, decimals as text. Both ends use this file.

Standard library only: workers import it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from markets.base import (
    AskBook,
    Balance,
    BidBook,
    BidOrder,
    Fees,
    Floor,
    Item,
    OwnBid,
    OwnBids,
    Rune,
    Sale,
    Sales,
    WalletItem,
)
from markets.capabilities import Capabilities, VenueFacts
from markets.listings import ListingDraft, ListingOrder, ListingToDraft, OwnListing, OwnListings, SecureDraft
from markets.offers import (
    BidDraft,
    BidToDraft,
    Coin,
    DraftPsbt,
    Pair,
    SignInAnswer,
    SignInText,
    SignInTexts,
)
from markets.outpoint_facts import OutpointFacts, TransactionFacts, Whereabouts
from markets.utxos import Utxo
from strategy.book import Ask, Bid, VenueProfile


def pack(value: Any) -> Any:
    """Returns `value` as JSON: a dataclass is the list of its fields in their order, a Decimal its text."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [pack(each) for each in value]
    if isinstance(value, Mapping):
        return {key: pack(each) for key, each in value.items()}
    if is_dataclass(value):
        return [pack(getattr(value, field.name)) for field in fields(value)]
    return value


def text(value: Any) -> str:
    """Returns `value` as JSON text."""
    return json.dumps(pack(value), separators=(",", ":"))


# Each of the following reads what `pack` wrote, and raises one of MALFORMED for anything else.
MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def profile(row: Any) -> VenueProfile:
    return VenueProfile(*row)


def floors(packed: Any) -> dict[str, Floor]:
    return {slug: Floor(row[0], _decimal(row[1]), row[2], row[3]) for slug, row in packed.items()}


def ask_book(packed: Any) -> AskBook:
    asks = (Ask(order, price, Decimal(count), Decimal(unit), maker) for order, price, count, unit, maker in packed[0])
    return AskBook(tuple(asks), int(packed[1]), None if packed[2] is None else int(packed[2]), *map(int, packed[3:5]))


def bid_book(packed: Any) -> BidBook:
    bids = (
        Bid(order, price, Decimal(count), Decimal(unit), maker, placed, receive)
        for order, price, count, unit, maker, placed, receive in packed[0]
    )
    return BidBook(tuple(bids), *map(int, packed[1:4]))


def traits(packed: Any) -> dict[str, dict[str, int]]:
    return {str(kind): {str(value): int(count) for value, count in values.items()} for kind, values in packed.items()}


def rune(row: Any) -> Rune:
    ticker, divisibility, taken_ms = row
    return Rune(str(ticker), int(divisibility), int(taken_ms))


def sales(packed: Any) -> Sales:
    found = (
        Sale(sale_id, slug, price, _decimal(count), buyer, bid_id, inscription_id, sold_ms, txid, is_of_listing)
        for sale_id, slug, price, count, buyer, bid_id, inscription_id, sold_ms, txid, is_of_listing in packed[0]
    )
    unread = tuple(None if at_ms is None else int(at_ms) for at_ms in packed[3])
    return Sales(tuple(found), int(packed[1]), int(packed[2]), unread)


def own_bids(packed: Any) -> OwnBids:
    bids = (
        OwnBid(venue_id, slug, kind, price, _decimal(count), expires, _pair(trait))
        for venue_id, slug, kind, price, count, expires, trait in packed[0]
    )
    return OwnBids(tuple(bids), int(packed[1]), _texts(packed[2]) or ())


def balance(row: Any) -> Balance:
    address, sats, taken_ms = row
    return Balance(str(address), int(sats), int(taken_ms))


def fees(row: Any) -> Fees:
    fastest, half_hour, hour, economy, minimum = map(Decimal, row[:5])
    return Fees(fastest, half_hour, hour, economy, minimum, int(row[5]))


def coins(packed: Any) -> tuple[Utxo, ...]:
    return tuple(Utxo(str(outpoint), int(value), bool(is_confirmed)) for outpoint, value, is_confirmed in packed)


def wallet_items(packed: Any) -> tuple[WalletItem, ...]:
    return tuple(WalletItem(*row) for row in packed)


def item(row: Any) -> Item:
    traits = None if row[-1] is None else tuple((str(kind), str(value)) for kind, value in row[-1])
    return Item(*(*row[:-1], traits))


def order(row: Any) -> BidOrder:
    *first, expires_ms, timestamp_ms, signature, fee_rate, trait, reference, psbts = row
    price, quantity, slug, kind, payment, pubkey, receive = first
    return BidOrder(
        price,
        Decimal(quantity),
        slug,
        kind,
        payment,
        pubkey,
        receive,
        expires_ms,
        timestamp_ms,
        signature,
        fee_rate,
        _pair(trait),
        reference,
        tuple(psbts),
    )


def own_listings(packed: Any) -> OwnListings:
    return OwnListings(tuple(OwnListing(*row) for row in packed[0]), int(packed[1]), _texts(packed[2]) or ())


def listing_ask(row: Any) -> ListingToDraft:
    return ListingToDraft(*row)


def listing_draft(packed: Any) -> ListingDraft:
    secure = (SecureDraft(str(psbt), tuple(map(int, indices))) for psbt, indices in packed[1])
    return ListingDraft(str(packed[0]), tuple(secure), str(packed[2]), str(packed[3]))


def listing_order(row: Any) -> ListingOrder:
    ask, signed, unsigned, secure, payment, pubkey, transfer, recovery = row
    return ListingOrder(listing_ask(ask), signed, unsigned, tuple(secure), payment, pubkey, transfer, recovery)


def bid_ask(row: Any) -> BidToDraft:
    price, quantity, slug, kind, trait, *addresses, valid_hours, coins = row
    payment, payment_pubkey, ordinals, ordinals_pubkey = addresses
    return BidToDraft(
        price,
        Decimal(quantity),
        slug,
        kind,
        _pair(trait),
        payment,
        payment_pubkey,
        ordinals,
        ordinals_pubkey,
        valid_hours,
        tuple(Coin(*coin) for coin in coins),
    )


def bid_draft(packed: Any) -> BidDraft:
    reference, psbts, leaf = packed
    drafted = (
        DraftPsbt(str(role), str(psbt), tuple(map(int, indices)), None if sighash is None else int(sighash))
        for role, psbt, indices, sighash in psbts
    )
    return BidDraft(str(reference), tuple(drafted), str(leaf))


def pair(row: Any) -> Pair:
    return Pair(*row)


def sign_in_texts(packed: Any) -> SignInTexts:
    reference, texts = packed
    return SignInTexts(str(reference), tuple(SignInText(*map(str, text)) for text in texts))


def sign_in_answer(packed: Any) -> SignInAnswer:
    both, reference, signatures = packed
    return SignInAnswer(pair(both), reference, dict(signatures))


def venue_id(value: Any) -> str | None:
    return None if value is None else str(value)


def venue_facts(packed: Any) -> tuple[VenueFacts, ...]:
    return tuple(map(_venue_facts, packed))


def _venue_facts(found: Any) -> VenueFacts:
    can = found["capabilities"]
    lists = {name: tuple(can[name]) for name in ("kinds", "bid_types", "lives_hours")}
    profiles = {kind: profile(row) for kind, row in found["profiles"].items()}
    return VenueFacts(
        Capabilities(**can | lists), profiles, bool(found["is_default"]), found["quota"], found.get("connection")
    )


def named(value: Any) -> dict[str, Any]:
    """Returns a dataclass as an object with the names of its fields, for readers that do not share this file."""
    return {field.name: pack(getattr(value, field.name)) for field in fields(value)}


def whereabouts(found: Any) -> Whereabouts:
    return Whereabouts(**found)


def transaction(found: Any) -> TransactionFacts:
    return TransactionFacts(**found | {"witnesses": tuple(tuple(map(str, items)) for items in found["witnesses"])})


def outpoint(found: Any) -> OutpointFacts:
    return OutpointFacts(**found | {name: _texts(found[name]) for name in ("inscriptions", "runes")})


def _texts(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(map(str, value))


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _pair(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    first, second = value
    return str(first), str(second)
