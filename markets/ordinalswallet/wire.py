"""The common parts of Ordinals Wallet's answers: errors with status 200, prices, the state of a listing.

Shapes are those of its official client's types and recorded answers (`ordinals-wallet/ow-cli`). Every function of these
files raises Unreadable for anything it does not understand, and a Refused leaf for an error.

The venue shows the buyer's price: the seller's and its own fee, which is 2.7 % of the whole and 1,000 sats at least
(client code; all recorded prices fit). Listings are made, and their PSBTs paid, at the seller's price. Here an
inscription's price is always the seller's, so that floors, listings of others and our own are in one unit: shown
308,324 is 300,000. Prices per token of runes are as shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from markets.answers import error_text, refusal
from markets.base import NotFound
from markets.wire import Unreadable, moment_if_any, sats

_LEAST_FEE = 1000
_ON_OFFER, _SOLD = ("", "listed"), ("broadcast", "settled")  # states of a protected listing; none of a plain one
_KEPT_PER_MILLE = 973  # of the buyer's price, for the seller


def content(answer: Any) -> Any:
    """Returns an answer that is no error. Raises NotFound or another Refused leaf for one that is."""
    if not isinstance(answer, dict) or not answer.get("error"):
        return answer
    code = answer.get("code")
    said = error_text(answer) or (code[:100] if isinstance(code, str) and code.isprintable() else "an error")
    if "not found" in said.lower() or (isinstance(code, str) and code.endswith("not_found")):
        raise NotFound(said)
    raise refusal(said)


def sellers(shown: Any, what: str) -> int:
    """Returns the seller's part of a shown price: the most that is shown as no more than that.

    The shown price is the seller's and 1,000 sats, or the seller's / 0.973 rounded down, whichever is higher.
    """
    price = sats(shown, what, least=1)
    after_rate = ((price + 1) * _KEPT_PER_MILLE - 1) // 1000
    paid = min(price - _LEAST_FEE, after_rate)
    if paid < 1:
        raise Unreadable(f"{what}: {price} sats do not cover the venue's fee")
    return paid


def sellers_price(entry: Mapping[str, Any]) -> int:
    """Returns the seller's price of an inscription's listing or sale, which some answers give beside the buyer's."""
    told = entry.get("escrow_price")
    if told is not None:
        return sats(told, "seller's price", least=1)
    return sellers(entry.get("satoshi_price"), "price")


def is_for_sale(listing: Mapping[str, Any]) -> bool:
    """Tells whether the listing is on offer: not bought, and not being bought."""
    return not _is_bought(listing) and _state(listing) in _ON_OFFER


def check_state(listing: Mapping[str, Any]) -> None:
    """Raises Unreadable for a listing that is not bought, in a state that is not known: it may be on offer later."""
    if not _is_bought(listing) and _state(listing) not in (*_ON_OFFER, *_SOLD):
        raise Unreadable("a listing is in a state that is not known")


def _is_bought(listing: Mapping[str, Any]) -> bool:
    bought_ms = moment_if_any(listing.get("bought_at"), "time of a purchase")
    return bought_ms is not None or bool(_words(listing, "purchase_txid"))


def _state(listing: Mapping[str, Any]) -> str:
    return _words(listing, "secure_purchase_state")


def _words(listing: Mapping[str, Any], name: str) -> str:
    told = listing.get(name) or ""
    if not isinstance(told, str):
        raise Unreadable("what became of a listing is not told in words")
    return told


def integral(value: Any) -> Any:
    """Returns a whole number that came with decimals (2045220.0) without them."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
