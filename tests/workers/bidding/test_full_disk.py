"""A full disk, and what each class of fault does to a task."""

from __future__ import annotations

import pytest

from core import files
from models import users
from models.ledger import orders
from models.ledger.states import Order
from tests.disks import full_database
from tests.fault_classes import EFFECTS, Effect
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, World, ask, seconds


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "is_short", lambda directory: True)


def test_below_the_floor_bids_above_the_market_are_cancelled_and_none_is_placed(world: World, short: None) -> None:
    with pytest.MonkeyPatch.context() as enough:
        enough.setattr(files, "is_short", lambda directory: False)
        task, bidder = world.begun()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]

    pause = seconds(bidder.cycle())

    assert world.market.prices == [30_000]
    assert world.action(task).startswith("placed 0, kept 1, cancelled 4")
    row = world.row(task)
    assert "less than 64 MiB free" in str(row.last_error)
    assert row.last_error_code == "disk_full"
    assert pause > 20, "the cycles keep their pace"


def test_with_room_again_it_places(world: World) -> None:
    task = world.task()
    with pytest.MonkeyPatch.context() as short:
        short.setattr(files, "is_short", lambda directory: True)
        bidder = world.bidder(task)
        bidder.cycle()
    assert world.market.prices == []
    world.later(30, bidder)
    assert world.market.prices == LADDER
    assert world.row(task).last_error is None


def test_a_full_disk_keeps_no_cancel_from_being_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task, bidder = world.begun()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    monkeypatch.setattr(files, "is_short", lambda directory: True)
    with full_database():
        pause = seconds(bidder.cycle())
        assert world.market.prices == [30_000]
        assert pause <= 30
        world.market.asks_ = [ask(35_000)]
        world.later(30, bidder)
        assert world.market.prices == []
    assert set(world.open(task).values()) == {"live"}, "nothing could be stored"


def test_halt_on_a_full_disk_cancels_and_a_drain_does_too(world: World) -> None:
    task, bidder = world.begun()
    users.put_control("task", task, "halt", None, world.clock())
    with full_database():
        world.later(1, bidder)
        assert world.market.prices == []
    other, _ = world.begun(replace(CATS, slug="dogs"))
    drain = world.drain(other)
    with full_database():
        drain.cycle()
    assert world.market.prices == []


def test_an_order_cancelled_without_a_row_is_closed_once_there_is_room(world: World) -> None:
    task, bidder = world.begun()
    users.put_control("task", task, "halt", None, world.clock())
    with full_database():
        world.later(1, bidder)
        world.later(30, bidder)
    assert world.open(task), "nothing could be stored"
    world.later(30, bidder, times=3)
    assert world.open(task) == {}
    assert world.closed() == [(price, "cancelled") for price in LADDER]


def test_without_the_worker_that_cancelled_it_an_order_is_in_doubt_until_it_ends(world: World) -> None:
    task, bidder = world.begun()
    users.put_control("task", task, "halt", None, world.clock())
    with full_database():
        world.later(1, bidder)
    successor = world.bidder(task)
    world.later(30, successor, times=3)
    assert set(world.open(task).values()) == {"unknown"}, "it may have been sold"
    world.later(3_600, successor, times=12)
    assert world.open(task) == {}


def test_an_order_sold_on_a_full_disk_is_filled_once_there_is_room(world: World) -> None:
    task, bidder = world.begun()
    sold = next(order for order in orders.open_orders(task) if order.price_sats == 75_000)
    with full_database():
        world.clock.advance(30)
        world.market.sell(75_000)
        bidder.cycle()
        world.later(30, bidder)
    world.later(30, bidder)
    assert Order.get_by_id(sold.id).close_reason == "filled"


def test_nothing_is_placed_that_cannot_be_stored_and_cancels_come_first(world: World) -> None:
    """The disk may be full for us alone: a quota leaves room for others, and the size shows no more."""
    _, bidder = world.begun()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    with full_database():
        bidder.cycle()
        bidder.cycle()
    assert world.market.prices == [45_000, 30_000, 15_000], "of more than the range allows none is left"
    assert len(world.market.placed) == 5
    world.later(30, bidder, times=3)
    assert len(world.market.prices) == 5


def test_another_fault_of_the_database_ends_the_cycle(world: World) -> None:
    _, bidder = world.begun()
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]
    with full_database("database disk image is malformed"), pytest.raises(Exception, match="malformed"):
        bidder.cycle()


LIVE_LADDER = dict.fromkeys([75_000, 60_000, 45_000, 30_000, 15_000], "live")


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_fault_of_a_write_ends_no_task_and_backs_off_by_its_class(world: World, effect: Effect) -> None:
    task = world.task()
    bidder = world.bidder(task)
    world.market.fail("place", effect.error)
    pause_s = seconds(bidder.cycle())
    assert world.row(task).last_error_code == effect.code
    assert (pause_s <= 1) is effect.backs_off
    first = {**dict(world.closed()), **world.open(task)}[75_000]
    assert first == effect.fate
    world.later(60, bidder)
    assert len(world.market.prices) >= 4, "it continues"


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
@pytest.mark.parametrize("operation", ["own_bids", "asks"])
def test_fault_of_a_read_ends_no_task_and_closes_no_order(world: World, effect: Effect, operation: str) -> None:
    task, _ = world.begun()
    assert world.open(task) == LIVE_LADDER
    world.market.fail(operation, *[effect.error] * 9)
    bidder = world.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert world.row(task).last_error_code == effect.code
    assert world.open(task) == LIVE_LADDER
    world.market.script.clear()
    world.later(60, bidder)
    assert (world.row(task).last_error, world.open(task)) == (None, LIVE_LADDER)
