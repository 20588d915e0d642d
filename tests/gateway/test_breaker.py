"""A venue that does not answer gets one probe in ten seconds; the effect of each class of fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from gateway import program
from gateway import venue as module
from gateway import venue as module_of_venue
from gateway.quota import Priority
from gateway.venue import BRAKE_SLOTS, FAILURES, PROBE_S, READ, SPAN_S, Breaker
from markets import venues
from markets.base import NotFound, RateLimited, Unavailable, Unknown, VenueError
from tests.clock import Monotonic
from tests.fault_classes import EFFECTS, Effect
from tests.gateway.conftest import ORDER, Bench, eventually, soon


@pytest.fixture
def clock() -> Monotonic:
    return Monotonic()


def opened(clock: Monotonic) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.failed()
        clock.now += SPAN_S / (FAILURES - 1)
    assert breaker.is_open
    return breaker


def test_half_an_hour_of_silence_is_one_probe_in_ten_seconds(clock: Monotonic) -> None:
    breaker, asked = Breaker(clock), []
    end = clock.now + 1_800
    while clock.now < end:
        if breaker.wait_s() is None:
            asked.append(clock.now)
            breaker.failed()
        clock.now += 0.25

    first = [at for at in asked if at < 1_000 + SPAN_S + 1]
    assert len(asked) - len(first) <= 1_800 / PROBE_S
    assert all(later - earlier >= PROBE_S for earlier, later in pairwise(asked[len(first) :]))


def test_a_blip_that_hits_many_calls_at_once_opens_nothing(clock: Monotonic) -> None:
    breaker = Breaker(clock)
    for _ in range(20):
        breaker.failed()
    assert breaker.wait_s() is None


def test_an_answer_in_between_begins_the_row_anew(clock: Monotonic) -> None:
    breaker = Breaker(clock)
    for _ in range(20):
        breaker.failed()
        clock.now += SPAN_S
        breaker.answered()
    assert not breaker.is_open


def test_one_of_many_is_the_probe_and_its_answer_closes(clock: Monotonic) -> None:
    breaker = opened(clock)
    clock.now += PROBE_S
    assert breaker.wait_s(may_probe=False) == 0
    assert breaker.wait_s() is None
    assert breaker.wait_s() == PROBE_S
    breaker.answered()
    assert breaker.wait_s(may_probe=False) is None


def test_a_probe_that_never_ends_does_not_keep_it_open(clock: Monotonic) -> None:
    breaker = opened(clock)
    clock.now += PROBE_S
    assert breaker.wait_s() is None
    clock.now += PROBE_S
    assert breaker.wait_s() is None


def test_a_dead_venue_hears_no_more_and_a_revived_one_does(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    path, client = "/address/bids", bench.client()
    bench.venue.statuses[path] = 500
    for _ in range(FAILURES):
        with pytest.raises(Unavailable):
            client.own_bids("bc1qpayment", 0)
    with pytest.raises(Unavailable, match="no usable answer several times in a row; it is asked") as told:
        client.own_bids("bc1qpayment", 0)
    assert "bc1qpayment" not in told.value.message  # every user gets this text
    with pytest.raises(Unavailable, match="nothing was sent"):
        client.place(ORDER, task=1, token=1, deadline_ms=soon())
    assert len(bench.venue.calls) == FAILURES
    assert client.status()["venues"]["simulator"]["is_cut_off"]
    bench.gateway.venues.markets["simulator"].breaker._probe_at = 0.0
    with pytest.raises(Unavailable, match="nothing was sent"):
        client.place(ORDER, task=1, token=1, deadline_ms=soon())  # is no probe

    bench.venue.statuses[path], bench.venue.answers[path] = 200, {"data": {"results": []}}
    client.own_bids("bc1qpayment", 0)
    client.place(ORDER, task=1, token=1, deadline_ms=soon())

    assert not client.status()["venues"]["simulator"]["is_cut_off"]


def test_a_brake_is_sent_to_a_venue_that_does_not_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    path = "/address/bids"
    bench.venue.statuses[path] = 500
    for _ in range(FAILURES):
        with pytest.raises(Unavailable):
            bench.client().own_bids("bc1qpayment", 0)
    assert bench.gateway.venues.markets["simulator"].breaker.is_open
    brake = bench.client().by(1, "brake")
    bench.venue.answers["/cancel"] = {"success": True, "data": {"success": True}}
    sent = {"task": 1, "token": 1, "deadline_ms": soon()}
    with pytest.raises(Unavailable, match="nothing was sent"):
        bench.client().cancel("bc1qpayment", ["a" * 24], "AkcwRA==", **sent)
    assert brake.cancel("bc1qpayment", ["a" * 24], "AkcwRA==", **sent)
    assert len(bench.venue.of("/cancel")) == 1


def test_a_brake_does_not_wait_for_a_read_that_a_task_has_queued(bench: Bench) -> None:
    """With the task's priority it would be behind all that wait, and behind reads that hang in every slot."""
    bench.venue.answers["/address/bids"] = {"data": {"results": []}}
    bench.pause()
    with ThreadPoolExecutor(2) as askers:
        asked = [askers.submit(bench.client().own_bids, "bc1qpayment", 0)]
        eventually(lambda: bench.waiting() == 1)
        asked += [askers.submit(bench.client().by(1, "brake").own_bids, "bc1qpayment", 0)]
        eventually(lambda: bench.waiting() == 2)
        bench.go_on()
        for each in asked:
            each.result(60)
    assert len(bench.venue.of("/address/bids")) == 2


def test_brakes_have_threads_while_calls_hang_in_every_slot_of_every_venue() -> None:
    named = [venues.capabilities(name) for name in ("satflow", "ordnet", "unisat", "ordinalswallet")]
    of_venues = sum(can.slots + BRAKE_SLOTS for can in named)
    of_sources = 1 + 2 * program._source_budget("http://127.0.0.1:1")._slots
    assert of_venues + of_sources <= program.THREADS


@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (404, NotFound)])
def test_what_a_venue_says_is_an_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    path = "/item"
    bench.venue.statuses[path], bench.venue.answers[path] = status, {"error": "no"}
    bench.venue.headers[path] = {"Retry-After": "0"}
    for _ in range(FAILURES + 1):
        with pytest.raises(error):
            bench.client().item("a" * 64 + "i0", 0)
    assert not bench.gateway.venues.markets["simulator"].breaker.is_open


def test_a_place_whose_answer_is_lost_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    bench.venue.statuses["/bid/place"] = 500
    for _ in range(FAILURES):
        with pytest.raises(Unknown):
            bench.client().place(ORDER, task=1, token=1, deadline_ms=soon())
    assert bench.gateway.venues.markets["simulator"].breaker.is_open


def test_what_we_withdrew_ourselves_says_nothing_of_the_venue(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    monkeypatch.setattr(module, "FAILURES", 1)
    venue = bench.gateway.venues.markets["simulator"]

    async def withdrawn() -> None:
        def call() -> None:
            raise module_of_venue.Abandoned("its asker is gone; nothing was sent")

        await venue.turn(Priority.PLACE, 1, READ)
        await venue.run("place", "place", call, Unknown)

    with pytest.raises(Unavailable):
        bench.run(withdrawn)
    assert not venue.breaker.is_open


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_fault_opens_the_breaker_or_pauses_the_key_by_its_class(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, effect: Effect
) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    venue = bench.gateway.venues.markets["simulator"]

    def fails() -> None:
        raise effect.error

    async def ask() -> None:
        for _ in range(FAILURES):
            await venue.budget.take(Priority.REST, asyncio.get_running_loop().time() + 60)
            venue.budget._paused_until = 0.0  # the next one does not wait for it
            with pytest.raises(VenueError):
                await venue.run("asks", "asks", fails, Unavailable)

    bench.run(ask)
    assert venue.breaker.is_open is effect.opens_breaker
    assert (venue.budget.paused_s() > 0) is effect.pauses


def test_unisats_403_over_the_rate_pauses_its_key_longer_each_time(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(unisat_api_key="k", market="unisat")
    path = "/v3/market/collection/auction/list"
    bench.venue.statuses[path], bench.venue.answers[path] = 403, {"code": -2006, "msg": "exceeds rate limit"}
    venue, pauses = bench.gateway.venues.markets["unisat"], []
    for _ in range(3):
        with pytest.raises(RateLimited):
            bench.client().at("unisat").own_listings("bc1pvault", 0)
        pauses.append(venue.budget.paused_s())
        venue.budget._paused_until = 0.0
    assert all(0 < pause_s <= most for pause_s, most in zip(pauses, (2.5, 5, 10), strict=True)), pauses
    assert pauses == sorted(pauses)
