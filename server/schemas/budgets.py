"""Budgets of several tasks: requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from server.http.bodies import SATS, Body, Sats, some_text, whole_within
from server.schemas.answers import Answer

_MAX_NAME, _MAX_FILLS = 100, 1_000_000
_MOST_OPEN = "Most sats of the open bids of all its tasks together; 0 is unlimited."
_MOST_FILLS = "Most fills of all its tasks together; 0 is any number."
_MOST_SPENT = "Most sats spent by all its tasks together; 0 is unlimited."
_MOST_TODAY = "Most sats spent by all its tasks in any 24 hours; 0 is unlimited."


FILLS = Annotated[int, Field(ge=0, le=_MAX_FILLS)]
_Name = Annotated[str, some_text(_MAX_NAME), Field(description="Any words of yours, for the reasons of tasks.")]
_Fills = Annotated[int, whole_within(0, _MAX_FILLS)]


class NewBudget(Body):
    """Limits to be shared by the tasks that name them with `budgetId`."""

    name: _Name
    max_open_sats: Annotated[Sats, Field(description=_MOST_OPEN)] = 0
    max_fills: Annotated[_Fills, Field(description=_MOST_FILLS)] = 0
    spend_cap_sats: Annotated[Sats, Field(description=_MOST_SPENT)] = 0
    spend_cap_per_day_sats: Annotated[Sats, Field(description=_MOST_TODAY)] = 0


def _without_defaults(schema: dict[str, Any]) -> None:
    for property_ in schema["properties"].values():
        property_.pop("default", None)


class BudgetChange(Body):
    """Fields of a budget; omitted ones stay as they are."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    name: _Name = ""
    max_open_sats: Annotated[Sats, Field(description=_MOST_OPEN)] = 0
    max_fills: Annotated[_Fills, Field(description=_MOST_FILLS)] = 0
    spend_cap_sats: Annotated[Sats, Field(description=_MOST_SPENT)] = 0
    spend_cap_per_day_sats: Annotated[Sats, Field(description=_MOST_TODAY)] = 0


class SharedBudget(Answer):
    """A budget, and what its tasks' real bids hold of it; those of dry runs are counted apart."""

    id: int
    name: str
    max_open_sats: Annotated[SATS, Field(description=_MOST_OPEN)]
    max_fills: Annotated[FILLS, Field(description=_MOST_FILLS)]
    spend_cap_sats: Annotated[SATS, Field(description=_MOST_SPENT)]
    spend_cap_per_day_sats: Annotated[SATS, Field(description=_MOST_TODAY)]
    task_ids: Annotated[list[int], Field(description="The tasks that name it.")]
    open_bids: Annotated[int, Field(ge=0)]
    open_sats: Annotated[int, Field(ge=0)]
    fills: Annotated[int, Field(ge=0, description="Of its tasks, deleted ones too.")]
    spent_sats: Annotated[int, Field(ge=0, description="The whole bids that were filled.")]
    spent_today_sats: Annotated[int, Field(ge=0, description="Of these, what was spent in the last 24 hours.")]
    free_sats: Annotated[int | None, Field(ge=0, description="Sats of bids that still fit; null is any number.")]
    free_fills: Annotated[int | None, Field(ge=0, description="Bids that may still be opened; null is any number.")]
    created_at: datetime
