"""The answers about events."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from models.events.table import EVENTS
from server.schemas.answers import Answer


class EventShown(Answer):
    """One fact, written down together with what it tells of."""

    id: Annotated[int, Field(ge=1, description="Grows, with gaps: others have events, too.")]
    event: Annotated[Literal.__getitem__(EVENTS), Field(description="Its name, see the interface's page.")]  # type: ignore[valid-type]
    at: datetime
    task: Annotated[int | None, Field(description="The task in it, of either kind; it may be deleted by now.")]
    text: Annotated[str, Field(description="It in one sentence, for people.")]
    data: Annotated[dict[str, Any], Field(description="Its details by name; more may be added.")]


class EventPage(Answer):
    """A page of events."""

    events: list[EventShown]
    next: Annotated[int, Field(ge=0, description="The `after` of the next page.")]
    reset: Annotated[
        bool,
        Field(
            description="Whether events after the given id are missing: they are kept no longer, or the id is not of "
            "this database. These are the newest; look at everything else anew."
        ),
    ]
