"""Troubles of a task: its last error as a code, an error that stays, its end, and conditions that begin to hold.

Errors are counted in cycles, and in tries to start a worker, in a row: one bad cycle is no news. A condition is told
when it begins to hold, and at most once an hour. All of it is in the task's row, so restarts tell nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from models import outbox
from models.outbox import ERROR, QUOTA, RECOVERED
from strategy.reasons import FaultCode

Coded = tuple[str, Mapping[str, Any]]  # a code of FaultCode, and the values in its words
START_REFUSED: Coded = (FaultCode.START_REFUSED, {})
START_FAILED: Coded = (FaultCode.START_FAILED, {})
NOT_ENTITLED: Coded = (FaultCode.NOT_ENTITLED, {})
DATABASE_DAMAGED: Coded = (FaultCode.DATABASE_DAMAGED, {})
CANNOT_CANCEL: Coded = (FaultCode.CANNOT_CANCEL, {})
WORKER_ENDED: Coded = (FaultCode.WORKER_ENDED, {})
GIVEN_UP: Coded = (FaultCode.GIVEN_UP, {})


def stored_fault(text: str | None, fault: Coded | None) -> tuple[str | None, str | None]:
    """Returns the columns of an error: `other` for words without a code, nothing without words.

    Raises ValueError for a code that is not in the list.
    """
    if text is None:
        return None, None
    code, params = fault or (FaultCode.OTHER, {})
    return FaultCode(code).value, json.dumps(params, separators=(",", ":"))


def error_columns(text: str | None, fault: Coded | None = None) -> dict[str, str | None]:
    """Returns all columns of an error by their names."""
    code, params = stored_fault(text, fault)
    return {"last_error": text, "last_error_code": code, "last_error_params": params}


TOLD_AFTER = 3  # cycles in a row
AGAIN_MS = 3_600_000
_DAY_MS = 86_400_000

Conditions = Mapping[str, Mapping[str, Any]]  # those that hold now, with the data of their events


def counted(task_id: int, user_id: int, before: int, error: str | None, now_ms: int) -> int:
    """Counts one more cycle with or without an error, tells what that means, and returns the new count."""
    if error is None:
        if before >= TOLD_AFTER:
            outbox.tell(RECOVERED, user_id, task_id, now_ms, {"cycles": before})
        return 0
    if before + 1 == TOLD_AFTER:
        outbox.tell(ERROR, user_id, task_id, now_ms, {"error": error, "cycles": TOLD_AFTER})
    return before + 1


def with_conditions(task_id: int, user_id: int, told: str, conditions: Conditions, now_ms: int) -> str:
    """Tells the conditions that begin to hold, and returns the new text of the row's `told`."""
    if not told and not conditions:
        return told
    before = {name: (stands == "+", int(ms)) for name, stands, ms in (each.split(":") for each in told.split())}
    after = []
    for name in sorted({*before, *conditions}):
        stood, told_ms = before.get(name, (False, -AGAIN_MS))
        is_recent = 0 <= now_ms - told_ms < AGAIN_MS
        if name in conditions:
            if not stood and not is_recent:
                told_ms, data = now_ms, conditions[name]
                if name == QUOTA:  # the key's matter, not the task's: once a day for all of the user's tasks
                    outbox.tell(name, user_id, None, now_ms, data, fact=f"quota:{data['venue']}:{now_ms // _DAY_MS}")
                else:
                    outbox.tell(name, user_id, task_id, now_ms, data)
            after.append(f"{name}:+:{told_ms}")
        elif is_recent:
            after.append(f"{name}:-:{told_ms}")
    return " ".join(after)
