"""The past of one task in columns of numbers, for charts: a day by minutes, a year by hours."""

from __future__ import annotations

from collections.abc import Sequence

from models.tasks.samples import HOUR, KEPT_MINUTES, MINUTE, Sample, joined_columns
from models.tasks.table import BIDDING, LISTING
from server.http import json_out
from server.http.api_errors import invalid
from server.http.json_out import Raw
from server.http.query import Query
from server.task_handler import TaskHandler

STEPS = {"minute": MINUTE, "hour": HOUR}
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
# The columns of an answer and the fields of Sample that they show.
BID_COLUMNS = {
    "floor": "floor",
    "reference": "reference",
    "bestBid": "best_bid",
    "ownTop": "own_top",
    "ownLow": "own_low",
    "open": "open_count",
    "exposure": "exposure_sats",
}
LISTING_COLUMNS = {"floor": "floor", "price": "own_top", "guard": "guard_sats"}


class TaskSeriesHandler(TaskHandler):
    """GET /api/tasks/:id/series"""

    takes_query = True
    kind = BIDDING
    columns = BID_COLUMNS

    async def get(self, task_id: str) -> None:
        """Answers the samples of a span. Raises ApiError: 404 or 400."""
        task = self.task(task_id)
        query = Query(self, "from", "to", "step")
        from_ms, to_ms, named = query.time_ms("from"), query.time_ms("to"), query.choice("step", [*STEPS])
        query.refuse_faults()
        to_ms = self.now_ms + _MINUTE_MS if to_ms is None else to_ms
        from_ms = to_ms - _DAY_MS if from_ms is None else from_ms
        if from_ms >= to_ms:
            raise invalid(["from: must be before to"])
        step = STEPS[named] if named else self._finest(from_ms)
        async with self.long_answer():
            found = await self.in_turn(lambda: joined_columns(task.id, step, from_ms, to_ms))
            self.require_signed_in()
            self.answer(_as_json(found, "minute" if step == MINUTE else "hour", self.columns))

    def _finest(self, from_ms: int) -> int:
        """Returns the finest step that is kept back to `from_ms`."""
        return MINUTE if from_ms >= self.now_ms - (KEPT_MINUTES[MINUTE] + 1) * _MINUTE_MS else HOUR


class AutolistTaskSeriesHandler(TaskSeriesHandler):
    """GET /api/autolist/:id/series"""

    kind = LISTING
    columns = LISTING_COLUMNS


def _as_json(found: Sequence[str], step: str, columns: dict[str, str]) -> Raw:
    """Writes the columns, whose values are in digits already."""
    texts = {"time": found[0]} | {name: found[1 + Sample._fields.index(field)] for name, field in columns.items()}
    shown = "".join(f', "{name}": [{text}]' for name, text in texts.items())
    return Raw(f'{{"step": {json_out.text(step)}{shown}}}')
