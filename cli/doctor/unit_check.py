"""A check that prices of runes are in the expected unit: sats per whole token.

UniSat's own lots are checked one by one by its adapter (price against amount times unit price). Between two venues a
wrong unit shows as a factor that no market has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from cli.doctor.check import Check, fail, ok, warn

_MOST_APART = 5  # two venues' floors of one rune
_LEAST_BID = Decimal("0.01")  # a best bid below this part of the lowest ask is strange, yet possible
_MOST_BID = 2  # a best bid above twice the lowest ask is impossible: it would have been filled
NAME = "rune unit"
_REPORT = "bidkeeper venue probe satflow --save FILE, and report it; do not bid on runes there until this is resolved"


def examine(answers: Mapping[tuple[str, str], Any]) -> Iterator[Check]:
    """Checks the answers of UniSat and Satflow about one rune, by (venue, question)."""
    lots = answers.get(("unisat", "rune listings"))
    if not lots:
        return
    ask = lots[0].unit_price
    yield ok(NAME, f"UniSat: {len(lots)} lots cost amount × unit price; the lowest ask is {shown(ask)} sats a token")
    for floor in (answers.get(("satflow", "rune floors")) or {}).values():
        if floor.floor is not None:
            yield _floor(floor.floor, ask)
    if offers := answers.get(("satflow", "rune bids")):
        yield _bid(max(offer.bid.unit_price for offer in offers), ask)


def _floor(floor: Decimal, ask: Decimal) -> Check:
    text = f"Satflow's floor is {shown(floor)} sats, UniSat's {shown(ask)} a token"
    if not ask / _MOST_APART <= floor <= ask * _MOST_APART:
        return fail(NAME, f"{text}: Satflow's is not per token", _REPORT)
    return ok(NAME, text)


def _bid(bid: Decimal, ask: Decimal) -> Check:
    text = f"Satflow's best bid is {shown(bid)} sats a token (price / quantity), UniSat's lowest ask {shown(ask)}"
    if bid > ask * _MOST_BID:
        return fail(NAME, f"{text}: its price or quantity has another unit", _REPORT)
    if bid < ask * _LEAST_BID:
        return warn(NAME, f"{text}: its price may be per token instead of per order", _REPORT)
    return ok(NAME, text)


def shown(number: Decimal) -> str:
    """Writes four digits of a number: 0.01234, 12.35, 1234."""
    return format(Decimal(f"{number:.4g}"), "f")
