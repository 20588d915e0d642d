"""Control of bids and listings: for all, for the caller, for one of their tasks. The strictest state holds.

Workers obey the row from their next cycle on. The signer has states of its own and signs no bid that one of them
forbids, whatever a worker believes. To tighten, the row is written first: that works while the signer is away, which is
told when it is back. To loosen, the signer is told first and the row is written last: after any failure in between the
stricter state is left.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from typing import NamedTuple, cast

from models import controls
from models.controls import EVERYBODY, GLOBAL, REDUCE, RUN, SCOPES, STATES, TASK, USER, Control
from models.tasks import tasks
from models.tasks.table import BIDDING, LISTING, Task
from models.users import User
from server.http import json_out
from server.http.api_errors import ApiError, invalid, not_found, too_many
from server.http.base import MAX_ID, SignedIn
from server.http.services import Services
from server.schemas.control import TASK_SCOPES, read_change
from wallet.protocol import Scope, State
from wallet.signer_client import SignerError

REMIND_S = 30.0

log = logging.getLogger(__name__)


class Subject(NamedTuple):
    """The subject of a state, in the row's form and in the signer's."""

    scope: Scope
    row_id: int
    signer_name: str


class Said(NamedTuple):
    """The signer's states that are not `run`, by scope and its name of the subject."""

    states: dict[tuple[str, str], str]
    has_halt_file: bool


class ControlHandler(SignedIn):
    """GET and PUT /api/control"""

    async def get(self) -> None:
        self.answer(await self._shown())

    async def put(self) -> None:
        given = self.json_object()
        change, details = read_change(given)
        if change.scope in TASK_SCOPES and change.task_id is not None:
            self._refuse_foreign(change.scope, change.task_id)
        if details:
            raise invalid(details)
        if change.scope == GLOBAL and not self.is_admin:
            raise ApiError(403, "Only admins may set the global state")
        token = self.caller.api_token
        if change.scope == USER and token is not None and token.task_id is not None:
            raise ApiError(403, "Not allowed to this token", message="It is for one task only.")
        subject = self._subject(change.scope, change.task_id)
        state = cast(State, change.state)
        former = state_of(subject)
        if state == RUN or STATES.index(state) < STATES.index(former):
            told = await self._loosen(subject, state, former)
        else:
            told = await self._tighten(subject, state)
        self.answer(await self._shown() | {"signerTold": told})

    def _refuse_foreign(self, scope: str, task_id: int) -> None:
        kind = BIDDING if scope == TASK else LISTING
        if not 0 < task_id <= MAX_ID or not self.may_name(task_id) or tasks.own(self.user.id, kind, task_id) is None:
            raise not_found()

    def _subject(self, scope: str, task_id: int | None) -> Subject:
        if scope in TASK_SCOPES and task_id is not None:
            return _of_task(task_id)
        return Subject("user", self.user.id, self.user.address) if scope == USER else _ALL

    async def _tighten(self, subject: Subject, state: State) -> bool:
        controls.put(subject.scope, subject.row_id, state, self.user.id, self.now_ms)
        try:
            await follow(self.services, subject)
        except SignerError as error:
            log.warning("failed to tell the signer of %s on %s: %s", state, subject.scope, error)
            return False
        return True

    async def _loosen(self, subject: Subject, state: State, former: str) -> bool:
        """Loosens a state. Raises ApiError: 409 when it was changed meanwhile, 429 after too many by this user, 503
        when the signer cannot be told.
        """
        if former != RUN and (wait_s := self.services.loosened.take(str(self.user.id))):
            raise too_many("Too many changes of control", wait_s, "Nothing was loosened; a stricter state never waits.")
        await self.ask_signer(lambda signer: signer.set_control(subject.scope, subject.signer_name, state))
        is_mine = state_of(subject) == former and self.is_signed_in()
        if is_mine:
            controls.put(subject.scope, subject.row_id, state, self.user.id, self.now_ms)
        # Another request may have told it the former state meanwhile. A failure leaves it as strict as that.
        with contextlib.suppress(SignerError):
            await follow(self.services, subject)
        if not is_mine:
            self.require_signed_in()
            raise ApiError(409, "The state was changed at the same time", message="Nothing was loosened; look again.")
        return True

    async def _shown(self) -> dict[str, object]:
        said = await _asked(self.services)
        rows = {(row.scope, row.subject_id): row for row in controls.all_of(self.user.id)}
        me = self._subject(USER, None)
        general = [*_holding(_ALL, rows, said), *_holding(me, rows, said)]
        if said is not None and said.has_halt_file:
            general.append((REDUCE, GLOBAL))

        def shown(task: Task) -> dict[str, object]:
            subject = _of_task(task.id)
            effective = _strictest([*general, *_holding(subject, rows, said)])
            return {"taskId": task.id, **_entry(subject, rows, said), "effective": effective}

        return {
            "global": _entry(_ALL, rows, said),
            "user": _entry(me, rows, said),
            "tasks": [shown(task) for task in tasks.of_user(self.user.id, BIDDING) if self.may_name(task.id)],
            "autolist": [shown(task) for task in tasks.of_user(self.user.id, LISTING) if self.may_name(task.id)],
            "effective": _strictest(general),
            "haltFile": None if said is None else said.has_halt_file,
        }


_ALL = Subject("global", EVERYBODY, "")
Rows = dict[tuple[str, int], Control]


def _of_task(task_id: int) -> Subject:
    return Subject("task", task_id, str(task_id))


def state_of(subject: Subject) -> State:
    """Returns the state in the subject's row at this moment."""
    row = Control.get_or_none(Control.scope == subject.scope, Control.subject_id == subject.row_id)
    return "run" if row is None else cast(State, row.state)


async def follow(services: Services, subject: Subject) -> None:
    """Tells the signer the row's state, until the row still says the same afterwards. Raises SignerError."""
    told = None
    while told != (state := state_of(subject)):
        await _tell(services, subject, state)
        told = state


async def _tell(services: Services, subject: Subject, state: State) -> None:
    await services.signer(lambda signer: signer.set_control(subject.scope, subject.signer_name, state))


async def remind_signer(services: Services) -> None:
    """Tells the signer every row that is stricter than its own state: it was away, or has lost its file."""
    strict = [subject for row in Control.select().where(Control.state != RUN) if (subject := _subject_of(row))]
    said = await _asked(services) if strict else None
    if said is None:
        return
    for subject in strict:
        known = said.states.get((subject.scope, subject.signer_name), RUN)
        if STATES.index(known) < STATES.index(state_of(subject)):
            with contextlib.suppress(SignerError):
                await follow(services, subject)
                log.info("the signer was told again of %s on %s", subject.scope, subject.row_id)


def _subject_of(row: Control) -> Subject | None:
    if row.scope == GLOBAL:
        return _ALL
    if row.scope == TASK:
        return _of_task(row.subject_id)
    user = User.get_or_none(User.id == row.subject_id)
    return None if user is None else Subject("user", user.id, user.address)


async def _asked(services: Services) -> Said | None:
    """Returns the signer's states; None when it cannot be asked, which proves nothing about them."""
    try:
        found = await services.signer(lambda signer: signer.controls())
    except SignerError:
        return None
    return Said({(each.scope, each.subject): each.state for each in found.states}, found.has_halt_file)


def _held(subject: Subject, rows: Rows, said: Said | None) -> tuple[str, str | None]:
    """Returns the row's state and the signer's."""
    row = rows.get((subject.scope, subject.row_id))
    signer = None if said is None else said.states.get((subject.scope, subject.signer_name), RUN)
    return RUN if row is None else row.state, signer


def _holding(subject: Subject, rows: Rows, said: Said | None) -> list[tuple[str, str]]:
    """Returns the known (state, scope) of the subject."""
    return [(state, subject.scope) for state in _held(subject, rows, said) if state is not None]


def _entry(subject: Subject, rows: Rows, said: Said | None) -> dict[str, object]:
    state, signer = _held(subject, rows, said)
    row = rows.get((subject.scope, subject.row_id))
    return {"state": state, "signerState": signer, "setAt": None if row is None else json_out.iso(row.set_ms)}


def _strictest(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    state, scope = max(found, key=lambda each: (STATES.index(each[0]), -SCOPES.index(each[1])))
    return {"state": state, "scope": scope}
