"""A month's quota and the signer's allowance: how they slow a task down, and how they are reported."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import AskBook, Refused
from markets.client import Scarcity
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED, Task
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.decision import SignedRoom
from strategy.monthly import Bidding, CallCosts, fits_from_minutes, monthly_calls
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask
from wallet.signer_client import SignerRefused
from workers.bidding.writes import CEILINGS

LOW = 15_000  # the lowest rung on a floor of 100,000


def test_the_lowest_rungs_wait_and_the_owner_reads_why(world: World) -> None:
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240, rungs=2)

    world.bidder(task).cycle()

    assert world.market.prices == [75_000, 60_000]
    counts = "placed 2, kept 0, cancelled 0; skipped 3 quota"
    assert world.action(task) == f"{counts}; the market is read every 240 s (quota)"
    assert "only the top 2 of the ladder get new bids" in str(world.row(task).last_error)


def test_a_low_bid_is_not_cancelled_and_not_renewed(world: World) -> None:
    _, bidder = world.begun()
    assert LOW in world.market.prices
    world.market.scarcity = Scarcity(stretch_s=600, rungs=1)
    world.market.done.clear()
    world.clock.now_ms += 15 * 60_000  # a minute before they expire

    bidder.cycle()

    assert [done for done in world.market.done if done[0] == "place"] == [("place", 75_000)]
    assert LOW in world.market.prices


def test_a_book_of_some_minutes_ago_is_no_unknown_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a short month would cancel everything: without a reason, one of more than two minutes ago counts as none."""
    for stretch_s, told in ((600, None), (0, "no_reference")):
        task, bidder = world.begun(replace(CATS, slug=f"cats{stretch_s}"))
        old = AskBook(tuple(world.market.asks_), world.clock())
        monkeypatch.setattr(world.market, "asks", lambda *_, old=old, **__: old)
        world.market.scarcity = Scarcity(stretch_s=stretch_s)
        world.clock.now_ms += 300_000

        bidder.cycle()

        assert (told is not None) == (str(told) in world.detail(task)["rungs"][0]["reason"]), stretch_s
        monkeypatch.undo()


def test_what_the_gateway_refuses_is_closed_and_ends_placing(world: World) -> None:
    task = world.task()
    world.market.fail("place", Refused("quota", "the month's quota of calls runs short"))

    world.bidder(task).cycle()

    assert world.market.prices == []
    assert world.open(task) == {}
    assert world.closed() == [(75_000, "refused")]
    assert world.action(task).startswith("placed 0, kept 0, cancelled 0; skipped 1 quota, 4 put_off")


def test_a_rune_is_read_by_the_quota_of_its_source(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its asks may be minutes old while the marketplace has calls enough; a collection's may not."""
    rune = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity_mode="quantity")
    for config, reason in ((rune, "kept"), (CATS, "no_reference")):
        task, bidder = world.begun(config)
        old = AskBook(tuple(world.market.asks_), world.clock())
        monkeypatch.setattr(world.market, "rune_asks", lambda *_, old=old, **__: old)
        monkeypatch.setattr(world.market, "asks", lambda *_, old=old, **__: old)
        world.market.rune_scarcity = Scarcity(stretch_s=600)
        world.clock.now_ms += 300_000

        bidder.cycle()

        assert world.detail(task)["rungs"][0]["reason"] == reason
        assert ("the market is read every 600 s (quota)" in world.action(task)) == (config is rune)
        monkeypatch.undo()


ALL = "placed 5, kept 0, cancelled 0"
COSTS = CallCosts()


def with_quota(monkeypatch: pytest.MonkeyPatch, world: World, calls: int, daily: int = 0) -> None:
    settings = replace(world.settings, satflow_monthly_calls=calls, satflow_daily_calls=daily)
    monkeypatch.setattr(World, "settings", property(lambda _: settings))


def change(task: int, config: BidConfig) -> None:
    Task.update(config=dump_bid_config(config)).where(Task.id == task).execute()


def test_a_healthy_line_is_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 100_000)
    task, _ = world.begun()
    assert world.action(task) == ALL


def test_without_a_quota_nothing_is_said_or_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def must_not_be_asked(*_: Any, **__: Any) -> None:
        raise AssertionError("the tables of tasks were read")

    monkeypatch.setattr("workers.bidding.report.running_tasks", must_not_be_asked)
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240)
    world.bidder(task).cycle()
    assert world.action(task) == f"{ALL}; the market is read every 240 s (quota)"


def test_while_the_quota_is_short_the_cost_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 100_000)
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240)
    world.bidder(task).cycle()
    least = monthly_calls([Bidding(CATS, 5)], COSTS).least
    assert world.action(task) == (
        f"{ALL}; the market is read every 240 s (quota); a month of this takes {least:,} calls at the least, which fits"
    )


def test_what_does_not_fit_says_from_which_expiry_on_it_would(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 60_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()

    mine, dogs = Bidding(CATS, 5, world.user.id), Bidding(replace(CATS, slug="dogs"), 5, world.user.id)
    alone, together = monthly_calls([mine], COSTS).least, monthly_calls([mine, dogs], COSTS).least
    minutes = fits_from_minutes(mine, [dogs], 60_000, COSTS)
    assert minutes is not None
    assert world.action(task) == (
        f"{ALL}; a month of this takes {alone:,} calls at the least, with all other tasks {together:,} of 54,000: "
        f"fits from bidExpiryMinutes {minutes} on"
    )
    assert world.row(task).last_error is None

    change(task, replace(CATS, bid_expiry_minutes=minutes))
    world.bidder(task).cycle()
    assert "a month" not in world.action(task)


def test_where_the_day_is_tightest_the_cost_of_a_day_is_held_against_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_quota(monkeypatch, world, 100_000, daily=2_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()
    mine, dogs = Bidding(CATS, 5, world.user.id), Bidding(replace(CATS, slug="dogs"), 5, world.user.id)
    alone, together = (-(-monthly_calls(tasks, COSTS).least // 30) for tasks in ([mine], [mine, dogs]))
    minutes = fits_from_minutes(mine, [dogs], 60_000, COSTS)
    assert world.action(task) == (
        f"{ALL}; a day of this takes {alone:,} calls at the least, with all other tasks {together:,} of 1,800: "
        f"fits from bidExpiryMinutes {minutes} on"
    )


def test_what_never_fits_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 5_000)
    task, _ = world.begun()
    assert world.action(task).endswith("of 4,500: no bidExpiryMinutes is long enough for that to fit")


def test_what_one_task_alone_cannot_make_fit_all_can(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with_quota(monkeypatch, world, 20_000)
    task = world.task()
    world.task(replace(CATS, slug="dogs"))
    world.bidder(task).cycle()
    assert world.action(task).endswith("76,320 of 18,000: fits from bidExpiryMinutes 189 in every task on")


def test_it_is_reckoned_anew_when_the_config_changes_and_from_time_to_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_quota(monkeypatch, world, 60_000)
    task, other = world.task(), world.task(replace(CATS, slug="dogs"))
    bidder = world.bidder(task)
    bidder.cycle()
    assert "a month" in world.action(task)

    tasks.set_desired(Task.get_by_id(other), STOPPED)
    bidder.cycle()
    assert "a month" in world.action(task), "who else runs is not looked up at each cycle"
    world.later(601, bidder)
    assert "a month" not in world.action(task)

    change(task, replace(CATS, bid_count=15))
    bidder.cycle()
    assert "a month" in world.action(task)


MOST = 1_000_000


def rooms(world: World, signed: int) -> tuple[SignedRoom, ...]:
    now_ms = world.clock.now_ms
    ends_ms = (now_ms + 42_000, now_ms + 150_000, now_ms + 151_000)
    return (SignedRoom("task", MOST, signed, ends_ms[0], 0, ends_ms, (110_000, signed // 2, signed)),)


def test_what_does_not_fit_waits_from_the_bottom_and_says_when_room_comes_back(world: World) -> None:
    task = world.task()
    world.signer.rooms_ = rooms(world, MOST - 280_000)
    world.bidder(task).cycle()
    row = world.row(task)
    assert row.last_error is None
    assert world.market.prices == [75_000, 60_000]
    assert "placed 2" in world.action(task) and "signed_limit" in world.action(task)
    assert "; patience x 2.65 (signatures 72 %)" in world.action(task)
    waiting = [rung for rung in world.detail(task)["rungs"] if rung["reason"] == "signed_limit"]
    assert [rung["rung"] for rung in waiting] == [2, 3, 4]
    assert [rung["detail"] for rung in waiting] == [
        "task, kept for renewals, frees in 42 s",
        *["task, kept for renewals, frees in 150 s"] * 2,
    ], "the first expiry frees enough for the first bid alone"
    assert world.detail(task)["signed"] == [{"whose": "task", "most_sats": MOST, "signed_sats": MOST - 280_000}]


def test_a_task_with_room_does_not_speak_of_it_and_asks_only_when_it_places(world: World) -> None:
    task = world.task()
    world.signer.rooms_ = rooms(world, 0)
    bidder = world.bidder(task)
    bidder.cycle()
    asked = world.signer.asked_rooms
    assert len(world.market.prices) == 5 and asked == 1
    world.later(30, bidder)
    assert world.signer.asked_rooms == asked
    assert "patience" not in world.action(task)


def test_a_task_that_is_patient_asks_until_it_need_not_be(world: World) -> None:
    task = world.task()
    world.signer.rooms_ = rooms(world, MOST)
    bidder = world.bidder(task)
    bidder.cycle()
    assert world.market.prices == []
    world.signer.rooms_ = rooms(world, 0)
    world.later(30, bidder)
    assert len(world.market.prices) == 5


def test_a_dry_run_signs_nothing_and_asks_for_no_room(world: World) -> None:
    task = world.task(replace(CATS, dry_run=True))
    world.signer.rooms_ = rooms(world, MOST)
    world.bidder(task).cycle()
    assert world.signer.asked_rooms == 0
    assert "placed 5" in world.action(task)


ONE_FOR_LONG = replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000, bid_expiry_minutes=120)


def lives() -> list[tuple[int, int]]:
    """Returns price and minutes of every bid, oldest first."""
    rows = Order.select().order_by(Order.id)
    return [(each.price_sats, (each.expires_ms - each.created_ms) // 60_000) for each in rows]


def test_where_one_bid_after_the_other_soon_has_to_go_the_next_is_signed_for_less_time(world: World) -> None:
    _, bidder = world.begun(ONE_FOR_LONG)
    for floor in (40_000, 30_000):
        world.clock.advance(600)
        world.market.asks_ = [ask(floor)]
        bidder.cycle()
    world.later(2_100, bidder)
    assert lives() == [(52_000, 120), (39_000, 120), (29_000, 36), (29_000, 120)]


def test_so_is_one_that_comes_cycles_later_since_the_cancel_was_not_confirmed(world: World) -> None:
    _, bidder = world.begun(ONE_FOR_LONG)
    for floor, answers in ((40_000, []), (30_000, ["lost"])):
        world.clock.advance(600)
        world.market.asks_ = [ask(floor)]
        world.market.fail("cancel", *answers)
        bidder.cycle()
    assert lives() == [(52_000, 120), (39_000, 120)]
    world.later(6, bidder, times=3)
    assert lives() == [(52_000, 120), (39_000, 120), (29_000, 36)]


def test_a_cheap_listing_that_comes_and_goes_shortens_no_life(world: World) -> None:
    _, bidder = world.begun(ONE_FOR_LONG)
    for floor in (40_000, 100_000) * 3:
        world.clock.advance(600)
        world.market.asks_ = [ask(floor)]
        bidder.cycle()
    assert [price for price, _ in lives()] == [52_000, *[39_000, 52_000] * 3]
    assert {life for _, life in lives()} == {120}


@pytest.mark.parametrize("field", ["bid_fixed_high", "hardcap_sats"])
def test_what_goes_since_its_owner_wants_another_one_shortens_no_life(world: World, field: str) -> None:
    task, _ = world.begun(ONE_FOR_LONG)
    for most in (45_000, 40_000, 35_000):
        world.clock.advance(600)
        config = dump_bid_config(replace(ONE_FOR_LONG, **{field: most}))  # type: ignore[arg-type]
        tasks.change_bidding_task(world.row(task), type="ordinals", slug="cats", slug_key="cats", config=config)
        world.later(6, world.bidder(task), times=2)
    assert {life for _, life in lives()} == {120} and len(lives()) == 4


@pytest.mark.parametrize("tag", sorted(CEILINGS))
def test_another_task_that_was_faster_makes_it_wait_and_is_no_fault(world: World, tag: str) -> None:
    task = world.task()
    world.signer.script += [None, SignerRefused(tag, "5 sats signed and not expired")]
    bidder = world.bidder(task)
    delay = bidder.cycle()
    assert world.row(task).last_error is None
    assert world.market.prices == [75_000]
    assert "signed_limit" in world.action(task)
    assert delay is not None and delay <= 40, "no back-off"
    world.later(30, bidder)
    assert len(world.market.prices) == 5
    assert world.row(task).last_error is None
