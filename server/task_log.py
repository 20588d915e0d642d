"""A task's record for its owner: the end of its log, and its newest cycles."""

from __future__ import annotations

import logging
import re

from pydantic.alias_generators import to_camel

from core.errors import PeerError
from models.tasks.cycles import KEPT, Cycle, cycles_of
from models.tasks.table import BIDDING
from server.http import json_out
from server.http.api_errors import ApiError, invalid
from server.http.base import SignedIn
from server.http.json_out import Raw
from server.task_handler import TaskHandler

MOST_LINES = 1000
DEFAULT_LINES = 200
DEFAULT_CYCLES = 50
_CYCLES_AT_ONCE = 10  # each may have details of a hundred rungs

# A key with an underscore. A quote after a backslash is part of a text, and only a key is followed by a colon.
_SNAKE_KEY = re.compile(r'(?<!\\)"([a-z0-9]+(?:_[a-z0-9]+)+)"(?=\s*:)')

log = logging.getLogger(__name__)


class TaskLogHandler(TaskHandler):
    """GET /api/tasks/:id/log"""

    takes_query = True
    kind = BIDDING

    async def get(self, task_id: str) -> None:
        """Answers the end of the task's log. Raises ApiError: 404, 400, or 503 when it cannot be read."""
        task = self.task(task_id)
        most = count_in(self, "lines", DEFAULT_LINES, MOST_LINES)
        try:
            lines = await self.services.manager.log(self.user.id, task.id, most)
        except OSError as error:
            log.error("failed to read the log of task %d: %s", task.id, error.strerror)
            raise ApiError(503, "The log cannot be read") from error
        except PeerError as error:
            raise ApiError(503, "The log cannot be read", message=error.message) from error
        self.require_signed_in()
        self.answer({"lines": lines})


class TaskCyclesHandler(TaskHandler):
    """GET /api/tasks/:id/cycles"""

    takes_query = True
    kind = BIDDING

    async def get(self, task_id: str) -> None:
        """Answers the task's newest cycles. Raises ApiError: 404 or 400."""
        task = self.task(task_id)
        most = count_in(self, "limit", DEFAULT_CYCLES, KEPT)
        async with self.long_answer():
            found = await self.in_turn(lambda: cycles_of(task.id, most))
            shown = await self.in_turns(found, _as_json, _CYCLES_AT_ONCE)
            self.require_signed_in()
            self.answer(shown)


def count_in(handler: SignedIn, name: str, default: int, most: int) -> int:
    """Reads the query's parameter `name`, from 1 to `most`. Raises ApiError (400)."""
    text = handler.query(name).get(name, str(default))
    if text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most:
        return int(text)
    raise invalid([f"{name}: must be a whole number from 1 to {most}"])


def _as_json(cycle: Cycle) -> dict[str, object]:
    return {
        "time": json_out.seconds(cycle.time_ms),
        "action": cycle.action,
        "error": cycle.error,
        "detail": camel_keys(cycle.detail),
    }


def camel_keys(text: str) -> Raw:
    """Returns JSON text with its snake_case keys in camelCase; values stay as they are. Not decoded, for details are
    large.
    """
    return Raw(_SNAKE_KEY.sub(lambda key: f'"{to_camel(key[1])}"', text))
