"""Limits of a minute and the token bucket, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

import pytest

from gateway.quota import Priority
from gateway.venue import BRAKE_SLOTS, READ, WINDOW_S, CallBudget, Toll, Windows
from markets.base import RateLimited, Unavailable
from markets.venues import Capabilities, capabilities
from tests.clock import Monotonic

ORDNET = capabilities("ordnet")
LIMITS = {"read": (60, 30), "write": (20, 8)}  # of all, of one wallet


@pytest.fixture
def clock() -> Monotonic:
    return Monotonic()


@pytest.fixture
def windows(clock: Monotonic) -> Windows:
    return Windows(ORDNET, clock)


def send(windows: Windows, toll: Toll, priority: Priority = Priority.CANCEL) -> bool:
    """Sends if it fits now."""
    if windows.wait_s(toll, priority):
        return False
    windows.sent(windows.enter(toll))
    return True


def fitting(windows: Windows, toll: Toll, priority: Priority) -> int:
    count = 0
    while send(windows, toll, priority):
        count += 1
    return count


def test_the_limits_are_those_of_the_venue(windows: Windows) -> None:
    assert (ORDNET.writes_per_minute, ORDNET.writes_per_minute_per_wallet) == (20, 8)
    assert (ORDNET.reads_per_minute, ORDNET.reads_per_minute_per_wallet) == (60, 30)
    per_wallet = [fitting(windows, Toll("write", f"wallet{number}"), Priority.CANCEL) for number in range(4)]
    assert per_wallet == [8, 8, 4, 0]
    assert [fitting(windows, Toll(wallet=f"wallet{number}"), Priority.OWN_BIDS) for number in range(3)] == [30, 30, 0]


def test_it_says_when_there_is_room_again(windows: Windows, clock: Monotonic) -> None:
    toll = Toll("write", "wallet")
    assert send(windows, toll)
    clock.now += 20
    assert fitting(windows, toll, Priority.CANCEL) == 7
    assert windows.wait_s(toll, Priority.CANCEL) == pytest.approx(WINDOW_S - 20)
    clock.now += WINDOW_S - 20
    assert fitting(windows, toll, Priority.CANCEL) == 1


def test_a_quarter_is_left_to_cancels_and_to_looks_at_own_bids(windows: Windows) -> None:
    toll = Toll("write", "wallet")
    assert fitting(windows, toll, Priority.PLACE) == 6
    assert fitting(windows, toll, Priority.CANCEL) == 2
    assert fitting(windows, Toll(wallet="wallet"), Priority.REST) == 23
    assert fitting(windows, Toll(wallet="wallet"), Priority.OWN_BIDS) == 7


def test_a_draft_is_not_made_where_its_placing_would_not_fit(windows: Windows) -> None:
    draft, place = Toll("write", "wallet", more=1), Toll("write", "wallet")
    placed = 0
    while send(windows, draft, Priority.PLACE):
        assert send(windows, place, Priority.PLACE)
        placed += 1
    assert placed == 3


def test_what_is_read_for_everybody_may_have_been_read_by_any_wallet(windows: Windows) -> None:
    assert fitting(windows, READ, Priority.OWN_BIDS) == 30
    assert not send(windows, Toll(wallet="wallet"), Priority.OWN_BIDS)


def test_three_wallets_that_look_at_their_bids_leave_what_is_read_for_everybody_its_room(
    windows: Windows, clock: Monotonic
) -> None:
    """Eight collections each, looked at once a minute, are 24 of the 60 reads, and 8 of each wallet's 30."""
    for moment in range(10 * 60 * 2):  # half seconds of ten minutes
        clock.now += 0.5
        if moment % 15 == 0:
            assert all(send(windows, Toll(wallet=f"wallet{number}"), Priority.OWN_BIDS) for number in range(3))
        if moment % 10 == 0:
            assert send(windows, READ, Priority.REST)


def test_what_is_read_for_everybody_fits_with_the_busiest_wallet(windows: Windows, clock: Monotonic) -> None:
    assert all(send(windows, Toll(wallet="busy"), Priority.OWN_BIDS) for _ in range(20))
    clock.now += 10
    assert all(send(windows, Toll(wallet="calm"), Priority.OWN_BIDS) for _ in range(10))
    assert fitting(windows, READ, Priority.REST) == 3
    assert windows.wait_s(READ, Priority.REST) == pytest.approx(WINDOW_S - 10)


def test_both_addresses_of_a_profile_are_one_wallet(windows: Windows) -> None:
    windows.bind("vault", "wallet")
    assert fitting(windows, Toll("write", "vault"), Priority.CANCEL) == 8
    assert not send(windows, Toll("write", "wallet"))


def test_a_turn_that_is_given_back_does_not_count(windows: Windows) -> None:
    toll = Toll("write", "wallet")
    for _ in range(50):
        windows.give_back(windows.enter(toll))
    assert fitting(windows, toll, Priority.CANCEL) == 8


def test_a_call_counts_from_when_it_goes_out(windows: Windows, clock: Monotonic) -> None:
    toll = Toll("write", "wallet")
    calls = [windows.enter(toll) for _ in range(8)]
    clock.now += 30
    for call in calls:
        windows.sent(call)
    clock.now += WINDOW_S - 1
    assert windows.wait_s(toll, Priority.CANCEL) == pytest.approx(1)


def test_without_limits_everything_fits(clock: Monotonic) -> None:
    windows = Windows(Capabilities("satflow", "Satflow"), clock)
    assert all(send(windows, Toll("write", "wallet"), Priority.PLACE) for _ in range(500))


def test_a_limit_of_one_is_used(clock: Monotonic) -> None:
    windows = Windows(Capabilities("a", "A", writes_per_minute=1), clock)
    assert fitting(windows, Toll("write", more=1), Priority.PLACE) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_minute_anywhere_has_more_than_the_limit_and_nobody_waits_in_vain(seed: int) -> None:
    chance, clock = random.Random(seed), Monotonic()
    windows = Windows(ORDNET, clock)
    sent: list[tuple[float, str, str | None]] = []
    for _ in range(4_000):
        clock.now += chance.expovariate(2)
        toll = Toll(chance.choice(("read", "write")), chance.choice((None, "a", "b", "c")))
        priority = chance.choice(list(Priority))
        if send(windows, toll, priority):
            sent.append((clock.now, toll.use, toll.wallet))
            continue
        recent = Counter((use, wallet) for at, use, wallet in sent if clock.now - at < WINDOW_S)
        assert is_full(
            recent, toll, {Priority.CANCEL: 1, Priority.OWN_BIDS: 1, Priority.LOOKUP: 0.5}.get(priority, 0.75)
        )
    assert len(sent) > 1_000
    for offset in (0.0, 17.3, 41.9):  # wherever the venue's own windows begin
        minutes: dict[float, Counter[tuple[str, str | None]]] = {}
        for at, use, wallet in sent:
            minutes.setdefault((at + offset) // 60, Counter())[use, wallet] += 1
        for minute in minutes.values():
            for use, (of_all, of_one) in LIMITS.items():
                assert sum(count for (made, _), count in minute.items() if made == use) <= of_all
                # Whichever of them made what is for everybody.
                assert all(minute[use, wallet] + minute[use, None] <= of_one for wallet in ("a", "b", "c"))


def is_full(recent: Counter[tuple[str, str | None]], toll: Toll, part: float) -> bool:
    """Tells whether this part of a limit is used up: of all, of the toll's wallet, for everybody of any wallet."""
    of_all, of_one = LIMITS[toll.use]
    wallets = ("a", "b", "c") if toll.wallet is None else (toll.wallet,)
    busiest = max(recent[toll.use, wallet] + recent[toll.use, None] for wallet in wallets)
    return (
        sum(count for (use, _), count in recent.items() if use == toll.use) >= of_all * part or busiest >= of_one * part
    )


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
