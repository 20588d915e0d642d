"""What a month's quota leaves: patience, rationing, and rungs that wait."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig
from strategy.decision import Rules, SignedRoom, paced, patience_of, shortened_ms, used_percent
from strategy.fill import Ration
from strategy.ladders import Rung
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
from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace
from tests.strategy.random_cycles import random_cycle
from tests.worlds import market as m

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


MINUTE_MS = 60_000
LIFE_MS = 16 * MINUTE_MS


def room(signed: int, most: int = 1_000_000, whose: str = "task") -> SignedRoom:
    return SignedRoom(whose, most, signed, 5)


@pytest.mark.parametrize(
    ("signed", "patience", "percent"),
    [
        (0, "1", 0),
        (500_000, "1", 50),
        (502_000, "1.01", 50),
        (640_000, "2.05", 64),
        (900_000, "4", 90),
        (1_000_000, "4.75", 100),
        (1_200_000, "6.25", 120),
    ],
)
def test_patience_grows_from_half_use_on(signed: int, patience: str, percent: int) -> None:
    assert (patience_of([room(signed)]), used_percent([room(signed)])) == (Decimal(patience), percent)


def test_the_ceiling_that_is_used_most_counts() -> None:
    rooms = [room(100_000), room(6_400, 10_000, "user"), room(0, 10, "installation")]
    assert (patience_of(rooms), used_percent(rooms)) == (Decimal("2.05"), 64)
    assert (patience_of([]), used_percent([])) == (1, 0)
    assert (patience_of([room(5, 0)]), used_percent([room(5, 0)])) == (1, 0)


@pytest.mark.parametrize(
    ("signed", "age_s", "reach"),
    [(500_000, 60, "0.01"), (640_000, 132, "0.0205"), (900_000, 266, "0.04")],
)
def test_the_worked_example(signed: int, age_s: int, reach: str) -> None:
    rules = paced(Rules(), [room(signed)], LIFE_MS)
    assert (rules.min_age_ms // 1000, rules.reach, rules.tolerance) == (age_s, Decimal(reach), Decimal("0.01"))


@pytest.mark.parametrize(
    ("minutes", "loop_s", "patience", "lives"),
    [
        (120, 30, "1", 120),
        (120, 30, "2", 30),
        (120, 30, "2.05", 28),
        (120, 30, "4", 16),
        (16, 30, "4", 16),
        (15, 30, "4", 15),
        (120, 300, "4", 60),
        (30, 600, "4", 30),
    ],
)
def test_what_is_signed_while_patient_lives_less_long(minutes: int, loop_s: int, patience: str, lives: int) -> None:
    assert shortened_ms(minutes * MINUTE_MS, loop_s, Decimal(patience)) // MINUTE_MS == lives


@pytest.mark.parametrize(
    ("minutes", "loop_s", "patience", "stood_s", "lives"),
    [
        (120, 30, "1", 3600, 120),
        (120, 30, "1", 600, 36),
        (120, 30, "1", 60, 16),
        (120, 30, "2", 600, 30),
        (120, 30, "1", -5, 16),
        (15, 30, "1", 60, 15),
        (120, 300, "1", 60, 60),
    ],
)
def test_what_is_signed_where_a_bid_soon_had_to_go_lives_less_long(
    minutes: int, loop_s: int, patience: str, stood_s: int, lives: int
) -> None:
    life_ms = shortened_ms(minutes * MINUTE_MS, loop_s, Decimal(patience), stood_s * 1000)
    assert life_ms // MINUTE_MS == lives


def test_at_nine_tenths_a_ladder_that_moves_as_often_as_it_may_signs_what_comes_back() -> None:
    ceiling = 1_200_000
    age_ms = paced(Rules(), [room(ceiling * 9 // 10, ceiling)], LIFE_MS).min_age_ms
    signed_a_life = ceiling // 4 * LIFE_MS // age_ms
    assert abs(signed_a_life - ceiling * 9 // 10) < 1_000


def test_more_signed_is_never_less_patient_and_nothing_goes_too_far() -> None:
    before = Rules(tolerance=Decimal("0.1"), min_age_ms=0)
    for signed in range(0, 1_500_000, 7_000):
        rules = paced(Rules(tolerance=Decimal("0.1"), min_age_ms=0), [room(signed)], LIFE_MS)
        assert rules.min_age_ms >= before.min_age_ms and rules.reach >= before.reach
        assert rules.reach <= Decimal("0.2")
        before = rules
    slow = Rules(tolerance=Decimal("0.2"), min_age_ms=LIFE_MS)
    assert paced(slow, [room(990_000)], LIFE_MS).min_age_ms == LIFE_MS
    assert paced(slow, [room(990_000)], LIFE_MS).reach == Decimal("0.2")


MOST = 800_000


def refused(signed: int, others: int, *, free: int = 1, whose: str = "user") -> Reason | None:
    """Returns why a missing bid of 50,000 is not placed; without a free slot another one must make way for it."""
    rung = Rung(0, 50_000, Decimal(1), 50_000, 0, 0)
    Ration([SignedRoom(whose, MOST, signed, 1_000, others)], 0).share_out([rung], (), (), free)
    return rung.refused


def test_a_task_alone_may_use_all_that_nobody_else_shares() -> None:
    assert refused(MOST - 50_000, 0) is None
    assert refused(MOST - 49_999, 0) is Reason.SIGNED_LIMIT


@pytest.mark.parametrize(("others", "kept"), [(40_000, 60_000), (60_000, 90_000), (90_000, 100_000), (10**9, 100_000)])
def test_a_missing_bid_leaves_the_renewals_of_others_up_to_an_eighth(others: int, kept: int) -> None:
    assert refused(MOST - 50_000 - kept, others) is None
    assert refused(MOST - 50_000 - kept + 1, others) is Reason.SIGNED_LIMIT


@pytest.mark.parametrize(("others", "kept"), [(60_000, 90_000), (120_000, 180_000), (10**9, 200_000)])
def test_a_move_leaves_the_renewals_of_others_up_to_a_quarter(others: int, kept: int) -> None:
    assert refused(MOST - 50_000 - kept, others, free=0) is None
    assert refused(MOST - 50_000 - kept + 1, others, free=0) is Reason.SIGNED_LIMIT


def waiting(room: SignedRoom, now_ms: int, *prices: int) -> list[str]:
    """Returns what each missing bid waits for, "" for one that is placed."""
    rungs = [Rung(at, price, Decimal(1), price, 0, 0) for at, price in enumerate(prices)]
    Ration([room], now_ms).share_out(rungs, (), (), len(rungs))
    return [rung.detail for rung in rungs]


ENDS = ((20_000, 10_000), (150_000, 60_000), (400_000, 150_000))  # Unix ms, and the sats that have expired by then


def room_at(now_ms: int, signed: int, whose: str = "task", others: int = 0) -> SignedRoom:
    """Returns the room once those have expired whose end has come."""
    gone = max((freed for end, freed in ENDS if end <= now_ms), default=0)
    left = [(end, freed - gone) for end, freed in ENDS if end > now_ms]
    ends, freed = tuple(end for end, _ in left), tuple(sats for _, sats in left)
    return SignedRoom(whose, MOST, signed - gone, ends[0] if ends else None, others, ends, freed)


def test_room_is_dated_by_the_expiry_that_frees_enough() -> None:
    signed = MOST - 10_000
    assert waiting(room_at(0, signed), 0, 15_000) == ["task, frees in 20 s"]
    assert waiting(room_at(0, signed), 0, 50_000) == ["task, frees in 150 s"]
    assert waiting(room_at(0, signed), 0, 100_000) == ["task, frees in 400 s"]
    assert waiting(room_at(0, signed), 0, 200_000) == ["task"], "no known expiry frees that much"


@pytest.mark.parametrize("price", [15_000, 50_000, 100_000])
def test_a_bid_fits_at_the_time_that_was_named_and_not_before(price: int) -> None:
    signed = MOST - 10_000
    (words,) = waiting(room_at(0, signed), 0, price)
    at_ms = 1000 * int(words.removeprefix("task, frees in ").removesuffix(" s"))
    assert waiting(room_at(at_ms - 1, signed), at_ms - 1, price) != [""]
    assert waiting(room_at(at_ms, signed), at_ms, price) == [""]


def test_a_lower_bid_waits_for_the_bids_above_it_too() -> None:
    held = 3 * 30_000 // 2  # what the first one leaves for its own renewal before the second is signed
    signed = MOST - held
    details = waiting(room_at(0, signed), 0, 30_000, 30_000, 30_000)
    assert details == ["", "task, frees in 150 s", "task, frees in 400 s"]


def test_a_bid_that_the_ceiling_alone_would_take_says_what_the_rest_is_kept_for() -> None:
    assert waiting(room_at(0, MOST - 60_000, "user", 40_000), 0, 50_000) == ["user, kept for renewals, frees in 150 s"]
    assert waiting(room_at(0, MOST - 40_000, "user", 40_000), 0, 50_000) == ["user, frees in 400 s"]


def test_of_two_ceilings_the_one_that_frees_later_is_named() -> None:
    rung = Rung(0, 50_000, Decimal(1), 50_000, 0, 0)
    soon, late = SignedRoom("task", MOST, MOST, 9_000), room_at(0, MOST - 10_000, "user")
    Ration([soon, late], 0).share_out([rung], (), (), 1)
    assert rung.detail == "user, frees in 150 s"


def test_the_lowest_rungs_wait_first() -> None:
    for rungs, reasons in (
        (None, ["place"] * 5),
        (5, ["place"] * 5),
        (3, ["place"] * 3 + ["quota"] * 2),
        (0, ["quota"] * 5),
    ):
        result = m.plan(m.ladder_config(), m.book(100_000), limits=m.with_limits(rungs=rungs))

        assert m.rung_reasons(result) == reasons
        assert m.placed(result) == m.placed(m.plan(m.ladder_config(), m.book(100_000)))[:rungs]


def test_a_low_bid_is_left_alone_instead_of_being_renewed() -> None:
    top, low = 75_000, 15_000
    own = m.orders(top, low, expires_ms=m.NOW + m.MINUTE)

    result = m.plan(m.ladder_config(), m.book(100_000), own, m.with_limits(rungs=1))

    assert m.cancelled(result) == [(top, False, "renew")]
    assert m.placed(result) == [top]
    assert m.rung_reasons(result) == ["renew", "quota", "quota", "quota", "quota"]


def test_what_must_go_goes() -> None:
    result = m.plan(m.ladder_config(hardcap_sats=60_000), m.book(100_000), m.orders(75_000), m.with_limits(rungs=0))

    assert m.cancelled(result) == [(75_000, True, "hardcap")]
    assert m.placed(result) == []


@pytest.mark.sampled
def test_nothing_else_changes() -> None:
    """In random cycles: the same plan without new bids below, and no cancel but those that made room for them."""
    waited = 0
    seeds = part_of(3_000, dear=True)
    for seed in range(seeds):
        cycle = random_cycle(Random(seed))
        rungs = seed % 4
        ample = cycle.plan()
        short = replace(cycle, limits=replace(cycle.limits, rungs=rungs)).plan()

        if ample.to_place and cycle.limits.hold is None:
            assert short.to_place == tuple(each for each in ample.to_place if each.rung < rungs), seed
        # What was to wait for a bid that is not placed waits for nothing.
        all_, left = ({replace(cancel, after_rung=None) for cancel in made.to_cancel} for made in (ample, short))
        missing = all_ - left
        assert left <= all_, seed
        assert all(not cancel.hard and cancel.reason in (Reason.RENEW, Reason.OUTBID) for cancel in missing), seed
        waited += any(note.reason is Reason.QUOTA for note in short.rungs)
        notes = {note.order_id: note.reason for note in short.bids}
        assert all(notes[cancel.order_id] is Reason.QUOTA for cancel in missing), seed
    assert waited > seeds // 10
