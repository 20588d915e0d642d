"""Profit: sales matched with what they cost, to the sat."""

from __future__ import annotations

import random
from collections import deque
from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest

from strategy.profit import AVERAGE, BUY, FIFO, METHODS, SELL, ProfitRow, Trade, cost_and_profit, match, rows_of
from tests.examples import part_of

A, B = "aa" * 32 + "i0", "bb" * 32 + "i0"
DAY_MS = 86_400_000


def trade(side: str, price: int, at: int, *, fee: int | None = 0, item: str | None = None, **more: object) -> Trade:
    """Of an item, or of `quantity` tokens of a rune."""
    is_rune = "quantity" in more
    values = {"venue": "simulator", "slug": "DOG" if is_rune else "goosinals", "task_id": 1, "quantity": Decimal(1)}
    values |= {"is_rune": is_rune, "inscription_id": item} | more
    return Trade(id=f"{side}-{at}", side=side, at_ms=at, price_sats=price, fee_sats=fee, **values)  # type: ignore[arg-type]


ITEMS = [
    trade(BUY, 75_000, 1, fee=600, item=A),
    trade(BUY, 80_000, 2, fee=600, item=B),
    trade(SELL, 105_000, 3, fee=2_100, item=A, task_id=2),
]
RUNES = [
    trade(BUY, 2_000, 1, quantity=Decimal(1_000)),
    trade(BUY, 3_000, 2, quantity=Decimal(1_000)),
    trade(SELL, 4_500, 3, quantity=Decimal(1_500)),
]


def month_of(ms: int) -> str:
    """Of months of 31 days."""
    return f"month {ms // (31 * DAY_MS)}"


def only(trades: list[Trade], method: str = FIFO) -> ProfitRow:
    (row,) = rows_of(trades, "none", method, month_of)
    return row


def test_the_worked_example_of_items() -> None:
    row = only(ITEMS)
    assert (len(row.bought), row.bought_sats, len(row.sold), row.sold_sats) == (2, 155_000, 1, 105_000)
    assert (row.matched, row.realized_sats, row.fees_sats, row.realized_percent) == (1, 27_300, 2_700, Decimal("36.1"))
    assert (len(row.held), row.held_sats, row.unmatched_sales, row.unknown_fees) == (1, 80_600, 0, 0)
    (sale,) = match(ITEMS).sales
    assert cost_and_profit(sale) == (75_600, 27_300)


@pytest.mark.parametrize(
    ("method", "realized", "held", "percent"), [(FIFO, 1_000, 1_500, "28.5"), (AVERAGE, 750, 1_250, "20")]
)
def test_the_worked_example_of_runes(method: str, realized: int, held: int, percent: str) -> None:
    row = only(RUNES, method)
    assert (row.realized_sats, row.held_sats, row.realized_percent) == (realized, held, Decimal(percent))
    assert sum(lot.quantity for lot in row.held) == 500


def test_an_item_is_matched_by_its_id_alone_and_with_its_newest_purchase() -> None:
    found = [
        trade(BUY, 10, 1, item=A),
        trade(BUY, 20, 2, item=None),
        trade(BUY, 30, 3, item=A),
        trade(SELL, 100, 4, item=B),
        trade(SELL, 100, 5, item=A),
        trade(SELL, 100, 6, item=None),
    ]
    row = only(found)
    assert (row.realized_sats, row.matched, row.unmatched_sales) == (70, 1, 2)
    assert [lot.purchase.at_ms for lot in row.held] == [1, 2]


def test_a_sale_before_its_purchase_is_not_matched() -> None:
    row = only([trade(SELL, 100, 1, item=A), trade(BUY, 10, 2, item=A)])
    assert (row.matched, row.unmatched_sales, row.realized_sats, row.realized_percent) == (0, 1, 0, None)
    assert row.held_sats == 10


@pytest.mark.parametrize("method", METHODS)
def test_of_a_sale_that_was_bought_here_in_part_that_part_counts(method: str) -> None:
    """Of 1,500 tokens for 4,500 sats, less 30, the 1,000 that were bought cost 2,000: 3,000 - 20 - 2,000."""
    row = only([RUNES[0], trade(SELL, 4_500, 3, fee=30, quantity=Decimal(1_500))], method)
    assert (row.realized_sats, row.matched, row.unmatched_sales, row.held) == (980, 1, 1, [])
    assert cost_and_profit(row.sold[0]) is None


def test_a_loss_and_a_percentage_are_rounded_down() -> None:
    row = only([trade(BUY, 300, 1, item=A), trade(SELL, 200, 2, item=A)])
    assert (row.realized_sats, row.realized_percent) == (-100, Decimal("-33.4"))


def test_sums_are_rounded_once_in_the_end() -> None:
    """Three thirds of 100 sats are 100, and what one third cost is 34 when two thirds are held at 66."""
    lot = trade(BUY, 100, 1, quantity=Decimal(3))
    sales = [trade(SELL, 0, at, quantity=Decimal(1)) for at in (2, 3, 4)]
    assert only([lot, *sales]).realized_sats == -100
    row = only([lot, sales[0]])
    assert (row.realized_sats, row.held_sats) == (-34, 66)


def test_a_fee_that_is_not_known_counts_as_none_and_is_told() -> None:
    row = only([trade(BUY, 100, 1, fee=None, item=A), trade(SELL, 150, 2, fee=None, item=A)])
    assert (row.realized_sats, row.fees_sats, row.unknown_fees) == (50, 0, 2)


def test_bullets_of_a_ticker_do_not_make_another_rune() -> None:
    spelled = [trade(BUY, 10, 1, quantity=Decimal(1), slug="DO•G"), trade(SELL, 15, 2, quantity=Decimal(1), slug="DOG")]
    assert only(spelled).realized_sats == 5


def test_rows_by_task_slug_and_month() -> None:
    """A sale belongs to the task and the slug that bought the item, and to its own month."""
    found = [
        trade(BUY, 100, 0, item=A, task_id=10),
        trade(BUY, 100, 1, item=B, task_id=9),
        trade(SELL, 150, 40 * DAY_MS, item=A, task_id=11, slug=None),
        trade(SELL, 70, 41 * DAY_MS, item="other", task_id=11, slug=None),
    ]

    def shown(group_by: str, from_ms: int | None = None) -> list[tuple[object, int, int, int, int]]:
        rows = rows_of(found, group_by, FIFO, month_of, from_ms)
        return [(row.key, row.bought_sats, row.sold_sats, row.realized_sats, row.held_sats) for row in rows]

    assert shown("task") == [(9, 100, 0, 0, 100), (10, 100, 150, 50, 0), (11, 0, 70, 0, 0)]
    assert shown("slug") == [("goosinals", 200, 150, 50, 100), (None, 0, 70, 0, 0)]
    assert shown("month") == [("month 0", 200, 0, 0, 100), ("month 1", 0, 220, 50, 0)]
    assert shown("none", DAY_MS) == [(None, 0, 220, 50, 0)]
    assert only([]).realized_sats == 0 and rows_of([], "task", FIFO, month_of) == []


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="lifo"):
        match([], "lifo")


def history(rng: random.Random) -> list[Trade]:
    """Random trades of two runes and three items; more is sold at times than was ever bought."""
    found = []
    for at in range(rng.randint(1, 14)):
        side, fee = rng.choice((BUY, BUY, SELL)), rng.choice((None, 0, rng.randint(1, 999)))
        price = rng.choice((1, 3, 999, 10**12, rng.randint(1, 100_000)))
        if rng.random() < 0.6:
            runes = {"quantity": Decimal(rng.randint(1, 7)), "slug": rng.choice(("DOG", "CAT"))}
            found.append(trade(side, price, at, fee=fee, **runes))
        else:
            found.append(trade(side, price, at, fee=fee, item=rng.choice((A, B, None))))
    return found


def cost_by_single_tokens(trades: list[Trade]) -> Fraction:
    """The cost of all runes that were sold, by a queue of single tokens."""
    queues: dict[str | None, deque[Fraction]] = {}
    cost = Fraction(0)
    for each in trades:
        queue = queues.setdefault(each.slug, deque())
        count = int(each.quantity)
        if each.side == BUY:
            queue.extend([Fraction(each.price_sats + (each.fee_sats or 0), count)] * count)
        else:
            cost += sum(queue.popleft() for _ in range(min(count, len(queue))))
    return cost


@pytest.mark.sampled
@pytest.mark.slow
def test_no_sat_is_lost_or_made_in_10_000_histories() -> None:
    for seed in range(part_of(10_000, dear=True)):
        trades = history(random.Random(seed))
        paid = sum(each.price_sats + (each.fee_sats or 0) for each in trades if each.side == BUY)
        runes = [each for each in trades if each.is_rune]
        for method in METHODS:
            matching, row = match(trades, method), only(trades, method)
            cost = sum(sale.cost.sats for sale in matching.sales)
            held = sum(lot.cost.sats for lot in matching.held)
            gained = sum((sale.sale.price_sats - (sale.sale.fee_sats or 0)) * sale.share for sale in matching.sales)
            assert cost + held == paid, seed
            assert sum(sale.realized_sats for sale in matching.sales) == gained - cost, seed
            # In whole sats as they are told, too.
            assert row.held_sats + ceil(cost) == paid, seed
            if all(sale.share in (0, 1) for sale in matching.sales):
                assert row.realized_sats == gained - ceil(cost), seed
            tokens = sum(lot.quantity for lot in matching.held if lot.purchase.is_rune)
            sold = sum(Fraction(sale.sale.quantity) * sale.share for sale in matching.sales if sale.sale.is_rune)
            assert tokens + sold == sum(each.quantity for each in runes if each.side == BUY), seed
        by_order = sum(sale.cost.sats for sale in match(runes).sales)
        assert by_order == cost_by_single_tokens(runes), seed
