"""Listings that come in several answers and in no order of price, as at Ordinals Wallet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.reads import books
from markets.base import NotUnderstood
from tests.gateway.conftest import Bench
from tests.gateway.fake_venue import Call

ESCROWS = "/ordinalswallet/collection/cats/escrows"


def _escrows(rows: int, most: int) -> Callable[[Call], list[dict[str, Any]]]:
    """Listings, the cheapest last, 60 in an answer unless more are asked for, at most `most`."""

    def answer(call: Call) -> list[dict[str, Any]]:
        start, limit = int(call.query.get("offset", 0)), min(int(call.query.get("limit", 60)), most)
        prices = [(number, 100_000 - number) for number in range(rows)][start : start + limit]
        return [{"id": f"e{number}", "inscription_id": "1i0", "satoshi_price": price} for number, price in prices]

    return answer


def test_cheapest_listing_of_a_second_answer_leads_the_book(bench: Bench) -> None:
    bench.venue.answers[ESCROWS] = _escrows(203, 10_000)
    book = bench.client("simulator-ordinalswallet").asks("cats", 0)
    assert book.asks[0].order_id == "e202" and len(book.asks) == 200
    assert len(bench.venue.calls) == 2


def test_unsorted_listings_beyond_the_answers_that_are_read_are_not_understood(bench: Bench) -> None:
    bench.venue.answers[ESCROWS] = _escrows(203, 60)
    with pytest.raises(NotUnderstood, match="no order of price"):
        bench.client("simulator-ordinalswallet").asks("cats", 0)
    assert len(bench.venue.calls) == books.BOOK_PAGES
