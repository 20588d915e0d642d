"""Limits of a minute, on a clock of the test's own: what holds in any 60 s, and what is kept free for the urgent."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gateway.limits.call_budget import Priority
from gateway.limits.windows import READ, WINDOW_S, Toll, Windows
from markets.capabilities import Capabilities
from markets.venues import capabilities
from tests.clock import Monotonic

ORDNET = capabilities("ordnet")


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
def test_no_minute_anywhere_has_more_than_the_limit(seed: int) -> None:
    chance, clock = random.Random(seed), Monotonic()
    windows = Windows(ORDNET, clock)
    sent: list[tuple[float, str, str | None]] = []
    for _ in range(4_000):
        clock.now += chance.expovariate(2)
        toll = Toll(chance.choice(("read", "write")), chance.choice((None, "a", "b", "c")))
        if send(windows, toll, chance.choice(list(Priority))):
            sent.append((clock.now, toll.use, toll.wallet))
    assert len(sent) > 1_000
    for offset in (0.0, 17.3, 41.9):  # wherever the venue's own windows begin
        all_of = Counter((use, (at + offset) // 60) for at, use, _ in sent)
        each = Counter((use, wallet, (at + offset) // 60) for at, use, wallet in sent)
        assert max(count for (use, _), count in all_of.items() if use == "read") <= 60
        assert max(count for (use, _), count in all_of.items() if use == "write") <= 20
        assert max(count for (use, wallet, _), count in each.items() if use == "write" and wallet) <= 8
        assert max(count for (use, wallet, _), count in each.items() if use == "read" and wallet) <= 30
