"""The places of our bids among those of others."""

from __future__ import annotations

import random
from decimal import Decimal

from strategy.book import Bid
from strategy.decision import BidPlan, Memory, PlannedBid, PlannedCancel, RungNote, ranks, ranks_ahead, ranks_of_plan
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds.market import NOW, bid, order


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


def test_where_a_bid_is_not_known_only_the_first_rank_is() -> None:
    ours, others = [order(1, 70_000), order(2, 50_000)], [bid(60_000)]
    assert ranks(ours, others, is_whole=False) == {1: 1}
    assert ranks(ours, [bid(80_000)], is_whole=False) == {}


def test_rungs_rank_as_they_stand_once_the_plan_is_carried_out() -> None:
    """Rung 0 is placed and rung 1 renewed among older equals; rung 2 is held, and a bid of no rung is ahead of it."""
    plan = BidPlan(
        reference=None,
        to_cancel=(
            PlannedCancel(2, 60_000, hard=False, reason=Reason.RENEW),
            PlannedCancel(5, 95_000, hard=True, reason=Reason.HARDCAP),
        ),
        to_place=(PlannedBid(0, 80_000, Decimal(1)), PlannedBid(1, 65_000, Decimal(1))),
        rungs=(
            RungNote(0, 80_000, Reason.PLACE),
            RungNote(1, 65_000, Reason.RENEW, 2),
            RungNote(2, 50_000, Reason.KEPT, 3),
            RungNote(3, 40_000, Reason.TASK_TOTAL),
        ),
        bids=(),
        memory=Memory(),
    )
    old = NOW - 1_000
    own = [
        order(2, 60_000, created_ms=old),
        order(3, 50_500, created_ms=old),
        order(4, 55_000, created_ms=old),
        order(5, 95_000, created_ms=old),
    ]
    others: list[Bid] = [bid(80_000, placed_ms=NOW - 9), bid(50_500, placed_ms=NOW - 9)]

    assert ranks_of_plan(plan, own, others, NOW) == {0: 2, 1: 3, 2: 5}
    assert ranks_of_plan(plan, own, others, NOW, is_whole=False) == {}
