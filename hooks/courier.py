"""The courier: it makes deliveries of new events and sends those that are due.

A hook has one delivery on its way at a time. Hooks whose last try failed share a lane of a few threads of their own, so
that receivers that are down, however many and slow, keep none of the others waiting. In each lane a user has two on
the way at most, of the hooks that were served longest ago, so that slow receivers keep no other user's waiting.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hooks.messages import message_id
from hooks.sender import Outcome
from models.events import reading
from models.events.table import PASSING
from models.hooks import queue
from models.hooks.table import Delivery, Hook

LOOK_S = 0.5
HEALTHY, AILING = 8, 4  # threads
OF_A_USER = 2

Send = Callable[[str, str, str, str], Outcome]
log = logging.getLogger(__name__)


class _Lane:
    """Some threads, and the number of them that are free."""

    def __init__(self, threads: int, name: str) -> None:
        self.free = threads
        self.executor = ThreadPoolExecutor(threads, name)


class Courier:
    """All hooks' deliveries. Use it in one loop, with the database open; only `send` runs in threads."""

    def __init__(self, send: Send, clock_ms: Callable[[], int]) -> None:
        self._send = send
        self._clock_ms = clock_ms
        self._healthy, self._ailing = _Lane(HEALTHY, "healthy"), _Lane(AILING, "ailing")
        self._on_the_way: dict[int, asyncio.Task[None]] = {}
        self._of_user: Counter[tuple[_Lane, int]] = Counter()
        self._served: dict[int, int] = {}  # by hook: the number of its latest delivery of all
        self._numbers = itertools.count(1)
        self._mark: object = None
        self._seen: int | None = None

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            try:
                self.look()
                self.send_due()
            except Exception:
                log.exception("failed to look for deliveries")
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Makes deliveries of the events that were told since the last look."""
        mark = reading.mark()
        if mark == self._mark:
            return
        hooks, now_ms = queue.users_with_hooks(), self._clock_ms()
        if self._seen is None:
            seen, concerned = reading.newest_id(), set(hooks)  # after a start: nobody knows what was missed
        else:
            seen, concerned = self._told_since(self._seen)
        for user_id in concerned & hooks.keys():
            for hook_id in hooks[user_id]:
                while queue.take(hook_id, now_ms):
                    pass
        self._mark, self._seen = mark, seen

    def _told_since(self, seen: int) -> tuple[int, set[int]]:
        concerned = set()
        while found := reading.of_all_after(seen):
            concerned |= {told.user_id for told in found if told.event not in PASSING}
            seen = found[-1].id
        return seen, concerned

    def send_due(self) -> None:
        """Sends the next delivery of each hook that has one and none on its way, as far as threads are free."""
        now_ms = self._clock_ms()
        for hook_id in sorted(queue.hooks_due(now_ms), key=lambda each: (self._served.get(each, 0), each)):
            hook = None if hook_id in self._on_the_way else Hook.get_or_none(Hook.id == hook_id)
            if hook is None:
                continue
            lane = self._ailing if hook.is_failing else self._healthy
            has_room = lane.free and self._of_user[lane, hook.user_id] < OF_A_USER
            delivery = queue.next_due(hook, now_ms) if has_room else None
            if delivery is not None:
                lane.free -= 1
                self._of_user[lane, hook.user_id] += 1
                self._served[hook_id] = next(self._numbers)
                self._on_the_way[hook_id] = asyncio.create_task(self._deliver(lane, hook, delivery))

    async def _deliver(self, lane: _Lane, hook: Hook, delivery: Delivery) -> None:
        loop, outcome = asyncio.get_running_loop(), None
        try:
            name = message_id(hook.id, delivery.id, delivery.body)
            outcome = await loop.run_in_executor(
                lane.executor, self._send, hook.kind, hook.receiver, delivery.body, name
            )
            self._note(hook, delivery, outcome)
        except Exception:
            log.exception("failed to deliver %d", delivery.id)
        finally:
            lane.free += 1
            self._of_user[lane, hook.user_id] -= 1
            del self._on_the_way[hook.id]
        if outcome is not None and outcome.error is None:
            self.send_due()  # the next one need not wait for the next look

    def _note(self, hook: Hook, delivery: Delivery, outcome: Outcome) -> None:
        what = f"hook {hook.id}: {delivery.event}, event {delivery.event_id}"
        if outcome.error is None:
            queue.sent(delivery, outcome.status, self._clock_ms())
            log.info("%s: delivered", what)
        elif queue.failed(delivery, outcome.status, outcome.error, self._clock_ms()):
            log.warning("%s: given up: %s", what, outcome.error)
        else:
            log.info("%s: waits: %s", what, outcome.error)
