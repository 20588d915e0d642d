"""Rules of every plan, for any market, config, orders and limits: 22,000 random cycles, always the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random

import pytest

from strategy.decision import BidPlan, PlannedBid, missing_sats
from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace
from tests.strategy.checked_case import Case
from tests.strategy.checker import violations
from tests.strategy.listings import REASONS
from tests.strategy.random_cycles import Cycle, random_cycle
from tests.worlds.market import AMPLE, NOW, ORDINALS, RULES, book, carry_out, ladder_config, orders, plan, rivals

CHUNK = 1_000
PUT_OFF = (Reason.RENEW_WAITS, Reason.NO_OVERLAP)


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, part_of(22, dear=True) * CHUNK, CHUNK))
def test_every_plan_keeps_every_rule(first: int) -> None:
    for seed in range(first, first + CHUNK):
        cycle = random_cycle(Random(seed))
        result = cycle.plan()

        assert violations(cycle.case(result)) == [], seed
        assert in_another_order(cycle, seed).plan() == result, seed
        left = after(cycle, result)
        again = left.plan()
        for _ in range(cycle.config.bid_count):
            if not is_put_off(cycle, result):
                break
            # What was put off comes next, some of it each time.
            assert [each for each in violations(left.case(again)) if "raises" not in each] == [], seed
            result, left = again, after(left, again)
            again = left.plan()
        assert (again.to_cancel, again.to_place) == ((), ()), seed


def is_put_off(cycle: Cycle, result: BidPlan) -> bool:
    """Tells whether there is more to do at once: with makeFirst whatever has no room yet beside what is to go."""
    waits = any(cancel.after_rung is not None for cancel in result.to_cancel)
    makes_first = cycle.config.replace_mode == "makeFirst" and waits
    return makes_first or any(note.reason in PUT_OFF for note in result.bids)


def in_another_order(cycle: Cycle, seed: int) -> Cycle:
    """Returns the same cycle: in which order own orders, asks and bids are told means nothing."""
    rng, own = Random(seed), list(cycle.own)
    rng.shuffle(own)
    market = cycle.snapshot
    if market is not None:
        asks, bids = list(market.asks), list(market.bids or ())
        rng.shuffle(asks)
        rng.shuffle(bids)
        market = replace(market, asks=tuple(asks), bids=None if market.bids is None else tuple(bids))
    return replace(cycle, own=tuple(own), snapshot=market)


def after(cycle: Cycle, result: BidPlan) -> Cycle:
    """Returns the same market once everything has worked."""
    return replace(cycle, own=tuple(carry_out(cycle.config, cycle.own, result)), memory=result.memory)


@pytest.mark.thorough
@pytest.mark.slow
def test_random_cycles_reach_every_kind_of_decision() -> None:
    """Guards the test above: properties of cycles in which nothing happens would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in range(4_000):
        result = random_cycle(Random(seed)).plan()
        seen.update(
            {note.reason.value for note in (*result.rungs, *result.bids)} | {mark.value for mark in result.marks}
        )
        seen["both"] += bool(result.to_place and result.to_cancel)
        seen["raise"] += any(note.detail == "raise" for note in result.rungs)

    rare = {reason.value for reason in set(Reason) - REASONS if seen[reason.value] < 3}
    # Whoever carries out the plan gives these; test_monthly.py, test_handover.py and the signer's room have tests
    # of their own.
    assert rare == {"own_bids_unknown", "reduce", "halt", "bid_count", "quota", "signed_limit", "renew_waits"}
    assert min(seen["place"], seen["kept"], seen["both"], seen["not_highest"]) > 100
    assert min(seen["raise"], seen["outbid"], seen["step_down"], seen["below_lot"]) > 10


class TestTheCheckerFindsFaults:
    """It shares no code with the strategy, and what it would not notice it does not guard."""

    CONFIG = ladder_config(outbid_enabled=True, only_bid_if_highest=True, hardcap_sats=60_000)
    MARKET = rivals(book(100_000), 30_000)
    OWN = tuple(orders(52_000, 20_000))

    def case(self, result: BidPlan | None = None) -> Case:
        made = result or plan(self.CONFIG, self.MARKET, self.OWN)
        return Case(self.CONFIG, ORDINALS, self.MARKET, self.OWN, AMPLE, RULES, NOW, made)

    def test_there_is_none(self) -> None:
        assert violations(self.case()) == []

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda made: with_place(made, 61_000), "above the hard cap"),
            (lambda made: with_place(made, 100_000), "reaches an ask"),
            (lambda made: with_place(made, 40_500), "no price of the venue"),
            (lambda made: with_place(made, 14_000), "outside the range"),
            (lambda made: with_place(made, 76_000), "outside the range"),
            (lambda made: with_place(made, 30_000), "will not be the highest"),
            (lambda made: with_place(made, 45_000), "above the least that wins"),
            (lambda made: with_place(made, 40_000, quantity=Decimal(2)), "another quantity"),
            (lambda made: with_place(made, 40_000, trait=("Hat", "Crown")), "another trait"),
            (lambda made: with_place(made, 40_000), "places and notes differ"),
            (lambda made: replace(made, to_cancel=()), "not the highest"),
            (lambda made: replace(made, to_cancel=made.to_cancel * 2), "cancelled twice"),
            (lambda made: replace(made, to_cancel=made.to_cancel[::-1]), "out of order"),
            (lambda made: replace(made, rungs=made.rungs[1:]), "every rung"),
            (lambda made: replace(made, bids=made.bids[1:]), "every order"),
            (lambda made: replace(made, bids=tuple(replace(n, reason=Reason.KEPT) for n in made.bids)), "cancels and"),
            (lambda made: with_note(made, price_sats=32_000), "the least that wins"),
            (lambda made: with_note(made, detail="raise"), "raises and memory"),
        ],
    )
    def test_a_plan_that_breaks_a_rule(self, change: Callable[[BidPlan], BidPlan], words: str) -> None:
        found = violations(self.case(change(plan(self.CONFIG, self.MARKET, self.OWN))))

        assert any(words in each for each in found), found

    @pytest.mark.parametrize(
        ("limits", "words"),
        [
            ({"task_total": 60_000}, "pass a limit"),
            ({"user_headroom": 60_000}, "pass a limit"),
            ({"spend_left_sats": 60_000}, "pass a limit"),
            ({"spend_left_sats": 0}, "what stays passes a limit"),
            ({"fills_left": 1}, "may fill too often"),
            ({"plan_bids": 0}, "live bids stay"),
            ({"balance_sats": 31_999}, "does not cover"),
            ({"balance_sats": None}, "placed though it may not"),
            ({"hold": Reason.FILL_PAUSE}, "placed though it may not"),
        ],
    )
    def test_a_plan_that_breaks_a_limit(self, limits: dict[str, int], words: str) -> None:
        config = ladder_config(bid_count=2, bid_percent_high=Decimal("0.52"), bid_percent_low=Decimal("0.30"))
        made = plan(config, book(100_000), self.OWN[:1])
        case = Case(config, ORDINALS, book(100_000), self.OWN[:1], AMPLE, RULES, NOW, made)
        assert violations(case) == []

        assert any(words in each for each in violations(replace(case, limits=replace(AMPLE, **limits))))


def with_place(made: BidPlan, price: int, **changes: object) -> BidPlan:
    intent = replace(PlannedBid(0, price, Decimal(1)), **changes)  # type: ignore[arg-type]
    return replace(made, to_place=(intent,))


def with_note(made: BidPlan, **changes: object) -> BidPlan:
    return replace(made, rungs=(replace(made.rungs[0], **changes), *made.rungs[1:]))  # type: ignore[arg-type]


def test_the_missing_sats_are_enough_for_every_bid_that_the_balance_refused() -> None:
    rng, seen = Random(11), set[str]()
    for _ in range(4_000):
        cycle = random_cycle(rng)
        plan = cycle.plan()
        missing = missing_sats(cycle.entry(), plan)
        is_refused = any(note.reason is Reason.INSUFFICIENT_BALANCE for note in plan.rungs)
        assert bool(missing) == is_refused, cycle
        if is_refused and cycle.limits.balance_sats is not None:
            seen.add(cycle.profile.balance_model)
            limits = replace(cycle.limits, balance_sats=cycle.limits.balance_sats + missing)
            again = replace(cycle, limits=limits).plan()
            assert not any(note.reason is Reason.INSUFFICIENT_BALANCE for note in again.rungs), cycle
    assert seen == {"per_bid", "reserved"}
