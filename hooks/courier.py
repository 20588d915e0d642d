"""The courier creates deliveries of new events and sends those that are due.

Each hook has at most one try under way. Turns alternate between users first, then between a user's hooks. The next
place of a lane goes to the user with the fewest tries under way in it; if equal, to the user who held places for the
shortest time recently. A hook whose last try failed or took longer than SLOW_S uses the slow lane. A try in the fast
lane gives up its place after SLOW_S. From then on it counts for its user in the slow lane but takes no place there,
otherwise users who keep adding slow hooks would hold all places.
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
FAST, SLOW = 16, 8  # places in each lane
OF_A_USER = 2  # places of one user in each lane
MOST_OF_A_USER = 2 * OF_A_USER  # tries of one user under way, including those that left the fast lane
# The fast lane has at most FAST times this many tries under way, including those that left it, because a try ends
# LONGEST_S after its host is resolved. Only the resolver bounds that step; if it is slower, the fast lane waits.
_FAST_LANES = math.ceil(LONGEST_S / SLOW_S)
PUT_OFF_S = 60.0  # pause of a hook whose try could not be begun or recorded
_HALVED_S = 60.0  # half-life of the time for which a user has held places

Send = Callable[[str, str, str, str], Outcome]
log = logging.getLogger(__name__)


class _Lane:
    """Places for tries, and the time for which each user has recently held them.

    At most `most` of the lane's tries are under way, including those that gave up their place before they ended.
    """

    def __init__(self, places: int, most: int) -> None:
        self.free = places
        self.room = most
        self.of_user: Counter[int] = Counter()
        self._held: dict[int, tuple[float, float]] = {}  # by user: seconds held, and when they were last updated

    def turn(self, user_id: int, now_s: float) -> tuple[int, float]:
        """Returns a sort key; the user with the smallest key is next."""
        return self.of_user[user_id], self._held_s(user_id, now_s)

    def _held_s(self, user_id: int, now_s: float) -> float:
        seconds, at_s = self._held.get(user_id, (0.0, now_s))
        return float(seconds * 0.5 ** ((now_s - at_s) / _HALVED_S))

    def count(self, user_id: int) -> None:
        """Adds a try to its user's count."""
        self.of_user[user_id] += 1

    def uncount(self, user_id: int, seconds: float, now_s: float) -> None:
        """Removes a try from its user's count, in which it was for `seconds`."""
        self.of_user[user_id] -= 1
        self._held[user_id] = self._held_s(user_id, now_s) + seconds, now_s


def _is_before(now_ms: int, until_ms: int) -> bool:
    """Tells whether a pause still lasts. If the clock was set back, a pause of more than PUT_OFF_S has ended."""
    return now_ms < until_ms <= now_ms + 1000 * PUT_OFF_S


def _state(hook: Hook) -> tuple[object, ...]:
    return hook.id, hook.receiver, hook.agreed_ms


async def _outcome(sending: asyncio.Future[Outcome]) -> Outcome:
    """Returns a try's outcome. An exception counts as a failed try, otherwise the delivery would be due for ever."""
    try:
        return await sending
    except Exception as error:
        log.exception("failed to send")
        return Outcome(None, f"failed to send: {type(error).__name__}")


class Courier:
    """Delivers events to all hooks. Use it in one loop, with the database open; only `send` runs in threads."""

    def __init__(self, send: Send, clock_ms: Callable[[], int], new_code: Callable[[], str] = table.new_code) -> None:
        self._send = send
        self._clock_ms = clock_ms
        self._new_code = new_code
        self._fast, self._slow = _Lane(FAST, FAST * _FAST_LANES), _Lane(SLOW, SLOW)
        self._threads = ThreadPoolExecutor(self._fast.room + self._slow.room, "courier")
        self._on_the_way: dict[int, asyncio.Task[None]] = {}  # by hook, until its try is recorded
        self._again: dict[int, int] = {}  # by user whose deliveries could not be created: when to try again
        self._put_off: dict[tuple[object, ...], int] = {}  # by `_state` of a hook: end of its pause
        self._served: dict[int, int] = {}  # by hook: the number of its last try, counted over all hooks
        self._numbers = itertools.count(1)
        self._mark: object = None
        self._seen: int | None = None

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                for _ in self._create_deliveries():
                    await asyncio.sleep(0)  # lets other coroutines run between two steps
                self.send_due()
            except Exception:
                log.exception("failed to create or send deliveries")
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Creates deliveries of the events since the last check."""
        for _ in self._create_deliveries():
            pass

    def _create_deliveries(self) -> Iterator[None]:
        """Creates them, a few at each step. A hook that fails does not stop the others, and is retried in PUT_OFF_S."""
        mark, now_ms = outbox.newest_mark(), self._clock_ms()
        again = {user for user, until in self._again.items() if not _is_before(now_ms, until)}
        if mark == self._mark and not again:
            return
        hooks = queue.users_with_hooks()
        if self._seen is None:
            table.ask_where_none_was(now_ms)
            seen, concerned = outbox.newest_id(), set(hooks)  # at a start all hooks, as missed events are unknown
        else:
            seen, concerned = self._users_with_events_after(self._seen)
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

    def _users_with_events_after(self, seen: int) -> tuple[int, set[int]]:
        concerned = set()
        while found := outbox.of_all_after(seen):
            concerned |= {told.user_id for told in found if told.event not in PASSING}
            seen = found[-1].id
        return seen, concerned

    def send_due(self) -> None:
        """Begins the next try of each hook that is due and has none under way, while places are free."""
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
        """Fills the free places of a lane. Each user's hooks are in the order of their turns."""
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
        """Begins the hook's next try. An error is logged and does not stop the other hooks."""
        try:
            deliveries = queue.next_due(hook, now_ms)
            body = queue.begin(hook, deliveries, self._new_code, now_ms) if deliveries else None
        except Exception:
            log.exception("hook %d: failed to begin a try; left alone for %d s", hook.id, PUT_OFF_S)
            self._put_off_for(hook, PUT_OFF_S)
            return
        if table.is_awaited(hook) and not deliveries:  # a limit delays its code, perhaps for hours
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
        """Sends due deliveries without waiting for the next check, because a place is free."""
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
