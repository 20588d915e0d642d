"""Run, reduce and halt, at every scope: what a cycle still does."""

from __future__ import annotations

import pytest

from markets.base import Unavailable
from models import controls
from tests.shapes import replace
from tests.worlds.worker import CATS, LADDER, World, ask, seconds
from wallet.signer_client import SignerRefused


def put(world: World, scope: str, state: str, task: int) -> None:
    subject = {"global": controls.EVERYBODY, "user": world.user.id, "task": task}[scope]
    controls.put(scope, subject, state, None, world.clock())


@pytest.mark.parametrize("scope", controls.SCOPES)
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


@pytest.mark.parametrize("scope", controls.SCOPES)
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
