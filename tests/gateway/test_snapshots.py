"""Shared answers, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from gateway.reads.snapshots import Flight, Snapshots


class Story:
    """Snapshots whose readings begin and end when the test says so."""

    def __init__(self, most: int = 500) -> None:
        self.now = 100.0
        self.snapshots = Snapshots(lambda: self.now, lambda: int(self.now * 1000), most)
        self.flights: list[tuple[Flight, asyncio.Future[str]]] = []

    def ask(self, max_age_s: float, key: str = "key") -> asyncio.Task[str]:
        async def fetch(flight: Flight) -> str:
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.flights.append((flight, answer))
            return await answer

        return asyncio.ensure_future(self.snapshots.get(key, max_age_s, fetch))


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_reading_that_has_not_begun_is_for_everybody() -> None:
    story = Story()
    asked = [story.ask(0), story.ask(30), story.ask(0)]
    await _settle()
    ((flight, answer),) = story.flights
    flight.begin()
    answer.set_result("one")
    assert await asyncio.gather(*asked) == ["one"] * 3


async def test_a_reading_under_way_is_joined_only_by_who_accepts_its_age() -> None:
    story = Story()
    early = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 5
    patient, strict, newest = story.ask(10), story.ask(3), story.ask(0)
    await _settle()
    assert len(story.flights) == 2
    story.flights[1][0].begin()
    story.flights[1][1].set_result("new")
    await _settle()
    story.flights[0][1].set_result("old")
    assert await asyncio.gather(early, patient, strict, newest) == ["old", "old", "new", "new"]
    # The older reading ended last and does not displace the newer.
    assert await story.ask(60) == "new"


async def test_age_counts_from_when_the_reading_began() -> None:
    story = Story()
    first = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 8
    story.flights[0][1].set_result("slow")
    assert await first == "slow"
    again = story.ask(5)
    await _settle()
    assert len(story.flights) == 2
    again.cancel()


async def test_after_a_write_no_earlier_reading_is_an_answer() -> None:
    story = Story()
    reading = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 1
    story.snapshots.forget("key")
    later = story.ask(60)
    await _settle()
    assert len(story.flights) == 2
    story.flights[0][1].set_result("before")
    story.now += 1
    story.flights[1][0].begin()
    story.flights[1][1].set_result("after")
    assert (await reading, await later, await story.ask(60)) == ("before", "after", "after")


async def test_an_error_reaches_all_who_joined_and_is_not_kept() -> None:
    story = Story()
    asked = [story.ask(60), story.ask(60)]
    await _settle()
    story.flights[0][0].begin()
    story.flights[0][1].set_exception(ValueError("no"))
    assert [type(each) for each in await asyncio.gather(*asked, return_exceptions=True)] == [ValueError] * 2
    again = story.ask(60)
    await _settle()
    assert len(story.flights) == 2
    again.cancel()


async def test_a_reading_nobody_waits_for_is_dropped_before_it_begins_and_not_after() -> None:
    story = Story()
    leavers = [story.ask(60), story.ask(60)]
    await _settle()
    for leaver in leavers:
        leaver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaver
    await _settle()
    assert story.flights[0][1].cancelled()
    begun = story.ask(60)
    await _settle()
    story.flights[1][0].begin()
    begun.cancel()
    await _settle()
    story.flights[1][1].set_result("paid for")
    await _settle()
    assert await story.ask(60) == "paid for"


@pytest.mark.parametrize("most", [1, 3])
async def test_memory_is_bounded_and_the_latest_stay(most: int) -> None:
    story = Story(most)
    for n in range(10):
        asked = story.ask(60, key=str(n))
        await _settle()
        story.flights[-1][0].begin()
        story.flights[-1][1].set_result(str(n))
        await asked
    assert len(story.snapshots) == most
    assert await story.ask(60, key="9") == "9"
    assert len(story.flights) == 10


async def test_answers_forgotten_together_are_those_whose_keys_begin_alike() -> None:
    """However many collections a wallet's bids were asked for, nothing besides the bounded store remembers them."""
    snapshots = Snapshots(lambda: 100.0, lambda: 0)

    async def fetch(flight: Flight) -> str:
        flight.begin()
        return "read"

    keys = [("own_bids", "a", ("x",)), ("own_bids", "a", ()), ("own_bids", "b", ()), "fees"]
    for key in keys:
        await snapshots.get(key, 30, fetch)
    snapshots.forget_all(("own_bids", "a"))
    assert [snapshots.kept(key, 30) is None for key in keys] == [True, True, False, False]
