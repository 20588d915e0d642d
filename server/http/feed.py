"""The feed of events: one reader of the outbox for all streams of this process, and the events' form for callers.

The feed checks the outbox twice a second while a stream is open, and reads rows only after a commit. Each new event is
encoded once and passed to all waiters of its user.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from peewee import PeeweeException

from core import event_words
from core.fields import Time, iso, words
from models import outbox
from models.database import base
from models.outbox import EVENTS, Told
from server.http.shapes import Answer, encoded, one_of

LOOK_S = 0.5
MOST_OF_USER, MOST = 10, 500  # waiters
RETRY_S, FULL_RETRY_S = 5, 30  # before a refused client retries
MOST_WAITING = 1_000  # events in a waiter's queue

_KEPT = 2_500  # the longest catch-up and new events meanwhile; about 3 MB

log = logging.getLogger(__name__)


class EventShown(Answer, frozen=True, kw_only=True):
    """One fact, written down together with what it tells of."""

    id: Annotated[int, words("Grows, with gaps: others have events, too.", ge=1)]
    event: Annotated[str, one_of(EVENTS), words("Its name, see the interface's page.")]
    at: Time
    task: Annotated[int | None, words("The task in it, of either kind; it may be deleted by now.")]
    text: Annotated[str, words("It in one sentence, for people.")]
    data: Annotated[
        dict[str, Any],
        words("Its details by name; more may be added.", extra_json_schema={"additionalProperties": True}),
    ]


@lru_cache(_KEPT)
def event_shown(told: Told) -> EventShown:
    """Returns the event for callers; cached, because several streams show it within a short time."""
    return EventShown(
        id=told.id,
        event=told.event,
        at=iso(told.at_ms),
        task=told.task_id,
        text=event_words.words(told.event, told.data),
        data=event_words.outward(told.data),
    )


def frame(told: Told) -> bytes:
    """Returns the event as a frame of a stream, with its JSON as the only line of data."""
    return f"id: {told.id}\nevent: {told.event}\ndata: ".encode() + encoded(event_shown(told)) + b"\n\n"


class TooManyWaiters(Exception):
    """A refusal: the user has the maximum of streams open, or all are taken and no user has many more than another."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Fresh(NamedTuple):
    """A new event, encoded for all its waiters."""

    told: Told
    frame: bytes


class Waiter:
    """The queue of new events of one stream or long poll."""

    def __init__(self, user_id: int) -> None:
        self.user_id = user_id
        self.is_over = False
        self._fresh: deque[Fresh] = deque()
        self._news = asyncio.Event()

    def give(self, fresh: Fresh) -> None:
        """Queues an event; ends the waiter if its queue is full."""
        if len(self._fresh) >= MOST_WAITING:
            self.end()
        else:
            self._fresh.append(fresh)
            self._news.set()

    def end(self) -> None:
        """Ends the waiter, which gets no more events."""
        self.is_over = True
        self._news.set()

    async def take(self, longest_s: float) -> list[Fresh]:
        """Waits for events and returns them; returns none after `longest_s`, or if the waiter has ended."""
        try:
            await asyncio.wait_for(self._news.wait(), longest_s)
        except TimeoutError:
            return []
        found = list(self._fresh)
        self._fresh.clear()
        if not self.is_over:
            self._news.clear()
        return found


class Feed:
    """The waiters of this process, and the id of the newest event that all of them have been given.

    Use it in one loop. Await nothing between `look` and `join`, otherwise an event could be missed.
    """

    def __init__(self) -> None:
        self.newest_id = 0
        self._waiters: dict[int, list[Waiter]] = {}  # by user, the newest last
        self._count = 0
        self._mark: object = None
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    def join(self, user_id: int) -> Waiter:
        """Adds a waiter for all of the user's events after `newest_id`. Raises TooManyWaiters.

        If all MOST are taken, the newest waiter of the user with the most is ended for a user with fewer.
        """
        if self._is_closed:
            raise TooManyWaiters("This server stops. Try again: another one answers.", RETRY_S)
        if len(self._waiters.get(user_id, ())) >= MOST_OF_USER:
            raise TooManyWaiters(f"You have {MOST_OF_USER}. Close one, or ask without waiting.", RETRY_S)
        if self._count >= MOST:
            self._make_room(user_id)
        if self._count == 0:
            self._mark, self.newest_id = outbox.newest_mark(), outbox.newest_id()
        else:
            self.look()
        waiter = Waiter(user_id)
        self._waiters.setdefault(user_id, []).append(waiter)
        self._count += 1
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look_on())
        return waiter

    def _make_room(self, user_id: int) -> None:
        greediest = max(self._waiters, key=lambda user: len(self._waiters[user]))
        # With a difference of only one, the two users would keep ending each other's streams.
        if len(self._waiters[greediest]) < len(self._waiters.get(user_id, ())) + 2:
            raise TooManyWaiters("All are taken, and no user has many more. Ask without waiting.", FULL_RETRY_S)
        newest = self._waiters[greediest][-1]
        newest.end()
        self.leave(newest)

    def leave(self, waiter: Waiter) -> None:
        """Removes a waiter."""
        mine = self._waiters.get(waiter.user_id, [])
        if waiter not in mine:
            return
        mine.remove(waiter)
        self._count -= 1
        if not mine:
            del self._waiters[waiter.user_id]
        if self._count == 0 and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def close(self) -> None:
        """Ends all waiters, and accepts no more."""
        self._is_closed = True
        self._end_all()

    def _end_all(self) -> None:
        for mine in self._waiters.values():
            for waiter in mine:
                waiter.end()

    def look(self) -> None:
        """Passes on all events that were committed since the last call."""
        mark = outbox.newest_mark()
        if mark == self._mark:
            return
        self._mark = mark
        while found := outbox.of_all_after(self.newest_id):
            for told in found:
                self._give_out(told)
            self.newest_id = found[-1].id

    def _give_out(self, told: Told) -> None:
        mine = self._waiters.get(told.user_id)
        if mine:
            fresh = Fresh(told, frame(told))
            for waiter in mine:
                waiter.give(fresh)

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self.look()
            except PeeweeException as error:
                # The clients reconnect, and are answered once the database responds again.
                log.error("failed to look for events, so all streams end: %s", error)
                base.note_damage(error)
                self._end_all()
            except Exception:
                log.exception("failed to look for events")
