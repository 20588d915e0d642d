"""The one cycle of a task: assignment, settle, decide, carry out, report. Each kind of job fills in these steps.

Then the time of the next one: tasks on one slug share a moment, faults back off, workers are spread over the loop.
And the evidence that an unseen order has ended: a read may lag behind, so it takes several that are well apart.
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

REFUSED_APART_MS = 2 * 3_600_000  # between two refused writes that end a task by themselves


class Config(Protocol):
    """A config of a task that runs, as far as every cycle goes by it."""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is signed or sent."""


C = TypeVar("C", bound=Config)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Moment:
    """All that one cycle of a task knows: its row as the cycle began, then what each step finds.

    A value that a step finds has none before that step. `faults` collects failures.
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
        """All addresses of the user's."""
        return frozenset({self.user.address, self.user.ordinals_address, self.keys.payment, self.keys.vault})


M = TypeVar("M", bound=Moment)


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class WantedMoment(Moment, Generic[C]):
    """A cycle of a task that runs, with its config and its user's rights.

    `refusal` says why nothing may be signed though control allows it; `damage` is the database's.
    """

    config: C
    refusal: str | None = field(init=False)
    control: Effective = field(init=False)
    is_short_of_disk: bool = field(init=False)
    damage: str = field(init=False)

    def __post_init__(self) -> None:
        Moment.__post_init__(self)  # `super()` knows another class: `slots=True` makes a new one
        context = self.context
        self.refusal = Entitlements(context.settings).refusal(self.user, context.clock_ms())
        self.control = users.control_of(self.user.id, context.task_id)
        self.is_short_of_disk, self.damage = context.is_short_of_disk, context.damage


W = TypeVar("W", bound=WantedMoment[Any])


def wanted_task(context: Context) -> Task | None:
    """Returns the worker's task; None when it is no longer wanted or another worker has taken over."""
    task = tasks.under_token(context.task_id, context.token)
    return None if task is None or task.desired != RUNNING or task.deleted_ms is not None else task


def config_of(task: Task, loads: Callable[[str], C], problems: Callable[[C], Iterable[Problem]]) -> C:
    """Reads the task's config. Raises BadConfig, with the task's `last_error` written, for one that cannot be run."""
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
    """Asks the signer for the user's addresses and keys; returns None, with the fault noted, when it did not answer."""
    try:
        return context.signer.addresses(address)
    except SignerError as error:
        faults.add(Step.ADDRESSES, "get our addresses from the signer", error)
        return None


class Cycles(ABC, Generic[M]):
    """The job of one task (see `Job`): one `cycle` after the other, whose steps the kinds of job fill in.

    It survives being killed anywhere: a successor needs only the ledger and the venue's own word on what is ours.
    """

    FIRST_S: ClassVar[float] = 1.0  # between tries, while something is down
    LONGEST_S: ClassVar[float] = 60.0

    def __init__(self, context: Context, rng: random.Random | None = None) -> None:
        self._context = context
        self._backoff = Backoff(self.FIRST_S, self.LONGEST_S, rng or random.Random())
        self._keys: UserKeys | None = None

    def cycle(self) -> float | None:
        """Runs one cycle; returns the seconds until the next one, None when nothing is left to do for this worker.

        That is so when the task is no longer wanted, or another worker acts. When the manager has closed a bid of this
        cycle meanwhile, for a brake, the next one begins soon.
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
            log.info("task %d: begins anew: %s", self._context.task_id, moved)
            return self.FIRST_S

    @abstractmethod
    def _assigned(self) -> M | None:
        """Reads the assignment of this moment; None when there is nothing to do for this worker any more."""

    def _rest(self, moment: M) -> float | None:
        """Returns the seconds to rest when no cycle is due yet."""
        return None

    def _is_ready(self, moment: M) -> bool:
        """Learns what each step needs; False, with the fault noted, when that is not to be had."""
        return True

    @abstractmethod
    def _settle(self, moment: M) -> None:
        """Reconciles ledger and venue."""

    @abstractmethod
    def _decide(self, moment: M) -> None:
        """Decides what is to be done."""

    @abstractmethod
    def _carry_out(self, moment: M) -> None:
        """Does it."""

    @abstractmethod
    def _report(self, moment: M) -> None:
        """Writes down what was done, and the faults."""

    def _report_nothing_done(self, moment: M) -> None:
        """Writes down a cycle that got nowhere."""

    @abstractmethod
    def _pause(self, moment: M) -> float | None:
        """Returns the seconds until the next cycle, None after the last one."""

    def _known_keys(self, moment: M) -> UserKeys | None:
        """Returns the user's addresses and keys, and puts them into the moment; None, with the fault noted, without."""
        if self._keys is None:
            self._keys = read_user_keys(self._context, moment.user.address, moment.faults)
        if self._keys is not None:
            moment.keys = self._keys
        return self._keys


class Keeping(Cycles[W]):
    """The cycles of a task that runs: it needs the user's keys, and refused credentials end it.

    Its `cycle` raises BadConfig, and BadCredentials; both are recorded first. One refusal of a write proves nothing:
    a 401 or 403 may come from a firewall, from a plan that lacks one route, or from a fault of the venue. It counts
    when a read with the same key or session is refused, too. Else it counts when another write is refused hours after
    it and none was accepted between: as far as this worker remembers, so that a restart can only prolong a task.
    """

    def __init__(self, context: Context, rng: random.Random | None = None) -> None:
        super().__init__(context, rng)
        self._first_refused_ms: int | None = None  # the first refusal of a write since the last accepted one

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
        """Reads at the venue with the credentials of our writes."""

    @abstractmethod
    def _until_next(self, moment: W) -> float:
        """Returns the seconds until the next cycle while nothing is down."""

    def _judge_credentials(self, moment: W) -> None:
        """Raises BadCredentials when the refusal of a write counts. A cycle with an accepted write counts for none."""
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
    """The cycles of a task that must not run: they read and cancel until nothing of it is open."""

    FIRST_S = 0.5
    LONGEST_S = 30.0


def note_machine_and_rights(moment: WantedMoment[Any], step: Step, failed_to: str) -> None:
    """Adds to the faults what forbids every task of the user's, or of the host, to place anything."""

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
    """Writes the cycle down and logs it. A restraint and a dry run stand before the words of its `action`."""
    if moment.config.dry_run:
        action = f"dry run: {action}"
    if moment.control.state != users.RUN:
        action = f"control {moment.control.state} ({moment.control.scope}): {action}"
    _write(moment, action, detail, sample, memory, conditions)


def record_nothing_done(moment: Moment, sample: Sample | None = None, memory: str = "{}") -> None:
    """Writes down a cycle that got nowhere."""
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
# All turns are in the first two fifths of each loop: within half a loop, the age up to which a cycle reuses another's
# reads. So one read of a wallet serves all its tasks, as one of a book serves all tasks on its slug.
_SPREAD = 0.4
_EACH_FIRST_S, _LONGEST_FIRST_S = 0.03, 12.0
_LEAST_GAP = 0.25  # of a loop, between two turns of one task


def until_first_cycle(slug_key: str, starting: int) -> float:
    """Returns the seconds before a worker's first cycle when `starting` others start with it.

    A venue that answers 5 requests a second would make all of them fail if they asked at once: of 300 on as many slugs,
    33 begin a second. A few starts are not held up.
    """
    return _place(slug_key) * min(_LONGEST_FIRST_S, starting * _EACH_FIRST_S)


def until_cycle(slug_key: str, loop_s: float, now_s: float) -> float:
    """Returns the seconds from `now_s` (Unix time) until this slug's next turn, from a quarter of a loop on.

    Tasks with the same loop wake up together, so that they share one read of the book; different slugs are spread. With
    a loop of 10 s and a slug whose turn is at 1.5 s: 4 s at 7.5, 10 s at 1.5, 11 s at 0.5.
    """
    turn_s = _place(slug_key) * _SPREAD * loop_s
    wait_s = (turn_s - now_s) % loop_s
    return wait_s if wait_s >= _LEAST_GAP * loop_s else wait_s + loop_s


def until_rare_cycle(first_s: float, loop_s: float, now_s: float, *, every: int, due_s: float) -> float:
    """Returns the seconds until the first turn with something to do; the next turn is in `first_s`.

    That is one turn in `every`, the same for all tasks with this loop, and the first one after `due_s` (Unix time).
    """
    wait_s = first_s
    while now_s + wait_s < due_s and _number(now_s + wait_s, loop_s) % every:
        wait_s += loop_s
    return wait_s


def _number(turn_s: float, loop_s: float) -> int:
    """Returns the number of the loop that a turn is in, safe from rounding: turns are in its first two fifths."""
    return int(turn_s / loop_s + (1 - _SPREAD) / 2)


def _place(slug_key: str) -> float:
    """Returns the slug's fixed position in [0, 1), equal in every process."""
    return zlib.crc32(slug_key.encode()) / 2**32


class Backoff:
    """The seconds between tries: `first_s`, twice that, and so on up to `longest_s`, each up to a fifth shorter."""

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

        `at_least_s` is the venue's wish. Above `longest_s` it is cut: the gateway keeps the venue's own pause, so that
        asking the gateway again costs the venue nothing.
        """
        delay = self._next_s * (1 - _JITTER * self._rng.random())
        self._next_s = min(2 * self._next_s, self._longest_s)
        return min(max(delay, at_least_s), self._longest_s)


VANISHED_READS = 2  # good reads in a row without a live row until it counts as vanished, or its cancel as done
LOST_READS = 3  # ... without one that may never have arrived until, well after its time, it counts as lost
APART_MS = 5_000  # two reads that are closer together may have come from the same lagging copy: they are one
# How far a venue's clock may be behind ours; it may tell whole seconds only. The sale of a bid that was just placed has
# an earlier time then. So another's sale may be taken for a bid's own, and its task buys less than it may; one that was
# missed would have it buy more.
CLOCKS_MS = int(MOST_SKEW_S * 1_000) + 2_000


def count_miss(row: Order | Listing, read_ms: int) -> int:
    """Counts the good reads in a row, well apart, that have not shown it, the one begun at `read_ms` included."""
    if read_ms < row.updated_ms + APART_MS:
        return int(row.misses)
    return states.count_miss(row, read_ms)
