"""A number that is too long to read spoils the row that it is in, and not the answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from markets import parse
from markets.parse import asked_price

ENDLESS = ["9" * 60, "-" + "9" * 60, "1e999", "1e-999", "0." + "0" * 90 + "1"]


@pytest.mark.parametrize("number", ENDLESS)
def test_an_endless_number_is_refused_by_every_reader_and_the_rest_is_read(number: str) -> None:
    answer: Any = parse.decoded(f'[{{"price": {number}}}, {{"price": 5}}]'.encode(), keeps_endless=True)

    assert answer[1] == {"price": 5}
    price = answer[0]["price"]
    readers = (
        parse.sats,
        parse.amount,
        parse.how_many,
        parse.milliseconds,
        parse.height,
        parse.label,
        parse.identifier,
    )
    for read in (*readers, lambda value, what: parse.tokens(value, 0, what)):
        if read is parse.label and isinstance(price, int):
            continue  # makers of collections use numbers as names
        with pytest.raises(parse.Unreadable):
            read(price, "a number")


@pytest.mark.parametrize("number", ENDLESS)
def test_a_write_whose_answer_has_an_endless_number_stays_unknown(number: str) -> None:
    with pytest.raises(parse.Unreadable):
        parse.decoded(f'{{"success": true, "price": {number}}}'.encode())


def test_price_above_all_sats_does_not_count_as_an_offer() -> None:
    assert asked_price(parse.decoded(b"9" * 60, keeps_endless=True), "price") is None
    assert asked_price(5, "price") == Decimal(5)


def test_a_rune_has_no_more_units_than_its_number_holds() -> None:
    assert parse.tokens(2**128 - 1, 0, "tokens") == 2**128 - 1
    with pytest.raises(parse.Unreadable):
        parse.tokens(2**128, 0, "tokens")
