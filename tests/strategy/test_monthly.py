"""The cost of a month of tasks at a marketplace, and the expiry from which it fits a quota."""

from __future__ import annotations

import pytest

from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig
from strategy.monthly import (
    Bidding,
    CallCosts,
    KeyQuota,
    MonthlyCalls,
    Selling,
    all_fit_from_minutes,
    bids_carried,
    fits_from_minutes,
    monthly_calls,
    rune_calls,
    usable,
)
from tests.shapes import replace

ADAPTIVE = BidConfig(slug="cats", hardcap_sats=100_000)
CATS = replace(ADAPTIVE, loop_seconds=30)
OUTBIDDING = replace(CATS, outbid_enabled=True)
RUNE = BidConfig(slug="AAA•BBB", type="rune", hardcap_sats=100_000, loop_seconds=30)
QUOTA = 100_000
ROUNDS, CYCLES, LOOKS = 2_880, 86_400, 4_320  # of 16 minutes, of 30 seconds, of ten minutes
OWN = CYCLES // 2  # every second cycle takes the own bids of the one before
TEXTS = CallCosts()
# A place is a draft and an offer, each cancel ends one bid, and a bid lives for six hours at the least.
DRAFTS = CallCosts(
    place=2, cancel=1, cancels_at_once=1, own_bids_by_slug=True, life_s=lambda wanted_s: max(wanted_s, 6 * 3600)
)


def alone(config: BidConfig, bids: int, costs: CallCosts = TEXTS) -> MonthlyCalls:
    return monthly_calls([Bidding(config, bids)], costs)


def test_one_bid_at_the_default_expiry_is_about_three_thousand_places() -> None:
    one, two = alone(CATS, 1), alone(CATS, 2)
    assert two.writes - one.writes == ROUNDS
    assert one.writes == 3 * ROUNDS
    # A slug alone has its asks read in each cycle. A round reads own bids anew, before its cancels and after them.
    assert one.reads == CYCLES + OWN + 3 * ROUNDS
    assert alone(OUTBIDDING, 1).reads == 2 * CYCLES + OWN + 3 * ROUNDS


def test_while_nothing_moves_a_task_without_a_loop_of_its_own_looks_every_two_minutes() -> None:
    cycles = CYCLES // 4 + ROUNDS * 3 // 4  # three in four renewals are in a cycle of their own
    assert alone(ADAPTIVE, 1).reads == 2 * cycles + 2 * ROUNDS
    assert alone(ADAPTIVE, 1).writes == alone(CATS, 1).writes
    rivals = replace(ADAPTIVE, outbid_enabled=True)
    assert alone(rivals, 1) == alone(OUTBIDDING, 1)


def test_a_renewal_is_in_the_first_cycle_that_finds_it_due() -> None:
    """Of 16 minutes the last 90 s; a bid that was placed in a cycle, a moment after its beginning."""
    assert Bidding(CATS, 1).round_s(TEXTS) == 900
    assert Bidding(replace(CATS, bid_expiry_minutes=120), 1).round_s(TEXTS) == 7_140
    assert Bidding(replace(CATS, loop_seconds=45), 1).round_s(TEXTS) == 855


def test_where_floors_do_not_tell_asks_all_are_read() -> None:
    blind = replace(TEXTS, floors_at_once=0)
    assert alone(CATS, 1, blind).reads == CYCLES + OWN + 3 * ROUNDS
    assert alone(CATS, 1, blind).least == alone(CATS, 1).least


def test_floors_of_many_slugs_are_one_call() -> None:
    def reads(slugs: int) -> int:
        tasks = [Bidding(replace(CATS, slug=f"cats-{n}"), 0, "a") for n in range(slugs)]
        return monthly_calls(tasks, TEXTS).reads

    assert reads(1) == CYCLES + OWN
    assert reads(2) == CYCLES + OWN + 2 * LOOKS
    assert reads(40) == CYCLES + OWN + 40 * LOOKS
    assert reads(41) == 2 * CYCLES + OWN + 41 * LOOKS


def test_so_a_hundred_thousand_calls_carry_about_thirty_bids() -> None:
    assert bids_carried(QUOTA, TEXTS) == 31
    assert bids_carried(QUOTA, DRAFTS) == 375  # they live for six hours, and each place is two calls
    assert bids_carried(2_500, TEXTS) == 0


def test_what_cannot_be_saved_are_the_rounds_and_one_look_in_ten_minutes() -> None:
    assert alone(CATS, 5).least == ROUNDS * (5 + 2 + 4) + 2 * LOOKS
    assert alone(OUTBIDDING, 5).least == ROUNDS * (5 + 2 + 5) + 3 * LOOKS
    assert alone(RUNE, 5).least == ROUNDS * (5 + 2 + 3) + LOOKS  # its asks are another provider's
    assert alone(CATS, 0).least == 2 * LOOKS
    assert alone(replace(CATS, loop_seconds=3_600, bid_expiry_minutes=10_080), 0).least == 2 * 720


def test_a_dry_run_looks_at_the_books_only() -> None:
    assert alone(replace(CATS, dry_run=True), 0) == MonthlyCalls(CYCLES, 0, LOOKS)


def test_where_a_bid_is_drafted_and_lives_for_hours() -> None:
    rounds = 2_592_000 // (6 * 3600 - 60)
    assert rounds == 120
    made = alone(CATS, 5, DRAFTS)
    assert made.writes == rounds * 5 * (2 + 1)
    assert made.least == made.writes + rounds * 4 + 2 * LOOKS
    day = replace(CATS, bid_expiry_minutes=24 * 60)
    assert alone(day, 5, DRAFTS).writes == 2_592_000 // (86_400 - 60) * 15


def test_one_slug_is_read_once_and_one_wallet_is() -> None:
    mine, bidder = Bidding(CATS, 5, "a"), monthly_calls([Bidding(CATS, 5, "a")], TEXTS)
    shared = monthly_calls([mine, Bidding(replace(CATS, slug="Cats "), 0, "a")], TEXTS)
    assert shared == bidder
    another_slug = monthly_calls([mine, Bidding(replace(CATS, slug="dogs"), 0, "a")], TEXTS)
    assert another_slug.least - bidder.least == LOOKS
    assert 0 < another_slug.reads - bidder.reads < 3 * LOOKS  # both floors come in one call
    another_wallet = monthly_calls([mine, Bidding(CATS, 0, "b")], TEXTS)
    assert (another_wallet.reads - bidder.reads, another_wallet.least - bidder.least) == (OWN, LOOKS)


def test_whose_asks_are_read_all_the_time_needs_no_floor() -> None:
    outbidding = monthly_calls([Bidding(OUTBIDDING, 0, "a")], TEXTS)
    assert monthly_calls([Bidding(OUTBIDDING, 0, "a"), Bidding(CATS, 0, "a")], TEXTS) == outbidding


def test_writes_are_nobody_elses() -> None:
    both = monthly_calls([Bidding(CATS, 5, "a"), Bidding(CATS, 3, "b")], TEXTS)
    assert both.writes == alone(CATS, 5).writes + alone(CATS, 3).writes


def test_own_bids_are_read_slug_by_slug_where_they_are_told_so() -> None:
    tasks = [Bidding(CATS, 0, "a"), Bidding(replace(CATS, slug="dogs"), 0, "a")]
    assert monthly_calls(tasks, TEXTS).least == 3 * LOOKS
    assert monthly_calls(tasks, DRAFTS).least == 4 * LOOKS


def test_whoever_asks_most_often_is_who_pays() -> None:
    slow = Bidding(replace(CATS, loop_seconds=3_600, bid_expiry_minutes=180), 0, "a")
    assert monthly_calls([slow], TEXTS) == MonthlyCalls(2 * 720, 0, 2 * 720)
    quick = monthly_calls([Bidding(CATS, 0, "a")], TEXTS)
    assert monthly_calls([slow, Bidding(CATS, 0, "a")], TEXTS).least == quick.least
    assert monthly_calls([Bidding(CATS, 0, "a"), slow], TEXTS).least == quick.least


@pytest.mark.parametrize(
    ("config", "reads"),
    [
        (ListingConfig(), 2),
        (ListingConfig(price_mode="undercut"), 2),
        (ListingConfig(reference="lastSale"), 2),
        (ListingConfig(price_mode="fixed", price_sats=1), 1),
    ],
)
def test_a_listing_is_looked_at_with_what_its_price_hangs_on(config: ListingConfig, reads: int) -> None:
    assert monthly_calls([Selling(config, "cats", "a")], TEXTS) == MonthlyCalls(reads * CYCLES, 0, reads * LOOKS)


def test_sellers_and_bidders_share_the_asks() -> None:
    both = monthly_calls([Bidding(CATS, 0, "a"), Selling(ListingConfig(), "cats", "a")], TEXTS)
    assert both == MonthlyCalls(2 * CYCLES + OWN, 0, 3 * LOOKS)


def test_the_asks_of_runes_are_paid_for_where_they_come_from() -> None:
    tasks = [Bidding(RUNE, 5, "a"), Bidding(replace(RUNE, slug="aaabbb"), 0, "b"), Bidding(CATS, 5, "a")]
    assert rune_calls((task, TEXTS) for task in tasks) == MonthlyCalls(CYCLES, 0, LOOKS + ROUNDS)
    assert rune_calls([(tasks[0], TEXTS), (tasks[0], DRAFTS)]).least == LOOKS + ROUNDS + 120
    assert rune_calls([(Bidding(CATS, 5), TEXTS)]) == MonthlyCalls(0, 0, 0)


@pytest.mark.parametrize("config", [CATS, OUTBIDDING, RUNE, replace(CATS, loop_seconds=600, bid_expiry_minutes=60)])
@pytest.mark.parametrize("bids", [1, 5, 30, 100])
@pytest.mark.parametrize("costs", [TEXTS, DRAFTS])
def test_it_fits_from_the_least_expiry_on(config: BidConfig, bids: int, costs: CallCosts) -> None:
    assert usable(QUOTA) == 90_000
    minutes = fits_from_minutes(Bidding(config, bids), [], QUOTA, costs)
    assert minutes is not None
    assert alone(replace(config, bid_expiry_minutes=minutes), bids, costs).least <= 90_000
    floor = max(15, -(-(2 * config.loop_s + 60) // 60))
    assert minutes >= floor
    if minutes > floor:
        assert alone(replace(config, bid_expiry_minutes=minutes - 1), bids, costs).least > 90_000


def test_examples() -> None:
    def minutes(bids: int, *others: Bidding, quota: int = QUOTA) -> int | None:
        return fits_from_minutes(Bidding(CATS, bids, "a"), others, quota, TEXTS)

    dogs = Bidding(replace(CATS, slug="dogs"), 15, "a")
    assert minutes(5) == 15
    assert minutes(30) == 21
    assert minutes(100) == 58
    assert minutes(10, dogs) == 43  # of 90,000 the dogs take 69,120
    assert minutes(5, quota=8_000) is None  # not even the looks


def test_all_together_where_longer_ones_stay() -> None:
    thirty = Bidding(CATS, 30, "a")
    dogs = Bidding(replace(CATS, slug="dogs"), 30, "a")
    assert all_fit_from_minutes([thirty, dogs], QUOTA, TEXTS) == 42  # 1,053 rounds of 72, and 12,960 looks
    patient = replace(dogs, config=replace(dogs.config, bid_expiry_minutes=600))
    assert all_fit_from_minutes([thirty, patient], QUOTA, TEXTS) == 22
    assert all_fit_from_minutes([thirty, dogs], QUOTA + 10_000, TEXTS, taken=9_000) == 42
    assert all_fit_from_minutes([thirty, dogs], 10_000, TEXTS) is None
    assert all_fit_from_minutes([Selling(ListingConfig(), "cats")], QUOTA, TEXTS) == 16
    raised = [thirty.living(42), dogs.living(42)]
    assert monthly_calls(raised, TEXTS).least <= 90_000 < monthly_calls([t.living(41) for t in raised], TEXTS).least


@pytest.mark.parametrize(
    ("monthly", "daily", "period", "usable_calls"),
    [
        (60_000, 2_000, "day", 1_800),
        (60_000, 2_001, "month", 54_000),
        (60_000, 0, "month", 54_000),
        (0, 10, "day", 9),
        (0, 0, "month", 0),
    ],
)
def test_the_tightest_quota_is_the_one_that_fewer_calls_fit_into(
    monthly: int, daily: int, period: str, usable_calls: int
) -> None:
    found = KeyQuota.tightest(monthly, daily)
    assert (found.period, found.usable) == (period, usable_calls)


def test_a_days_share_of_a_months_calls_is_rounded_up() -> None:
    assert [KeyQuota(2_000, 1).share(calls) for calls in (0, 1, 30, 31)] == [0, 1, 1, 2]
    assert KeyQuota(60_000).share(31) == 31
