"""The token bucket and its queue, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from gateway.quota import Priority
from gateway.venue import BRAKE_SLOTS, CallBudget
from markets.base import RateLimited, Unavailable
from tests.clock import Monotonic


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def _budget(*, slots: int = 100, spare: int = 0) -> tuple[CallBudget, Monotonic]:
    clock = Monotonic(100.0)
    return CallBudget(rate=5, burst=10, slots=slots, clock=clock, spare=spare), clock


def _asked(
    budget: CallBudget, order: list[str], name: str, priority: Priority, until: float = 1e6
) -> asyncio.Task[None]:
    async def ask() -> None:
        await budget.take(priority, until)
        order.append(name)

    return asyncio.ensure_future(ask())


async def test_no_window_holds_more_than_the_burst_and_the_rate() -> None:
    budget, clock = _budget()
    sent: list[float] = []

    async def ask() -> None:
        await budget.take(Priority.REST, 1e6)
        sent.append(clock.now)
        budget.done()

    asked = [asyncio.ensure_future(ask()) for _ in range(60)]
    while len(sent) < 60:
        await _settle()
        clock.now += 0.05
        budget.pump()
    await asyncio.gather(*asked)
    for width in (0.1, 1.0, 5.0):
        most = max(sum(start <= at < start + width for at in sent) for start in sent)
        assert most <= 10 + 5 * width
    assert clock.now - 100 == pytest.approx(10, abs=0.3)  # and it does use the rate: 50 waited, 5 a second


async def test_the_most_urgent_goes_first_and_equals_in_their_order() -> None:
    budget, clock = _budget()
    order: list[str] = []
    budget.pause(1)
    asked = [
        _asked(budget, order, "book", Priority.REST),
        _asked(budget, order, "place 1", Priority.PLACE),
        _asked(budget, order, "own bids", Priority.OWN_BIDS),
        _asked(budget, order, "place 2", Priority.PLACE),
        _asked(budget, order, "cancel", Priority.CANCEL),
    ]
    await _settle()
    assert order == []
    for _ in asked:
        clock.now += 1
        budget.pump()
        await _settle()
    assert order == ["cancel", "own bids", "place 1", "place 2", "book"]


async def test_a_pause_ends_with_one_request_and_not_with_a_burst() -> None:
    budget, clock = _budget()
    order: list[str] = []
    budget.pause(60)
    asked = [_asked(budget, order, str(n), Priority.REST) for n in range(3)]
    await _settle()
    clock.now += 60
    budget.pump()
    await _settle()
    assert order == ["0"]
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_who_cannot_be_served_before_the_pause_ends_is_told_at_once() -> None:
    budget, clock = _budget()
    waiting = asyncio.ensure_future(budget.take(Priority.REST, clock.now + 5))
    budget.pause(30)
    with pytest.raises(RateLimited) as raised:
        await waiting
    assert raised.value.retry_after_s == 30
    with pytest.raises(RateLimited):
        await budget.take(Priority.CANCEL, clock.now + 5)


async def test_pauses_of_unknown_length_double_until_the_venue_answers() -> None:
    budget, clock = _budget()
    lengths = []
    for _ in range(6):
        budget.pause(None)
        lengths.append(budget.paused_s())
        clock.now += 60
    assert lengths == [2.5, 5, 10, 20, 30, 30]
    budget.answered()
    budget.pause(None)
    assert budget.paused_s() == 2.5


async def test_a_turn_that_does_not_come_in_time_is_unavailable() -> None:
    budget, clock = _budget(slots=1)
    await budget.take(Priority.REST, 1e6)
    late = asyncio.ensure_future(budget.take(Priority.REST, clock.now + 2))
    await _settle()
    clock.now += 2
    budget.pump()
    with pytest.raises(Unavailable):
        await late
    assert budget.waiting() == 0


async def test_a_turn_that_is_due_sooner_than_the_clock_can_tell_comes() -> None:
    budget, clock = _budget()
    clock.now = 1e6
    for _ in range(10):
        await budget.take(Priority.REST, 1e9)
    clock.now += 0.2  # one token but for what such a clock rounds off
    assert budget.left() < 1 and clock.now + (1 - budget.left()) / 5 == clock.now
    waits = asyncio.ensure_future(budget.take(Priority.REST, 1e9))
    await _settle()
    clock.now += 0.001
    await asyncio.wait_for(waits, 4)


async def test_who_leaves_the_queue_costs_nothing_even_with_its_turn_in_hand() -> None:
    budget, clock = _budget()
    for granted in (True, False):
        budget.pause(1)
        leaver = asyncio.ensure_future(budget.take(Priority.REST, 1e6))
        await _settle()
        if granted:
            clock.now += 1
            budget.pump()
        leaver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaver
        assert (budget.left(), budget.waiting()) == (1, 0)


async def test_the_last_slots_are_kept_for_what_is_urgent() -> None:
    budget, _ = _budget(slots=5, spare=2)
    order: list[str] = []
    asked = [_asked(budget, order, "book", Priority.REST) for _ in range(5)]
    await _settle()
    assert order == ["book"] * 3
    asked += [_asked(budget, order, "place", Priority.PLACE), _asked(budget, order, "place", Priority.PLACE)]
    asked += [_asked(budget, order, "cancel", Priority.CANCEL)]
    await _settle()
    assert order == ["book"] * 3 + ["place", "cancel"]
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_rounding_error_keeps_nobody_waiting() -> None:
    budget, _ = _budget()
    order: list[str] = []
    for n in range(10):
        await _asked(budget, order, f"burst {n}", Priority.REST)
    budget._tokens = 1 - 1e-15
    asked = _asked(budget, order, "next", Priority.REST)
    await _settle()
    assert asked.done() and order[-1] == "next"


async def test_a_brake_goes_before_a_hundred_waiting_cancels() -> None:
    budget, clock = _budget()
    order: list[str] = []
    budget.pause(1)
    asked = [_asked(budget, order, "cancel", Priority.CANCEL) for _ in range(100)]
    asked += [_asked(budget, order, "brake", Priority.BRAKE)]
    await _settle()
    clock.now += 1
    budget.pump()
    await _settle()
    assert order == ["brake"]
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_brake_has_slots_while_hung_reads_hold_all_others() -> None:
    budget, _ = _budget(slots=3, spare=1)
    order: list[str] = []
    asked = [_asked(budget, order, "read", Priority.OWN_BIDS) for _ in range(4)]
    await _settle()
    asked += [_asked(budget, order, "cancel", Priority.CANCEL)]
    asked += [_asked(budget, order, f"brake {n}", Priority.BRAKE) for n in range(BRAKE_SLOTS + 1)]
    await _settle()
    assert order == ["read"] * 3 + [f"brake {n}" for n in range(BRAKE_SLOTS)]
    budget.done()  # of a brake's own slots, so that the next brake has it and no other call
    await _settle()
    assert order[-1] == f"brake {BRAKE_SLOTS}"
    budget.done()
    await _settle()
    assert "cancel" not in order
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_brake_keeps_to_the_rate_and_to_a_pause_of_the_venue() -> None:
    budget, clock = _budget()
    order: list[str] = []
    asked = [_asked(budget, order, "brake", Priority.BRAKE) for _ in range(12)]
    await _settle()
    assert len(order) == 10, "the burst"
    clock.now += 0.2
    budget.pump()
    await _settle()
    assert len(order) == 11, "the rate"
    budget.pause(30)
    clock.now += 29
    budget.pump()
    await _settle()
    assert len(order) == 11
    with pytest.raises(RateLimited):
        await budget.take(Priority.BRAKE, clock.now + 0.5)
    clock.now += 1.2
    budget.pump()
    await _settle()
    assert len(order) == 12
    await asyncio.gather(*asked)
