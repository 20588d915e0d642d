"""The task of a worker as of now, and the config in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from strategy.bid_config import Problem
from strategy.fault_codes import FaultCode
from workers.context import BadConfig, Context

Config = TypeVar("Config")


def wanted_task(context: Context) -> Task | None:
    """Returns the worker's task; None when it is no longer wanted or another worker has taken over."""
    task = tasks.under_token(context.task_id, context.token)
    return None if task is None or task.desired != RUNNING or task.deleted_ms is not None else task


def config_of(task: Task, loads: Callable[[str], Config], problems: Callable[[Config], Iterable[Problem]]) -> Config:
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
