"""A user's questions to the marketplaces: a few at a time, so that another user's come through."""

from __future__ import annotations

import asyncio
import threading

import pytest

from markets.base import BidBook, OwnBids, TooManyLookups
from markets.verbs import Purpose
from server.http.blocking import ACTS_AT_ONCE, AT_ONCE, LOOKS_AT_ONCE, WAITING, Seats
from tests.server.conftest import Service
from tests.server.test_lookups import INSCRIPTION


async def test_sixty_open_look_ups_of_one_user_leave_another_theirs(service: Service) -> None:
    """The gateway takes as long as it wants with the sixty; the other user's bids are answered meanwhile."""
    service.app.settings["services"].seats._looks._patience_s = 300
    task_id = await service.new_task()
    market, is_open, waiting = service.app.settings["services"].market, threading.Event(), []
    ask = market._ask

    def slow(question: object) -> object:
        user = threading.current_thread()
        waiting.append(user)
        is_open.wait(300)
        return ask(question)

    market._ask = slow
    sixty = [
        asyncio.ensure_future(
            service.api("GET", f"/api/autolist/item/{INSCRIPTION}?refresh=1", token=service.other_token)
        )
        for _ in range(60)
    ]
    async with asyncio.timeout(120):
        while len(waiting) < AT_ONCE or sum(each.done() for each in sixty) < 60 - AT_ONCE - WAITING:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert len(waiting) == AT_ONCE < service.app.settings["services"].market._executor._max_workers
    refused = [each.result() for each in sixty if each.done()]
    assert [each.status for each in refused] == [429] * (60 - AT_ONCE - WAITING)
    assert refused[0].headers["Retry-After"] == "2"
    assert refused[0].json["message"] == "4 of your questions to marketplaces are being asked, and more wait"

    market._ask = ask
    service.gateway.answers |= {"own_bids": OwnBids((), 1), "bids": BidBook((), 1)}
    assert (await service.ask("GET", f"/api/tasks/{task_id}/bids")).status == 200
    assert not is_open.is_set() and sum(each.done() for each in sixty) == len(refused)

    is_open.set()
    await asyncio.gather(*sixty)
    assert len(service.app.settings["services"].seats) == 0


async def test_a_place_is_taken_until_the_thread_has_its_answer() -> None:
    seats, answered = Seats(), asyncio.Event()
    began = 0

    async def question() -> None:
        nonlocal began
        began += 1
        await answered.wait()

    for _ in range(AT_ONCE):
        with pytest.raises(TimeoutError):  # as a start, which waits for the traits for a while only
            await asyncio.wait_for(seats.ask(1, "look", question), 0.01)
    waiting = [asyncio.ensure_future(seats.ask(1, "look", question)) for _ in range(WAITING)]
    await asyncio.sleep(0.01)
    assert began == AT_ONCE
    with pytest.raises(TooManyLookups):
        await seats.ask(1, "look", question)
    other = asyncio.ensure_future(seats.ask(2, "look", question))
    await asyncio.sleep(0.01)
    assert began == AT_ONCE + 1

    answered.set()
    await asyncio.gather(other, *waiting)
    assert began == AT_ONCE + WAITING + 1 and len(seats) == 0


class Questions:
    """Questions that are answered when the test says so, by the user and purpose of those that began."""

    def __init__(self) -> None:
        self.seats, self.answered, self.begun = Seats(), asyncio.Semaphore(0), list[tuple[int, Purpose]]()

    def ask(self, user: int, purpose: Purpose) -> asyncio.Future[None]:
        async def question() -> None:
            self.begun.append((user, purpose))
            await self.answered.acquire()

        return asyncio.ensure_future(self.seats.ask(user, purpose, question))

    async def answer(self, asked: list[asyncio.Future[None]]) -> None:
        for _ in asked:
            self.answered.release()
        await asyncio.gather(*asked)
        assert len(self.begun) == len(asked) and len(self.seats) == 0


async def test_what_users_look_at_leaves_threads_to_what_they_do() -> None:
    questions = Questions()
    asked = [questions.ask(user, "look") for user in range(1, 6) for _ in range(AT_ONCE)]
    await asyncio.sleep(0.01)
    assert len(questions.begun) == LOOKS_AT_ONCE
    asked += [questions.ask(1, "act"), questions.ask(1, "withdraw")]
    await asyncio.sleep(0.01)
    assert questions.begun[LOOKS_AT_ONCE:] == [(1, "act"), (1, "withdraw")]
    await questions.answer(asked)


@pytest.mark.parametrize(("purpose", "at_once"), [("look", LOOKS_AT_ONCE), ("act", ACTS_AT_ONCE)])
async def test_a_stranger_asks_next_when_three_users_hold_all_places(purpose: Purpose, at_once: int) -> None:
    questions = Questions()
    asked = [questions.ask(user, purpose) for user in (1, 2, 3) for _ in range(3 * AT_ONCE)]
    await asyncio.sleep(0.01)
    assert len(questions.begun) == at_once
    asked.append(questions.ask(4, purpose))
    await asyncio.sleep(0.01)
    questions.answered.release()
    await asyncio.sleep(0.01)
    assert questions.begun[at_once:] == [(4, purpose)]
    await questions.answer(asked)


async def test_each_question_says_whose_it_is_and_what_for(service: Service) -> None:
    await service.ask("GET", "/api/tasks/floor?slug=goosinals")
    await service.ask("POST", "/api/wallet/withdraw", {"from": "payment", "dryRun": True})
    await service.ask("POST", "/api/wallet/withdraw", {"from": "payment"})

    told = [(each["verb"], each["user"], each["purpose"]) for each in service.gateway.asked]
    assert told[0] == ("floors", service.user_id, "look")
    assert {each for each in told if each[0] == "coins"} == {
        ("coins", service.user_id, "look"),
        ("coins", service.user_id, "withdraw"),
    }
