"""The places of our bids among those of others."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal

from strategy.ranking import ranks, ranks_ahead
from tests.strategy.market import NOW, bid, order


def test_the_higher_bid_of_a_token_ranks_first_and_the_older_of_equals() -> None:
    ours = [order(1, 70_000), order(2, 60_000, created_ms=NOW - 5), order(3, 60_000, created_ms=NOW - 9)]
    others = [bid(80_000), bid(60_000, placed_ms=NOW - 7), bid(60_000, placed_ms=NOW - 1), bid(120_000, "2")]
    assert ranks(ours, others) == {1: 2, 3: 4, 2: 6}


def test_a_bid_of_unknown_age_counts_as_the_older_one() -> None:
    assert ranks([order(1, 60_000, created_ms=1)], [bid(60_000, placed_ms=None), bid(60_000)]) == {1: 2}


def test_without_rivals_only_our_own_bids_count() -> None:
    assert ranks([order(1, 5), order(2, 7)], []) == {2: 1, 1: 2}
    assert ranks([], [bid(5)]) == {}


def test_ranks_are_those_of_counting_one_by_one() -> None:
    chance = random.Random(4)
    for _ in range(300):
        ours = [
            replace(order(number, chance.randint(1, 9) * 12, created_ms=chance.randint(1, 4)), quantity=Decimal(amount))
            for number, amount in enumerate(chance.choices((1, 2, 3, 4), k=5), start=1)
        ]
        others = [
            bid(chance.randint(1, 9) * 12, str(chance.randint(1, 4)), chance.choice((None, 1, 2, 3, 4)))
            for _ in range(8)
        ]
        for each, rank in ranks(ours, others).items():
            mine = next(own for own in ours if own.id == each)
            unit = (-Decimal(mine.price_sats) / mine.quantity, mine.created_ms, mine.id)
            own_ahead = sum((-Decimal(o.price_sats) / o.quantity, o.created_ms, o.id) < unit for o in ours)
            assert rank == 1 + own_ahead + sum(not ranks_ahead(mine, other) for other in others)
