"""People's look-ups at the gateway: counted by user, refused before any task is, and never in a task's way."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.quota import ORIGIN, BeyondShare, LookupBudget, Origin, Priority, Quota, level
from gateway.quota_count import MONTH, MOST_USERS, QuotaCount, QuotaFile
from gateway.reads.snapshots import REMEMBERED_S, Flight, Snapshots
from gateway.venue import READ, CallBudget, Windows
from markets.base import NotFound, RateLimited, TooManyLookups, Unavailable
from markets.client import MarketClient
from markets.venues import Capabilities
from tests.clock import Clock
from tests.gateway.conftest import Bench, eventually
from tests.gateway.test_market_reads import _floors
from tests.gateway.test_quota_gateway import Make, place, short

LOOK, ACT = Origin(1, "look"), Origin(1, "act")
ITEM = "7" * 64 + "i0"


class Now:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


def looking(bench: Bench, user: int = 1) -> MarketClient:
    return bench.client().by(user, "look")


class TestTheBudget:
    def test_is_so_many_calls_a_minute_for_each_user(self) -> None:
        now = Now()
        budget = LookupBudget(15, now)

        def in_an_hour(asked: Origin) -> int:
            until, sent = now.s + 3600, 0
            while now.s < until:
                with contextlib.suppress(TooManyLookups):
                    budget.permit(asked)
                    budget.take(asked)
                    sent += 1
                now.s += 0.1
            return sent

        assert 900 <= in_an_hour(LOOK) <= 15 + 900 <= 0.01 * 100_000
        budget.permit(Origin(2, "look"))
        assert in_an_hour(ACT) <= 6 * 15 + 15 / 4 + 1
        budget.permit(Origin(1, "task"))

    def test_says_when_to_come_back_and_what_was_dear_is_paid_off(self) -> None:
        now = Now()
        budget = LookupBudget(15, now)
        budget.permit(LOOK)
        budget.take(LOOK, 20)  # known only when it was sent

        with pytest.raises(TooManyLookups, match="15 calls to marketplaces a minute by looking; ask again") as refused:
            budget.permit(LOOK)
        assert refused.value.retry_after_s == 24  # six calls, one each four seconds

        now.s += 24
        budget.permit(LOOK)

    def test_keeps_no_more_users_than_there_are_about(self) -> None:
        now = Now()
        budget = LookupBudget(15, now)
        for user in range(10_050):
            now.s += 0.01
            budget.take(Origin(user, "look"))
        assert len(budget) <= 10_000


class TestLooks:
    def test_are_refused_once_the_user_has_caused_enough_calls(self, make_bench: Make) -> None:
        bench = make_bench(lookups_per_minute=3)
        bench.gateway._lookups._looks._clock = Now()  # or another one is free after 20 s
        bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
        client = looking(bench)
        for number in range(3):
            client.asks(f"slug-{number}", 0)

        with pytest.raises(TooManyLookups):
            client.asks("slug-3", 0)

        assert len(bench.venue.of("/activity/listings")) == 3
        client.asks("slug-2", 0)  # from the last minute: it costs nothing
        looking(bench, user=2).asks("slug-3", 0)
        own = bench.client()
        own.user = 1
        own.asks("slug-4", 0)  # the same user's task
        assert len(bench.venue.of("/activity/listings")) == 5

    def test_at_names_that_the_venue_does_not_know_cost_one_call(self, bench: Bench) -> None:
        bench.venue.answers["/collection-stats/floors"] = _floors
        bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
        bench.venue.answers["/item"] = {"error": "no"}
        bench.venue.statuses["/item"] = 404
        for user in (1, 2):
            client = looking(bench, user)
            assert client.floors(["nowhere"], "ordinals", 0) == {}
            with pytest.raises(NotFound):
                client.item(ITEM, 0)
            with pytest.raises(NotFound):
                client.asks("nowhere", 0)
        assert [call.path for call in bench.venue.calls] == ["/collection-stats/floors", "/item"]

        bench.client().asks("nowhere", 0)  # a task must learn at once that it is there
        assert len(bench.venue.calls) == 3

    def test_leave_the_queue_when_the_person_waits_no_longer(self, bench: Bench) -> None:
        bench.pause()
        impatient = bench.client().by(1, "look", time.monotonic() + 0.3)
        with pytest.raises(Unavailable, match="not answered in time"):
            impatient.asks("slug", 0)
        eventually(lambda: bench.waiting() == 0)
        with pytest.raises(Unavailable, match="not answered in time"):
            impatient.asks("another", 0)
        assert bench.venue.calls == []

    def test_stop_while_tasks_notice_nothing(self, make_bench: Make) -> None:
        bench = short(make_bench, 32)
        looks, task = looking(bench), bench.client()
        task.asks("goosinals", 0)

        with pytest.raises(RateLimited, match="tasks go first"):
            looks.asks("another", 0)
        looks.asks("goosinals", 0)  # what a task has read is there to be seen
        assert len(bench.venue.calls) == 1

        task.own_bids("bc1qpayment", 2)
        place(bench, rung=9)
        task.asks("goosinals", 0)
        assert task.scarcity.stretch_s == 0 and len(bench.venue.calls) == 4


class TestATask:
    async def test_never_waits_for_what_somebody_looks_up(self) -> None:
        snapshots = Snapshots(lambda: 100.0, lambda: 100_000)
        begun: list[Origin] = []

        async def ask(of: Origin) -> None:
            async def fetch(flight: Flight) -> str:
                begun.append(flight.origin)
                if flight.origin.purpose == "task":
                    flight.begin()
                return await asyncio.get_running_loop().create_future()

            ORIGIN.set(of)
            await snapshots.get("key", 30, fetch)

        looks, others, task, looks_again = LOOK, Origin(2, "look"), Origin(3), Origin(4, "look")
        waiting = []
        for each in (looks, looks, others, task, looks_again):
            waiting.append(asyncio.ensure_future(ask(each)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert begun == [looks, others, task], "looks join their own and tasks' readings, a task only a task's"
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def test_a_look_up_joins_no_read_that_still_waits_among_the_tasks(self) -> None:
        snapshots, begun = Snapshots(lambda: 100.0, lambda: 100_000), list[Origin]()

        async def ask(of: Origin) -> None:
            async def fetch(flight: Flight) -> str:
                begun.append(flight.origin)
                return await asyncio.get_running_loop().create_future()

            ORIGIN.set(of)
            await snapshots.get("key", 30, fetch)

        waiting = []
        for each in (Origin(1), Origin(2), LOOK, LOOK):
            waiting.append(asyncio.ensure_future(ask(each)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert begun == [Origin(1), LOOK]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def test_reads_itself_what_was_refused_to_a_user_beyond_their_share(self) -> None:
        snapshots = Snapshots(lambda: 100.0, lambda: 100_000)
        greedy, modest = Origin(1), Origin(2)

        async def ask(of: Origin) -> str:
            async def fetch(flight: Flight) -> str:
                await asyncio.sleep(0.01)
                if flight.origin == greedy:
                    raise BeyondShare(5, "reads wait")
                flight.begin()
                return "read"

            ORIGIN.set(of)
            return await snapshots.get("key", 30, fetch)

        answers = await asyncio.gather(ask(greedy), ask(modest), ask(greedy), return_exceptions=True)
        assert [type(each) for each in answers] == [BeyondShare, str, BeyondShare]

    async def test_leaves_every_fourth_turn_to_people_who_take_turns_after_cancels(self) -> None:
        now = [0.0]
        budget = CallBudget(rate=1, burst=1, slots=50, clock=lambda: now[0])
        await budget.take(Priority.REST, 100)
        order: list[str] = []

        async def ask(name: str, priority: Priority, person: int | None = None) -> None:
            await budget.take(priority, 100, person)
            order.append(name)

        def waits(name: str, priority: Priority, person: int | None = None) -> asyncio.Future[None]:
            return asyncio.ensure_future(ask(name, priority, person))

        asked = [waits("task", Priority.REST) for _ in range(7)]
        asked += [waits("Ann", Priority.LOOKUP, 1) for _ in range(3)]
        asked += [waits("Ben", Priority.LOOKUP, 2), waits("cancel", Priority.CANCEL)]
        for _ in asked:
            await asyncio.sleep(0)
            now[0] += 1
            budget.pump()
        await asyncio.gather(*asked)
        tasks = ["task"] * 3
        assert order == ["cancel", "Ann", *tasks, "Ben", *tasks, "Ann", "task", "Ann"]

    def test_has_half_of_a_minute_to_itself(self) -> None:
        windows = Windows(Capabilities("x", "x", reads_per_minute=8), Now())
        for _ in range(4):
            assert not windows.wait_s(READ, Priority.LOOKUP)
            windows.sent(windows.enter(READ))
        assert windows.wait_s(READ, Priority.LOOKUP) and not windows.wait_s(READ, Priority.REST)


class TestWhatIsNotThere:
    async def test_is_remembered_for_some_minutes_in_bounded_room(self) -> None:
        now = Now()
        snapshots = Snapshots(now, lambda: 0)
        asked: list[str] = []

        async def look(name: str) -> None:
            async def fetch(flight: Flight) -> str:
                asked.append(name)
                raise NotFound("no")

            with contextlib.suppress(NotFound):
                await snapshots.get(("item", name), 0, fetch)

        ORIGIN.set(LOOK)
        await look("a")
        await look("a")
        assert asked == ["a"]
        now.s += REMEMBERED_S
        await look("a")
        assert asked == ["a", "a"]
        for number in range(2_500):
            await look(str(number))
        assert len(snapshots.unknown) <= 2_000
        assert len(snapshots) == 0, "made-up names push no real answer out"


class TestTheMonth:
    """Of a thousand calls."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock(1_793_491_200_000)  # 2026-11-01

    @pytest.fixture
    def used(self, tmp_path: Path, clock: Clock) -> Callable[..., Quota]:
        """Makes the quota with calls by user; nobody's under 0."""

        def make(by_user: dict[int, int]) -> Quota:
            quota = Quota(
                {MONTH: 1_000}, QuotaCount(QuotaFile(tmp_path / "quota.json"), "satflow", "key", clock), clock
            )
            for user, calls in by_user.items():
                for _ in range(calls):
                    quota.count(user or None)
            return quota

        return make

    def test_is_all_of_one_user_alone(self, used: Callable[..., Quota]) -> None:
        quota = used({7: 70})
        assert (quota.stretch_s(7), quota.rungs(7)) == (quota.stretch_s(), quota.rungs())
        assert 30 < quota.stretch_s(7) < 600
        assert quota.facts(7)["yours"] == {"used": 70, "share": 900}

    def test_is_divided_once_it_runs_short(self, used: Callable[..., Quota]) -> None:
        quota = used({7: 85, 8: 10})
        assert quota.rungs(7) is not None and quota.stretch_s(7) == 600
        assert quota.rungs(8) is None and quota.stretch_s(8) == 0
        quota.permit_place(99, 8)
        assert quota.rungs(9) is None, "one who was not there before has a share, too"
        assert quota.rungs(None) == quota.rungs(7), "nobody has none"
        assert quota.facts(8)["yours"] == {"used": 10, "share": 450}

    def test_gives_nobodys_calls_to_nobody(self, used: Callable[..., Quota]) -> None:
        """As after an upgrade in mid-month: all are slowed down as if they were one."""
        quota = used({0: 90, 8: 3, 9: 1})
        assert quota.rungs(8) == quota.rungs(9) == quota.rungs()

    def test_stops_looks_of_those_beyond_their_share_first(self, used: Callable[..., Quota]) -> None:
        quota = used({7: 20, 8: 5})
        with pytest.raises(RateLimited):
            quota.permit(Priority.LOOKUP, 7)
        quota.permit(Priority.LOOKUP, 8)
        for _ in range(5):
            quota.count(8)
        with pytest.raises(RateLimited) as refused:
            quota.permit(Priority.LOOKUP, 8)
        assert refused.value.retry_after_s == 900
        quota.permit(Priority.REST, 7)

    def test_stops_reads_of_those_far_beyond_their_share(self, used: Callable[..., Quota]) -> None:
        quota = used({7: 95, 8: 10})
        with pytest.raises(BeyondShare, match="reads wait"):
            quota.permit(Priority.REST, 7)
        for priority in (Priority.CANCEL, Priority.OWN_BIDS):
            quota.permit(priority, 7)
        quota.permit(Priority.REST, 8)
        quota.permit(Priority.REST)

    def test_keeps_its_users_over_a_restart_and_not_without_end(self, used: Callable[..., Quota]) -> None:
        quota = used({7: 85, 8: 10})
        quota.close()
        assert used({}).status()["users"] == {7: 85, 8: 10}
        for user in range(MOST_USERS + 50):
            quota.count(user)
        assert len(quota._count.by_user(MONTH)) == MOST_USERS
        assert len(quota.status()["users"]) == 20


def test_the_level_is_what_each_may_have() -> None:
    assert level([1, 2, 3], 10) == float("inf")
    assert level([1, 8, 9], 10) == 4.5
    assert level([8, 8], 10) == 5
    assert level([3], 0) == level([3], -5) == 0
