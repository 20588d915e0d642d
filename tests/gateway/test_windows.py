"""Limits of a minute, on a clock of the test's own: what holds in any 60 s, and what is kept free for the urgent."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gateway.quota import Priority
from gateway.venue import READ, WINDOW_S, Toll, Windows
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
