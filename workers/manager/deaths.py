"""A worker's unasked end: the task's row says why, and the back-off when it starts again."""

from __future__ import annotations

import logging

from models.ledger import closing
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from models.tasks.troubles import GIVEN_UP, WORKER_ENDED, error_columns
from workers.exits import EXIT_STOPPED, Sequel, judge
from workers.manager.child import Child
from workers.manager.restarts import MAX_DEATHS, Restarts

log = logging.getLogger(__name__)

SUPERSEDED_REST_S = 1.0


def record_death(child: Child, restarts: Restarts, task_id: int, now: float, now_ms: int) -> None:
    """Writes down the end of `child` and counts it in `restarts`; `now` is monotonic."""
    row = tasks.with_owner(task_id)
    if row is None or child.exit_status is None:
        return
    if row.cycles > child.cycles_before:
        restarts.forgive()
    if child.kind == "drain":
        _record_drain_death(child.exit_status, restarts, task_id, now)
    elif row.desired != RUNNING or row.deleted_ms is not None:
        # Not `stopped` yet: its writes on the wire are waited for first (Step.SETTLE).
        tasks.observe(task_id, row.observed, now_ms, pid=None, exit_status=judge(child.exit_status).text)
    else:
        _record_worker_death(row, child, child.exit_status, restarts, now, now_ms)


def _record_drain_death(status: int, restarts: Restarts, task_id: int, now: float) -> None:
    """Notes a drain's end: done, or it starts again as long as orders are open, and is never given up on."""
    if status == EXIT_STOPPED and not closing.count_open(task_id):
        restarts.forgive()
        return
    delay = restarts.rest(now)
    log.warning("task %d: drain worker %s; again in %.1f s", task_id, judge(status).text, delay)


def _record_worker_death(row: Task, child: Child, status: int, restarts: Restarts, now: float, now_ms: int) -> None:
    end = judge(status)
    facts: dict[str, object] = {"pid": None, "exit_status": end.text, "restarts": row.restarts + 1}
    if child.was_hung:
        restarts.rest(now)
        facts |= error_columns("the worker hung and was ended; it is started again", WORKER_ENDED)
    elif end.sequel is Sequel.GIVE_UP:
        if row.last_error is None:
            facts |= error_columns(f"the worker {end.text}", GIVEN_UP)
        _give_up(row, now_ms, facts)
        return
    elif end.sequel is Sequel.RESTART_SOON:
        restarts.rest_for(now, SUPERSEDED_REST_S)
    elif restarts.died(now):
        text = f"the worker died {MAX_DEATHS} times in 10 minutes without finishing a cycle; at last it {end.text}"
        _give_up(row, now_ms, facts | error_columns(text, GIVEN_UP))
        return
    else:
        facts |= error_columns(f"the worker {end.text}; it is started again", WORKER_ENDED)
    tasks.observe(row.id, "backoff", now_ms, **facts)
    log.warning("task %d: the worker %s; again in %.1f s", row.id, end.text, restarts.not_before - now)


def _give_up(row: Task, now_ms: int, facts: dict[str, object]) -> None:
    tasks.observe(row.id, "crashed", now_ms, **facts)
    log.error("task %d: crashed: %s", row.id, facts.get("last_error", row.last_error))
