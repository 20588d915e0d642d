"""The requests that the manager and the hooks program answer, each with its answer (see core/call.py)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from core.call import Request, Shape
from core.fields import MAX_ID, Count, Id, Ms, text_of, within, words

Scope = Literal["global", "user", "task"]
State = Literal["run", "reduce", "halt"]
LONGEST_DRAIN_S = 60
MOST_LOG_LINES = 1000


class Readiness(Shape, frozen=True):
    state: Annotated[str, words("`ready`, or why the program cannot act.")]


class Ping(Request[Readiness], frozen=True, tag="ping"):
    """Asks a manager whether it can start workers."""


class Settled(Shape, frozen=True):
    """The manager's final observation. `open_orders` counts bids and listings to be closed or left open on purpose."""

    observed: Literal["running", "stopped"]
    open_orders: Count


class Settle(Request[Settled], frozen=True, tag="settle"):
    """Starts or stops a task's worker as the task's row demands.

    The manager answers when the worker holds its lock; or when it has exited and its open orders are closed, at most
    `drain_s` seconds after the exit. A listing is awaited only if its task is deleted. Codes of a refusal:
    signer_unavailable, signer_locked, gateway_unavailable, start_failed, stop_failed, not_entitled, too_many_workers,
    database_damaged, unknown_task, stopping.
    """

    task: Id
    drain_s: Annotated[float, Meta(ge=0, le=LONGEST_DRAIN_S)] = 0


class LogLines(Shape, frozen=True):
    lines: tuple[str, ...]


class ReadLog(Request[LogLines], frozen=True, tag="log"):
    """Reads the end of a task's log, for a server on another machine."""

    task: Id
    lines: Annotated[int, within(1, MOST_LOG_LINES)]


class TaskCounts(Shape, frozen=True):
    observed: dict[str, Count]  # by observed state
    workers: Count


class CountTasks(Request[TaskCounts], frozen=True, tag="status"):
    """Counts a manager's tasks and workers."""


class Stopped(Shape, frozen=True):
    stopped: Count


class Enforce(Request[Stopped], frozen=True, tag="entitlements"):
    """Stops all tasks of users who may no longer trade, after a change of a plan or the whitelist.

    The manager answers when these tasks may place nothing any more and their workers have ended. Without this request
    it finds the change itself within seconds.
    """


class Heed(Request[None], frozen=True, tag="heed"):
    """Applies a control state. If `state` is None, another limit of the scope's tasks has become stricter.

    The answer is immediate, and the affected bids are cancelled afterwards (workers/manager/brakes.py).
    """

    scope: Scope
    subject: Annotated[int, within(0, MAX_ID)]
    state: State | None
    at_ms: Ms


class Standing(Shape, frozen=True):
    """A lease's version, and for how many seconds it has not changed."""

    version: str
    stood_s: Annotated[float, Meta(ge=0)]


class AskStanding(Request[Standing | None], frozen=True, tag="stood"):
    """Asks for how long a lease has not changed, for a manager on another machine; None if that is unknown."""

    lease: Annotated[str, text_of(1, 100)]


class DeliveryCounts(Shape, frozen=True):
    waiting: Count
    sent: Count
    dead: Count


class HooksReadiness(Shape, frozen=True):
    state: Literal["ready"]
    deliveries: DeliveryCounts


class PingHooks(Request[HooksReadiness], frozen=True, tag="ping"):
    """Asks the hooks program whether it answers."""
