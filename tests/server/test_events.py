"""The event stream and its pages, over real HTTP: whole, in order, one's own only, bounded, ended with the session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from models import accounts, outbox
from models.database.base import transaction
from models.outbox import Event, Told
from server import events as noun
from server.http import feed as feed_file
from server.http.feed import Feed, TooManyWaiters, event_shown
from tests.worlds.service import START_MS, Service


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_file, "LOOK_S", 0.01)
    monkeypatch.setattr(noun, "HEARTBEAT_S", 0.1)


def happen(user_id: int, *names: str) -> None:
    with transaction():
        for name in names:
            data = {"error": None, "action": "placed 0", "cycles": 3, "slug": None, "inscription_id": "i", "price": 5}
            outbox.tell(name, user_id, 7, START_MS, data)


class Stream:
    """A client of the stream, on a socket of its own."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.last_id = ""

    async def _line(self) -> str:
        """Reads a line of the body; its chunks begin and end with lines, and say their size in one."""
        return (await self._reader.readuntil(b"\n")).decode().rstrip("\r\n")

    async def next(self) -> tuple[str, Any]:
        """Returns name and JSON of the next event; ("over", None) at the end."""
        fields: dict[str, str] = {}
        while True:
            try:
                line = await asyncio.wait_for(self._line(), 20)
            except asyncio.IncompleteReadError:
                return "over", None
            name, colon, value = line.partition(": ")
            if colon:
                fields[name] = value
                self.last_id = fields.get("id", self.last_id)
            elif line == "" and "event" in fields:
                return fields["event"], json.loads(fields["data"])
            elif line == "0":
                return "over", None

    async def names(self, count: int) -> list[str]:
        return [(await self.next())[0] for _ in range(count)]

    async def begun(self) -> None:
        """Returns once the server has said from where it goes on."""
        while not self.last_id:
            name, _, value = (await asyncio.wait_for(self._line(), 20)).partition(": ")
            self.last_id = value if name == "id" else ""


@asynccontextmanager
async def stream(service: Service, token: str = "", query: str = "", **headers: str) -> AsyncIterator[Stream]:
    host, _, port = service.api.base_url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    given = {"Host": host, "Accept": "text/event-stream", "Accept-Encoding": "gzip"}
    given |= {"Authorization": f"Bearer {token or service.token}"} | headers
    lines = [f"GET /api/events{query} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    try:
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)).decode()
        assert head.startswith("HTTP/1.1 200") and "text/event-stream" in head and "gzip" not in head, head
        yield Stream(reader)
    finally:
        writer.close()


async def until(holds: Callable[[], object]) -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never holds")


def feed_of(service: Service) -> Feed:
    feed: Feed = service.app.settings["services"].feed
    return feed


async def test_a_stream_tells_the_callers_events_in_order_and_nobody_elses(service: Service) -> None:
    happen(service.user_id, "recovered")  # before: not told
    async with stream(service) as mine, stream(service, service.other_token) as others:
        await mine.begun()
        await others.begun()
        happen(service.user_id, "listed", "error")
        happen(service.user_id + 1, "cycle")
        happen(service.user_id, "worker_dead")

        assert await mine.names(3) == ["listed", "error", "worker_dead"]
        name, event = await others.next()
        assert (name, event["task"], event["text"]) == ("cycle", 7, "placed 0")
        assert event["data"] == {**event["data"], "inscriptionId": "i"}
    await until(lambda: not feed_of(service)._waiters)
    assert feed_of(service)._looking is None  # nobody left, no look


async def test_a_stream_goes_on_where_the_client_was_and_says_reset_where_it_cannot(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noun, "CAUGHT_UP_AT_ONCE", 3)  # so that the way back takes several pages
    happen(service.user_id, *["listed"] * 8)
    async with stream(service, **{"Last-Event-ID": "3"}) as late:
        assert [(await late.next())[1]["id"] for _ in range(5)] == [4, 5, 6, 7, 8]
        happen(service.user_id, "error")
        assert (await late.next())[1]["id"] == 9
    async with stream(service, query="?after=7&events=error") as late:
        assert (await late.next())[1]["id"] == 9

    monkeypatch.setattr(outbox, "KEPT_LASTING", 2)
    outbox.forget_old(START_MS)
    for given in ("3", "99999", "nonsense"):
        await until(lambda: not feed_of(service)._waiters)  # a feed that nobody listens to begins anew
        async with stream(service, **{"Last-Event-ID": given}) as late:
            assert await late.next() == ("reset", {"next": 9})
            happen(service.user_id, "recovered")
            assert (await late.next())[0] == "recovered"
        Event.delete().where(Event.event == "recovered").execute()


async def test_a_stream_ends_with_its_session_and_its_token_and_tells_nothing_more(service: Service) -> None:
    made = (await service.ask("POST", "/api/tokens", {"name": "bot", "scopes": ["read"]})).json
    async with stream(service) as by_session, stream(service, made["token"]) as by_token:
        await by_session.begun()
        await by_token.begun()
        await service.ask("DELETE", f"/api/tokens/{made['id']}")
        happen(service.user_id, "error")
        assert [await by_token.next(), (await by_session.next())[0]] == [("over", None), "error"]
        accounts.end_sessions(service.user_id)
        happen(service.user_id, "error")
        assert await by_session.next() == ("over", None)


async def test_streams_are_bounded_for_a_user_and_for_all(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feed_of(service)
    mine = [feed.join(service.user_id) for _ in range(feed_file.MOST_OF_USER)]
    refused = await service.api("GET", "/api/events", token=service.token, headers={"Accept": "text/event-stream"})
    assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
    async with stream(service, service.other_token) as others:
        await others.begun()
        monkeypatch.setattr(feed_file, "MOST", len(mine) + 1)
        feed.leave(feed.join(99))
        assert [waiter.is_over for waiter in mine] == [False] * (len(mine) - 1) + [True]


async def test_when_all_streams_are_taken_a_stranger_gets_the_newest_of_the_user_with_the_most(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_file, "MOST", 6)
    feed = feed_of(service)
    held = {user: [feed.join(user) for _ in range(count)] for user, count in ((1, 1), (2, 3), (3, 2))}
    strangers = [feed.join(4), feed.join(5)]
    assert [(user, place) for user, all_of in held.items() for place, each in enumerate(all_of) if each.is_over] == [
        (2, 1),
        (2, 2),
    ]
    with pytest.raises(TooManyWaiters):
        feed.join(1)  # no user has two more than this one
    feed.join(6)
    assert held[3][1].is_over and not any(each.is_over for each in strangers)
    # Six users have one each now, so there is nothing to take away.
    answer = await service.api("GET", "/api/events", token=service.token, headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["Retry-After"], answer.json["error"]) == (429, "30", "Too many streams")
    with pytest.raises(TooManyWaiters, match="no user has many more"):
        feed.join(7)
    for waiter in [each for all_of in feed._waiters.values() for each in all_of]:
        feed.leave(waiter)


async def test_a_stream_that_gave_way_ends_and_its_client_hears_the_end(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_file, "MOST", 2)
    async with stream(service) as first, stream(service) as second:
        await first.begun()
        await second.begun()
        async with stream(service, service.other_token) as others:
            await others.begun()
            assert await second.next() == ("over", None)
            happen(service.user_id, "error")
            assert (await first.next())[0] == "error"


async def test_a_catch_up_is_sent_in_pieces_and_other_users_streams_come_in_between(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    happen(service.user_id, *["listed"] * 700)
    happen(service.user_id + 1, *["error"] * 50)
    pieces, read = list[tuple[int, int]](), outbox.of_user_after

    def noted(user_id: int, after: int, most: int, events: Collection[str]) -> list[Told]:
        found = read(user_id, after, most, events)
        pieces.append((user_id, len(found)))
        return found

    monkeypatch.setattr(outbox, "of_user_after", noted)
    async with AsyncExitStack() as stack:
        late = [
            await stack.enter_async_context(stream(service, **{"Last-Event-ID": "1"}))
            for _ in range(feed_file.MOST_OF_USER - 1)
        ]
        stranger = await stack.enter_async_context(stream(service, service.other_token, **{"Last-Event-ID": "1"}))
        assert await stranger.names(50) == ["error"] * 50
        assert len(pieces) < 9 * 7  # the other user has not caught up yet
        for each in late:
            assert len(await each.names(699)) == 699
        assert max(size for _, size in pieces) == 100
        assert event_shown.cache_info().hits >= 8 * 699  # each was made once for nine streams

    page = (await service.ask("GET", "/api/events?after=1&limit=500")).json
    assert [each["id"] for each in page["events"]] == list(range(2, 502))


async def test_a_stream_that_missed_more_than_2000_events_is_reset(service: Service) -> None:
    happen(service.user_id, *["listed"] * 2_002)
    async with stream(service, **{"Last-Event-ID": "1"}) as late:
        assert await late.next() == ("reset", {"next": 2_002})
        happen(service.user_id, "recovered")
        assert (await late.next())[0] == "recovered"
    async with stream(service, **{"Last-Event-ID": "3"}) as late:
        assert len(await late.names(2_000)) == 2_000
    async with stream(service, query="?events=error,recovered", **{"Last-Event-ID": "1"}) as late:
        assert (await late.next())[0] == "recovered"  # only events of these names are counted


async def test_a_client_that_takes_nothing_is_given_up_and_costs_the_others_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_file, "MOST_WAITING", 20)
    feed = feed_of(service)
    stuck, awake = feed.join(service.user_id), feed.join(service.user_id)
    for _ in range(30):
        happen(service.user_id, "cycle")
        feed.look()
        assert len(await awake.take(5)) == 1
    assert stuck.is_over and not awake.is_over
    assert len(await stuck.take(5)) == 20
    feed.leave(stuck)
    feed.leave(awake)


async def test_pages_follow_one_another_and_the_last_one_is_waited_for(service: Service) -> None:
    happen(service.user_id, *["error"] * 5)
    happen(service.user_id + 1, "recovered")

    newest = (await service.ask("GET", "/api/events?limit=2")).json
    assert ([e["id"] for e in newest["events"]], newest["next"], newest["reset"]) == ([4, 5], 5, False)
    first = (await service.ask("GET", "/api/events?after=0&limit=3")).json
    second = (await service.ask("GET", f"/api/events?after={first['next']}&limit=3")).json
    assert [e["id"] for e in first["events"] + second["events"]] == [1, 2, 3, 4, 5]
    empty = (await service.ask("GET", "/api/events?after=5&wait=0")).json
    assert (empty["events"], empty["next"]) == ([], 5)

    waiting = asyncio.ensure_future(service.ask("GET", "/api/events?after=5&events=worker_dead,fill"))
    await until(lambda: feed_of(service)._waiters)
    happen(service.user_id, "cycle")
    happen(service.user_id, "worker_dead")
    assert [e["event"] for e in (await waiting).json["events"]] == ["worker_dead"]

    lost = (await service.ask("GET", "/api/events?after=500")).json
    assert lost["reset"] and [e["id"] for e in lost["events"]] == [1, 2, 3, 4, 5, 7, 8]


@pytest.mark.slow
async def test_a_wait_without_news_ends_after_what_was_seen_and_one_without_a_session_any_more_is_401(
    service: Service,
) -> None:
    happen(service.user_id, "cycle")
    ask = "/api/events?after=1&events=fill"
    waiting = asyncio.ensure_future(service.ask("GET", f"{ask}&wait=3"))
    await until(lambda: feed_of(service)._waiters)
    happen(service.user_id, "cycle")
    assert (await waiting).json == {"events": [], "next": 2, "reset": False}

    waiting = asyncio.ensure_future(service.ask("GET", f"{ask}&wait=3"))
    await until(lambda: feed_of(service)._waiters)
    accounts.end_sessions(service.user_id)
    assert (await waiting).status == 401


async def test_half_a_letter_of_a_marketplace_is_shown_as_a_question_mark(service: Service) -> None:
    broken = {"error": None, "action": "placed \ud83d", "slug": "cats", "errors": ["\ud83d"]}
    with transaction():
        outbox.tell("cycle", service.user_id, 7, START_MS, broken)

    page = await service.ask("GET", "/api/events")
    async with stream(service, query="?after=0") as late:
        assert (await late.next())[1] == page.json["events"][0]
    assert page.json["events"][0]["text"] == "placed ?"
    assert page.json["events"][0]["data"] == {"error": None, "action": "placed ?", "slug": "cats", "errors": ["?"]}


async def test_bad_queries_and_head(service: Service) -> None:
    bad = await service.ask("GET", "/api/events?after=-1&limit=0&wait=26&events=fill,x")
    assert (bad.status, bad.names()) == (400, {"after", "limit", "wait", "events"})
    for headers in ({}, {"Accept": "text/event-stream"}):
        head = await service.api("HEAD", "/api/events?after=0", token=service.token, headers=headers)
        assert (head.status, head.text) == (200, "")


async def test_open_streams_end_when_the_server_does(service: Service) -> None:
    async with stream(service) as mine:
        await mine.begun()
        feed_of(service).close()
        assert await mine.next() == ("over", None)
    refused = await service.api("GET", "/api/events", token=service.token, headers={"Accept": "text/event-stream"})
    assert refused.status == 429
