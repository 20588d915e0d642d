"""GET /api/events: the caller's events, as a stream or as pages of JSON that may be waited for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Annotated

from peewee import PeeweeException
from tornado.iostream import StreamClosedError

from core.fields import Count, within, words
from models import outbox
from models.accounts import READ
from models.database.damage import DatabaseAway
from models.outbox import EVENTS, Told
from server.http.answers import INVALID, too_many
from server.http.base import MAX_ID, SignedIn, route
from server.http.feed import EventShown, Feed, TooManyWaiters, Waiter, event_shown, frame
from server.http.gate import STREAM
from server.http.shapes import Answer, Asked, one_of

DEFAULT_EVENTS, MOST_EVENTS = 100, 500
CAUGHT_UP_AT_ONCE = 100  # events sent in one turn of the loop
MOST_MISSED = 2_000  # events that a stream sends again; beyond that it is cheaper for clients to read everything anew
LONGEST_WAIT_S = 25
HEARTBEAT_S = 10.0
RETRY_MS = 2_000  # a client's pause before it connects again

EventId = Annotated[int, within(0, MAX_ID)]  # 0 is before all


class EventsAsked(Asked, frozen=True, kw_only=True):
    """The query for events."""

    after: Annotated[EventId | None, words("Those after this id; without it the newest.")] = None
    limit: Annotated[int, within(1, MOST_EVENTS), words("Most of them to answer.")] = DEFAULT_EVENTS
    wait: Annotated[int, within(0, LONGEST_WAIT_S), words("Seconds to wait with `after` while there is none.")] = (
        LONGEST_WAIT_S
    )
    events: Annotated[
        tuple[Annotated[str, one_of(EVENTS)], ...], words(f"Those of these names, with commas: {', '.join(EVENTS)}.")
    ] = EVENTS


class EventPage(Answer, frozen=True, kw_only=True):
    """A page of events."""

    events: list[EventShown]
    next: Annotated[Count, words("The `after` of the next page.")]
    reset: Annotated[
        bool,
        words(
            "Whether events after the given id are missing: they are kept no longer, or the id is not of this "
            "database. These are the newest; look at everything else anew."
        ),
    ]


class Events(SignedIn):
    """The operation on the caller's events."""

    tag = "events"
    _waiter: Waiter | None = None

    @route(
        "GET /api/events",
        READ,
        says="Oldest first.",
        answer=EventPage,
        others=(STREAM,),
        errors={
            400: INVALID,
            429: "You, or all users evenly, have as many streams and waiting calls as may be; `Retry-After` says when.",
        },
        text=f"With `Accept: {STREAM}` a stream, which goes on after `Last-Event-ID` or `after`, begins with an event "
        "`reset` where it cannot, and ends with the session. Else a page, which with `after` is waited for while "
        "there is nothing.",
    )
    async def list_events(self, asked: EventsAsked) -> None:
        """What happened, as it happens"""
        if self.wants_stream:
            await self._stream(self._last_id(asked.after), frozenset(asked.events))
        else:
            await self._page(asked.after, asked.limit, asked.wait, asked.events)

    @property
    def wants_stream(self) -> bool:
        """Whether the caller takes a stream."""
        return STREAM in self.request.headers.get("Accept", "") and self.request.method == "GET"

    def on_connection_close(self) -> None:
        super().on_connection_close()
        if self._waiter is not None:
            self._waiter.end()

    async def _page(self, after: int | None, most: int, wait_s: int, events: tuple[str, ...]) -> None:
        user_id = self.user.id
        if after is None or not outbox.can_go_on(user_id, after, events):
            newest_id = outbox.newest_id()
            async with self._place():
                found = await self.in_turn(lambda: outbox.newest_of_user(user_id, most, events))
                await self._answer(found, found[-1].id if found else newest_id, is_reset=after is not None)
            return
        waits = bool(wait_s) and self.request.method != "HEAD"
        if await self._answer_after(after, most, events, is_last=not waits):
            return
        with self._waiting() as (feed, waiter):
            if await self._answer_after(after, most, events, is_last=False):
                return
            await _one_of(events, waiter, wait_s)
            self.require_signed_in()
            # All events up to `newest_id` can be read, so the next page begins there if none of them matches.
            await self._answer_after(after, most, events, is_last=True, following=max(after, feed.newest_id))

    def _place(self) -> AbstractAsyncContextManager[None]:
        return self.long_answer(self.services.event_pages.of(self.user.id))

    async def _answer_after(
        self, after: int, most: int, events: tuple[str, ...], *, is_last: bool, following: int | None = None
    ) -> bool:
        """Answers with the events after `after`, or with none if `is_last`; returns whether it answered."""
        async with self._place():
            found = await self.in_turn(lambda: outbox.of_user_after(self.user.id, after, most, events))
            if found or is_last:
                await self._answer(found, found[-1].id if found else following or after, is_reset=False)
            return bool(found) or is_last

    async def _answer(self, found: list[Told], following: int, *, is_reset: bool) -> None:
        shown = await self.in_turns(found, event_shown)
        self.require_signed_in()
        self.answer(EventPage(events=shown, next=following, reset=is_reset))

    def _last_id(self, after: int | None) -> int | None:
        """Returns the last id that the client saw, from its header, else its query; MAX_ID for an invalid header."""
        given = self.request.headers.get("Last-Event-ID", "")
        if not given:
            return after
        return int(given) if given.isascii() and given.isdigit() and len(given) < 20 else MAX_ID

    @contextmanager
    def _waiting(self) -> Iterator[tuple[Feed, Waiter]]:
        feed = self.services.feed
        try:
            waiter = self._waiter = feed.join(self.user.id)
        except TooManyWaiters as refusal:
            raise too_many("Too many streams", refusal.retry_after_s, str(refusal)) from None
        try:
            yield feed, waiter
        finally:
            feed.leave(waiter)

    async def _stream(self, last_id: int | None, events: frozenset[str]) -> None:
        with self._waiting() as (feed, waiter):
            self.set_header("Content-Type", STREAM)
            self.set_header("X-Accel-Buffering", "no")
            # If the database does not respond, the stream ends and the client reconnects, as after a server's restart.
            with contextlib.suppress(StreamClosedError, PeeweeException, DatabaseAway):
                newest_id = feed.newest_id
                can_go_on = last_id is not None and await self._can_go_on(last_id, newest_id, events)
                await self._send(f"retry: {RETRY_MS}\n".encode() + _beginning(last_id, newest_id, can_go_on=can_go_on))
                if last_id is not None and can_go_on:
                    await self._catch_up(waiter, last_id, newest_id, events)
                while self._goes_on(waiter):
                    fresh = await waiter.take(HEARTBEAT_S)
                    if fresh and not self.caller.is_good_still(self.now_ms):
                        break
                    wanted = [each.frame for each in fresh if each.told.event in events]
                    await self._send(b"".join(wanted) or b":\n\n")

    def _goes_on(self, waiter: Waiter) -> bool:
        return not waiter.is_over and self.caller.is_good_still(self.now_ms)

    async def _can_go_on(self, last_id: int, newest_id: int, events: frozenset[str]) -> bool:
        """Tells whether all missed events are still stored, and are few enough to be sent again."""
        if not outbox.can_go_on(self.user.id, last_id, events):
            return False
        until = MOST_MISSED + 1
        missed = await self.in_turn(lambda: outbox.missed(self.user.id, last_id, newest_id, until, events))
        return missed <= MOST_MISSED

    async def _catch_up(self, waiter: Waiter, after: int, until: int, events: frozenset[str]) -> None:
        """Sends the missed events, a part in each of the user's turns."""
        while after < until and self._goes_on(waiter):
            found = await self.in_turn(lambda: self._missed(after, until, events))  # noqa: B023  # it is awaited
            if not found:
                return
            await self._send(b"".join(text for _, text in found))
            after = found[-1][0]

    def _missed(self, after: int, until: int, events: frozenset[str]) -> list[tuple[int, bytes]]:
        found = outbox.of_user_after(self.user.id, after, CAUGHT_UP_AT_ONCE, events)
        return [(told.id, frame(told)) for told in found if told.id <= until]

    async def _send(self, text: bytes) -> None:
        """Sends a part. Raises StreamClosedError if the client has disconnected or receives nothing."""
        self.write(text)
        await self.taken()


def _beginning(last_id: int | None, newest_id: int, *, can_go_on: bool) -> bytes:
    """Returns the first frame: the id after which events follow, or `reset` if some are missing."""
    if last_id is None:
        return f"id: {newest_id}\n\n".encode()
    if can_go_on:
        return b"\n"
    return f'id: {newest_id}\nevent: reset\ndata: {{"next": {newest_id}}}\n\n'.encode()


async def _one_of(events: tuple[str, ...], waiter: Waiter, longest_s: float) -> None:
    """Waits for one of these events."""
    ends = time.monotonic() + longest_s
    while (left_s := ends - time.monotonic()) > 0 and not waiter.is_over:
        if any(fresh.told.event in events for fresh in await waiter.take(left_s)):
            return
