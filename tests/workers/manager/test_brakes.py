"""The manager's brakes: what they cancel, what they take for gone, and what does not keep them from it."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError

from core.errors import PeerRefused
from core.files import BrakeFile
from core.settings import Settings
from markets.base import AuthFailed, NotFound, OwnBids, Refused, SignInNeeded, Unavailable
from models import controls
from models.leases.slot import EVERYBODY
from models.ledger import closing, orders
from models.ledger.closing import Owed, owed
from models.ledger.order_table import CANCELLING, Order
from strategy.bid_config import BidConfig
from tests.workers.bidding.world import World
from wallet.signer_client import SignerUnavailable
from workers.manager import brakes
from workers.manager.background import Background
from workers.manager.brakes import Brakes, Wallet, take_off

FOUR = BidConfig(slug="cats", bid_count=4, hardcap_sats=100_000)


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The manager's clients of gateway and signer are the world's."""

    @contextmanager
    def market(*_: Any) -> Iterator[Any]:
        yield world.market

    def sign_brake(user: str, venue: str, challenge: str) -> str:
        world.signer._here()
        return "YnJha2U="

    monkeypatch.setattr(brakes, "MarketClient", market)
    monkeypatch.setattr(brakes, "SignerClient", lambda *_: world.signer)
    monkeypatch.setattr(world.signer, "sign_brake", sign_brake, raising=False)
    monkeypatch.setattr(world.market, "hold", lambda tasks, seconds: None, raising=False)
    return world


def bids(world: World, config: BidConfig = FOUR) -> int:
    """Returns a task whose bids are live under the ids that a read has shown."""
    task, bidder = world.begun(config)
    world.later(config.loop_s, bidder)
    assert len(world.market.own_) == config.bid_count
    return task


def halt(world: World, task: int) -> None:
    controls.put("task", task, "halt", None, world.clock())


def taken_off(world: World) -> int:
    """Returns how many bids one round takes off, as the ledger has them."""
    found = owed(EVERYBODY)
    closing.begin_cancels([bid.order for bid in found], world.clock())
    return len(round_of(world, found))


def round_of(world: World, found: list[Owed]) -> frozenset[int]:
    [(venue, wallet)] = {(bid.order.venue, bid.order.wallet) for bid in found}
    return take_off(world.settings, Wallet(venue, wallet), found, world.clock)


def cancels(world: World) -> list[int]:
    """Returns how many bids each call asked to cancel."""
    return [len(done) - 1 for done in world.market.done if done[0] == "cancel"]


# What a round does


def test_one_call_cancels_all_bids_of_a_halted_task(here: World) -> None:
    halt(here, bids(here))
    assert taken_off(here) == 4
    assert (here.market.own_, cancels(here)) == ([], [4])


def test_failure_of_several_is_halved_until_the_one_that_fails_is_alone(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", NotFound("one of them"), None, NotFound("one of them"), None, NotFound("this one"))
    assert taken_off(here) == 3
    assert cancels(here) == [4, 2, 2, 1, 1]
    assert len(here.market.own_) == 1


def test_lost_answer_is_not_taken_for_a_cancel(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lost")
    assert taken_off(here) == 0
    assert (here.market.own_, cancels(here)) == ([], [4])


@pytest.mark.parametrize("error", [AuthFailed("bad key"), SignInNeeded("sign in")])
def test_refusal_that_is_about_no_bid_is_not_halved(here: World, error: Refused) -> None:
    """Twelve bids would take 23 calls, and each would be refused."""
    halt(here, bids(here))
    here.market.fail("cancel", error)
    with pytest.raises(type(error)):
        taken_off(here)
    assert cancels(here) == [4]


def test_cancels_of_a_round_that_breaks_off_are_not_lost(here: World) -> None:
    """Otherwise each round would send them again, and the venue would report each of them as failed."""
    halt(here, bids(here))
    here.market.fail("cancel", NotFound("one of them"), None, Unavailable("no turn in time"))
    assert taken_off(here) == 2
    assert len(here.market.own_) == 2


def test_bid_that_a_read_still_shows_is_not_gone(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lie")
    assert taken_off(here) == 3


def test_read_that_began_before_the_cancel_closes_nothing(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    halt(here, bids(here))
    before_ms = here.clock()
    monkeypatch.setattr(here.market, "own_bids", lambda *_: OwnBids((), before_ms))
    assert taken_off(here) == 0


def test_bid_that_expires_before_the_read_is_left_to_the_worker(here: World) -> None:
    halt(here, bids(here))
    late_ms = max(order.expires_ms for order in Order.select())
    here.market.script["own_bids"] = []
    here.market.own_bids = lambda *_: OwnBids((), late_ms)  # type: ignore[method-assign]
    assert taken_off(here) == 0


def test_rune_bid_is_cancelled_and_left_to_the_worker(here: World) -> None:
    """A part of it may have been sold before."""
    halt(here, bids(here))
    Order.update(slug="UNCOMMON•GOODS").execute()
    assert taken_off(here) == 0
    assert here.market.own_ == []


def test_sold_bid_is_not_closed_as_cancelled(here: World) -> None:
    halt(here, bids(here))
    here.market.sell(here.market.prices[0])
    taken_off(here)
    sold = Order.select().order_by(Order.price_sats.desc()).get()
    assert (here.market.own_, sold.state) == ([], CANCELLING)


def test_only_bids_of_the_halted_task_go(here: World) -> None:
    left, halted = bids(here), here.task(BidConfig(slug="dogs", hardcap_sats=100_000))
    here.bidder(halted).cycle()
    Order.update(venue_id=Order.expires_ms.cast("TEXT")).where(Order.venue_id.is_null()).execute()
    halt(here, halted)
    assert {bid.order.task_id for bid in owed(EVERYBODY)} == {halted}
    assert len(orders.open_orders(left)) == 4


@pytest.mark.parametrize(("column", "value"), [("venue_id", None), ("dry_run", True), ("state", "unknown")])
def test_order_that_no_venue_can_cancel_is_not_owed(here: World, column: str, value: object) -> None:
    """It has no id yet, is of a dry run, or is in doubt until a worker's read shows it."""
    halt(here, bids(here))
    Order.update(**{column: value}).execute()
    assert owed(EVERYBODY) == []


# The manager's part


class Desk:
    """Brakes in this loop, whose calls run in this thread unless `threads`."""

    def __init__(self, world: World, directory: Path, monkeypatch: pytest.MonkeyPatch, *, threads: bool = False):
        async def at_once(call: Callable[[], Any]) -> Any:
            return call()

        if not threads:
            monkeypatch.setattr(brakes, "in_thread", at_once)
        self.woken: list[Collection[int]] = []
        self.background = Background()
        settings = Settings(data_dir=directory)
        self.brakes = Brakes(settings, EVERYBODY, self.background, world.clock, self.woken.append, look_s=0.05)

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


@pytest.mark.parametrize(
    "said",
    [
        ("installation", 0, "halt", 1),
        (["task"], 0, "halt", 1),
        ("task", "1", "halt", 1),
        ("task", True, "halt", 1),
        ("task", None, "halt", 1),
        ("task", 1, "stop", 1),
        ("task", 1, 0, 1),
        ("task", 1, "halt", None),
        ("task", 1, "halt", 1.5),
    ],
)
async def test_heed_refuses_what_it_cannot_understand(make_desk: Callable[..., Desk], said: tuple[Any, ...]) -> None:
    desk = make_desk()
    with pytest.raises(PeerRefused) as refused:
        desk.brakes.heed(*said)
    assert refused.value.code == "unreadable"
    await desk.close()


async def test_row_is_followed_without_a_notice(here: World, make_desk: Callable[..., Desk]) -> None:
    task, desk = bids(here), make_desk()
    desk.background.run(desk.brakes.run())
    halt(here, task)
    await desk.until(lambda: here.market.own_ == [] and [task] in desk.woken)
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
