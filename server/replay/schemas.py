"""A seam: a replay's body is described by the models of task configs, which are pydantic's still."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from server.schemas.bid_config import BidConfigFields
from server.schemas.task_bodies import describe_replay


class TaskReplay(BidConfigFields):
    """Changes to the task's config as PUT takes them, and the recorded time to try them on."""

    model_config = ConfigDict(json_schema_extra=describe_replay)

    from_: Annotated[
        str | None, Field(alias="from", description="Cycles from then on; a time or a day in ISO 8601, in UTC.")
    ] = None
    to: Annotated[str | None, Field(description="Cycles until then.")] = None
