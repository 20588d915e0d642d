"""Readers of a request's arguments about drafted bids and sign-in, as in `gateway/arguments.py`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from gateway.arguments import bad, kind, matching, reference, signature, slug, trait, word
from gateway.listing_arguments import outpoint
from markets import codec
from markets.offers import MOST_COINS, MOST_SIGN_IN_TEXTS, BidToDraft, Pair, SignInAnswer
from markets.wire import MAX_SATS

_PUBKEY = re.compile(r"0[23][0-9a-f]{64}", re.ASCII)
_XONLY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TEXT_ID = re.compile(r"[!-~]{1,200}", re.ASCII)
_LONGEST_HOURS = 24 * 366


def bid_ask(value: Any) -> BidToDraft:
    """Reads a bid to be drafted and checks each of its fields."""
    try:
        given = codec.bid_ask(value)
    except codec.MALFORMED as error:
        raise bad("ask is not a bid's") from error
    if not _is_whole(given.price, MAX_SATS) or not _is_whole(given.valid_hours, _LONGEST_HOURS):
        raise bad("ask: price and valid_hours must be whole numbers above 0")
    if not given.quantity.is_finite() or not 0 < given.quantity < Decimal(10) ** 39:
        raise bad("ask: quantity must be above 0")
    slug(given.slug)
    trait(None if given.trait is None else list(given.trait), kind(given.kind))
    _checked_pair(Pair(given.payment, given.payment_pubkey, given.ordinals, given.ordinals_pubkey))
    if len(given.coins) > MOST_COINS:
        raise bad(f"ask: more than {MOST_COINS} coins")
    for coin in given.coins:
        outpoint(coin.outpoint)
        if not _is_whole(coin.value, MAX_SATS):
            raise bad("ask: a coin's value must be a whole number of sats above 0")
    return given


def pair(value: Any) -> Pair:
    """Reads the two addresses of a session and their keys."""
    try:
        return _checked_pair(codec.pair(value))
    except codec.MALFORMED as error:
        raise bad("pair is not two addresses with their keys") from error


def sign_in_answer(value: Any) -> SignInAnswer:
    """Reads the signatures on a venue's sign-in texts."""
    try:
        given = codec.sign_in_answer(value)
    except codec.MALFORMED as error:
        raise bad("answer is not a sign-in's") from error
    _checked_pair(given.pair)
    reference(given.reference)
    if not 1 <= len(given.signatures) <= MOST_SIGN_IN_TEXTS:
        raise bad(f"answer: it takes 1 to {MOST_SIGN_IN_TEXTS} signatures")
    for name, signed in given.signatures.items():
        matching(_TEXT_ID, name, "id of a text")
        signature(signed)
    return given


def _checked_pair(given: Pair) -> Pair:
    word(given.payment, "payment")
    word(given.ordinals, "ordinals")
    matching(_PUBKEY, given.payment_pubkey, "payment_pubkey")
    matching(_XONLY, given.ordinals_pubkey, "ordinals_pubkey")
    return given


def _is_whole(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most
