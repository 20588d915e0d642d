"""One venue's calls and their limits: turns, limits per minute, breaker, clock skew, threads, log lines, counts.

Clocks are passed in and return monotonic seconds. A venue counts calls in windows of 60 s with unknown starts, so the
limits here hold in every span of 61 s; the extra second is there because requests take different times to arrive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from msgspec import Struct

from gateway.quota import ORIGIN, LookupBudget, Priority, Quota
from markets.adapter import AskAgain
from markets.base import (
    NotSupported,
    NotUnderstood,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.client import MOST_SKEW_S, skew_words
from markets.http import hearing, made_s
from markets.parse import Unread, noting
from markets.told import Told, telling
from markets.venues import Capabilities

# Slots kept free for more urgent calls, so that a cancel is sent even if a venue's reads hang. A brake has two extra
# slots, because calls that hang may occupy all others.
BRAKE_SLOTS = 2
_SPARE = {
    Priority.BRAKE: -BRAKE_SLOTS,
    Priority.CANCEL: 0,
    Priority.OWN_BIDS: 0,
    Priority.PLACE: 1,
    Priority.REST: 2,
    Priority.LOOKUP: 2,
}
# While both wait, each person's call is followed by three calls of tasks. The people take turns.
TASK_TURNS = 3
_MOST_PEOPLE = 1_000
# Slightly below one token, because refills that should add up to one miss it by a rounding error.
_ONE = 1 - 1e-6
_FIRST_BACK_OFF_S, _LONGEST_BACK_OFF_S = 2.5, 30.0


class _Waiter(Struct, eq=False):
    priority: Priority
    until: float
    granted: asyncio.Future[None]
    person: int | None


class CallBudget:
    """The budget of one key: `rate` requests a second, bursts of `burst`, at most `slots` at the same time.

    At most `spare` slots are kept for more urgent calls. Follow each successful `take` by one `done`.
    """

    def __init__(self, rate: float, burst: int, slots: int, clock: Callable[[], float], *, spare: int = 0) -> None:
        self._rate = rate
        self._burst = burst
        self._slots = slots
        self._spare = spare
        self._clock = clock
        self._tokens = float(burst)
        self._counted_at = clock()
        self._paused_until = 0.0
        self._refusals = 0
        self._waiters: list[_Waiter] = []
        self._owed = 0  # turns of tasks before the next person's
        self._turns = 0
        self._last_turns: OrderedDict[int, int] = OrderedDict()  # by person, the oldest first
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, priority: Priority, until: float, person: int | None = None) -> None:
        """Waits for the right to send one request, until the clock shows `until`.

        The request of a `person` (a user's number) gets one of the people's turns, whatever its priority. Raises
        RateLimited if the key is paused beyond `until`, Unavailable if the turn does not come in time.
        """
        waiter = _Waiter(priority, until, asyncio.get_running_loop().create_future(), person)
        self._waiters.append(waiter)
        self._waiters.sort(key=lambda each: each.priority)
        self.pump()
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.granted.done() and not waiter.granted.cancelled() and not waiter.granted.exception():
                self.give_back()
            raise

    def done(self) -> None:
        self._slots += 1
        self.pump()

    def give_back(self) -> None:
        self._tokens = min(self._tokens + 1, float(self._burst))
        self.done()

    def pause(self, seconds: float | None) -> None:
        """Pauses the whole key, as the venue asked; None doubles the previous pause, from 2.5 s up to 30 s."""
        if seconds is None:
            seconds = min(_FIRST_BACK_OFF_S * 2**self._refusals, _LONGEST_BACK_OFF_S)
        self._refusals = min(self._refusals + 1, 10)
        self._paused_until = max(self._paused_until, self._clock() + seconds)
        self._refill()
        # At most one token, because a full bucket would cause another burst right after the pause.
        self._tokens = min(self._tokens, 1.0)
        self._counted_at = self._paused_until
        self.pump()

    def answered(self) -> None:
        """Notes that the venue accepted a request, so that the next pause of unknown length is short again."""
        self._refusals = 0

    def left(self) -> float:
        self._refill()
        return self._tokens

    def paused_s(self) -> float:
        """Returns the seconds until the pause ends; 0 if there is none."""
        return max(self._paused_until - self._clock(), 0.0)

    def waiting(self) -> int:
        return len(self._waiters)

    def pump(self) -> None:
        """Grants all turns that are due and sets the timer for the next; called after every change."""
        self._refill()
        now = self._clock()
        for waiter in [each for each in self._waiters if max(now, self._paused_until) >= each.until]:
            self._waiters.remove(waiter)
            if waiter.granted.done():
                continue
            if self._paused_until > now:
                waiter.granted.set_exception(RateLimited(self._paused_until - now, "paused as the venue asked"))
            else:
                waiter.granted.set_exception(Unavailable("its turn did not come in time; nothing was sent"))
        while (due := self._next(now)) is not None:
            self._waiters.remove(due)
            if not due.granted.done():
                self._tokens -= 1
                self._slots -= 1
                self._note_turn(due)
                due.granted.set_result(None)
        self._set_timer(now)

    def _next(self, now: float) -> _Waiter | None:
        """Returns the waiter whose turn it is, if its request can be sent now."""
        if now < self._paused_until or self._tokens < _ONE:
            return None
        task = next((each for each in self._waiters if each.person is None), None)
        people = (each for each in self._waiters if each.person is not None)
        person = min(people, key=lambda each: self._last_turns.get(each.person or 0, 0), default=None)
        is_task_first = task is not None and (task.priority <= Priority.CANCEL or self._owed > 0)
        both = (task, person) if is_task_first else (person, task)
        return next((each for each in both if each and self._slots > min(_SPARE[each.priority], self._spare)), None)

    def _note_turn(self, waiter: _Waiter) -> None:
        if waiter.person is None:
            self._owed -= self._owed > 0 and waiter.priority > Priority.CANCEL
            return
        self._owed = TASK_TURNS
        self._turns += 1
        self._last_turns[waiter.person] = self._turns
        self._last_turns.move_to_end(waiter.person)
        if len(self._last_turns) > _MOST_PEOPLE:
            self._last_turns.popitem(last=False)

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._tokens + max(now - self._counted_at, 0.0) * self._rate, float(self._burst))
        self._counted_at = max(now, self._counted_at)

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if not self._waiters:
            return
        token_at = now + max(1 - self._tokens, 0.0) / self._rate
        turn_at = max(token_at, self._paused_until)
        # Compare tokens, not times, because the clock cannot resolve the time of the last fraction of a token.
        if self._tokens >= 1 and self._paused_until <= now:
            turn_at = float("inf")  # the waiters need a slot, and `done` calls `pump`
        wake_at = min(turn_at, *(each.until for each in self._waiters))
        self._timer = asyncio.get_running_loop().call_later(max(wake_at - now, 0.001), self.pump)


FAILURES = 5  # in a row, and over at least SPAN_S
SPAN_S = 3.0  # so that a short fault that hits several calls does not open the breaker
PROBE_S = 10.0


class Breaker:
    """A venue's circuit breaker: opens after FAILURES, then allows one probe every PROBE_S; an answer closes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._first_at = 0.0
        self._probe_at: float | None = None  # None = closed

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def wait_s(self, *, may_probe: bool = True) -> float | None:
        """Returns None if one call may be sent now, perhaps as the probe, else the seconds until the next probe."""
        if self._probe_at is None:
            return None
        now = self._clock()
        if may_probe and now >= self._probe_at:
            self._probe_at = now + PROBE_S
            return None
        return max(self._probe_at - now, 0.0)

    def answered(self) -> None:
        self._failures = 0
        self._probe_at = None

    def failed(self) -> bool:
        """Notes a call without a usable answer; returns whether that opens the breaker."""
        now = self._clock()
        if not self._failures:
            self._first_at = now
        self._failures += 1
        if self.is_open or self._failures < FAILURES or now - self._first_at < SPAN_S:
            return False
        self._probe_at = now + PROBE_S
        return True


WINDOW_S = 61.0
Use = Literal["read", "write"]
# A quarter of each limit is reserved for cancels and reads of own bids. Looks may use only half of it.
_URGENT = frozenset({Priority.BRAKE, Priority.CANCEL, Priority.OWN_BIDS})
_SPARE_OF_MINUTES, _SPARE_OF_LOOKS = 4, 2


class Toll(Struct, frozen=True):
    """A call's cost against the limits per minute.

    `wallet` is any address of the profile that makes the call; None = no profile. `more` calls of the same use must
    follow this one, otherwise it was wasted.
    """

    use: Use = "read"
    wallet: str | None = None
    more: int = 0


READ = Toll()


class CountedCall(Struct, eq=False):
    use: Use
    wallet: str | None
    at: float


class Windows:
    """The calls of the last minute and one venue's limits for them, if it has any."""

    def __init__(self, can: Capabilities, clock: Callable[[], float]) -> None:
        self._all = {"read": can.reads_per_minute, "write": can.writes_per_minute}
        self._each = {"read": can.reads_per_minute_per_wallet, "write": can.writes_per_minute_per_wallet}
        self._clock = clock
        self._calls: list[CountedCall] = []
        self._profiles: dict[str, str] = {}

    def bind(self, address: str, wallet: str) -> None:
        """Counts calls of `address` as calls of `wallet` from now on, because both belong to one profile."""
        self._profiles[address] = wallet

    def wait_s(self, toll: Toll, priority: Priority) -> float:
        """Returns the seconds until such a call is within the limits; 0 = now."""
        now, wallet, each = self._clock(), self._wallet(toll), self._each[toll.use]
        self._calls = [call for call in self._calls if now - call.at < WINDOW_S]
        alike = [call for call in self._calls if call.use == toll.use]
        # A call of no profile may be made by any, so it counts against every profile's limit.
        makers = {wallet} if wallet is not None else {None, *(call.wallet for call in alike)}
        full_until = max(
            _full_until(alike, self._all[toll.use], toll, priority),
            *(
                _full_until([call for call in alike if call.wallet in (maker, None)], each, toll, priority)
                for maker in makers
            ),
        )
        return max(full_until - now, 0.0)

    def enter(self, toll: Toll) -> CountedCall:
        """Counts a call; follow it by `sent`, or by `give_back` if the call is not made."""
        call = CountedCall(toll.use, self._wallet(toll), self._clock())
        if self._all[toll.use] is not None or self._each[toll.use] is not None:
            self._calls.append(call)
        return call

    def sent(self, call: CountedCall) -> None:
        """Notes that the call is sent now, from when it counts for a minute."""
        call.at = self._clock()

    def give_back(self, call: CountedCall) -> None:
        if call in self._calls:
            self._calls.remove(call)

    def _wallet(self, toll: Toll) -> str | None:
        return None if toll.wallet is None else self._profiles.get(toll.wallet, toll.wallet)


def _full_until(calls: list[CountedCall], limit: int | None, toll: Toll, priority: Priority) -> float:
    """Returns the time at which enough of `calls` have expired for the new call to fit; 0.0 if it fits now."""
    if limit is None:
        return 0.0
    spare = _SPARE_OF_LOOKS if priority is Priority.LOOKUP else _SPARE_OF_MINUTES
    room = limit - toll.more - (0 if priority in _URGENT else limit // spare)
    too_many = len(calls) - max(room, 1) + 1
    if too_many <= 0:
        return 0.0
    return sorted(call.at for call in calls)[too_many - 1] + WINDOW_S


Value = TypeVar("Value")


log = logging.getLogger(__name__)
_calls = logging.getLogger("gateway.calls")  # only our own names and numbers; no address, query, body or key
_LAST = 5  # answers


class Skew:
    """The skew between our clock and the venue's, measured by its answers' Date headers. Thread-safe.

    `monotonic` returns seconds, `now_ms` epoch milliseconds. The venue's clock is compared with our monotonic one, so
    that a change of our wall clock shows immediately.
    """

    def __init__(self, name: str, monotonic: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._told: tuple[tuple[float, float], ...] = ()  # last answers: bounds of venue time minus monotonic time
        self._is_logged = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measures the skew with the answers that this thread receives in the block."""
        sent = self._monotonic()

        def heard(headers: Mapping[str, str]) -> None:
            if (made := made_s(headers)) is not None:
                self.note(made, sent, self._monotonic())

        with hearing(heard):
            yield

    def note(self, made: int, sent: float, received: float) -> None:
        """Notes one answer. Its date `made` is the venue's epoch second; `sent` and `received` are monotonic."""
        self._told = (*self._told, (made - received, made + 1 - sent))[-_LAST:]
        off_s = self.excess_s()
        if off_s and not self._is_logged:
            log.warning("%s: %s; no bid is placed there until it is set right", self._name, skew_words(off_s))
        self._is_logged = bool(off_s)

    def seconds(self) -> float | None:
        """Returns the minimum seconds that our clock is ahead of the venue's (negative: behind); None if unknown.

        It is the median of the last five answers. A difference up to one second plus the round trip counts as 0.
        """
        if not (told := self._told):
            return None
        ours = self._now_ms() / 1000 - self._monotonic()
        proven = sorted(max(ours - most, 0.0) + min(ours - least, 0.0) for least, most in told)
        return proven[len(proven) // 2]

    def excess_s(self) -> float:
        found = self.seconds() or 0.0
        return found if abs(found) > MOST_SKEW_S else 0.0

    def permit_place(self) -> None:
        """Raises Refused('clock_skew') while our clock is too far off for a bid."""
        if off_s := self.excess_s():
            text = f"{skew_words(off_s)}: no bid is placed until it is set right"
            raise Refused("clock_skew", f"{text}; nothing was sent")

    def remark(self) -> str:
        """Returns the member `,"skew_s":N` for an answer's JSON object, which forbids bids; "" if the skew is small."""
        off_s = self.excess_s()
        return f',"skew_s":{off_s:.0f}' if off_s else ""


_UNREAD_LOG_S = 600.0
READ_WAIT_S = 20.0  # a read's maximum wait for its turn


class Abandoned(Unavailable):
    """The call was given up before anything was sent, so it does not count as the venue's failure."""


class Venue:
    """One venue's budget, quota and counts. `threads` run the adapter's calls, one HTTP request each.

    `lookups` is the users' look-up budget; None = no limit.
    """

    def __init__(
        self,
        name: str,
        budget: CallBudget,
        threads: Executor,
        quota: Quota | None = None,
        windows: Windows | None = None,
        lookups: LookupBudget | None = None,
    ) -> None:
        self.name = name
        self.budget = budget
        self.quota = quota
        self.lookups = lookups
        self.windows = windows or Windows(Capabilities(name, name), time.monotonic)
        self.breaker = Breaker(time.monotonic)
        self.skew = Skew(name, time.monotonic, lambda: time.time_ns() // 1_000_000)
        self.told: Callable[[Told], None] = lambda told: None  # hears names and pictures, in threads
        self._threads = threads
        self._calls: dict[str, Counter[str]] = {}
        self._unread: Counter[str] = Counter()  # rows left out, by operation
        self._logged_at: dict[str, float] = {}  # the time of an operation's last log line
        self.running: set[asyncio.Task[Any]] = set()

    async def read(
        self,
        verb: str,
        operation: str,
        priority: Priority,
        call: Callable[[], Value],
        begin: Callable[[], None] = lambda: None,
        toll: Toll = READ,
    ) -> Value:
        """Waits for its turn, calls `begin`, and runs the read `call`. Raises subclasses of VenueError."""
        await self.turn(priority, READ_WAIT_S, toll)
        begin()
        return await self.run(verb, operation, call, Unavailable)

    async def turn(self, priority: Priority, patience_s: float, toll: Toll) -> None:
        """Waits up to `patience_s` for the turn of one call; follow it by `run`.

        Raises RateLimited if the quota, the limits per minute or a pause of the key do not allow the call now,
        TooManyLookups if the user's budget is empty, Unavailable if the breaker is open or the turn does not come.
        """
        origin = ORIGIN.get()
        if origin.purpose == "brake" and priority <= Priority.OWN_BIDS:  # nothing is placed for a brake
            priority = Priority.BRAKE
        elif origin.purpose == "look":
            priority = Priority.LOOKUP
        elif origin.purpose == "withdraw":  # its reads of coins must not wait because the quota runs short
            priority = min(priority, Priority.OWN_BIDS)
        if self.lookups is not None:
            self.lookups.permit(origin)
        if self.quota is not None:
            self.quota.permit(priority, origin.user)
        # A bid is no probe, because its outcome might stay unknown. A brake ignores the breaker: it must always try.
        is_brake = priority is Priority.BRAKE
        if not is_brake and (wait := self.breaker.wait_s(may_probe=priority is not Priority.PLACE)) is not None:
            text = f"{self.name} has given no usable answer several times in a row"
            raise Unavailable(f"{text}; it is asked again in {wait:.0f} s; nothing was sent")
        until = time.monotonic() + patience_s
        if self.lookups is not None:
            self.lookups.take(origin)  # before waiting, so that waiting calls are counted too
        try:
            while wait_s := self.windows.wait_s(toll, priority):
                if time.monotonic() + wait_s > until:
                    text = f"{self.name} takes so many calls a minute, and this one's turn is in {wait_s:.0f} s"
                    raise RateLimited(wait_s, f"{text}; nothing was sent")
                await asyncio.sleep(wait_s)
            counted = self.windows.enter(toll)
            try:
                is_person = priority is Priority.LOOKUP or (origin.purpose == "act" and priority >= Priority.REST)
                await self.budget.take(priority, until, (origin.user or 0) if is_person else None)
            except BaseException:
                self.windows.give_back(counted)
                raise
        except BaseException:
            if self.lookups is not None:
                self.lookups.take(origin, -1)
            raise
        self.windows.sent(counted)

    def permit_place(self, rung: int) -> None:
        """Raises Refused('clock_skew') while our clock is too far off, Refused('quota') if the quota is too short.

        `rung` is the bid's position in its ladder; 0 is the top.
        """
        self.skew.permit_place()
        self.permit_listing(rung)

    def permit_listing(self, rung: int = 0) -> None:
        """Raises Refused('quota') if the quota is too short for a bid at `rung`; a listing counts as rung 0."""
        if self.quota is not None:
            self.quota.permit_place(rung, ORIGIN.get().user)

    async def run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        """Runs `call` after its `turn`; raises `lost` for an error of our own code.

        If the caller is cancelled, the call continues, and its slot and counts are settled when it ends.
        """
        task = asyncio.get_running_loop().create_task(self._run(verb, operation, call, lost))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return await asyncio.shield(task)

    def status(self) -> dict[str, Any]:
        quota = {} if self.quota is None else {"quota": self.quota.status()}
        return {
            "calls": {operation: dict(counts) for operation, counts in self._calls.items()},
            "unread_rows": dict(self._unread),
            "budget_left": round(self.budget.left(), 2),
            "waiting": self.budget.waiting(),
            "running": len(self.running),
            **self.connection(),
            **quota,
        }

    def connection(self) -> dict[str, Any]:
        """Returns the state of the connection: the pause, whether the breaker is open, and our clock's skew."""
        return {
            "paused_s": round(self.budget.paused_s(), 3),
            "is_cut_off": self.breaker.is_open,
            "skew_s": None if (skew_s := self.skew.seconds()) is None else round(skew_s, 1),
        }

    def close(self) -> None:
        if self.quota is not None:
            self.quota.close()

    async def _run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        started, outcome, user = time.monotonic(), "failed", ORIGIN.get().user
        unread: list[Unread] = []
        if self.quota is not None:
            self.quota.note()

        def made() -> Value:
            if self.quota is not None:
                self.quota.count(user)  # before the call, otherwise a crash would lose the count of a sent call
            with noting(unread.append), telling(self.told), self.skew.watching():
                return call()

        try:
            value = await asyncio.get_running_loop().run_in_executor(self._threads, made)
            outcome = "ok"
            return value
        except VenueError as error:
            outcome = error.kind
            self._learn(error)
            raise
        except Exception as error:
            log.exception("failed to carry out %s at %s", operation, self.name)
            raise lost(f"failed to carry out {operation}; the gateway's log has the reason") from error
        finally:
            if outcome == "ok":
                self.budget.answered()
                self.breaker.answered()
            self.budget.done()
            self._calls.setdefault(operation, Counter())[outcome] += 1
            if unread:
                self._note_unread(operation, unread)
            ms = round((time.monotonic() - started) * 1000)
            line = {"venue": self.name, "verb": verb, "operation": operation, "ms": ms, "outcome": outcome, "cost": 1}
            _calls.info("%s", json.dumps(line))

    def _note_unread(self, operation: str, unread: list[Unread]) -> None:
        """Counts the rows left out of an answer; logs the first, at most once every ten minutes per operation."""
        self._unread[operation] += len(unread)
        now, why = time.monotonic(), unread[0].why
        if now - self._logged_at.get(operation, -_UNREAD_LOG_S) >= _UNREAD_LOG_S:
            self._logged_at[operation] = now
            log.warning("%s: %d rows of %s are left out; the first is %s", self.name, len(unread), operation, why)

    def _learn(self, error: VenueError) -> None:
        if isinstance(error, RateLimited):
            self.budget.pause(error.retry_after_s)
        if isinstance(error, SignInNeeded | NotSupported | AskAgain):
            return  # nothing was sent in most cases, or the next endpoint shows whether the venue answers
        if isinstance(error, RateLimited | NotUnderstood | Refused):
            self.breaker.answered()
        elif isinstance(error, Unavailable | Unknown) and not isinstance(error, Abandoned) and self.breaker.failed():
            # Only in the log, because the failed call may have been about another user's address.
            log.warning("%s is now asked once in %g s only; the last fault: %s", self.name, PROBE_S, error.message)
