"""Limits of calls to one venue: a request's origin, its turn, the breaker, limits per minute, people's budgets.

Time is an argument: the monotonic clock, in seconds.

A venue counts in windows of 60 s that begin at unknown times. A limit that holds in any 60 s holds in each of them, so
it is kept so here, for a second more, since requests take different times to arrive.

What one user causes by hand is counted here and not in the server, since only the gateway knows how many calls an
answer took (none, when it was known), and since several server processes have one gateway.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from gateway.quota import Priority
from markets.base import RateLimited, Unavailable
from markets.capabilities import Capabilities

Clock = Callable[[], float]


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

    At most `spare` slots are kept for more urgent calls. Each `take` that returns must be followed by one `done`. A
    waiter that is cancelled costs nothing.
    """

    def __init__(self, rate: float, burst: int, slots: int, clock: Clock, *, spare: int = 0) -> None:
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
        """Frees the slot of a request that was answered or failed."""
        self._slots += 1
        self.pump()

    def give_back(self) -> None:
        """Gives back the turn of a request that was never sent."""
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
        """Returns how many requests could be sent at once."""
        self._refill()
        return self._tokens

    def paused_s(self) -> float:
        """Returns the seconds until the key is used again; 0 when it is in use."""
        return max(self._paused_until - self._clock(), 0.0)

    def waiting(self) -> int:
        """Counts the requests that wait for their turn."""
        return len(self._waiters)

    def pump(self) -> None:
        """Grants all turns that are due and sets the timer for the next; called whenever anything changed."""
        self._refill()
        now = self._clock()
        for waiter in [each for each in self._waiters if max(now, self._paused_until) >= each.until]:
            self._waiters.remove(waiter)
            self._fail(waiter, now)
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
        task = next((each for each in self._waiters if each.person is None), None)
        people = (each for each in self._waiters if each.person is not None)
        person = min(people, key=lambda each: self._last_turns.get(each.person or 0, 0), default=None)
        is_task_first = task is not None and (task.priority <= Priority.CANCEL or self._owed > 0)
        both = (task, person) if is_task_first else (person, task)
        return next((each for each in both if each is not None and self._may_send(each, now)), None)

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

    def _may_send(self, waiter: _Waiter, now: float) -> bool:
        spare = min(_SPARE[waiter.priority], self._spare)
        return now >= self._paused_until and self._tokens >= _ONE and self._slots > spare

    def _fail(self, waiter: _Waiter, now: float) -> None:
        if waiter.granted.done():
            return
        if self._paused_until > now:
            waiter.granted.set_exception(RateLimited(self._paused_until - now, "paused as the venue asked"))
        else:
            waiter.granted.set_exception(Unavailable("its turn did not come in time; nothing was sent"))

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
        wake_at = min(turn_at, *(waiter.until for waiter in self._waiters))
        self._timer = asyncio.get_running_loop().call_later(max(wake_at - now, 0.001), self.pump)


FAILURES = 5  # in a row, and over at least SPAN_S
SPAN_S = 3.0  # a blip that hits several calls at once is one failure
PROBE_S = 10.0


class Breaker:
    """One venue's breaker: open after FAILURES; then one probe every PROBE_S may go out, and an answer closes it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._first_at = 0.0
        self._probe_at: float | None = None  # None = closed

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def wait_s(self, *, may_probe: bool = True) -> float | None:
        """Returns None when a call may go out now, perhaps as the probe, else the seconds until the next probe.

        Asks for one call only. A write whose fate would be unknown is no probe (`may_probe` False).
        """
        if self._probe_at is None:
            return None
        now = self._clock()
        if may_probe and now >= self._probe_at:
            self._probe_at = now + PROBE_S
            return None
        return max(self._probe_at - now, 0.0)

    def answered(self) -> None:
        """Notes an answer of the venue, whatever it said."""
        self._failures = 0
        self._probe_at = None

    def failed(self) -> None:
        """Notes a call without an answer, or with one that could not be used."""
        now = self._clock()
        if not self._failures:
            self._first_at = now
        self._failures += 1
        if self._probe_at is None and self._failures >= FAILURES and now - self._first_at >= SPAN_S:
            self._probe_at = now + PROBE_S


WINDOW_S = 61.0
Use = Literal["read", "write"]
# A part of each limit is kept for urgent calls: a quarter for cancels and for reads of own bids. Looks leave half of it
# to the tasks.
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
    """One counted call, from its turn on."""

    use: Use
    wallet: str | None
    at: float


class Windows:
    """Counts calls against the limits of one venue; without limits it lets everything pass."""

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
        """Notes that the call goes out now: from here on it counts for a minute."""
        call.at = self._clock()

    def give_back(self, call: CountedCall) -> None:
        """Takes a call back that was not made."""
        if call in self._calls:
            self._calls.remove(call)

    def _wallet(self, toll: Toll) -> str | None:
        return None if toll.wallet is None else self._profiles.get(toll.wallet, toll.wallet)


def _full_until(calls: list[CountedCall], limit: int | None, toll: Toll, priority: Priority) -> float:
    """Returns when enough of `calls` are older than a minute for the call to fit under `limit`."""
    if limit is None:
        return 0.0
    kept = (
        0 if priority in _URGENT else limit // (_SPARE_OF_LOOKS if priority is Priority.LOOKUP else _SPARE_OF_MINUTES)
    )
    room = limit - toll.more - kept
    too_many = len(calls) - max(room, 1) + 1
    if too_many <= 0:
        return 0.0
    return sorted(call.at for call in calls)[too_many - 1] + WINDOW_S
