"""The manager's brakes: a halt or a stop cancels every bid, whatever else fails."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from peewee import OperationalError

from core.files import BrakeFile
from core.settings import Settings
from markets.base import AuthFailed, NotFound, OwnBids, RateLimited, Refused, SignInNeeded, Unavailable, VenueError
from markets.venues import capabilities
from models import users
from models.leases.leases import EVERYBODY
from models.ledger import closing, orders
from models.ledger.closing import Owed, owed
from models.ledger.states import CANCELLING, Order
from strategy.config.bid import BidConfig
from tests.worlds.worker import World
from wallet.signer_client import SignerUnavailable
from workers.manager import brakes
from workers.manager.brakes import Brakes, Cancelled, Known, Wallet, take_off
from workers.manager.loop import Background

FOUR = BidConfig(slug="cats", bid_count=4, hardcap_sats=100_000)


def at_brakes(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Returns the world, whose clients of gateway and signer the manager uses."""

    @contextmanager
    def market(*_: Any) -> Iterator[Any]:
        yield world.market

    def sign_brake(user: str, venue: str, challenge: str) -> str:
        world.signer._here()
        return "YnJha2U="

    for module in (brakes, brakes):
        monkeypatch.setattr(module, "MarketClient", market)
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
    users.put_control("task", task, "halt", None, world.clock())


def closed(world: World, rounds: int = 1) -> list[int]:
    """Returns how many bids each round closes."""
    known, numbers = Known(), []
    for _ in range(rounds):
        found = due(world)
        closing.begin_cancels([bid.order for bid in found], world.clock())
        done = round_of(world, found, known)
        known = done.known
        closing.finish_cancels([bid.order for bid in found if bid.order.id in done.closed], world.clock())
        numbers.append(len(done.closed))
    return numbers


def due(world: World) -> list[Owed]:
    return owed(EVERYBODY, world.clock())


def round_of(world: World, found: list[Owed], known: Known | None = None) -> Cancelled:
    [(venue, wallet)] = {(bid.order.venue, bid.order.wallet) for bid in found}
    return take_off(world.settings, Wallet(venue, wallet), found, known or Known(), world.clock)


def cancels(world: World) -> list[int]:
    """Returns how many bids each call asked to cancel."""
    return [len(done) - 1 for done in world.market.done if done[0] == "cancel"]


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
    await desk.until(lambda: len(here.market.max_ages) > reads and desk.brakes._in_progress == [])
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
    users.put_control("global", 0, "reduce", None, here.clock())
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
    await desk.until(lambda: desk.brakes._in_progress == [])
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


def test_one_call_cancels_all_bids_of_a_halted_task(here: World) -> None:
    halt(here, bids(here))
    assert closed(here) == [4]
    assert (here.market.own_, cancels(here)) == ([], [4])


def test_failure_of_several_is_halved_until_the_one_that_fails_is_alone(here: World) -> None:
    """Once a read shows them: a venue would report a failure for each bid that it does not have."""
    halt(here, bids(here))
    some, this = NotFound("one of them"), NotFound("this one")
    here.market.fail("cancel", some, some, None, some, None, this)
    assert closed(here, rounds=2) == [0, 3]
    assert cancels(here) == [4, 4, 2, 2, 1, 1, 1]


def test_bids_that_a_read_does_not_show_are_not_cancelled_again(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lost")
    assert closed(here, rounds=3) == [0, 0, 0], "the answer was lost: they may have been sold"
    assert (here.market.own_, cancels(here)) == ([], [4])


@pytest.mark.parametrize("error", [AuthFailed("bad key"), SignInNeeded("sign in")])
def test_refusal_that_is_about_no_bid_is_not_halved(here: World, error: Refused) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", error)
    with pytest.raises(type(error)):
        closed(here)
    assert cancels(here) == [4]


@pytest.mark.parametrize("error", [AuthFailed("not this route"), SignInNeeded("sign in"), RateLimited(1.0)])
def test_cancel_that_the_venue_did_not_look_at_was_not_tried(here: World, error: VenueError) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", None, error)
    one_by_one = structs.replace(capabilities("simulator"), cancels_at_once=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brakes, "capabilities", lambda name: one_by_one)
        done = round_of(here, due(here), Known())
    assert (len(done.known.confirmed), done.known.tried) == (1, frozenset())


def test_confirmed_cancels_are_kept_when_the_read_fails(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("own_bids", Unavailable("no turn in time"))
    assert closed(here, rounds=2) == [0, 4]
    assert cancels(here) == [4]


def test_cancels_go_on_behind_a_venue_that_wants_a_pause(here: World) -> None:
    """As at a venue that takes one bid a call and a few calls a minute: the first ones are not cancelled again."""
    halt(here, bids(here))
    here.market.fail("cancel", None, RateLimited(1.0, "a pause"), None)
    one_by_one = structs.replace(capabilities("simulator"), cancels_at_once=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brakes, "capabilities", lambda name: one_by_one)
        assert closed(here, rounds=2) == [1, 3]
    assert (here.market.own_, cancels(here)) == ([], [1, 1, 1, 1, 1])


def test_bid_that_was_sold_after_a_confirmed_cancel_is_not_closed_as_cancelled(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lie")  # confirmed, and not carried out
    assert closed(here) == [3]
    [bid] = here.market.own_
    here.market.fail("cancel", NotFound("it was sold"))
    known = Known(confirmed=frozenset(order.id for order in Order.select() if order.state == CANCELLING))
    done = round_of(here, due(here), known)
    here.market.own_.remove(bid)
    assert (done.known.confirmed, round_of(here, due(here), done.known).closed) == (frozenset(), frozenset())


def test_cancels_are_tried_again_while_no_read_succeeds(here: World) -> None:
    halt(here, bids(here))
    some = NotFound("one of them")
    here.market.fail("cancel", some, some, None, None)
    here.market.fail("own_bids", *[Unavailable("no turn in time")] * 2)
    assert closed(here, rounds=2) == [0, 0]
    assert here.market.own_ == []


def test_bid_that_a_read_still_shows_is_not_gone(here: World) -> None:
    halt(here, bids(here))
    here.market.fail("cancel", "lie")
    assert closed(here) == [3]


def test_bid_with_only_its_id_readable_is_not_closed(here: World) -> None:
    halt(here, bids(here))
    first = here.market.own_[0].venue_id
    here.market.odd_own = {first: first}
    here.market.fail("cancel", "lie", "no")
    assert closed(here) == [3]
    assert [bid.venue_id for bid in here.market.own_] == [first]


@pytest.mark.parametrize(("key", "closes"), [("", [0, 0]), ("by-hand", [4])])
def test_bids_that_a_row_without_id_may_hide_are_left_to_their_worker(here: World, key: str, closes: list[int]) -> None:
    halt(here, bids(here))
    here.market.odd_rows = (key,)
    assert (closed(here, rounds=len(closes)), here.market.own_) == (closes, [])


def test_read_that_began_before_the_cancel_closes_nothing(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    halt(here, bids(here))
    before_ms = here.clock()
    monkeypatch.setattr(here.market, "own_bids", lambda *_: OwnBids((), before_ms))
    assert closed(here) == [0]


def test_bid_that_expires_before_the_read_is_left_to_the_worker(here: World) -> None:
    halt(here, bids(here))
    late_ms = max(order.expires_ms for order in Order.select())
    here.market.own_bids = lambda *_: OwnBids((), late_ms)  # type: ignore[method-assign]
    assert closed(here) == [0]


@pytest.mark.parametrize(("share", "number"), [(1, 4), (2, 0)], ids=["whole", "a part may have been sold"])
def test_rune_bid_is_closed_if_a_read_before_showed_it_whole(here: World, share: int, number: int) -> None:
    halt(here, bids(here))
    Order.update(slug="UNCOMMON•GOODS").execute()
    here.market.own_ = [structs.replace(bid, quantity=Decimal(1) / share) for bid in here.market.own_]
    assert closed(here) == [number]
    assert here.market.own_ == []


def test_sold_bid_is_not_closed_as_cancelled(here: World) -> None:
    halt(here, bids(here))
    here.market.sell(here.market.prices[0])
    closed(here, rounds=2)
    sold = Order.select().order_by(Order.price_sats.desc()).get()
    assert (here.market.own_, sold.state) == ([], CANCELLING)


def test_only_bids_of_the_halted_task_go(here: World) -> None:
    left, halted = bids(here), here.task(BidConfig(slug="dogs", hardcap_sats=100_000))
    here.bidder(halted).cycle()
    Order.update(venue_id=Order.expires_ms.cast("TEXT")).where(Order.venue_id.is_null()).execute()
    halt(here, halted)
    assert {bid.order.task_id for bid in due(here)} == {halted}
    assert len(orders.open_orders(left)) == 4


@pytest.mark.parametrize(("column", "value"), [("dry_run", True), ("state", "unknown"), ("state", "submitted")])
def test_order_that_no_venue_can_cancel_is_not_owed(here: World, column: str, value: object) -> None:
    """It is of a dry run, on its way, or in doubt until a worker's read shows it."""
    halt(here, bids(here))
    Order.update(**{column: value}).execute()
    assert due(here) == []
