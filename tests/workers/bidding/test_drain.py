"""Stops, halts and holds: the drain cancels every bid and says what is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from markets.base import AuthFailed, OwnBids, RateLimited, Unavailable, VenueError
from models import users
from models.ledger.orders import open_orders
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, World, ask, seconds
from wallet.signer_client import SignerRefused, SignerUnavailable


def stopped(world: World, **changes: object) -> int:
    """Returns a task with its ladder at the venue, stopped."""
    task = world.task(replace(CATS, **changes))  # type: ignore[arg-type]
    world.bidder(task).cycle()
    tasks.set_desired(world.row(task), STOPPED)
    return task


def test_all_bids_are_cancelled_in_one_round(world: World) -> None:
    task = stopped(world)
    assert world.drain(task).cycle() is None
    assert world.market.prices == []
    assert world.market.done[5:] == [("challenge", 0), ("cancel", *LADDER)]
    assert world.closed() == [(price, "cancelled") for price in LADDER]
    assert world.row(task).last_error is None


@pytest.mark.parametrize("fault", [RateLimited(5), Unavailable("venue down")])
def test_the_read_of_another_wallet_holds_up_no_cancel(
    world: World, monkeypatch: pytest.MonkeyPatch, fault: VenueError
) -> None:
    task, other = stopped(world), "the wallet of former keys"
    Order.update(wallet=other).where(Order.price_sats == LADDER[-1]).execute()
    world.market.own_ = [bid for bid in world.market.own_ if bid.price != LADDER[-1]]
    read = world.market.own_bids

    def own_bids(wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> OwnBids:
        if wallet == other:
            raise fault
        return read(wallet, max_age_s, slugs)

    monkeypatch.setattr(world.market, "own_bids", own_bids)
    assert min(order.wallet for order in open_orders(task)) < other
    assert seconds(world.drain(task).cycle()) > 0
    assert world.market.prices == []
    assert set(LADDER[:-1]) <= {price for price, _ in world.closed()}


def test_without_open_orders_there_is_nothing_to_ask(world: World) -> None:
    task = world.task()
    assert world.drain(task).cycle() is None
    assert world.market.max_ages == []


def test_bids_that_are_to_stay_are_watched_until_they_expire(world: World) -> None:
    task = stopped(world, cancel_on_stop=False)
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    assert world.market.prices == LADDER
    world.clock.advance(16 * 60)
    assert seconds(drain.cycle()) > 0
    world.clock.advance(6)
    assert drain.cycle() is None
    assert world.closed() == [(price, "expired") for price in LADDER]
    assert all(kind == "place" for kind, _ in world.market.done)


def test_a_bid_that_is_over_is_not_cancelled(world: World) -> None:
    task, bidder = world.begun(replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000))
    bidder.cycle()
    world.market.own_.clear()
    world.clock.advance(17 * 60)
    world.market.done.clear()
    tasks.set_desired(world.row(task), STOPPED)
    drain = world.drain(task)
    assert seconds(drain.cycle()) > 0
    world.clock.advance(6)
    assert drain.cycle() is None
    assert (world.closed(), world.market.done, world.row(task).last_error) == ([(52_000, "expired")], [], None)


def test_a_deleted_task_keeps_nothing(world: World) -> None:
    task = stopped(world, cancel_on_stop=False)
    tasks.mark_deleted(world.row(task), world.clock())
    assert world.drain(task).cycle() is None
    assert world.market.prices == []


def test_a_halt_keeps_nothing(world: World) -> None:
    task = stopped(world, cancel_on_stop=False)
    drain = world.drain(task)
    drain.cycle()
    assert world.market.prices != []
    users.put_control(users.USER, world.user.id, users.HALT, None, world.clock())
    assert drain.cycle() is None
    assert world.market.prices == []


def test_a_plan_that_is_over_keeps_nothing(world: World) -> None:
    task = stopped(world, cancel_on_stop=False, bid_expiry_minutes=10_080)
    world.clock.advance(365 * 86_400)
    world.market.expire = lambda: None  # type: ignore[method-assign]
    assert world.drain(task).cycle() is None
    assert world.market.prices == []


def test_what_keeps_it_from_cancelling_is_told_and_taken_back(world: World) -> None:
    task = stopped(world)
    drain = world.drain(task)
    world.market.fail("own_bids", Unavailable("venue down"))
    drain.cycle()
    assert world.row(task).last_error == "failed to read our own bids: venue down"
    drain.cycle()
    assert world.row(task).last_error is None


def test_an_error_of_the_last_worker_stays(world: World) -> None:
    task = stopped(world)
    tasks.set_error(world.row(task), "the worker died five times")
    world.drain(task).cycle()
    assert world.row(task).last_error == "the worker died five times"


def test_rounds_go_further_apart_up_to_half_a_minute(world: World) -> None:
    drain = world.drain(stopped(world))
    world.market.fail("own_bids", *[Unavailable("down")] * 9)
    pauses = [seconds(drain.cycle()) for _ in range(9)]
    for pause, longest in zip(pauses, (0.5, 1, 2, 4, 8, 16, 30, 30, 30), strict=True):
        assert 0.8 * longest <= pause <= longest


@pytest.mark.parametrize(
    ("turn", "left"),
    [("lost", LADDER), ("no", LADDER[1:]), ("lie", [75_000]), (AuthFailed("bad signature"), LADDER)],
)
def test_a_cancel_that_fails_is_followed_up(world: World, turn: object, left: list[int]) -> None:
    task = stopped(world)
    world.market.fail("cancel", turn)
    drain = world.drain(task)
    assert drain.cycle() is not None
    assert world.open(task) == dict.fromkeys(left, "cancelling")
    for _ in range(4):
        world.clock.advance(6)
        pause = drain.cycle()
    assert pause is None
    assert world.market.prices == []


def test_a_signer_that_is_away_is_waited_for(world: World) -> None:
    task = stopped(world)
    world.signer.away = SignerUnavailable("away")
    drain = world.drain(task)
    assert drain.cycle() is not None
    assert world.market.prices == LADDER
    assert "away" in str(world.row(task).last_error)
    world.signer.away = None
    assert drain.cycle() is None


def test_a_bid_in_doubt_keeps_it_busy_until_it_cannot_be_live(world: World) -> None:
    task = world.task(replace(CATS, bid_count=1))
    world.market.fail("place", "never")
    world.bidder(task).cycle()
    drain = world.drain(task)
    for _ in range(4):
        assert drain.cycle() is not None
        world.clock.advance(6)
    world.clock.advance(16 * 60 + 31)
    assert drain.cycle() is None
    assert world.closed() == [(75_000, "lost")]


def test_a_bid_in_doubt_that_arrived_is_cancelled(world: World) -> None:
    task = world.task(replace(CATS, bid_count=1))
    world.market.fail("place", "lost")
    world.bidder(task).cycle()
    assert world.drain(task).cycle() is None
    assert world.market.prices == []


def test_bids_of_other_tasks_stay(world: World) -> None:
    other = world.task(replace(CATS, slug="dogs", bid_count=1))
    world.bidder(other).cycle()
    assert world.drain(stopped(world)).cycle() is None
    assert world.market.prices == [75_000]
    assert world.open(other) == {75_000: "live"}


def test_an_overtaken_drain_ends(world: World) -> None:
    task = stopped(world)
    drain = world.drain(task)
    tasks.raise_token(task)
    assert drain.cycle() is None
    assert world.market.prices == LADDER


def put(world: World, scope: str, state: str, task: int) -> None:
    subject = {"global": users.EVERYBODY, "user": world.user.id, "task": task}[scope]
    users.put_control(scope, subject, state, None, world.clock())


@pytest.mark.parametrize("scope", users.SCOPES)
def test_reduce_cancels_what_is_too_much_and_places_nothing(world: World, scope: str) -> None:
    task, bidder = world.begun()
    put(world, scope, "reduce", task)
    world.clock.advance(61)
    world.market.asks_ = [ask(70_000)]

    pause = seconds(bidder.cycle())

    assert world.market.prices == [30_000]
    assert world.action(task).startswith(f"control reduce ({scope}): placed 0, kept 1, cancelled 4")
    assert world.row(task).last_error is None, "a user wants it"
    assert pause > 20
    assert world.detail(task)["control"] == {"state": "reduce", "scope": scope}

    put(world, scope, "run", task)
    bidder.cycle()
    assert world.market.prices == [52_000, 41_000, 30_000, 21_000, 11_000]


@pytest.mark.parametrize("scope", users.SCOPES)
def test_halt_cancels_everything_without_looking_at_the_market(world: World, scope: str) -> None:
    task, bidder = world.begun()
    put(world, scope, "halt", task)
    world.market.reads.clear()

    bidder.cycle()

    assert world.market.prices == []
    assert world.market.reads == []
    assert world.closed() == [(price, "cancelled") for price in LADDER]
    assert world.action(task).startswith(f"control halt ({scope}): placed 0, kept 0, cancelled 5 (halt)")
    bidder.cycle()
    assert len(world.market.placed) == 5

    put(world, scope, "run", task)
    bidder.cycle()
    assert world.market.prices == LADDER


def test_the_strictest_state_holds(world: World) -> None:
    task = world.task()
    put(world, "global", "reduce", task)
    put(world, "task", "halt", task)
    put(world, "user", "run", task)
    world.bidder(task).cycle()
    assert world.action(task).startswith("control halt (task)")


def test_halt_ends_what_the_ledger_knows_though_own_bids_cannot_be_read(world: World) -> None:
    task, bidder = world.begun()
    bidder.cycle()
    put(world, "task", "halt", task)
    world.market.fail("own_bids", Unavailable("down"), Unavailable("down"))
    bidder.cycle()
    assert world.market.prices == []


def test_a_control_that_comes_between_two_places_stops_the_rest_at_the_signer(world: World) -> None:
    """The signer hears of it before any worker does; that is no outage, so the next cycle comes as usual."""
    task = world.task()
    world.signer.script += [None, SignerRefused("control-state", "control says reduce")]
    pause = seconds(world.bidder(task).cycle())
    assert world.market.prices == [75_000]
    assert world.closed() == [(60_000, "refused")]
    assert "skipped 1 not_signed, 3 put_off" in world.action(task)
    assert pause > 20


def test_a_control_that_comes_during_slow_places_stops_the_second_look(world: World) -> None:
    task = world.task()

    def reduce_meanwhile(operation: str) -> None:
        if operation == "place":
            world.clock.advance(13)
            put(world, "user", "reduce", task)

    world.market.witness = reduce_meanwhile
    bidder = world.bidder(task)
    pause = seconds(bidder.cycle())
    assert world.market.prices == [75_000]
    assert pause < 1
    bidder.cycle()
    assert world.action(task).startswith("control reduce (user)")


def test_a_long_loop_is_cut_short_by_a_change_of_control(world: World) -> None:
    task, bidder = world.begun(replace(CATS, loop_seconds=3600, bid_expiry_minutes=180))
    put(world, "global", "halt", task)
    world.later(30, bidder)
    assert world.market.prices == []


def test_brake_outlives_the_cycle_that_failed_on_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle that raises has not braked: the next one does not wait for the loop's end."""
    task, bidder = world.begun(replace(CATS, loop_seconds=900, bid_expiry_minutes=180))
    put(world, "task", "halt", task)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr("workers.bidding.bidder.decide", _broken)
        bidder.cycle()

    world.clock.advance(1)
    bidder.cycle()
    assert world.market.prices == []


def _broken(*args: object, **more: object) -> None:
    raise RuntimeError("a bug")
