"""A preview's hints about the price of a config: calls, places in the queue, signatures."""

from __future__ import annotations

from decimal import Decimal

from strategy.config.bid import BidConfig
from strategy.decision import Limits, SignedRoom
from strategy.monthly import Bidding, CallCosts, hints, moves_an_hour
from tests.shapes import replace

TEXTS = CallCosts()
CATS = BidConfig(slug="cats", hardcap_sats=100_000)
EXPOSURE, LADDER = 5_000_000, 225_000


def told(config: BidConfig = CATS, bids: int = 5, total: int = LADDER, costs: CallCosts = TEXTS) -> list[str]:
    limits = Limits(0, EXPOSURE, 20, 10**9, 500)
    return hints(Bidding(config, bids), costs, total, limits)


def test_a_longer_life_is_worth_a_word_where_bids_live_sixteen_minutes() -> None:
    [text] = told()
    assert text.startswith("at 120 minutes this ladder takes ")
    assert "placed again 7.9 times less often" in text
    assert "may then be moved 44 times an hour" in text and "instead of" not in text.split("; ")[1]


def test_with_all_the_exposure_in_use_it_says_what_longer_lives_take_away() -> None:
    [text] = told(total=EXPOSURE)
    assert "each bid may then be moved 1.5 times an hour instead of 11, for a signature counts" in text


def test_a_ladder_that_can_hardly_move_is_told_so() -> None:
    long = replace(CATS, bid_expiry_minutes=120)
    [text] = told(long, total=EXPOSURE)
    assert text.startswith("with 5,000,000 sats in bids that live 120 minutes")
    assert "moved 1.5 times an hour" in text
    assert told(long) == []


def test_a_loop_of_its_own_is_told_what_it_costs_only_where_rivals_do_not_matter() -> None:
    long = replace(CATS, bid_expiry_minutes=120, loop_seconds=30)
    [text] = told(long)
    assert text.startswith("without loopSeconds this task looks every 30 seconds while the market moves")
    assert told(replace(long, outbid_enabled=True)) == []
    assert told(replace(long, loop_seconds=120)) == []


def test_where_lives_are_of_hours_anyway_no_longer_one_is_advised() -> None:
    assert told(costs=replace(TEXTS, life_s=lambda wanted_s: max(wanted_s, 6 * 3600))) == []


def test_without_bids_there_is_nothing_to_say() -> None:
    assert told(bids=0) == []


def test_moves() -> None:
    assert moves_an_hour(EXPOSURE, 4 * EXPOSURE, 16 * 60) == Decimal("11.25")
    assert moves_an_hour(EXPOSURE, 4 * EXPOSURE, 120 * 60) == Decimal("1.5")
    assert moves_an_hour(4 * EXPOSURE, 4 * EXPOSURE, 60) == 0


def test_the_narrowest_of_the_signers_ceilings_counts() -> None:
    rooms = (SignedRoom("user", 4 * EXPOSURE, 0), SignedRoom("task", 2 * LADDER, 0))
    limits = Limits(0, EXPOSURE, 20, 10**9, 500, signed=rooms)
    long = replace(CATS, bid_expiry_minutes=120)
    [text] = hints(Bidding(long, 5), TEXTS, LADDER, limits)
    assert "each may be moved 0.5 times an hour" in text
