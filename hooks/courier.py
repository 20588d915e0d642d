"""The courier: it makes deliveries of new events and sends those that are due.

A hook has one delivery on its way at a time. Turns go between users first, then between a user's hooks. The next place
of a lane goes to the user with the fewest deliveries on the way, then to the one who has held places for the shortest
time of late. A hook whose last try failed or took longer than SLOW_S is in the slow lane. A longer try leaves
the fast lane meanwhile, so that a slow receiver holds a place there for SLOW_S. It then counts for its user in the slow
lane, and takes no place from the hooks there: otherwise users with ever new slow hooks would hold all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from hooks.messages import message_id
from hooks.sender import LONGEST_S, NOTED_AFTER_S, Outcome, Unanswered
from models import outbox
from models.hooks import queue, table
from models.hooks.table import Delivery, Hook
from models.outbox import PASSING

LOOK_S = 0.5
SLOW_S = 3.0
FAST, SLOW = 16, 8  # places
OF_A_USER = 2  # in each lane
MOST_OF_A_USER = 2 * OF_A_USER  # on the way, those that left the fast lane included
# Tries of the fast lane that may be on their way, with those that left it: the first of them ends LONGEST_S after its
# host is resolved. Only the resolver bounds that; the fast lane waits while it takes longer.
_FAST_LANES = math.ceil(LONGEST_S / SLOW_S)
PUT_OFF_S = 60.0  # for which a hook whose try could not begin or be noted is left alone
_HALVED_S = 60.0  # after this the time that a user has held places counts for half

Send = Callable[[str, str, str, str], Outcome]
log = logging.getLogger(__name__)


class _Lane:
    """Places for deliveries, and the time for which each user has lately held them.

    At most `most` of its tries are on their way: those in a place, and those that left it before they ended.
    """

    def __init__(self, places: int, most: int) -> None:
        self.free = places
        self.room = most
        self.of_user: Counter[int] = Counter()
        self._held: dict[int, tuple[float, float]] = {}  # by user: seconds, as of when

    def turn(self, user_id: int, now_s: float) -> tuple[int, float]:
        """Returns a value that is least for the user whose turn it is."""
        return self.of_user[user_id], self._held_s(user_id, now_s)

    def _held_s(self, user_id: int, now_s: float) -> float:
        seconds, at_s = self._held.get(user_id, (0.0, now_s))
        return float(seconds * 0.5 ** ((now_s - at_s) / _HALVED_S))

    def count(self, user_id: int) -> None:
        """Counts a try for its user."""
        self.of_user[user_id] += 1

    def uncount(self, user_id: int, seconds: float, now_s: float) -> None:
        """Ends the count of a try that was counted for these seconds."""
        self.of_user[user_id] -= 1
        self._held[user_id] = self._held_s(user_id, now_s) + seconds, now_s


def _is_before(now_ms: int, until_ms: int) -> bool:
    """Tells whether the time is yet to come; a clock that was ahead holds nothing for longer than PUT_OFF_S."""
    return now_ms < until_ms <= now_ms + 1000 * PUT_OFF_S


def _state(hook: Hook) -> tuple[object, ...]:
    return hook.id, hook.receiver, hook.agreed_ms


async def _outcome(sending: asyncio.Future[Outcome]) -> Outcome:
    """Returns a try's outcome; an error of it is a failed one, otherwise the delivery would be due again for ever."""
    try:
        return await sending
    except Exception as error:
        log.exception("failed to send")
        return Outcome(None, f"failed to send: {type(error).__name__}")


class Courier:
    """All hooks' deliveries. Use it in one loop, with the database open; only `send` runs in threads."""

    def __init__(self, send: Send, clock_ms: Callable[[], int], new_code: Callable[[], str] = table.new_code) -> None:
        self._send = send
        self._clock_ms = clock_ms
        self._new_code = new_code
        self._fast, self._slow = _Lane(FAST, FAST * _FAST_LANES), _Lane(SLOW, SLOW)
        self._threads = ThreadPoolExecutor(self._fast.room + self._slow.room, "courier")
        self._on_the_way: dict[int, asyncio.Task[None]] = {}  # until it is noted
        self._again: dict[int, int] = {}  # by user whose deliveries could not be made: when to try again
        self._put_off: dict[tuple[object, ...], int] = {}  # by hook and what may free it: until when
        self._served: dict[int, int] = {}  # by hook: the number of its latest delivery of all
        self._numbers = itertools.count(1)
        self._mark: object = None
        self._seen: int | None = None

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            try:
                for _ in self._looked():
                    await asyncio.sleep(0)  # others have a turn between two users' deliveries
                self.send_due()
            except Exception:
                log.exception("failed to look for deliveries")
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Makes deliveries of the events since the last check."""
        for _ in self._looked():
            pass

    def _looked(self) -> Iterator[None]:
        """Makes these deliveries, a few at each step. A fault is the hook's own, which is tried again in PUT_OFF_S."""
        mark, now_ms = outbox.newest_mark(), self._clock_ms()
        again = {user for user, until in self._again.items() if not _is_before(now_ms, until)}
        if mark == self._mark and not again:
            return
        hooks = queue.users_with_hooks()
        if self._seen is None:
            table.ask_where_none_was(now_ms)
            seen, concerned = outbox.newest_id(), set(hooks)  # after a start: what was missed is not known
        else:
            seen, concerned = self._told_since(self._seen)
        for user_id in again:
            del self._again[user_id]
        for user_id in (concerned | again) & (hooks.keys() - self._again.keys()):
            for hook_id in hooks[user_id]:
                try:
                    while queue.take(hook_id, now_ms):
                        yield
                except Exception:
                    log.exception("hook %d: failed to make deliveries; left alone for %d s", hook_id, PUT_OFF_S)
                    self._again[user_id] = now_ms + round(1000 * PUT_OFF_S)
        self._mark, self._seen = mark, seen

    def _told_since(self, seen: int) -> tuple[int, set[int]]:
        concerned = set()
        while found := outbox.of_all_after(seen):
            concerned |= {told.user_id for told in found if told.event not in PASSING}
            seen = found[-1].id
        return seen, concerned

    def send_due(self) -> None:
        """Sends the next delivery of each hook that has one and none on its way, as far as places are free."""
        now_ms = self._clock_ms()
        table.settle(now_ms)
        lanes: dict[_Lane, dict[int, list[Hook]]] = {self._fast: {}, self._slow: {}}
        at_bound = table.AtBound(now_ms)
        for hook in sorted(queue.hooks_due(now_ms), key=lambda each: (self._served.get(each.id, 0), each.id)):
            is_held = hook.id in self._on_the_way or _is_before(now_ms, self._put_off.get(_state(hook), 0))
            if not is_held and not at_bound.holds(hook.user_id, hook.kind):
                lane = self._slow if hook.is_failing or (hook.took_ms or 0) > 1000 * SLOW_S else self._fast
                lanes[lane].setdefault(hook.user_id, []).append(hook)
        for lane, of_users in lanes.items():
            self._fill(lane, of_users, now_ms)

    def _fill(self, lane: _Lane, of_users: dict[int, list[Hook]], now_ms: int) -> None:
        """Gives the free places of a lane away. Each user's hooks are in the order of their turns."""
        now_s = asyncio.get_running_loop().time()
        while of_users and lane.free > 0 and lane.room > 0:
            user_id = min(of_users, key=lambda each: lane.turn(each, now_s))
            hooks, on_the_way = of_users[user_id], self._fast.of_user[user_id] + self._slow.of_user[user_id]
            if not hooks or lane.of_user[user_id] >= OF_A_USER or on_the_way >= MOST_OF_A_USER:
                del of_users[user_id]
            else:
                self._begin(lane, hooks.pop(0), now_ms)

    def _put_off_for(self, hook: Hook, seconds: float) -> None:
        now_ms = self._clock_ms()
        self._put_off = {key: until for key, until in self._put_off.items() if until > now_ms}
        self._put_off[_state(hook)] = now_ms + round(1000 * min(seconds, PUT_OFF_S))

    def _begin(self, lane: _Lane, hook: Hook, now_ms: int) -> None:
        """Begins the hook's next try. A fault is the hook's own: the others have their turns."""
        try:
            deliveries = queue.next_due(hook, now_ms)
            body = queue.begin(hook, deliveries, self._new_code, now_ms) if deliveries else None
        except Exception:
            log.exception("hook %d: failed to begin a try; left alone for %d s", hook.id, PUT_OFF_S)
            self._put_off_for(hook, PUT_OFF_S)
            return
        if table.is_awaited(hook) and not deliveries:  # its code waits for a bound, for hours perhaps
            self._put_off_for(hook, table.code_wait_s(hook.user_id, hook.shown, now_ms))
        if body is not None:
            lane.free -= 1
            lane.room -= 1
            lane.count(hook.user_id)
            self._served[hook.id] = next(self._numbers)
            self._on_the_way[hook.id] = asyncio.create_task(self._deliver(lane, hook, deliveries, body))

    async def _deliver(self, lane: _Lane, hook: Hook, deliveries: list[Delivery], body: str) -> None:
        loop, outcome, counts_in = asyncio.get_running_loop(), None, lane
        began_s = counted_s = loop.time()
        try:
            try:
                name = message_id(hook.id, deliveries[0].id, deliveries[0].body)
                sending = loop.run_in_executor(self._threads, self._send, hook.kind, hook.receiver, body, name)
                if lane is self._fast and not (await asyncio.wait([sending], timeout=SLOW_S))[0]:
                    lane.uncount(hook.user_id, loop.time() - counted_s, loop.time())
                    counts_in, counted_s = self._slow, loop.time()
                    counts_in.count(hook.user_id)
                    lane.free += 1
                    self._send_more()
                outcome = await _outcome(sending)
            finally:
                counts_in.uncount(hook.user_id, loop.time() - counted_s, loop.time())
                lane.free += counts_in is lane
                lane.room += 1
            took_ms = round(1000 * (loop.time() - began_s))
            if isinstance(outcome, Unanswered):
                log.info("hook %d: no answer: %s", hook.id, outcome.cause)
                await asyncio.sleep(began_s + NOTED_AFTER_S - loop.time())
            self._note(hook, deliveries, outcome, took_ms)
        except Exception:
            log.exception("failed to deliver %d", deliveries[0].id)
            self._put_off_for(hook, PUT_OFF_S)
        finally:
            del self._on_the_way[hook.id]
        if outcome is not None and outcome.error is None:
            self._send_more()

    def _send_more(self) -> None:
        """Sends what need not wait for the next look, since a place is free."""
        try:
            self.send_due()
        except Exception:
            log.exception("failed to send more")

    def _note(self, hook: Hook, deliveries: list[Delivery], outcome: Outcome, took_ms: int) -> None:
        now_ms = self._clock_ms()
        what = f"hook {hook.id}: {deliveries[0].event}, event {deliveries[0].event_id}"
        if len(deliveries) > 1:
            what += f" and {len(deliveries) - 1} more"
        if outcome.error is None:
            queue.sent(deliveries, outcome.status, now_ms, took_ms)
            log.info("%s: delivered", what)
        elif dead := queue.failed(deliveries, outcome.status, outcome.error, now_ms, took_ms):
            log.warning("%s: %d given up: %s", what, dead, outcome.error)
        else:
            log.info("%s: waits: %s", what, outcome.error)
