"""The statements about tasks that managers, gateways and workers ask again and again."""

from __future__ import annotations

from functools import cache

from models.database.base import Statement, columns, insertion
from models.tasks.table import Task
from models.users import User

_OF_USER = "user_id = :user AND kind = :kind AND deleted_ms IS NULL"
_WITH_OWNER = (
    f"SELECT {columns(Task, 't')}, {columns(User, 'u')} FROM tasks AS t INNER JOIN users AS u ON t.user_id = u.id"
)

OWN = Statement(f"SELECT {columns(Task)} FROM tasks WHERE id = :id AND {_OF_USER}")
COUNT = Statement(f"SELECT COUNT(1) FROM tasks WHERE {_OF_USER}")
STORED = [field for field in Task._meta.sorted_fields if field is not Task.id]
INSERT = Statement(f"{insertion(Task)} $returning_id")
CHANGE_BIDDING = Statement(
    """
    UPDATE tasks SET config = :config, revision = revision + 1, type = :type, slug = :slug, slug_key = :slug_key,
        budget_id = :budget
    WHERE id = :id AND revision = :revision
    """
)

TOKEN = Statement("SELECT token FROM tasks WHERE id = :id")
RAISE_TOKEN = Statement("UPDATE tasks SET token = $larger(token + 1, :least) WHERE id = :id RETURNING token")
OVERTAKE = Statement("UPDATE tasks SET token = :new WHERE id = :id AND token = :token")
OUTLINE = Statement("SELECT kind, venue, COALESCE(slug, inscription_id), user_id, token FROM tasks WHERE id = :id")
STANDING = Statement("SELECT kind, desired, deleted_ms, token FROM tasks WHERE id = :id")
OBSERVED = Statement("SELECT observed, user_id, kind, desired, error_cycles, last_error FROM tasks WHERE id = :id")
WITH_OWNER = Statement(f"{_WITH_OWNER} WHERE t.id = :id")
UNDER_TOKEN = Statement(f"{_WITH_OWNER} WHERE t.id = :id AND t.token = :token")
TROUBLES = Statement("SELECT user_id, error_cycles, told FROM tasks WHERE id = :id AND token = :token")
SHOW_CYCLE = Statement(
    """
    UPDATE tasks SET cycles = cycles + 1, memory = :memory, error_cycles = :error_cycles, told = :told,
        last_cycle_ms = :last_cycle_ms, last_cycle_action = :last_cycle_action, last_error = :last_error,
        last_error_code = :last_error_code, last_error_params = :last_error_params
    WHERE id = :id AND token = :token
    """
)
FORGET_CYCLES = Statement("DELETE FROM cycles WHERE task_id = :task_id")


@cache
def observing(facts: tuple[str, ...]) -> Statement:
    """Prepares the update of `observed` and these columns."""
    changes = ", ".join(f"{name} = :{name}" for name in ("observed", *facts))
    return Statement(f"UPDATE tasks SET {changes} WHERE id = :id")
