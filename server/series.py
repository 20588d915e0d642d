"""The past of one task in columns of numbers, for charts: a day by minutes, a year by hours."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, field

from core.fields import Price, words
from models.api_tokens import READ
from models.tasks.samples import HOUR, KEPT_MINUTES, MINUTE, Sample, joined_columns
from models.tasks.table import BIDDING, LISTING, Task
from server.http.answers import INVALID, NOT_YOURS, TOO_MANY_LONG_READS
from server.http.api_errors import invalid
from server.http.route import route
from server.http.shapes import AS_TIME, Answer, Asked, AskedTime, asked_one_of
from server.task_handler import TaskHandler

STEPS = {"minute": MINUTE, "hour": HOUR}
Step = Annotated[str, Meta(extra_json_schema={"enum": list(STEPS)})]
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
# The columns of an answer and the fields of Sample that they show.
BID_COLUMNS = {
    "floor": "floor",
    "reference": "reference",
    "best_bid": "best_bid",
    "own_top": "own_top",
    "own_low": "own_low",
    "open": "open_count",
    "exposure": "exposure_sats",
}
LISTING_COLUMNS = {"floor": "floor", "price": "own_top", "guard": "guard_sats"}


class AskedSpan(Asked, frozen=True, kw_only=True):
    """The samples of a span."""

    from_: Annotated[AskedTime, words(f"Samples from then on; a day before `to` when left out. {AS_TIME}")] = field(
        name="from", default=None
    )
    to: Annotated[AskedTime, words("Samples before then; now when left out.")] = None
    step: Annotated[
        str | None,
        asked_one_of(STEPS),
        words("Samples by minutes or by hours; when left out, the finest that is kept so far back."),
    ] = None


Times = Annotated[list[int], words("The beginning of each minute or hour, oldest first, in Unix seconds.")]
Prices = list[Price | None]


class TaskSeries(Answer, frozen=True, kw_only=True):
    """The past of a bidding task in columns, one place in each for each time; null is unknown, or nothing there.

    Of what changed within a minute or hour, the market's numbers are the last, the task's own the widest.
    """

    step: Step
    time: Times
    floor: Annotated[Prices, words("The lowest ask of others, in sats an item or token.")]
    reference: Annotated[Prices, words("What the range hangs on.")]
    best_bid: Annotated[Prices, words("The highest bid of others, where they are read.")]
    own_top: Annotated[Prices, words("The highest bid of the task.")]
    own_low: Annotated[Prices, words("The lowest bid of the task.")]
    open: Annotated[list[int], words("Open orders.")]
    exposure: Annotated[list[int], words("Sats of all open orders.")]


class AutolistTaskSeries(Answer, frozen=True, kw_only=True):
    """The past of an auto-list task in columns, as a bidding task's."""

    step: Step
    time: Times
    floor: Annotated[Prices, words("The lowest ask of others that is believed, where asks are read.")]
    price: Annotated[Prices, words("That of the listing; null without one.")]
    guard: Annotated[list[int | None], words("The price is never below it; null: the config sets none.")]


_SAYS = "Columns of equal length; empty where no cycle ran."
_ERRORS = {400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LONG_READS}


class _Series(TaskHandler):
    """The samples of one task."""

    tag = "history"

    async def samples(self, task: Task, asked: AskedSpan, columns: dict[str, str]) -> dict[str, Any]:
        """Returns the fields of the answer. Raises ApiError (400)."""
        to_ms = self.now_ms + _MINUTE_MS if asked.to is None else asked.to
        from_ms = to_ms - _DAY_MS if asked.from_ is None else asked.from_
        if from_ms >= to_ms:
            raise invalid(["from: must be before to"])
        step = STEPS[asked.step] if asked.step else self._finest(from_ms)
        async with self.long_answer():
            found = await self.in_turn(lambda: joined_columns(task.id, step, from_ms, to_ms))
            self.require_signed_in()
        shown = {name: _column(found[1 + Sample._fields.index(each)]) for name, each in columns.items()}
        return {"step": "minute" if step == MINUTE else "hour", "time": _column(found[0]), **shown}

    def _finest(self, from_ms: int) -> int:
        """Returns the finest step that is kept back to `from_ms`."""
        return MINUTE if from_ms >= self.now_ms - (KEPT_MINUTES[MINUTE] + 1) * _MINUTE_MS else HOUR


class BiddingSeries(_Series):
    """The operation on the past of a bidding task."""

    kind = BIDDING

    @route("GET /api/tasks/{id}/series", READ, of=TaskHandler.task, says=_SAYS, errors=_ERRORS)
    async def read_task_series(self, task: Task, asked: AskedSpan) -> TaskSeries:
        """The past of a bidding task in numbers

        For charts: the last day by minutes, the last year by hours. A minute without a cycle is not there.
        """
        return TaskSeries(**await self.samples(task, asked, BID_COLUMNS))


class ListingSeries(_Series):
    """The operation on the past of an auto-list task."""

    kind = LISTING

    @route("GET /api/autolist/{id}/series", READ, of=TaskHandler.task, says=_SAYS, errors=_ERRORS)
    async def read_autolist_task_series(self, task: Task, asked: AskedSpan) -> AutolistTaskSeries:
        """The past of an auto-list task in numbers

        For charts: the last day by minutes, the last year by hours. A minute without a cycle is not there.
        """
        return AutolistTaskSeries(**await self.samples(task, asked, LISTING_COLUMNS))


def _column(digits: str) -> Any:
    """Returns a column whose values are joined digits already: thousands of them are not read and written again."""
    return Raw(f"[{digits}]".encode())
