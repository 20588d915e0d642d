"""Readers of a request's arguments about listings and outputs, as in `gateway/arguments.py`."""

from __future__ import annotations

import re
from typing import Any

from gateway.arguments import bad, identifier, identifiers, matching, psbt, slug, word
from markets import codec
from markets.listings import MOST_SECURE, ListingOrder, ListingToDraft
from markets.wire import MAX_SATS, Unreadable
from markets.wire import outpoint as read_outpoint
from markets.wire import txid as read_txid

_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)


def outpoint(value: Any) -> str:
    """Reads an output as `txid:vout`."""
    try:
        return read_outpoint(value, "outpoint")
    except Unreadable as error:
        raise bad(str(error)) from error


def txid(value: Any) -> str:
    """Reads a transaction's id."""
    try:
        return read_txid(value, "txid")
    except Unreadable as error:
        raise bad(str(error)) from error


def inscriptions(value: Any) -> list[str]:
    """Reads up to 100 ids of inscriptions."""
    return identifiers(value, "inscription_ids")


def delist_proof(value: Any) -> str:
    """Reads the proof that takes a listing back: a signature or a signed PSBT, or "" where a session is enough."""
    return "" if value == "" else psbt(value)


def ask(value: Any) -> ListingToDraft:
    """Reads a listing to be made and checks each of its fields."""
    try:
        given = codec.listing_ask(value)
    except codec.MALFORMED as error:
        raise bad("ask is not a listing's") from error
    return _checked(given)


def listing_order(value: Any) -> ListingOrder:
    """Reads a signed listing."""
    try:
        given = codec.listing_order(value)
    except codec.MALFORMED as error:
        raise bad("order is not a listing order") from error
    _checked(given.ask)
    if len(given.signed_secure) > MOST_SECURE:
        raise bad("order: too many PSBTs")
    for each in (given.signed_psbt, given.unsigned_psbt, *given.signed_secure):
        psbt(each)
    for each in (given.signed_transfer, given.signed_recovery):
        if each != "":
            psbt(each)
    word(given.payment, "payment")
    word(given.payment_pubkey, "payment_pubkey")
    return given


def _checked(given: ListingToDraft) -> ListingToDraft:
    price = given.price
    if isinstance(price, bool) or not isinstance(price, int) or not 0 < price <= MAX_SATS:
        raise bad("ask: price must be a whole number of sats above 0")
    identifier(given.inscription_id, "inscription_id")
    word(given.owner, "owner")
    word(given.receive, "receive")
    matching(_KEY, given.tap_internal_key, "tap_internal_key")
    if given.slug is not None:
        slug(given.slug)
    if given.outpoint != "":
        outpoint(given.outpoint)
    return given
