"""One venue's calls and their limits: turn, limits per minute, breaker, clock skew, thread, log line, counts.

Time is an argument of the limits: the monotonic clock, in seconds. A venue counts in windows of 60 s that begin at
unknown times. A limit that holds in any 60 s holds in each of them, so it is kept so here, for a second more, since
requests take different times to arrive.
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

# Slots kept free for more urgent calls, so that a venue that hangs on reads still gets a cancel. A brake has two
# more slots of its own, because calls that hang may occupy all others.
BRAKE_SLOTS = 2
_SPARE = {
    Priority.BRAKE: -BRAKE_SLOTS,
    Priority.CANCEL: 0,
    Priority.OWN_BIDS: 0,
    Priority.PLACE: 1,
    Priority.REST: 2,
    Priority.LOOKUP: 2,
}
# Of the calls that can wait, a person's is every fourth while tasks wait as well. The people take turns.
TASK_TURNS = 3
_MOST_PEOPLE = 1_000
# Fifths of a second that add up to one token miss it by a rounding error; such a bucket counts as full.
_ONE = 1 - 1e-6
_FIRST_BACK_OFF_S, _LONGEST_BACK_OFF_S = 2.5, 30.0


class _Waiter(Struct, eq=False):
    priority: Priority
    until: float
    granted: asyncio.Future[None]
    person: int | None


class CallBudget:
    """The budget of one key: `rate` requests a second, bursts of `burst`, at most `slots` at once.

    At most `spare` slots are kept for more urgent calls. Each `take` that returns must be followed by one `done`.
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
        self._last_turns: OrderedDict[int, int] = OrderedDict()  # of people, the oldest first
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, priority: Priority, until: float, person: int | None = None) -> None:
        """Waits for the right to send one request, until the clock shows `until`.

        The request of a `person` (a user's number) has one of the people's turns, whatever its priority. Raises
        RateLimited when the key is paused for longer than that, Unavailable when its turn did not come.
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
        """Pauses the whole key, as the venue asked. Without a time (None) each pause is double the last."""
        if seconds is None:
            seconds = min(_FIRST_BACK_OFF_S * 2**self._refusals, _LONGEST_BACK_OFF_S)
        self._refusals = min(self._refusals + 1, 10)
        self._paused_until = max(self._paused_until, self._clock() + seconds)
        self._refill()
        # A bucket that filled up meanwhile would end the pause with the burst that began it.
        self._tokens = min(self._tokens, 1.0)
        self._counted_at = self._paused_until
        self.pump()

    def answered(self) -> None:
        """Notes that the venue took a request: the next pause of unknown length is short again."""
        self._refusals = 0

    def left(self) -> float:
        self._refill()
        return self._tokens

    def paused_s(self) -> float:
        """Returns the seconds until the key is used again; 0 when it is in use."""
        return max(self._paused_until - self._clock(), 0.0)

    def waiting(self) -> int:
        return len(self._waiters)

    def pump(self) -> None:
        """Grants all turns that are due and sets the timer for the next; called whenever anything changed."""
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
        # Decided by the tokens, not by the time: the last fraction of a token is due too soon for any clock to tell.
        if self._tokens >= 1 and self._paused_until <= now:
            turn_at = float("inf")  # it waits for a slot, which `done` frees
        wake_at = min(turn_at, *(each.until for each in self._waiters))
        self._timer = asyncio.get_running_loop().call_later(max(wake_at - now, 0.001), self.pump)


FAILURES = 5  # in a row, and over at least SPAN_S
SPAN_S = 3.0  # a blip that hits several calls at once is one failure
PROBE_S = 10.0


class Breaker:
    """A venue's breaker: open after FAILURES; then one probe every PROBE_S may go out, and an answer closes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._first_at = 0.0
        self._probe_at: float | None = None  # None = closed

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def wait_s(self, *, may_probe: bool = True) -> float | None:
        """Returns None when one call may go out now, perhaps as the probe, else the seconds until the next probe."""
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
        """Notes a call without an answer, or with one that could not be used; tells whether that opens it."""
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
# A quarter of each limit is kept for cancels and reads of own bids. Looks leave half of it to the tasks.
_URGENT = frozenset({Priority.BRAKE, Priority.CANCEL, Priority.OWN_BIDS})
_SPARE_OF_MINUTES, _SPARE_OF_LOOKS = 4, 2


class Toll(Struct, frozen=True):
    """The toll of a call. `wallet` is any address of the profile that makes it, None is a call for everybody.

    `more` calls of the same kind must follow this one, else it was wasted.
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
    """The calls of the last minute, against the limits of one venue; without limits everything passes."""

    def __init__(self, can: Capabilities, clock: Callable[[], float]) -> None:
        self._all = {"read": can.reads_per_minute, "write": can.writes_per_minute}
        self._each = {"read": can.reads_per_minute_per_wallet, "write": can.writes_per_minute_per_wallet}
        self._clock = clock
        self._calls: list[CountedCall] = []
        self._profiles: dict[str, str] = {}

    def bind(self, address: str, wallet: str) -> None:
        """Makes `address` count as `wallet` from now on: both belong to one profile."""
        self._profiles[address] = wallet

    def wait_s(self, toll: Toll, priority: Priority) -> float:
        """Returns the seconds until such a call fits; 0 when it does now."""
        now, wallet, each = self._clock(), self._wallet(toll), self._each[toll.use]
        self._calls = [call for call in self._calls if now - call.at < WINDOW_S]
        alike = [call for call in self._calls if call.use == toll.use]
        # Any profile may make a call for everybody: it counts for each of them, and waits for each.
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
        """Counts a call whose turn it is; follow it by `sent`, or `give_back` if it is not made."""
        call = CountedCall(toll.use, self._wallet(toll), self._clock())
        if self._all[toll.use] is not None or self._each[toll.use] is not None:
            self._calls.append(call)
        return call

    def sent(self, call: CountedCall) -> None:
        """Notes that the call goes out now, and counts for a minute."""
        call.at = self._clock()

    def give_back(self, call: CountedCall) -> None:
        if call in self._calls:
            self._calls.remove(call)

    def _wallet(self, toll: Toll) -> str | None:
        return None if toll.wallet is None else self._profiles.get(toll.wallet, toll.wallet)


def _full_until(calls: list[CountedCall], limit: int | None, toll: Toll, priority: Priority) -> float:
    """Returns when enough of `calls` are older than a minute for the call to fit under `limit`."""
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
_calls = logging.getLogger("gateway.calls")  # names and numbers of ours only: no address, query, body or key
_LAST = 5  # answers


class Skew:
    """The skew of the venue `name`, measured by the dates of its answers. Safe in any thread.

    `monotonic` is in seconds, `now_ms` the epoch. It keeps how far the venue's clock is ahead of our monotonic one, so
    a change of our own clock shows at once, not only in later answers.
    """

    def __init__(self, name: str, monotonic: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._told: tuple[tuple[float, float], ...] = ()  # for each of the last answers: at least, at most
        self._is_logged = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measures by the dates of the answers that this thread gets in the block."""
        sent = self._monotonic()

        def heard(headers: Mapping[str, str]) -> None:
            if (made := made_s(headers)) is not None:
                self.note(made, sent, self._monotonic())

        with hearing(heard):
            yield

    def note(self, made: int, sent: float, received: float) -> None:
        """Notes one answer, made within the second from `made` (epoch, by the venue); the other times are monotonic."""
        self._told = (*self._told, (made - received, made + 1 - sent))[-_LAST:]
        off_s = self.excess_s()
        if off_s and not self._is_logged:
            log.warning("%s: %s; no bid is placed there until it is set right", self._name, skew_words(off_s))
        self._is_logged = bool(off_s)

    def seconds(self) -> float | None:
        """Returns the seconds that our clock is at least ahead of the venue's (behind: below 0); None if unknown.

        The median of the last answers. A difference within one second and the time of the exchange proves nothing.
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
        """Returns further members of an answer's JSON object that forbid bids; empty while the clock is right."""
        off_s = self.excess_s()
        return f',"skew_s":{off_s:.0f}' if off_s else ""


_UNREAD_LOG_S = 600.0
READ_WAIT_S = 20.0  # the longest that a read waits for its turn


class Abandoned(Unavailable):
    """The call was given up before anything was sent: this says nothing about the venue."""


class Venue:
    """One venue's budget, quota and counts. `threads` run the adapter's calls, each one HTTP request.

    `lookups` is the budget of people's looks; None = looks here count against nothing.
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
        """Waits for its turn, calls `begin`, and runs one reading `call`. Raises VenueError leaves."""
        await self.turn(priority, READ_WAIT_S, toll)
        begin()
        return await self.run(verb, operation, call, Unavailable)

    async def turn(self, priority: Priority, patience_s: float, toll: Toll) -> None:
        """Waits up to `patience_s` for the turn of one call; follow it by `run`.

        Raises RateLimited when the quota, the minute or the key has no call for it now (TooManyLookups when the user
        has none), Unavailable when the breaker is open or the turn did not come.
        """
        origin = ORIGIN.get()
        if origin.purpose == "brake" and priority <= Priority.OWN_BIDS:  # nothing is placed for a brake
            priority = Priority.BRAKE
        elif origin.purpose == "look":
            priority = Priority.LOOKUP
        elif origin.purpose == "withdraw":  # what must be known of coins must not wait for a quota that runs short
            priority = min(priority, Priority.OWN_BIDS)
        if self.lookups is not None:
            self.lookups.permit(origin)
        if self.quota is not None:
            self.quota.permit(priority, origin.user)
        # A bid whose fate would be unknown is no probe. A brake tries each time: it is for the moment when much fails.
        is_brake = priority is Priority.BRAKE
        if not is_brake and (wait := self.breaker.wait_s(may_probe=priority is not Priority.PLACE)) is not None:
            text = f"{self.name} has given no usable answer several times in a row"
            raise Unavailable(f"{text}; it is asked again in {wait:.0f} s; nothing was sent")
        until = time.monotonic() + patience_s
        if self.lookups is not None:
            self.lookups.take(origin)  # before it waits, so that those who wait are counted, too
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
        """Raises Refused('clock_skew') while our clock is too far off, Refused('quota') when the quota is too short.

        `rung` is the bid's place in its ladder, 0 the top.
        """
        self.skew.permit_place()
        self.permit_listing(rung)

    def permit_listing(self, rung: int = 0) -> None:
        """Raises Refused('quota') when the quota is too short for a bid at this rung: at the top nothing is listed."""
        if self.quota is not None:
            self.quota.permit_place(rung, ORIGIN.get().user)

    async def run(self, verb: str, operation: str, call: Callable[[], Value], lost: type[VenueError]) -> Value:
        """Runs `call`, whose turn it is; a fault of ours becomes `lost`.

        If the caller is cancelled the call runs on: its turn and its counts end with the call itself.
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
        """Returns how the venue answers now: a pause that it asked for, silence, its clock less ours."""
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
                self.quota.count(user)  # first: a call sent but not counted would be missing after a crash
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
        """Counts the rows left out of an answer; logs the first one, of each operation every ten minutes at most."""
        self._unread[operation] += len(unread)
        now, why = time.monotonic(), unread[0].why
        if now - self._logged_at.get(operation, -_UNREAD_LOG_S) >= _UNREAD_LOG_S:
            self._logged_at[operation] = now
            log.warning("%s: %d rows of %s are left out; the first is %s", self.name, len(unread), operation, why)

    def _learn(self, error: VenueError) -> None:
        if isinstance(error, RateLimited):
            self.budget.pause(error.retry_after_s)
        if isinstance(error, SignInNeeded | NotSupported | AskAgain):
            return  # mostly nothing was sent; or the next source tells whether the venue answers
        if isinstance(error, RateLimited | NotUnderstood | Refused):
            self.breaker.answered()
        elif isinstance(error, Unavailable | Unknown) and not isinstance(error, Abandoned) and self.breaker.failed():
            # For the operator alone: the failed call may have been about another user's address.
            log.warning("%s is now asked once in %g s only; the last fault: %s", self.name, PROBE_S, error.message)
