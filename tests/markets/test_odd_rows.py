"""Rows are read one by one: an odd one is left out and counted, its answer refused only where it could matter."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from markets.base import AskBook, OwnBids, Sales
from markets.look import is_sure_of
from markets.parse import Best, Foreign, Page, Unread, Unreadable, asked_price, each_row, identifier, noting, sats
from strategy.book import Ask

CHEAPEST_FIRST: Best[int] = Best(Decimal, lambda row: asked_price(row.get("price"), "price"), is_lowest=True)
DEAREST_FIRST: Best[int] = CHEAPEST_FIRST._replace(is_lowest=False)
UNSORTED: Best[int] = CHEAPEST_FIRST._replace(is_sorted=False)


def price_of(row: Mapping[str, Any]) -> int | None:
    if row.get("over"):
        return None
    if row.get("slug", "ours") != "ours":
        raise Foreign("another collection")
    identifier(row.get("id"), "id")
    return sats(row.get("price"), "price", least=1)


def read(*rows: Any, best: Best[int] | None = None) -> Page[int]:
    return each_row(rows, "listing", price_of, key=lambda row: identifier(row.get("id"), "id"), best=best)


def row(price: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "a", "price": price, **fields}


@pytest.mark.parametrize("odd", [None, [], 7, "x", {}, row(None), row(0), row("12x"), row(-1), row(True), row(10**30)])
def test_odd_row_is_left_out_with_its_place_in_the_reason(odd: Any) -> None:
    found = read(row(1), odd, row(3))
    assert found.entries == (1, 3)
    (unread,) = found.unread
    assert unread.why.startswith("listing 2: ")


def test_row_left_out_has_its_id_where_that_can_be_read() -> None:
    assert [each.key for each in read(row(1), row("x", id="b"), row("x", id=7), None, row(2), row(3)).unread] == [
        "b",
        "",
        "",
    ]


def test_row_that_is_over_is_passed_over_and_not_counted() -> None:
    assert read(row(1), row("x", over=True)) == Page((1,), None)


def test_answer_without_an_understood_row_is_refused() -> None:
    for rows in ([None], [row("x"), None], [row(1, slug="theirs"), row(2, slug="theirs")]):
        with pytest.raises(Unreadable, match="not understood"):
            read(*rows)
    assert read() == Page((), None)


def test_answer_with_more_odd_rows_than_understood_ones_is_refused() -> None:
    assert read(row(1), row("x")).entries == (1,)
    with pytest.raises(Unreadable, match="2 of 3 rows"):
        read(row(1), row("x"), None)


def test_rows_about_different_things_never_refuse_the_answer() -> None:
    found = each_row([row("x", id="b"), None, row(3)], "listing", price_of, refuses=False)
    assert (found.entries, len(found.unread)) == ((3,), 2)


def test_foreign_rows_refuse_an_answer_only_when_all_are() -> None:
    found = read(*[row(1, slug="theirs")] * 9, row(5))
    assert found.entries == (5,)
    assert all(each.is_foreign for each in found.unread) and len(found.unread) == 9


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([row("x"), row(5), row(6)], CHEAPEST_FIRST),  # it comes before the cheapest
        ([row(5), row(6), row(4, id=7)], CHEAPEST_FIRST),  # its price is readable, and lower
        ([row(5), row(4), row(6, id=7)], DEAREST_FIRST),
        ([row(5), row(6), row("x")], UNSORTED),
        ([row(5), row(9), row("x"), row(6)], CHEAPEST_FIRST),  # the venue does not keep its order
        ([row(5, over=True), row(4, id=7)], CHEAPEST_FIRST),  # an empty book would be a guess
    ],
)
def test_book_is_refused_when_the_best_price_may_be_in_an_odd_row(rows: list[Any], best: Best[int]) -> None:
    assert read(*rows).unread
    with pytest.raises(Unreadable, match="best price may be"):
        read(*rows, best=best)


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([None, row(5), row(6)], CHEAPEST_FIRST),
        ([row(None), row(5), row(6)], CHEAPEST_FIRST),  # without a price it is not an offer
        ([row(0), row(5), row(6)], UNSORTED),
        ([row(10**30), row(5), row(6)], UNSORTED),
        ([row(5), row("x"), row(6)], CHEAPEST_FIRST),  # by the venue's order it is not cheaper
        ([row(7, id=7), row(5), row(6)], CHEAPEST_FIRST),
        ([row(1, slug="theirs"), row(5)], CHEAPEST_FIRST),  # a bundle's price is not an item's
    ],
)
def test_book_is_read_without_an_odd_row_that_cannot_be_the_best(rows: list[Any], best: Best[int]) -> None:
    assert len(read(*rows, best=best).unread) == 1


def test_rows_left_out_are_noted_in_the_thread_that_listens() -> None:
    heard: list[Unread] = []
    with noting(heard.append):
        found = read(row(1), None)
    read(row(1), None)
    assert tuple(heard) == found.unread


def test_order_that_may_be_in_an_unread_row_is_not_gone() -> None:
    assert not OwnBids((), 0).may_hold("a")
    assert not OwnBids((), 0, ("b",)).may_hold("a")
    assert OwnBids((), 0, ("a",)).may_hold("a")
    assert OwnBids((), 0, ("",)).may_hold("a")
    assert OwnBids((), 0, ("b",)).may_hold(None)


def test_unread_sale_may_hide_a_fill_of_its_time_or_of_any() -> None:
    assert not Sales((), 9, 0).may_hide(0)
    assert not Sales((), 9, 0, (4,)).may_hide(5)
    assert Sales((), 9, 0, (5,)).may_hide(5)
    assert Sales((), 9, 0, (None,)).may_hide(5)


@pytest.mark.parametrize(
    ("odd", "best", "may_be"),
    [
        (row(7, id=7), CHEAPEST_FIRST, True),
        (row("x"), CHEAPEST_FIRST, True),
        (row(None), CHEAPEST_FIRST, False),
        (row(10**30), CHEAPEST_FIRST, False),
        (None, CHEAPEST_FIRST, False),
        (row(7, slug="theirs"), CHEAPEST_FIRST, False),
        (row(None), None, True),  # a later page: nothing is known of its prices
    ],
)
def test_row_left_out_tells_whether_it_may_be_an_offer(odd: Any, best: Best[int] | None, may_be: bool) -> None:
    (unread,) = read(row(5), row(6), odd, best=best).unread
    assert unread.may_be_offer is may_be


def test_cheapest_of_a_part_of_a_book_is_sure_only_without_hidden_asks_or_as_cheapest_of_all() -> None:
    cheap, dear = (Ask("a", price, Decimal(1), Decimal(price), "m") for price in (5, 7))
    assert is_sure_of(AskBook((cheap, dear), 1, None, 9, 0), (dear,))
    assert is_sure_of(AskBook((cheap, dear), 1, None, 9, 1), (cheap,))
    assert not is_sure_of(AskBook((cheap, dear), 1, None, 9, 1), (dear,))
    assert not is_sure_of(AskBook((cheap,), 1, None, 9, 1), ())


def test_later_page_with_one_odd_row_does_not_refuse_the_pages_before_it() -> None:
    assert each_row([None], "listing", price_of, refuses=False) == Page(
        (), None, (Unread("listing 1: listing is missing or null"),)
    )
