"""Hooks: requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator

from core.hook_urls import KINDS
from models.events.table import LASTING
from server.http.bodies import Body, PlainText, one_of, whole, wrong
from server.schemas.answers import Answer, no_defaults

MOST_INTERVAL_S = 86_400
Kind = Literal.__getitem__(KINDS)
Name = Literal.__getitem__(LASTING)
_INTERVAL = "Seconds between two deliveries at least; what comes meanwhile waits."
_URL = "An https address, for telegram `telegram:CHAT`, for mail `mailto:ADDRESS`. Shown again only in part."
_SECRET = (
    "Of a webhook the key of its signatures, made when it is left out; of ntfy an access token; of telegram the bot's. "
    "It is not shown again."
)
_OTHER_SECRET = f"{_SECRET} Required of ntfy where `url` moves to another server and there is one."


def _events(value: Any) -> list[str]:
    if not isinstance(value, list) or not value or any(each not in LASTING for each in value):
        raise wrong(f"must be a list of {', '.join(LASTING[:-1])} and {LASTING[-1]}")
    return [name for name in LASTING if name in value]


def _interval(value: Any) -> int:
    found = whole(value)
    if not 0 <= found <= MOST_INTERVAL_S:
        raise wrong(f"must be a whole number from 0 to {MOST_INTERVAL_S}")
    return found


Events = Annotated[
    list[str],
    PlainValidator(_events, json_schema_input_type=Annotated[list[Name], Field(min_length=1)]),  # type: ignore[valid-type]
    Field(description="What it is told of."),
]
Interval = Annotated[
    int,
    PlainValidator(_interval, json_schema_input_type=Annotated[int, Field(ge=0, le=MOST_INTERVAL_S)]),
    Field(description=_INTERVAL),
]


class NewHook(Body):
    """A receiver of events."""

    kind: Annotated[str, one_of(KINDS)] = "webhook"
    url: Annotated[PlainText, Field(description=_URL)]
    events: Events
    secret: Annotated[PlainText, Field(description=_SECRET)] = ""
    min_interval_seconds: Interval = 0


class HookChange(Body):
    """Changes of a hook: what is given. Another kind is another hook."""

    model_config = ConfigDict(json_schema_extra=no_defaults)

    url: Annotated[PlainText, Field(description=_URL)] = ""
    events: Events = Field(default_factory=list)
    secret: Annotated[PlainText, Field(description=_OTHER_SECRET)] = ""
    min_interval_seconds: Interval = 0


class HookCode(Body):
    """The code from a mail hook's first mail."""

    code: Annotated[PlainText, Field(description="As it is in the newest mail. Case, blanks and dashes do not count.")]


class HookShown(Answer):
    """A hook, without its secrets."""

    id: int
    kind: Kind  # type: ignore[valid-type]
    url: Annotated[str, Field(description="The part of its address that is no secret.")]
    events: list[Name]  # type: ignore[valid-type]
    has_secret: bool
    min_interval_seconds: Annotated[int, Field(ge=0)]
    created_at: datetime
    sent_at: Annotated[datetime | None, Field(description="When it last took something.")]
    is_failing: Annotated[bool, Field(description="Whether the last try failed.")]
    waiting: Annotated[int, Field(ge=0, description="Deliveries that wait: for their turn, or to be tried again.")]
    dead: Annotated[int, Field(ge=0, description="Of those that are kept, the ones that were given up.")]
    lost: Annotated[int, Field(ge=0, description="Events that never waited, as too many did.")]
    waits_for_code: Annotated[
        bool, Field(description="Whether it is a mail hook that gets nothing until its code is confirmed; events wait.")
    ]


class HookMade(HookShown):
    """A hook that was just made."""

    secret: Annotated[
        str | None, Field(description="The key of a webhook's signatures, if it was made here; it is not shown again.")
    ]


class DeliveryShown(Answer):
    """One event on its way to one hook."""

    id: int
    event: str
    event_id: Annotated[int | None, Field(description="Null of a test and of a code.")]
    task: int | None
    state: Literal["waiting", "sent", "dead"]
    tries: Annotated[int, Field(ge=0)]
    created_at: datetime
    due_at: Annotated[datetime | None, Field(description="When it is tried next; null when it is done.")]
    done_at: datetime | None
    status: Annotated[int | None, Field(description="The status that was answered at the last try.")]
    error: Annotated[str | None, Field(description="What was wrong at the last try.")]


class Deliveries(Answer):
    """Deliveries of one hook."""

    deliveries: list[DeliveryShown]
