"""A worker keeps to the signer's ceilings and says so: what does not fit waits, and no refusal is a fault."""

from __future__ import annotations

import pytest

from models.ledger.states import Order
from models.tasks import tasks
from strategy.config.bid import dump_bid_config
from strategy.decision import SignedRoom
from tests.shapes import replace
from tests.worlds.worker import CATS, World, ask
from wallet.signer_client import SignerRefused
from workers.bidding.writes import CEILINGS

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
