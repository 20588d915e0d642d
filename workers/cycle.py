"""The cycle of a task: assignment, settle, decide, carry out, report. Each kind of job implements these steps.

Also the time of the next cycle: tasks on one slug share a moment, faults back off, workers are spread over the loop.
And the evidence that an unseen order has ended: because a read may lag, it takes several reads well apart.
"""

from __future__ import annotations

import json
import logging
import random
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from core.files import SHORT_OF_DISK
from markets.client import MOST_SKEW_S
from models import users
from models.database.base import unless_full
from models.ledger import states
from models.ledger.orders import MovedMeanwhile
from models.ledger.states import Listing, Order
from models.outbox import Conditions
from models.tasks import cycles, tasks
from models.tasks.cycles import Sample
from models.tasks.tasks import RUNNING, Task
from models.users import Effective, Entitlements, User
from strategy.config.bid import Problem
from strategy.reasons import FaultCode, Step
from wallet.protocol import UserKeys
from wallet.signer_client import SignerError
from workers.context import BadConfig, BadCredentials, Context, Faults

log = logging.getLogger(__name__)

REFUSED_APART_MS = 2 * 3_600_000  # the minimum time between two refused writes that end a task without a refused read


class Config(Protocol):
    """The part of a running task's config that every cycle uses."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is signed or sent."""


C = TypeVar("C", bound=Config)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Moment:
    """The data of one cycle of a task: its row at the beginning, then the results of each step.

    A step's results are unset before that step. `faults` collects failures.
    """

    context: Context
    task: Task
    faults: Faults = field(default_factory=Faults)
    keys: UserKeys = field(init=False)
    user: User = field(init=False)

    def __post_init__(self) -> None:
        self.user = self.task.user

    @property
    def addresses(self) -> frozenset[str]:
        """All addresses of the user."""
        return frozenset({self.user.address, self.user.ordinals_address, self.keys.payment, self.keys.vault})


M = TypeVar("M", bound=Moment)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class WantedMoment(Moment, Generic[C]):
    """A cycle of a running task, with its config and its user's rights.

    `refusal` is the reason why nothing may be signed although control allows it; `damage` describes the database's
    damage.
    """

    config: C
    refusal: str | None = field(init=False)
    control: Effective = field(init=False)
    is_short_of_disk: bool = field(init=False)
    damage: str = field(init=False)

    def __post_init__(self) -> None:
        Moment.__post_init__(self)  # `super()` would fail, because `slots=True` replaces the class
        context = self.context
        self.refusal = Entitlements(context.settings).refusal(self.user, context.clock_ms())
        self.control = users.control_of(self.user.id, context.task_id)
        self.is_short_of_disk, self.damage = context.is_short_of_disk, context.damage


W = TypeVar("W", bound=WantedMoment[Any])


def wanted_task(context: Context) -> Task | None:
    """Returns the worker's task; None if it is no longer wanted or another worker has taken over."""
    task = tasks.under_token(context.task_id, context.token)
    return None if task is None or task.desired != RUNNING or task.deleted_ms is not None else task


def config_of(task: Task, loads: Callable[[str], C], problems: Callable[[C], Iterable[Problem]]) -> C:
    """Reads the task's config. If it cannot be run, sets the task's `last_error` and raises BadConfig."""
    try:
        config = loads(task.config)
    except ValueError as error:
        raise _bad(task, str(error)) from None
    if found := "; ".join(f"{problem.field}: {problem.text}" for problem in problems(config)):
        raise _bad(task, found)
    return config


def _bad(task: Task, trouble: str) -> BadConfig:
    tasks.set_error(task, f"the task cannot run: {trouble}", (FaultCode.BAD_CONFIG, {}))
    return BadConfig(trouble)


def read_user_keys(context: Context, address: str, faults: Faults) -> UserKeys | None:
    """Asks the signer for the user's addresses and keys; returns None, with a fault added, if it did not answer."""
    try:
        return context.signer.addresses(address)
    except SignerError as error:
        faults.add(Step.ADDRESSES, "get our addresses from the signer", error)
        return None


class Cycles(ABC, Generic[M]):
    """The job of one task (see `Job`): repeats `cycle`, whose steps the kinds of job implement.

    It may be killed at any point, because its successor needs only the ledger and the venue's reads of our orders.
    """

    FIRST_S: ClassVar[float] = 1.0  # between tries while something is down
    LONGEST_S: ClassVar[float] = 60.0

    def __init__(self, context: Context, rng: random.Random | None = None) -> None:
        self._context = context
        self._backoff = Backoff(self.FIRST_S, self.LONGEST_S, rng or random.Random())
        self._keys: UserKeys | None = None

    def cycle(self) -> float | None:
        """Runs one cycle; returns the seconds until the next one, None if this worker has nothing left to do.

        It has nothing left to do if the task is no longer wanted or another worker has taken over. If the manager has
        closed a bid of this cycle meanwhile, for a brake, the next cycle begins soon.
        """
        try:
            moment = self._assigned()
            if moment is None:
                return None
            if (rest_s := self._rest(moment)) is not None:
                return rest_s
            if self._is_ready(moment):
                self._settle(moment)
                self._decide(moment)
                self._carry_out(moment)
                self._report(moment)
            else:
                self._report_nothing_done(moment)
            return self._pause(moment)
        except MovedMeanwhile as moved:
            log.info("task %d: the cycle is started again: %s", self._context.task_id, moved)
            return self.FIRST_S

    @abstractmethod
    def _assigned(self) -> M | None:
        """Reads the present assignment; None if this worker has nothing left to do."""

    def _rest(self, moment: M) -> float | None:
        """Returns the seconds to wait if no cycle is due yet, otherwise None."""
        return None

    def _is_ready(self, moment: M) -> bool:
        """Fetches what the steps need; returns False, with a fault added, if it is not available."""
        return True

    @abstractmethod
    def _settle(self, moment: M) -> None:
        """Reconciles ledger and venue."""

    @abstractmethod
    def _decide(self, moment: M) -> None:
        """Decides what to do."""

    @abstractmethod
    def _carry_out(self, moment: M) -> None:
        """Carries the decision out."""

    @abstractmethod
    def _report(self, moment: M) -> None:
        """Records the actions and the faults."""

    def _report_nothing_done(self, moment: M) -> None:
        """Records a cycle that could not act."""

    @abstractmethod
    def _pause(self, moment: M) -> float | None:
        """Returns the seconds until the next cycle, None after the last one."""

    def _known_keys(self, moment: M) -> UserKeys | None:
        """Returns the user's addresses and keys, and adds them to the moment; None and a fault if unknown."""
        if self._keys is None:
            self._keys = read_user_keys(self._context, moment.user.address, moment.faults)
        if self._keys is not None:
            moment.keys = self._keys
        return self._keys


class Keeping(Cycles[W]):
    """The cycles of a running task: it needs the user's keys, and rejected credentials end it.

    `cycle` raises BadConfig and BadCredentials; both are recorded first. A single rejected write proves nothing: a 401
    or 403 may come from a firewall, from a plan that lacks one route, or from a fault of the venue. It counts if a read
    with the same key or session is rejected, too. Otherwise it counts if another write is rejected hours later and none
    was accepted in between. Only this worker's own memory counts, so a restart can only prolong a task.
    """

    def __init__(self, context: Context, rng: random.Random | None = None) -> None:
        super().__init__(context, rng)
        self._first_refused_ms: int | None = None  # the first rejection of a write since the last accepted write

    def _is_ready(self, moment: W) -> bool:
        return self._known_keys(moment) is not None

    def _pause(self, moment: W) -> float | None:
        if self._keys is not None:
            self._judge_credentials(moment)
        if moment.faults.backs_off:
            return self._backoff.delay(moment.faults.retry_after_s)
        self._backoff.reset()
        return self._until_next(moment)

    @abstractmethod
    def _look(self, moment: W, looked: Faults) -> None:
        """Reads from the venue with the credentials of our writes."""

    @abstractmethod
    def _until_next(self, moment: W) -> float:
        """Returns the seconds until the next cycle while nothing is down."""

    def _judge_credentials(self, moment: W) -> None:
        """Raises BadCredentials if a rejected write counts. In a cycle with an accepted write it does not count."""
        faults, now_ms = moment.faults, self._context.clock_ms()
        if faults.has_accepted_write:
            self._first_refused_ms = None
        elif faults.rejected is not None:
            first_ms = self._first_refused_ms = now_ms if self._first_refused_ms is None else self._first_refused_ms
            looked = Faults()
            self._look(moment, looked)
            if any(fault.code is FaultCode.AUTH_FAILED for fault in looked.coded):
                raise BadCredentials(f"{faults.rejected}; a read with the same credentials is refused, too")
            if now_ms - first_ms >= REFUSED_APART_MS:
                hours = f"{(now_ms - first_ms) / 3_600_000:.0f} hours"
                raise BadCredentials(f"{faults.rejected}; the venue has accepted no write for {hours}")


class Drain(Cycles[M]):
    """The cycles of a task that must not run: they read and cancel until none of its orders is open."""

    FIRST_S = 0.5
    LONGEST_S = 30.0


def note_machine_and_rights(moment: WantedMoment[Any], step: Step, failed_to: str) -> None:
    """Adds the faults that forbid every task of this user, or of this host, to place anything."""

    def note(code: FaultCode, text: str) -> None:
        moment.faults.add(step, failed_to, text, backs_off=False, code=code)

    if moment.is_short_of_disk:
        note(FaultCode.DISK_FULL, SHORT_OF_DISK)
    if moment.damage:
        note(FaultCode.DATABASE_DAMAGED, moment.damage)
    if moment.refusal:
        note(FaultCode.NOT_ENTITLED, moment.refusal)


def record(
    moment: WantedMoment[Any],
    action: str,
    detail: dict[str, Any],
    sample: Sample,
    memory: str = "{}",
    conditions: Conditions = cycles.NONE_HOLDS,
) -> None:
    """Records the cycle and logs it. A restraint and a dry run are prefixed to `action`."""
    if moment.config.dry_run:
        action = f"dry run: {action}"
    if moment.control.state != users.RUN:
        action = f"control {moment.control.state} ({moment.control.scope}): {action}"
    _write(moment, action, detail, sample, memory, conditions)


def record_nothing_done(moment: Moment, sample: Sample | None = None, memory: str = "{}") -> None:
    """Records a cycle that could not act."""
    _write(moment, "nothing done", {}, sample, memory)


def _write(
    moment: Moment,
    action: str,
    detail: dict[str, Any],
    sample: Sample | None,
    memory: str,
    conditions: Conditions = cycles.NONE_HOLDS,
) -> None:
    context, faults = moment.context, moment.faults
    log.info("task %d: %s", context.task_id, f"{action}; {faults.text}" if faults.texts else action)
    with unless_full("the cycle"):
        cycles.record_cycle(
            context.task_id,
            context.token,
            time_ms=context.clock_ms(),
            action=action,
            error=faults.text,
            fault=faults.first,
            detail=json.dumps(detail | {"errors": faults.texts, "faults": faults.as_values}, separators=(",", ":")),
            memory=memory,
            conditions=conditions,
            sample=sample,
        )


_JITTER = 0.2
# All turns are in the first two fifths of each loop, so that they are within half a loop, up to which a cycle reuses
# another's reads. So one read of a wallet serves all its tasks, and one read of a book serves all tasks on its slug.
_SPREAD = 0.4
_EACH_FIRST_S, _LONGEST_FIRST_S = 0.03, 12.0
_LEAST_GAP = 0.25  # of a loop, between two turns of one task


def until_first_cycle(slug_key: str, starting: int) -> float:
    """Returns the seconds before a worker's first cycle if `starting` other workers start with it.

    A venue that answers 5 requests a second would fail simultaneous requests from all of them. So of 300 workers on as
    many slugs, 33 begin each second. A few starts are not delayed.
    """
    return _position(slug_key) * min(_LONGEST_FIRST_S, starting * _EACH_FIRST_S)


def until_cycle(slug_key: str, loop_s: float, now_s: float) -> float:
    """Returns the seconds from `now_s` (Unix time) until this slug's next turn, at least a quarter of a loop.

    Tasks on one slug with the same loop wake up together, so that they share one read of the book; different slugs are
    spread. With a loop of 10 s and a slug whose turn is at 1.5 s: 4 s at 7.5, 10 s at 1.5, 11 s at 0.5.
    """
    turn_s = _position(slug_key) * _SPREAD * loop_s
    wait_s = (turn_s - now_s) % loop_s
    return wait_s if wait_s >= _LEAST_GAP * loop_s else wait_s + loop_s


def until_rare_cycle(first_s: float, loop_s: float, now_s: float, *, every: int, due_s: float) -> float:
    """Returns the seconds until the first turn with work to do; the next turn is in `first_s`.

    One turn in `every` has work, the same one for all tasks with this loop; so has the first turn after `due_s` (Unix
    time).
    """
    wait_s = first_s
    while now_s + wait_s < due_s and _loop_number(now_s + wait_s, loop_s) % every:
        wait_s += loop_s
    return wait_s


def _loop_number(turn_s: float, loop_s: float) -> int:
    """Returns the number of a turn's loop. Turns are in its first two fifths, so adding 0.3 avoids rounding errors."""
    return int(turn_s / loop_s + (1 - _SPREAD) / 2)


def _position(slug_key: str) -> float:
    """Returns the slug's fixed position in [0, 1), equal in every process."""
    return zlib.crc32(slug_key.encode()) / 2**32


class Backoff:
    """The seconds between tries: `first_s`, doubled each time up to `longest_s`, each shortened by up to a fifth."""

    def __init__(self, first_s: float, longest_s: float, rng: random.Random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._rng = rng
        self._next_s = first_s

    def reset(self) -> None:
        """Starts over after a success."""
        self._next_s = self._first_s

    def delay(self, at_least_s: float = 0.0) -> float:
        """Returns the seconds until the next try.

        `at_least_s` is the venue's requested delay. It is cut to `longest_s`, because the gateway enforces the venue's
        pause itself, so that asking the gateway again costs the venue nothing.
        """
        delay = self._next_s * (1 - _JITTER * self._rng.random())
        self._next_s = min(2 * self._next_s, self._longest_s)
        return min(max(delay, at_least_s), self._longest_s)


# successful reads in a row without a live order, after which it counts as vanished, or its cancel as done
VANISHED_READS = 2
# likewise for an order that may never have arrived: it then counts as lost, if it is long overdue
LOST_READS = 3
APART_MS = 5_000  # two reads closer together count as one, because both may come from the same lagging copy
# The maximum lag of a venue's clock behind ours, and two seconds because it may report whole seconds only. The sale of
# a just placed bid then has an earlier time than the bid. With this allowance another bid's sale may be taken for ours,
# so that the task buys less than allowed; without it a missed sale would make the task buy more.
CLOCKS_MS = int(MOST_SKEW_S * 1_000) + 2_000


def count_miss(row: Order | Listing, read_ms: int) -> int:
    """Counts the successful reads in a row, well apart, without the order, including the one begun at `read_ms`."""
    if read_ms < row.updated_ms + APART_MS:
        return int(row.misses)
    return states.count_miss(row, read_ms)
