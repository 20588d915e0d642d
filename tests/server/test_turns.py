"""Users take turns at threads, marketplaces and the loop; limits hold for many requests at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from core.layout import journal_path
from core.setting_values import networks
from markets.base import BidBook, OwnBids, TooManyLookups
from markets.verbs import Purpose
from models import outbox
from models.ledger import fills as ledger_fills
from models.ledger import orders
from models.tasks.tasks import Task
from server import history, profit
from server.http.base import PIECE
from server.http.blocking import (
    ACTS_AT_ONCE,
    AT_ONCE,
    LONG_ANSWERS,
    LOOKS_AT_ONCE,
    WAITING,
    CallLimit,
    Seats,
    TooManyWaiting,
    Turns,
)
from server.http.gate import budget_key, client_ip
from tests.replay.recorded import entry
from tests.server.ledger_rows import bought
from tests.server.test_events import happen
from tests.server.test_lookups import INSCRIPTION
from tests.server.test_task_past import iso, write
from tests.worlds.service import START_MS, Service


class Clock:
    """A monotonic clock that the test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Asked:
    """Requests for turns, each of which lasts until the test ends it."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun = list[str]()

    async def ask(self, user: str) -> asyncio.Task[None]:
        asked = asyncio.create_task(self._hold(user))
        await asyncio.sleep(0)
        return asked

    async def _hold(self, user: str) -> None:
        async with self.turns.of(user):
            self.begun.append(user)
            await asyncio.Event().wait()

    async def end(self, asked: asyncio.Task[None]) -> None:
        asked.cancel()
        await asyncio.wait([asked])
        await asyncio.sleep(0)


async def test_a_free_place_goes_to_the_user_with_the_fewest_and_then_in_turn() -> None:
    turns = Asked(Turns(2, 2, clock=Clock()))
    first, second = await turns.ask("a"), await turns.ask("a")
    for user in ("a", "a", "b", "c"):
        await turns.ask(user)
    await turns.end(first)
    assert turns.begun[2:] == ["b"]  # who has none, before the one who waits for longer
    await turns.end(second)
    assert turns.begun[3:] == ["a"]


async def test_between_users_with_equal_places_the_shortest_use_of_late_goes_first() -> None:
    clock = Clock()
    turns = Asked(Turns(1, 1, clock=clock))
    for user, seconds in (("a", 3.0), ("b", 2.0)):
        held = await turns.ask(user)
        clock.now_s += seconds
        await turns.end(held)
    held = await turns.ask("c")
    for user in ("a", "b"):
        await turns.ask(user)
    await turns.end(held)
    assert turns.begun[3:] == ["b"]


async def test_use_counts_for_half_after_a_minute() -> None:
    clock = Clock()
    turns = Asked(Turns(1, 1, clock=clock))
    for user, seconds in (("a", 3.0), ("b", 2.0)):
        held = await turns.ask(user)
        clock.now_s += seconds
        await turns.end(held)
        clock.now_s += 60
    held = await turns.ask("c")
    for user in ("b", "a"):
        await turns.ask(user)
    await turns.end(held)
    assert turns.begun[3:] == ["a"]


async def test_a_user_with_one_long_answer_waits_for_one_piece_of_others_at_a_time() -> None:
    clock, done = Clock(), list[str]()
    pieces = Turns(1, 1, clock=clock)

    async def answer(user: str) -> None:
        for _ in range(6):
            async with pieces.of(user):
                clock.now_s += 0.005
                done.append(user)
                await asyncio.sleep(0)

    async def without_end(user: str) -> None:
        while True:
            await answer(user)

    others = [asyncio.create_task(without_end(f"u{number % 50}")) for number in range(100)]
    while len(done) < 1_000:  # noqa: ASYNC110
        await asyncio.sleep(0)
    begun = len(done)
    await answer("stranger")
    for other in others:
        other.cancel()
    await asyncio.wait(others)
    assert len(done) - begun < 20  # 6 of the stranger's, and one of another user before each


async def test_a_user_has_no_more_than_their_places_while_others_are_free() -> None:
    turns = Asked(Turns(3, 1))
    await turns.ask("a")
    await turns.ask("a")
    await turns.ask("b")
    assert turns.begun == ["a", "b"] and len(turns.turns) == 2


async def test_one_more_than_may_wait_is_refused_and_one_who_gives_up_leaves_no_trace() -> None:
    turns = Turns(1, 1, waiting=2)
    asked = Asked(turns)
    held, given_up, waiting = await asked.ask("a"), await asked.ask("a"), await asked.ask("a")
    with pytest.raises(TooManyWaiting):
        async with turns.of("a"):
            raise AssertionError("the turn came")
    given_up.cancel()
    held.cancel()
    await asyncio.wait([given_up, held])
    waiting.cancel()  # at the moment in which it was given the place
    await asyncio.wait([waiting])
    assert len(turns) == 0
    async with turns.of("b"):
        assert len(turns) == 1


async def test_one_who_waits_longer_than_the_patience_is_refused() -> None:
    turns = Turns(0, 1, patience_s=0.01)
    with pytest.raises(TooManyWaiting):
        async with turns.of("a"):
            raise AssertionError("the turn came")
    assert len(turns) == 0


async def a_journal(service: Service) -> str:
    task = await service.new_task()
    write(journal_path(service.settings.data_dir, task), [entry(0, 100_000)])
    return f"/api/tasks/{task}/at?time={iso(START_MS)}"


async def an_export(service: Service) -> str:
    bought(service.user_id, 75_000)
    return "/api/trades.csv"


async def a_profit(service: Service) -> str:
    bought(service.user_id, 75_000)
    return "/api/pnl"


@pytest.mark.parametrize(
    ("path", "module", "name"),
    [(a_journal, history, "moment_of"), (an_export, profit, "_text"), (a_profit, profit, "rows_of")],
)
async def test_long_reads_of_one_user_leave_another_theirs_and_more_than_four_waiting_are_429(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: Callable, module: object, name: str
) -> None:
    """The first user's long reads last until the other user's answer is there."""
    own_path, done = await path(service), threading.Event()
    work, hung = getattr(module, name), list[int]()

    def slow(*arguments: object) -> object:
        if is_hanging:
            hung.append(1)
            done.wait(60)
        return work(*arguments)

    monkeypatch.setattr(module, name, slow)
    is_hanging = True
    many = [asyncio.ensure_future(service.ask("GET", own_path)) for _ in range(12)]
    try:
        async with asyncio.timeout(60):
            while not hung or sum(each.done() for each in many) < 7:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        refused = [each.result() for each in many if each.done()]
        assert [(each.status, each.json["error"]) for each in refused] == [(429, "Too many long reads")] * 7
        assert refused[0].headers["Retry-After"] == "2" and len(hung) == 1
        is_hanging = False
        other = await service.api("GET", "/api/trades.csv", token=service.other_token)
        assert other.status == 200
        assert (await service.api("GET", "/readyz")).status in (200, 503)  # its threads are others
        assert not done.is_set()
    finally:
        done.set()
        answers = await asyncio.gather(*many)
    assert sorted(each.status for each in answers) == [200] * 5 + [429] * 7


@pytest.mark.parametrize(
    ("path", "module", "name"), [("fills", history, "_fill_shown"), ("orders", history, "order_shown")]
)
async def test_long_answers_are_written_in_pieces_and_others_are_answered_in_between(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, module: object, name: str
) -> None:
    for number in range(3 * PIECE):
        bought(service.user_id, 75_000 + number)
    written, others, shown = 0, 0, getattr(module, name)
    between = list[int]()

    def noted(row: object) -> object:
        nonlocal written
        if written % PIECE == 0:
            between.append(others)
        written += 1
        return shown(row)

    monkeypatch.setattr(module, name, noted)
    asked = asyncio.ensure_future(service.ask("GET", f"/api/{path}?limit=500"))
    while not asked.done():
        await asyncio.sleep(0)
        others += 1
    assert len((await asked).json[path]) == 3 * PIECE
    assert len(between) == 3 and between[0] < between[1] < between[2]


class Reads:
    """A count of the rows' reads behind an answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
        self.begun = 0
        self._read = getattr(module, name)
        monkeypatch.setattr(module, name, self._noted)

    def _noted(self, *args: object, **named: object) -> object:
        self.begun += 1
        return self._read(*args, **named)


@pytest.mark.parametrize(
    ("path", "module", "name"),
    [
        ("/api/orders?limit=500", orders, "newest_of_user"),
        ("/api/fills?limit=500", ledger_fills, "newest"),
        ("/api/events?limit=500&after=0&wait=0", outbox, "of_user_after"),
    ],
)
async def test_rows_are_read_for_two_long_answers_of_a_user_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, module: object, name: str
) -> None:
    reads, answered = Reads(monkeypatch, module, name), 0
    for number in range(3):
        bought(service.user_id, 75_000 + number)
        happen(service.user_id, "error")

    async def ask() -> tuple[int, int]:
        nonlocal answered
        answer = await service.ask("GET", path)
        answered += 1
        return answer.status, reads.begun - answered

    found = await asyncio.gather(*(ask() for _ in range(60)))
    assert {status for status, _ in found} == {200}
    # The client may see an answer some turns of the loop later.
    assert max(ahead for _, ahead in found) < 20


async def test_more_long_answers_than_may_wait_are_429_and_event_pages_are_not(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = service.app.settings["services"]
    full = AsyncExitStack()
    for turns in (services.long_answers, services.event_pages):
        for _ in range(LONG_ANSWERS):
            await full.enter_async_context(turns.of(service.user_id))
    monkeypatch.setattr(services.long_answers, "_waiting", 0)
    refused = await service.ask("GET", "/api/orders")
    assert (refused.status, refused.json["error"]) == (429, "Too many long reads")
    assert (await service.api("GET", "/api/orders", token=service.other_token)).status == 200
    crowd = [asyncio.ensure_future(service.ask("GET", "/api/events?wait=0")) for _ in range(10)]
    await asyncio.sleep(0.05)
    await full.aclose()
    assert {(await asked).status for asked in crowd} == {200}


@pytest.mark.parametrize("path", ["/api/orders", "/api/trades.csv"])
async def test_a_client_that_leaves_frees_its_turn_before_its_rows_are_read(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    services, reads = service.app.settings["services"], Reads(monkeypatch, orders, "newest_of_user")
    pages = Reads(monkeypatch, ledger_fills, "newest")
    async with services.pieces.of("another"):
        where = urlsplit(service.api.base_url)
        for _ in range(3):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()
        async with asyncio.timeout(60):
            while len(services.pieces) > 1 or len(services.long_answers) or services.in_flight:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert reads.begun == pages.begun == 0


async def test_a_long_read_that_others_keep_waiting_ends_with_429(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_reads = service.app.settings["services"].long_reads
    monkeypatch.setattr(long_reads._turns, "_patience_s", 0.05)
    async with long_reads.turn(-1), long_reads.turn(-2):
        answer = await service.ask("GET", "/api/trades.csv")
    assert answer.status == 429 and "of other users" in answer.json["message"]
    assert (await service.ask("GET", "/api/trades.csv")).status == 200


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


async def test_64_creates_at_once_never_pass_the_plan(service: Service) -> None:
    answers = await asyncio.gather(
        *(service.ask("POST", "/api/tasks", {"slug": f"slug-{n}", "hardcapSats": 1}) for n in range(64))
    )

    assert Counter(answer.status for answer in answers) == {201: 20, 403: 44}
    assert Task.select().count() == 20


async def test_parallel_creates_of_one_slug_make_one_task(service: Service) -> None:
    answers = await asyncio.gather(
        *(service.ask("POST", "/api/tasks", {"slug": "same", "hardcapSats": 1}) for _ in range(10))
    )

    assert Counter(answer.status for answer in answers) == {201: 1, 409: 9}


def test_a_budget_starts_anew_after_a_minute() -> None:
    now = 0.0
    budget = CallLimit(2, lambda: now)

    assert [budget.take("a") for _ in range(3)] == [0, 0, 60]
    assert budget.take("b") == 0
    now = 59.5
    assert budget.take("a") == 1
    now = 60.0
    assert budget.take("a") == 0


def test_a_flood_of_addresses_does_not_fill_the_memory() -> None:
    budget = CallLimit(1, lambda: 0.0)

    for n in range(120_000):
        budget.take(str(n))

    assert len(budget._windows) <= 50_000


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("203.0.113.5", {}, "203.0.113.5"),
        ("203.0.113.5", {"X-Forwarded-For": "198.51.100.1", "X-Real-Ip": "198.51.100.2"}, "203.0.113.5"),
        ("127.0.0.1", {}, "127.0.0.1"),
        ("127.0.0.1", {"X-Forwarded-For": "198.51.100.1"}, "198.51.100.1"),
        ("::1", {"X-Real-Ip": "198.51.100.2", "X-Forwarded-For": "198.51.100.1"}, "198.51.100.2"),
        ("127.0.0.1", {"X-Forwarded-For": "6.6.6.6, 198.51.100.1"}, "198.51.100.1"),
        ("127.0.0.1", {"X-Forwarded-For": "198.51.100.1, 127.0.0.1"}, "198.51.100.1"),
        ("127.0.0.1", {"X-Forwarded-For": "nonsense"}, "127.0.0.1"),
        ("127.0.0.1", {"X-Real-Ip": "::ffff:198.51.100.3"}, "198.51.100.3"),
        ("::ffff:203.0.113.5", {}, "203.0.113.5"),
        ("2001:DB8::1", {}, "2001:db8::1"),
    ],
)
def test_only_a_proxy_on_this_machine_names_the_client(peer: str, headers: dict[str, str], expected: str) -> None:
    assert client_ip(peer, headers) == expected


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("172.17.0.1", {"X-Real-Ip": "8.8.8.8"}, "8.8.8.8"),
        ("::ffff:172.17.0.1", {"X-Real-Ip": "8.8.8.8"}, "8.8.8.8"),
        ("fd00::17", {"X-Forwarded-For": "6.6.6.6, 8.8.8.8, 172.17.0.1"}, "8.8.8.8"),
        ("127.0.0.1", {"X-Forwarded-For": "8.8.8.8, 172.17.0.1"}, "8.8.8.8"),
        ("172.17.0.1", {"X-Real-Ip": "nonsense"}, "172.17.0.1"),
        ("172.17.0.2", {"X-Real-Ip": "8.8.8.8"}, "172.17.0.2"),
        ("203.0.113.5", {"X-Real-Ip": "8.8.8.8"}, "203.0.113.5"),
    ],
)
def test_a_trusted_proxy_names_the_client_and_its_neighbour_does_not(
    peer: str, headers: dict[str, str], expected: str
) -> None:
    assert client_ip(peer, headers, networks("172.17.0.1, fd00::/64")) == expected


def test_one_ipv6_network_has_one_budget() -> None:
    assert budget_key("2001:db8:1:2:3::4") == budget_key("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert budget_key("198.51.100.1") == "198.51.100.1"
