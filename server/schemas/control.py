"""Control of bids and listings: the caller's request and its answer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from models.controls import GLOBAL, SCOPES, STATES, TASK, USER
from server.http.bodies import Beyond, Body, one_of, or_null, read, whole
from server.schemas.answers import Answer, Closing, Going

State = Literal["run", "reduce", "halt"]
AUTOLIST = "autolist"
TASK_SCOPES = (TASK, AUTOLIST)
STATE_TEXT = "run places bids and listings, reduce only cancels, halt cancels every bid."


def _required(schema: dict[str, Any]) -> None:
    for name in ("scope", "state", "taskId"):
        schema["properties"][name].pop("default", None)
    schema["required"] = ["scope", "state"]


class ControlChange(Body):
    """A state for everybody (`global`, for admins), for the caller (`user`) or for one of the caller's tasks.

    Scope `task` is a bidding task, `autolist` an auto-list task; `taskId` is its id.
    """

    model_config = ConfigDict(json_schema_extra=_required)

    scope: Annotated[str, one_of((*SCOPES, AUTOLIST)), Beyond("holds other tasks as well", (GLOBAL, USER))] = ""
    task_id: Annotated[
        int | None, or_null(whole, int), Field(description="With scope `task` or `autolist`, and only then.")
    ] = None
    state: Annotated[str, one_of(STATES), Field(description=STATE_TEXT)] = ""


def read_change(given: dict[str, Any]) -> tuple[ControlChange, list[str]]:
    """Reads the change from `given` (a JSON object), and all its faults as details."""
    change, faults = read(ControlChange, given)
    named = {name for name, _ in faults}
    faults += [(name, "is required") for name in ("scope", "state") if name not in given and name not in named]
    if change.scope in TASK_SCOPES and change.task_id is None and "taskId" not in named:
        faults.append(("taskId", f"is required with scope {change.scope}"))
    elif change.scope in (GLOBAL, USER) and change.task_id is not None:
        faults.append(("taskId", "is for the scopes task and autolist only"))
    return change, [f"{name}: {text}" for name, text in faults]


class ScopeState(Answer):
    """The state of one scope: the one set here, and the signer's."""

    state: Annotated[State, Field(description="What workers obey.")]
    signer_state: Annotated[State | None, Field(description="What the signer has; null when it cannot be asked.")]
    set_at: Annotated[datetime | None, Field(description="Since when; null when it was never set.")]


class GlobalState(ScopeState):
    """The state for everybody."""

    closing: Annotated[
        Closing | None,
        Field(description="Open bids of all users under a global halt, for administrators; null when none is left."),
    ]


class EffectiveState(Answer):
    """The strictest state that applies, and the widest scope that sets it; `task` is the task itself."""

    state: State
    scope: Literal["global", "user", "task"]


class TaskState(ScopeState):
    """The state of one of the caller's tasks."""

    task_id: int
    effective: EffectiveState
    closing: Going


class Controls(Answer):
    """Control of bids and listings. Of all states that apply to a task the strictest holds."""

    # Named as in the answer: `global` is no name for a field of a class.
    model_config = ConfigDict(serialize_by_alias=True)

    global_: Annotated[GlobalState, Field(alias="global")]
    user: ScopeState
    tasks: Annotated[list[TaskState], Field(description="Every bidding task of the caller, oldest first.")]
    autolist: Annotated[list[TaskState], Field(description="Every auto-list task of the caller, oldest first.")]
    effective: Annotated[EffectiveState, Field(description="What holds for the caller's tasks in general.")]
    halt_file: Annotated[
        bool | None, Field(description="Whether the operator's halt file is there: no bid is signed. Null: not known.")
    ]
    closing: Annotated[
        Closing | None, Field(description="All of the caller's bids that must go; null when none is left.")
    ]


class ControlsChanged(Controls):
    """The states after a change."""

    signer_told: Annotated[
        bool, Field(description="False: the signer is away; workers obey all the same, and it is told when it is back.")
    ]
