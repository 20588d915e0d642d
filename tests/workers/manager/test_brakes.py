"""The manager's brakes: what they cancel, and what does not keep them from it."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError

from core.files import BrakeFile
from core.settings import Settings
from markets.base import OwnBids, SignInNeeded
from models import controls
from models.leases.leases import EVERYBODY
from models.ledger import closing, orders
from models.ledger.states import Order
from strategy.config.bid import BidConfig
from tests.workers.manager.brake_desk import FOUR, at_brakes, bids, due, halt, round_of
from tests.worlds.worker import World
from wallet.signer_client import SignerUnavailable
from workers.manager import brakes
from workers.manager.brakes import Brakes
from workers.manager.loop import Background


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    return at_brakes(world, monkeypatch)


class Desk:
    """Brakes in this loop, whose calls run in this thread unless `threads`."""

    def __init__(
        self,
        world: World,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        threads: bool = False,
        unwatched: Callable[[], Collection[int]] = tuple,
        sign_in: Callable[[Collection[int]], Awaitable[bool]] | None = None,
    ):
        async def at_once(call: Callable[[], Any]) -> Any:
            return call()

        if not threads:
            monkeypatch.setattr(brakes, "in_thread", at_once)
        self.woken: list[Collection[int]] = []
        self.background = Background()
        settings = Settings(data_dir=directory)
        self.brakes = Brakes(
            settings, EVERYBODY, self.background, world.clock, self.woken.append, unwatched, sign_in, look_s=0.05
        )

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self.background.cancel()
        self.brakes.close()


@pytest.fixture
def make_desk(here: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Desk]:
    return lambda **how: Desk(here, tmp_path, monkeypatch, **how)


async def test_row_is_followed_without_a_notice(here: World, make_desk: Callable[..., Desk]) -> None:
    task, desk = bids(here), make_desk()
    desk.background.run(desk.brakes.run())
    halt(here, task)
    await desk.until(lambda: here.market.own_ == [] and any(task in woken for woken in desk.woken))
    assert orders.open_orders(task) == []
    await desk.close()


async def test_halt_without_a_row_cancels_and_is_kept_over_a_kill(here: World, make_desk: Callable[..., Desk]) -> None:
    task, first = bids(here), make_desk()
    first.brakes.heed("task", task, "halt", here.clock())
    await first.close()  # before it has cancelled anything
    assert len(here.market.own_) == 4

    second = make_desk()
    second.background.run(second.brakes.run())
    await second.until(lambda: here.market.own_ == [])
    await second.close()


async def test_bids_of_an_unwatched_task_are_cancelled_and_no_other_task_s(
    here: World, make_desk: Callable[..., Desk]
) -> None:
    task, watched = bids(here), make_desk()
    watched.brakes.soon()
    watched.background.run(watched.brakes.run())
    await asyncio.sleep(0.2)
    assert len(here.market.own_) == 4
    await watched.close()

    desk = make_desk(unwatched=lambda: [task])
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: here.market.own_ == [])
    assert orders.open_orders(task) == []
    await desk.close()


async def test_brake_signs_in_where_no_drain_can_and_cancels_then(here: World, make_desk: Callable[..., Desk]) -> None:
    asked: list[Collection[int]] = []

    async def sign_in(tasks: Collection[int]) -> bool:
        asked.append(tasks)
        return True

    task = bids(here)
    here.market.fail("cancel", SignInNeeded("no session"))
    desk = make_desk(unwatched=lambda: [task], sign_in=sign_in)
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: here.market.own_ == [])
    assert asked == [{task}]
    await desk.close()


async def test_bids_placed_a_moment_ago_go_before_a_worker_has_read_their_ids(
    here: World, make_desk: Callable[..., Desk]
) -> None:
    """The venue gives no id to a place, and the worker may hang."""
    task, _ = here.begun(FOUR)
    assert {order.venue_id for order in orders.open_orders(task)} == {None}
    desk = make_desk()
    halt(here, task)
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: orders.open_orders(task) == [])
    assert here.market.own_ == []
    assert None not in {order.venue_id for order in Order.select()}
    await desk.close()


async def test_bid_without_an_id_that_is_not_shown_is_not_noted_as_cancelled(
    here: World, make_desk: Callable[..., Desk]
) -> None:
    """The venue may show it later, and a worker takes a cancelled bid that no read shows for gone."""
    task, _ = here.begun(FOUR)
    kept, here.market.own_ = here.market.own_, []
    desk = make_desk()
    halt(here, task)
    reads = len(here.market.max_ages)
    desk.brakes._look()
    await desk.until(lambda: len(here.market.max_ages) > reads and desk.brakes._going == [])
    assert set(here.open(task).values()) == {"live"}
    here.market.own_ = kept
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: here.market.own_ == [])
    await desk.close()


async def test_halt_without_a_row_ends_with_run(here: World, make_desk: Callable[..., Desk]) -> None:
    task, desk = bids(here), make_desk()
    desk.brakes.heed("task", task, "halt", here.clock())
    desk.brakes.heed("task", task, "run", here.clock())
    assert desk.brakes._halted() == []
    await desk.close()


async def test_cancels_go_out_while_no_row_can_be_written(
    here: World, make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OperationalError("database or disk is full")

    task, desk = bids(here), make_desk()
    monkeypatch.setattr(brakes, "begin_cancels", full)
    monkeypatch.setattr(brakes, "finish_cancels", full)
    desk.brakes.heed("task", task, "halt", here.clock())
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: here.market.own_ == [])
    assert len(orders.open_orders(task)) == 4, "their rows are found out by later reads"
    await desk.close()


async def test_brake_is_followed_though_its_file_cannot_be_written(
    here: World, make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all places are taken, or the file could not be made on a disk that was full before."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    task, desk = bids(here), make_desk()
    desk.background.run(desk.brakes.run())
    monkeypatch.setattr(BrakeFile, "put", full)
    monkeypatch.setattr(BrakeFile, "remove", full)
    desk.brakes.heed("task", task, "halt", here.clock())
    await desk.until(lambda: here.market.own_ == [])
    desk.brakes.heed("task", task, "run", here.clock())
    assert desk.brakes._halted() == []
    await desk.close()


async def test_brake_file_that_cannot_be_changed_keeps_no_bid_open(
    here: World, make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    task, desk = bids(here), make_desk()
    desk.brakes.heed("global", 0, "reduce", here.clock())
    monkeypatch.setattr(BrakeFile, "remove", read_only)
    controls.put("global", 0, "reduce", None, here.clock())
    halt(here, task)
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: here.market.own_ == [])
    await desk.close()


async def test_signer_that_was_away_is_asked_again(here: World, make_desk: Callable[..., Desk]) -> None:
    task, desk = bids(here), make_desk()
    here.signer.away = SignerUnavailable("away")
    halt(here, task)
    desk.background.run(desk.brakes.run())
    await desk.until(lambda: bool(desk.brakes._rests))
    here.signer.away = None
    await desk.until(lambda: here.market.own_ == [])
    await desk.close()


async def test_hung_read_of_one_brake_does_not_delay_the_next(
    here: World, make_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, desk = bids(here), make_desk(threads=True)
    second = here.task(BidConfig(slug="dogs", hardcap_sats=100_000))
    hangs, is_over = threading.Event(), threading.Event()
    read = here.market.own_bids

    def own_bids(*how: Any) -> OwnBids:
        if threading.current_thread() is not threading.main_thread() and not hangs.is_set():
            hangs.set()
            is_over.wait(60)
        return read(*how)

    monkeypatch.setattr(here.market, "own_bids", own_bids)
    halt(here, first)
    desk.background.run(desk.brakes.run())
    await desk.until(hangs.is_set)
    here.bidder(second).cycle()
    ids = {bid.expires_ms: bid.venue_id for bid in here.market.own_}
    for order in orders.open_orders(second):
        Order.update(venue_id=ids[order.expires_ms]).where(Order.id == order.id).execute()
    assert here.market.own_
    halt(here, second)
    await desk.until(lambda: here.market.own_ == [])
    assert not is_over.is_set()
    is_over.set()
    await desk.until(lambda: desk.brakes._going == [])
    await desk.close()


async def test_no_drain_is_started_while_cancels_are_under_way(here: World, make_desk: Callable[..., Desk]) -> None:
    task, desk = bids(here), make_desk()
    rests: list[float] = []
    here.market.witness = lambda operation: rests.append(desk.brakes.drain_rest_s(task))
    halt(here, task)
    desk.brakes._look()
    await desk.until(lambda: here.market.own_ == [])
    assert min(rests) > 0
    await desk.until(lambda: desk.brakes.drain_rest_s(task) == 0)
    await desk.close()


@pytest.mark.parametrize("operation", ["own_bids", "challenge", "cancel"])
@pytest.mark.parametrize("kind", ["bidder", "drain"])
def test_worker_whose_bids_the_manager_closed_begins_anew(here: World, kind: str, operation: str) -> None:
    """The manager's round falls into the worker's cycle: before it reads, decides or cancels."""
    task, bidder = here.begun(FOUR)
    here.later(FOUR.loop_s, bidder)

    def beside(now: str) -> None:
        if now == operation:
            here.market.witness = lambda now: None
            found = due(here)
            closing.begin_cancels([bid.order for bid in found], here.clock())
            gone = round_of(here, found).closed
            closing.finish_cancels([bid.order for bid in found if bid.order.id in gone], here.clock())
            assert len(gone) == 4

    halt(here, task)
    worker = bidder if kind == "bidder" else here.drain(task)
    here.market.witness = beside
    here.later(FOUR.loop_s, worker)
    here.later(FOUR.loop_s, worker)
    assert (here.market.own_, here.open(task), here.row(task).last_error) == ([], {}, None)
    assert [reason for _, reason in here.closed()] == ["cancelled"] * 4
