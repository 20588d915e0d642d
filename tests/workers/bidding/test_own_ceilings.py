"""Ceilings and limits of a task and its user, and a low hard cap."""

from __future__ import annotations

from decimal import Decimal

import pytest

from models.ledger import orders
from models.ledger.limits import Holder, Readings, exposure_limits_of, limits_of, most_sats
from models.ledger.orders import ExposureLimits, NewOrder, SoldInto
from models.ledger.states import CLOSED, LIVE, Order
from models.tasks.tasks import RUNNING
from models.users import User
from strategy.config.bid import ActiveHours, BidConfig
from strategy.decision import Limits
from strategy.reasons import Reason
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, START_MS, World, ask
from workers.bidding.own_bids import Explainer
from workers.context import Faults

LADDER = replace(CATS, bid_mode="fixed", bid_count=3, bid_fixed_low=45_000, bid_fixed_high=75_000)


@pytest.fixture
def high_floor(world: World) -> None:
    world.market.asks_ = [ask(1_000_000)]


def lower(world: World, **ceilings: int | None) -> None:
    User.update(**ceilings).where(User.id == world.user.id).execute()


@pytest.mark.usefixtures("high_floor")
@pytest.mark.parametrize("hardcap_sats", [0, 50_000, 100_000])
def test_no_bid_is_above_the_users_largest_hard_cap(world: World, hardcap_sats: int) -> None:
    lower(world, max_hardcap=60_000)
    task, _ = world.begun(replace(LADDER, hardcap_sats=hardcap_sats))

    assert max(world.market.prices) == min(60_000, hardcap_sats or 60_000)
    assert world.row(task).last_error is None


@pytest.mark.usefixtures("high_floor")
def test_an_order_of_so_many_sats_is_no_larger_than_the_users_largest_hard_cap(world: World) -> None:
    config = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity_mode="sats", sats_per_order=100_000)
    world.market.asks_ = [ask(20_000, quantity=200)]
    lower(world, max_hardcap=50_000)
    task, bidder = world.begun(replace(config, hardcap_sats=100_000, bid_count=2))
    placed = list(world.market.prices)
    assert len(placed) == 2 and 49_000 < min(placed) <= max(placed) <= 50_000
    world.later(30, bidder, times=4)
    assert [kind for kind, _ in world.market.done] == ["place"] * 2, "all are kept"
    assert world.row(task).last_error is None


@pytest.mark.usefixtures("high_floor")
def test_all_tasks_together_stay_within_the_users_own_exposure(world: World) -> None:
    lower(world, max_exposure=150_000)
    for slug in ("cats", "dogs", "owls"):
        world.begun(replace(LADDER, slug=slug))

    assert 0 < orders.exposure(world.user.id) <= 150_000


@pytest.mark.parametrize(
    ("ceilings", "left", "said"),
    [
        ({"max_hardcap": 50_000}, {50_000, 47_000, 45_000}, "placed 2, kept 1, cancelled 2 (hardcap)"),
        ({"max_hardcap": 44_000}, set(), "cancelled 3 (hardcap)"),
        ({"max_exposure": 140_000}, {75_000, 60_000}, "cancelled 1 (exposure_limit); skipped 1 exposure_limit"),
        ({"max_exposure": 1}, set(), "cancelled 3 (exposure_limit); skipped 3 exposure_limit"),
    ],
)
@pytest.mark.usefixtures("high_floor")
def test_a_running_task_obeys_a_lowered_ceiling_in_its_next_cycle_and_says_why(
    world: World, ceilings: dict[str, int], left: set[int], said: str
) -> None:
    task, bidder = world.begun(LADDER)
    assert world.open(task) == dict.fromkeys((75_000, 60_000, 45_000), "live")

    lower(world, **ceilings)
    world.later(30, bidder)

    assert world.open(task) == dict.fromkeys(left, "live")
    assert {bid.price for bid in world.market.own_} == left
    assert said in world.action(task)


@pytest.mark.usefixtures("high_floor")
def test_a_ceiling_that_falls_holds_among_running_tasks_and_one_that_rises_is_used_again(world: World) -> None:
    running = [world.begun(replace(LADDER, slug=slug)) for slug in ("cats", "dogs", "owls")]
    lower(world, max_exposure=200_000)
    for _, bidder in running:
        world.later(10, bidder)
    assert 0 < orders.exposure(world.user.id) <= 200_000

    lower(world, max_exposure=None)
    for _, bidder in running:
        world.later(30, bidder)
    assert orders.exposure(world.user.id) == 3 * (75_000 + 60_000 + 45_000)


@pytest.mark.parametrize(
    ("ceilings", "placed", "reason"),
    [
        ({"max_hardcap": 50_000}, [75_000, 45_000], "hardcap"),
        ({"max_exposure": 120_000}, [75_000, 45_000], "exposure_limit"),
        ({"max_exposure": 80_000}, [75_000], "exposure_limit"),
    ],
)
@pytest.mark.usefixtures("high_floor")
def test_a_ceiling_that_falls_between_decision_and_reservation_is_the_ledgers(
    world: World, ceilings: dict[str, int], placed: list[int], reason: str
) -> None:
    """The ladder is decided already; its reservations read the ceilings of that moment."""
    task = world.task(LADDER)

    def fall(point: str) -> None:
        if point == "after_reserve":
            lower(world, **ceilings)

    world.bidder(task, crash=fall).cycle()

    assert world.market.prices == placed
    assert reason in world.action(task)


FIXED = replace(CATS, bid_mode="fixed", bid_fixed_low=45_000, bid_fixed_high=60_000)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            replace(CATS, bid_percent_low=Decimal("0.5"), hardcap_sats=40_000),
            "failed to place: the hard cap is below bidPercentLow of the floor: raise it or use fixed mode",
        ),
        (replace(FIXED, hardcap_sats=40_000), "failed to place: the hard cap is below bidFixedLow: raise it"),
        (replace(CATS, hardcap_sats=9_000), "failed to place: the hard cap is below the market's least bid: raise it"),
        (CATS, None),
    ],
)
def test_it_is_the_last_error_of_a_task_that_runs(world: World, config: BidConfig, text: str | None) -> None:
    task = world.task(config)

    world.bidder(task).cycle()

    row = world.row(task)
    assert row.last_error == text
    assert ("skipped 5 range_empty" in row.last_cycle_action) is bool(text)
    assert row.desired == RUNNING


MINUTE_MS = 60_000


def order(world: World, task: int, price: int, created_ms: int, dry_run: bool = False) -> Order:
    new = NewOrder(
        intent=next(world.intents),
        task_id=task,
        user_id=world.user.id,
        venue="simulator",
        wallet=KEYS.payment,
        slug="cats",
        price_sats=price,
        quantity="1",
        expires_ms=START_MS + 10**9,
        token=world.row(task).token,
        dry_run=dry_run,
    )
    reserved = orders.reserve(new, ExposureLimits(0, 10**12, 0), created_ms)
    orders.move(reserved, "unknown", created_ms)
    orders.move(reserved, LIVE, created_ms)
    return reserved


def limits(world: World, task: int | None, now_ms: int = START_MS, **config: object) -> Limits:
    changed = replace(CATS, **config)  # type: ignore[arg-type]
    holder = Holder(world.user.id, task, changed, world.settings.plans["beta"])
    return limits_of(holder, Readings(balance_sats=1, fee_reserve_sats=2, untracked_sats=1_000), 0, now_ms)


def test_what_other_tasks_and_untracked_bids_hold_is_not_left(world: World) -> None:
    mine, other = world.task(), world.task(replace(CATS, slug="dogs"))
    order(world, mine, 52_000, START_MS)
    order(world, other, 60_000, START_MS)
    order(world, other, 7_000, START_MS, dry_run=True)
    assert limits(world, mine).user_headroom == 50_000_000 - 60_000 - 1_000
    assert limits(world, mine, dry_run=True).user_headroom == 50_000_000 - 7_000
    assert limits(world, None).user_headroom == 50_000_000 - 112_000 - 1_000


def test_a_wrong_clock_does_not_hide_that_it_is_not_the_hour(world: World) -> None:
    minute = START_MS // MINUTE_MS % 1_440
    begin, end = (f"{m // 60 % 24:02d}:{m % 60:02d}" for m in (minute + 1, minute + 2))
    plan, read = world.settings.plans["beta"], Readings(1, 2, skew_s=61.0)

    def hold(config: BidConfig) -> Reason | None:
        return limits_of(Holder(world.user.id, world.task(config), config, plan), read, 0, START_MS).hold

    assert hold(replace(CATS, active_hours=ActiveHours("UTC", begin, end))) is Reason.ACTIVE_HOURS
    assert hold(replace(CATS, slug="dogs")) is Reason.CLOCK_SKEW


def test_a_range_of_nothing_has_no_bid() -> None:
    assert most_sats(replace(CATS, bid_mode="fixed", bid_fixed_high=0, hardcap_sats=0)) == 0


def test_fills_pause_then_burst_then_neither(world: World) -> None:
    task = world.task()
    assert limits(world, task).hold is None
    for minute in range(3):
        filled = order(world, task, 52_000, START_MS)
        orders.fill(filled, START_MS + minute * 2 * MINUTE_MS, SoldInto(f"sale-{minute}"))
    last_ms = START_MS + 4 * MINUTE_MS
    assert limits(world, task, last_ms).hold is Reason.FILL_BURST
    assert limits(world, task, START_MS + 10 * MINUTE_MS - 1).hold is Reason.FILL_BURST
    assert limits(world, task, START_MS + 10 * MINUTE_MS).hold is None
    assert limits(world, task, START_MS - 60 * MINUTE_MS).hold is None, "the clock was an hour ahead at these fills"
    Order.delete().where(Order.sale_id != "sale-2").execute()
    assert limits(world, task, last_ms + MINUTE_MS - 1).hold is Reason.FILL_PAUSE
    assert limits(world, task, last_ms + MINUTE_MS).hold is None
    assert limits(world, task, last_ms - 30_000).hold is Reason.FILL_PAUSE, "a clock that was set back voids no pause"
    assert limits(world, task, last_ms - MINUTE_MS).hold is None, "nor does it make one last"
    assert limits(world, task, last_ms - 1, pause_after_fill_seconds=0).hold is None
    left = limits(world, task, max_fills=3, spend_cap_sats=60_000)
    assert (left.fills_left, left.spend_left_sats) == (2, 8_000)
    assert (limits(world, task).fills_left, limits(world, task).spend_left_sats) == (None, None)
    spent = limits(world, task, max_fills=1, spend_cap_sats=52_000)
    assert (spent.fills_left, spent.spend_left_sats) == (0, 0)


def test_the_ledger_refuses_what_the_limits_leave_no_room_for() -> None:
    base = Limits(0, 1_000, 20, 1, 1)

    def exposure_limits(config: object = CATS, **left: object) -> ExposureLimits:
        return exposure_limits_of(config, None, replace(base, **left), 5, 0)  # type: ignore[arg-type]

    assert exposure_limits() == ExposureLimits(task=0, user=0, installation=5, count=5)
    assert exposure_limits(replace(CATS, max_bid_total=900), spend_left_sats=700).task == 700
    assert exposure_limits(replace(CATS, max_bid_total=600), spend_left_sats=700).task == 600
    assert exposure_limits(spend_left_sats=0).task == 1, "0 would be no limit"
    assert (exposure_limits(fills_left=2).count, exposure_limits(fills_left=2).fills) == (5, 2)
    assert exposure_limits(fills_left=0).fills == 0
    assert exposure_limits(plan_bids=0).task == 1, "a count of 0 would be no limit"


def test_a_sale_from_before_an_order_explains_an_older_one_only(world: World) -> None:
    task = world.task()
    older = order(world, task, 52_000, START_MS)
    world.market.add(52_000, None)
    world.clock.advance(60)
    world.market.sell(52_000)
    younger = order(world, task, 52_000, world.clock.now_ms + 3_000)
    explainer = Explainer(world.context(task).market, frozenset({KEYS.payment}), task, Faults())
    assert not explainer.fill(younger, world.clock())
    assert explainer.fill(older, world.clock())
    assert (older.state, older.close_reason) == (CLOSED, "filled")


def test_a_bid_on_paper_keeps_no_sale_from_a_real_one(world: World) -> None:
    task = world.task()
    on_paper = order(world, task, 52_000, START_MS)
    Order.update(dry_run=True).where(Order.id == on_paper.id).execute()
    world.market.add(52_000, None)
    world.clock.advance(60)
    world.market.sell(52_000)
    real = order(world, task, 52_000, world.clock.now_ms + 3_000)
    explainer = Explainer(world.context(task).market, frozenset({KEYS.payment}), task, Faults())
    assert explainer.fill(real, world.clock())


def test_no_sales_are_read_where_the_last_order_was_closed_meanwhile(world: World) -> None:
    task = world.task()
    mine = order(world, task, 52_000, START_MS)
    Order.update(state=CLOSED, close_reason="cancelled", closed_ms=world.clock()).where(Order.id == mine.id).execute()
    explainer = Explainer(world.context(task).market, frozenset({KEYS.payment}), task, Faults())
    assert not explainer.fill(mine, world.clock(), is_confirmed=True)
    assert explainer.is_in_the_dark(mine)
