"""Control states of bids and listings: for all users, the caller, or one task. The strictest state applies.

Each state has three copies: the row, which workers obey; the signer's, against which it refuses to sign; the manager's,
which cancels bids and wakes the workers. A stricter state is sent to all three concurrently, so that none waits for
another. If the row cannot be written, the state is in force and the row is written later. A looser state is sent to
the signer first and its row is written last, so that a failure in between leaves the stricter state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Iterable
from typing import Annotated, Any, NamedTuple, NoReturn, cast

from msgspec import UNSET, UnsetType, field, structs
from peewee import PeeweeException

from core.errors import PeerError
from core.fields import Time, iso, words
from models import users
from models.accounts import CONTROL, READ
from models.ledger.closing import closing_of_all, total
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING, Task
from models.users import EVERYBODY, GLOBAL, RUN, SCOPES, STATES, TASK, USER, Control, User
from server.http import shapes
from server.http.answers import (
    INVALID,
    NOT_YOURS,
    ApiError,
    Closing,
    Going,
    closing_shown,
    invalid,
    not_found,
    too_many,
)
from server.http.base import MAX_ID, SignedIn, route
from server.http.services import Services
from server.http.shapes import Answer, Body, beyond_one_task, one_of
from wallet.protocol import Scope, State
from wallet.signer_client import SignerError

REMIND_S = 30.0
STORE_S = 5.0
NOT_STORED = "In force, not yet stored"
AUTOLIST = "autolist"
_TASK_SCOPES = (TASK, AUTOLIST)
_STATES_TEXT = "run places bids and listings, reduce only cancels, halt cancels every bid."

log = logging.getLogger(__name__)


class ControlChange(Body, frozen=True, kw_only=True):
    """A state for everybody (`global`, for admins), for the caller (`user`) or for one of the caller's tasks.

    Scope `task` is a bidding task, `autolist` an auto-list task; `taskId` is its id.
    """

    scope: Annotated[str, one_of((*SCOPES, AUTOLIST)), beyond_one_task("holds other tasks as well", GLOBAL, USER)]
    task_id: Annotated[int | UnsetType | None, words("With scope `task` or `autolist`, and only then.")] = UNSET
    state: Annotated[str, one_of(STATES), words(_STATES_TEXT)]


class ScopeState(Answer, frozen=True, kw_only=True):
    """The state of one scope: the one set here, and the signer's."""

    state: Annotated[State, words("What workers obey.")]
    signer_state: Annotated[State | None, words("What the signer has; null when it cannot be asked.")]
    set_at: Annotated[Time | None, words("Since when; null when it was never set.")]


class StateOfAll(ScopeState, frozen=True, kw_only=True):
    """The state for everybody."""

    closing: Annotated[
        Closing | None,
        words("Open bids of all users under a global halt, for administrators; null when none is left."),
    ]


class EffectiveState(Answer, frozen=True, kw_only=True):
    """The strictest state that applies, and the widest scope that sets it; `task` is the task itself."""

    state: State
    scope: Scope


class TaskState(ScopeState, frozen=True, kw_only=True):
    """The state of one of the caller's tasks."""

    task_id: int
    effective: EffectiveState
    closing: Going


class Controls(Answer, frozen=True, kw_only=True):
    """Control of bids and listings. Of all states that apply to a task the strictest holds."""

    global_: StateOfAll = field(name="global")
    user: ScopeState
    tasks: Annotated[list[TaskState], words("Every bidding task of the caller, oldest first.")]
    autolist: Annotated[list[TaskState], words("Every auto-list task of the caller, oldest first.")]
    effective: Annotated[EffectiveState, words("What holds for the caller's tasks in general.")]
    halt_file: Annotated[
        bool | None, words("Whether the operator's halt file is there: no bid is signed. Null: not known.")
    ]
    closing: Annotated[Closing | None, words("All of the caller's bids that must go; null when none is left.")]


class ControlsChanged(Controls, frozen=True, kw_only=True):
    """The states after a change."""

    signer_told: Annotated[
        bool, words("False: the signer is away; workers obey all the same, and it is told when it is back.")
    ]


class Subject(NamedTuple):
    """The subject of a state, as the row and the signer identify it."""

    scope: Scope
    row_id: int
    signer_name: str


class Wanted(NamedTuple):
    """A state for a subject, set by the user `by_user` at `at_ms`."""

    subject: Subject
    state: State
    by_user: int
    at_ms: int


class Said(NamedTuple):
    """The signer's states other than `run`, by scope and the signer's name of the subject."""

    states: dict[tuple[str, str], str]
    has_halt_file: bool


class Controlled(SignedIn):
    """The operations on the states that hold bids and listings back."""

    tag = "control"

    @route("GET /api/control", READ, CONTROL, says="The states that apply to me; the strictest holds.")
    async def get_control(self) -> Controls:
        """Whether my bids and listings may be placed

        For everybody, for the caller, and for each task that has a state of its own.
        """
        return await self._shown()

    @route(
        "PUT /api/control",
        CONTROL,
        says="It is stored.",
        body=ControlChange,
        text=f"{_STATES_TEXT} It holds immediately and survives restarts: open bids that must go are cancelled "
        "together, and `closing` counts those that are still there. A stricter state waits for nothing.",
        errors={
            400: INVALID,
            403: "The global state is for admins.",
            404: NOT_YOURS,
            409: "It was changed at the same time; nothing was loosened.",
            429: "Too many states were loosened within a minute; `Retry-After` says when to come back.",
            503: "The signer cannot be told, so nothing was loosened. Or a stricter state is in force, and not yet "
            "stored.",
        },
        names_task=True,
    )
    async def set_control(self) -> ControlsChanged:
        """Stop placing bids, cancel all of them, or go on"""
        change = self._change()
        if change.scope == GLOBAL and not self.is_admin:
            raise ApiError(403, "Only admins may set the global state")
        self.refuse_beyond(ControlChange, change.changes())
        subject = self._subject(change.scope, change.task_id)
        former = state_of(subject)
        state = cast(State, change.state)
        if state == RUN or STATES.index(state) < STATES.index(former):
            told = await self._loosen(subject, state, former)
        else:
            told = await self._tighten(subject, state)
        return ControlsChanged(**structs.asdict(await self._shown()), signer_told=told)

    def _change(self) -> ControlChange:
        """Reads the body. Raises ApiError: 404 for another user's task, before any other fault, and 400."""
        values, faults = shapes.read_fields(ControlChange, self.json_object())
        faults.sort(key=shapes.is_missing)
        scope, task_id = values.get("scope"), values.get("task_id")
        if scope in _TASK_SCOPES and task_id is None and "taskId" not in dict(faults):
            faults.append(("taskId", f"is required with scope {scope}"))
        elif scope in (GLOBAL, USER) and task_id is not None:
            faults.append(("taskId", "is for the scopes task and autolist only"))
        if scope in _TASK_SCOPES and task_id is not None:
            self._refuse_foreign(scope, task_id)
        if faults:
            raise invalid([f"{name}: {text}" for name, text in faults])
        return ControlChange(**values)

    def _refuse_foreign(self, scope: str, task_id: int) -> None:
        kind = BIDDING if scope == TASK else LISTING
        if not 0 < task_id <= MAX_ID or not self.may_name(task_id) or tasks.own(self.user.id, kind, task_id) is None:
            raise not_found()

    def _subject(self, scope: str, task_id: int | UnsetType | None = None) -> Subject:
        if isinstance(task_id, int):
            return _of_task(task_id)
        return Subject("user", self.user.id, self.user.address) if scope == USER else _ALL

    async def _tighten(self, subject: Subject, state: State) -> bool:
        """Tightens a state; returns whether the signer has it. Raises ApiError (503) if the row was not written."""
        wanted = Wanted(subject, state, self.user.id, self.now_ms)
        telling = asyncio.ensure_future(_told_both(self.services, wanted))
        await asyncio.sleep(0)  # lets both calls start in their threads before this one waits for the disk
        try:
            _store(wanted)
        except PeeweeException as error:
            await _without_row(self.services, wanted, telling, error)
        is_signer_told, _ = await telling
        if is_signer_told:
            # Another request may have sent the signer another state meanwhile.
            is_signer_told = await _told("signer", follow(self.services, subject, state))
        return is_signer_told

    async def _loosen(self, subject: Subject, state: State, former: str) -> bool:
        """Loosens a state.

        Raises ApiError: 409 if it was changed meanwhile, 429 after too many by this user, 503 without the signer.
        """
        if former != RUN and (wait_s := self.services.loosened.take(str(self.user.id))):
            raise too_many("Too many changes of control", wait_s, "Nothing was loosened; a stricter state never waits.")
        await self.ask_signer(lambda signer: signer.set_control(subject.scope, subject.signer_name, state))
        is_mine = state_of(subject) == former and self.is_signed_in()
        if is_mine:
            wanted = Wanted(subject, state, self.user.id, self.now_ms)
            self.services.unstored.pop(subject, None)
            _store(wanted)
            await _told("manager", _heeded(self.services, wanted))
        # Another request may have sent the signer the former state meanwhile. A failure leaves that stricter state.
        with contextlib.suppress(SignerError):
            await follow(self.services, subject)
        if not is_mine:
            self.require_signed_in()
            raise ApiError(409, "The state was changed at the same time", message="Nothing was loosened; look again.")
        return True

    async def _shown(self) -> Controls:
        said = await _asked(self.services)
        rows = {(row.scope, row.subject_id): row for row in users.controls_of(self.user.id)}
        me = self._subject(USER)
        going = self.going()
        general = [*_holding(_ALL, rows, said), *_holding(me, rows, said)]
        if said is not None and said.has_halt_file:
            general.append(("reduce", "global"))

        def shown(task: Task) -> TaskState:
            subject = _of_task(task.id)
            return TaskState(
                task_id=task.id,
                **_entry(subject, rows, said),
                effective=_strictest([*general, *_holding(subject, rows, said)]),
                closing=closing_shown(going.get(task.id)),
            )

        return Controls(
            global_=StateOfAll(
                **_entry(_ALL, rows, said), closing=closing_shown(closing_of_all() if self.is_admin else None)
            ),
            user=ScopeState(**_entry(me, rows, said)),
            tasks=[shown(task) for task in tasks.of_user(self.user.id, BIDDING) if self.may_name(task.id)],
            autolist=[shown(task) for task in tasks.of_user(self.user.id, LISTING) if self.may_name(task.id)],
            effective=_strictest(general),
            halt_file=None if said is None else said.has_halt_file,
            closing=closing_shown(total(going.values())),
        )


_ALL = Subject("global", EVERYBODY, "")
Rows = dict[tuple[str, int], Control]


def _of_task(task_id: int) -> Subject:
    return Subject("task", task_id, str(task_id))


def state_of(subject: Subject) -> State:
    """Returns the current state in the subject's row."""
    row = Control.get_or_none(Control.scope == subject.scope, Control.subject_id == subject.row_id)
    return "run" if row is None else cast(State, row.state)


async def follow(services: Services, subject: Subject, sent: State | None = None) -> None:
    """Sends the row's state to the signer, and again if the row changed meanwhile. Raises SignerError.

    `sent` is the state that the signer has already.
    """
    while sent != (state := state_of(subject)):
        await _tell(services, subject, state)
        sent = state


async def _tell(services: Services, subject: Subject, state: State) -> None:
    await services.brakes(lambda signer: signer.set_control(subject.scope, subject.signer_name, state))


def _store(wanted: Wanted) -> None:
    users.put_control(wanted.subject.scope, wanted.subject.row_id, wanted.state, wanted.by_user, wanted.at_ms)


async def _heeded(services: Services, wanted: Wanted) -> None:
    subject = wanted.subject
    await services.manager.heed(subject.scope, subject.row_id, wanted.by_user, wanted.state, wanted.at_ms)


async def _told(whom: str, telling: Awaitable[None]) -> bool:
    """Waits until a peer has received a state; logs a failure and returns False."""
    try:
        await telling
    except (SignerError, PeerError) as error:
        log.warning("failed to send a control state to the %s: %s", whom, error)
        return False
    return True


async def _told_both(services: Services, wanted: Wanted) -> tuple[bool, bool]:
    """Sends a state to signer and manager; returns whether each received it."""
    subject, state = wanted.subject, wanted.state
    return await asyncio.gather(
        _told("signer", _tell(services, subject, state)), _told("manager", _heeded(services, wanted))
    )


async def _without_row(
    services: Services, wanted: Wanted, telling: Awaitable[tuple[bool, bool]], error: Exception
) -> NoReturn:
    """Remembers a stricter state whose row cannot be written, so that it is stored later. Raises ApiError (503)."""
    log.error("%s on %s is not stored yet: %s", wanted.state, wanted.subject.scope, error)
    services.unstored[wanted.subject] = wanted
    is_signer_told, is_manager_told = await telling
    if not (is_signer_told or is_manager_told):
        message = "Neither database nor signer nor manager took it; it is tried again."
        raise ApiError(503, "Not in force", message=message) from error
    means = "Nothing new is signed" if is_signer_told else "The signer does not have it"
    means += ", and open bids are being cancelled." if is_manager_told else "; the manager does not have it."
    raise ApiError(503, NOT_STORED, message=f"{means} It is stored when there is room.") from error


async def halt_instead(services: Services, task: Task, at_ms: int, error: Exception) -> NoReturn:
    """Halts a task whose stop cannot be stored, so that its bids are still cancelled. Raises ApiError (503)."""
    wanted = Wanted(_of_task(task.id), "halt", task.user_id, at_ms)
    try:
        await _without_row(services, wanted, _told_both(services, wanted), error)
    except ApiError as refusal:
        then = "It is halted instead: stop it again when there is room, and set its brake to run before its next start."
        raise ApiError(503, refusal.error, message=f"{refusal.message} {then}") from error


async def heed_limits(services: Services, user_id: int, at_ms: int) -> None:
    """Wakes the workers of a user whose limits may have become stricter."""
    await _told("manager", services.manager.heed(USER, user_id, user_id, None, at_ms))


async def store_again(services: Services) -> None:
    """Writes the rows of states that could not be stored when they were set, unless a newer state has a row.

    While a row cannot be written, its state is sent again to signer and manager, in case they did not receive it.
    """
    for wanted in list(services.unstored.values()):
        scope, row_id = wanted.subject.scope, wanted.subject.row_id
        row = Control.get_or_none(Control.scope == scope, Control.subject_id == row_id)
        try:
            if row is None or row.set_ms <= wanted.at_ms:
                _store(wanted)
                log.info("%s on %s is stored by now", wanted.state, scope)
            services.unstored.pop(wanted.subject, None)
        except PeeweeException as error:
            log.warning("%s on %s is not stored yet: %s", wanted.state, scope, error)
            await _told_both(services, wanted)


async def remind_signer(services: Services) -> None:
    """Sends the signer each row that is stricter than its own state, in case it missed the change or lost its file."""
    strict = [subject for row in Control.select().where(Control.state != RUN) if (subject := _subject_of(row))]
    said = await _asked(services) if strict else None
    if said is None:
        return
    for subject in strict:
        known = said.states.get((subject.scope, subject.signer_name), RUN)
        if STATES.index(known) < STATES.index(state_of(subject)):
            with contextlib.suppress(SignerError):
                await follow(services, subject)
                log.info("sent the control state of %s %s to the signer again", subject.scope, subject.row_id)


def _subject_of(row: Control) -> Subject | None:
    if row.scope == GLOBAL:
        return _ALL
    if row.scope == TASK:
        return _of_task(row.subject_id)
    user = User.get_or_none(User.id == row.subject_id)
    return None if user is None else Subject("user", user.id, user.address)


async def _asked(services: Services) -> Said | None:
    """Returns the signer's states; None if the signer does not respond, so that they are unknown."""
    try:
        found = await services.signer(lambda signer: signer.controls())
    except SignerError:
        return None
    return Said({(each.scope, each.subject): each.state for each in found.states}, found.has_halt_file)


def _held(subject: Subject, rows: Rows, said: Said | None) -> tuple[State, State | None]:
    """Returns the row's state and the signer's."""
    row = rows.get((subject.scope, subject.row_id))
    signer = None if said is None else said.states.get((subject.scope, subject.signer_name), RUN)
    return "run" if row is None else cast(State, row.state), cast("State | None", signer)


def _holding(subject: Subject, rows: Rows, said: Said | None) -> list[tuple[State, Scope]]:
    """Returns the known (state, scope) of the subject."""
    return [(state, subject.scope) for state in _held(subject, rows, said) if state is not None]


def _entry(subject: Subject, rows: Rows, said: Said | None) -> dict[str, Any]:
    """Returns the fields of ScopeState."""
    state, signer = _held(subject, rows, said)
    row = rows.get((subject.scope, subject.row_id))
    return {"state": state, "signer_state": signer, "set_at": None if row is None else iso(row.set_ms)}


def _strictest(found: Iterable[tuple[State, Scope]]) -> EffectiveState:
    state, scope = max(found, key=lambda each: (STATES.index(each[0]), -SCOPES.index(each[1])))
    return EffectiveState(state=state, scope=scope)
