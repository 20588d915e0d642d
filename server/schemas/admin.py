"""The administrators' requests and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from server.http.bodies import SATS, Body, as_pasted, or_null, text, wrong
from server.http.query import NO_TIME, milliseconds
from server.schemas.answers import Answer
from server.schemas.preview import Count
from wallet.address import pasted_sign_in_address

_LATEST_MS = 253_402_300_799_000  # the year 9999


def _time(value: Any) -> int:
    found = milliseconds(text(value))
    if found is None or not 0 <= found <= _LATEST_MS:
        raise wrong(NO_TIME)
    return found


class WhitelistBody(Body):
    """An address that may sign in from now on."""

    address: Annotated[str, PlainValidator(as_pasted(pasted_sign_in_address), json_schema_input_type=str)]


class UserChange(Body):
    """Another plan for a user, or another end of it."""

    plan: Annotated[
        str | None, or_null(text, str), Field(description="The key of a plan; left out: the one that the user has.")
    ] = None
    ends_at: Annotated[
        int | None,
        or_null(_time, str),
        Field(description="A time or a day in ISO 8601, in UTC; left out: the plan's duration from now."),
    ] = None


class WhitelistedAddress(Answer):
    """An address on the list."""

    address: str
    is_admin: bool
    added_at: datetime


class SettingsAddress(Answer):
    """An address that the settings let in; only the operator can take it out."""

    address: str
    is_admin: bool


class WhitelistPage(Answer):
    """The addresses that may sign in."""

    is_open: Annotated[bool, Field(description="Everybody may: the settings say `*`.")]
    from_settings: list[SettingsAddress]
    addresses: Annotated[list[WhitelistedAddress], Field(description="In their order.")]
    next: Annotated[str | None, Field(description="`after` of the next page; null: there is none.")]


class TakenOff(Answer):
    """An address that is off the list."""

    address: str
    may_sign_in: Annotated[bool, Field(description="The settings let it in all the same: nothing of it has ended.")]
    tasks_stopped: Annotated[
        Count | None, Field(description="Null: nothing had to, or the manager is away and does it when it is back.")
    ]


class PlanInfo(Answer):
    """A plan of the settings."""

    key: str
    name: str
    max_tasks: Count
    max_bids_per_task: Count
    max_exposure: SATS
    price_sats: SATS
    duration_days: Count
    users: Annotated[Count, Field(description="Those who have it, ended or not.")]


class UserInfo(Answer):
    """A user in numbers."""

    id: int
    address: str
    display_name: str | None
    is_admin: bool
    may_sign_in: bool
    plan: Annotated[str | None, Field(description="Its key, also of a plan that is not offered any more.")]
    plan_ends_at: datetime | None
    plan_is_over: bool
    tasks: Annotated[Count, Field(description="Of both kinds.")]
    running: Annotated[Count, Field(description="Those of them that are wanted to run.")]
    exposure: Annotated[SATS, Field(description="Of all open bids, without dry runs.")]
    open_bids: Count
    last_seen_at: Annotated[
        datetime | None,
        Field(description="The last use of a session or API token, to a minute; null: none is left that tells."),
    ]
    created_at: datetime


class UserPage(Answer):
    """Users in the order of their first sign-in."""

    users: list[UserInfo]
    next: Annotated[int | None, Field(description="`after` of the next page; null: there is none.")]


class UserChanged(UserInfo):
    """A user with another plan, or another end of it."""

    tasks_stopped: Annotated[Count | None, Field(description="Null: the manager is away and does it when it is back.")]


class Peer(Answer):
    """One program, or the database."""

    name: str
    is_ready: bool
    reason: Annotated[str | None, Field(description="Why it is not.")]


class UserCalls(Answer):
    """A user's calls of this month or day."""

    id: int
    used: Count


class KeyQuota(Answer):
    """The quota of a marketplace's key in a calendar month or day (UTC)."""

    limit: Count
    used: Count
    left: Count
    projected: Annotated[Count, Field(description="Of the whole period, if it went on like the last hour.")]
    stretch_seconds: Annotated[Count, Field(description="How old reads may be so that all its quotas last.")]
    ends_at: datetime
    users: Annotated[list[UserCalls], Field(description="Those with the most calls.")]


class VenueState(Answer):
    """A marketplace as the gateway sees it. What it does not tell is null."""

    name: str
    is_cut_off: Annotated[bool, Field(description="It does not answer and is only probed.")]
    paused_seconds: Annotated[float | None, Field(ge=0, description="Until it is asked again, by its own wish.")]
    waiting: Annotated[Count | None, Field(description="Requests that wait for their turn.")]
    skew_seconds: Annotated[float | None, Field(description="How far its clock is from ours.")]
    quota: Annotated[KeyQuota | None, Field(description="The month's. Null: its key has none.")]
    quota_today: Annotated[KeyQuota | None, Field(description="The day's. Null: its key has none.")]


class GlobalState(Answer):
    """The control state of the whole installation."""

    state: Literal["run", "reduce", "halt"]
    set_at: datetime | None
    set_by: Annotated[int | None, Field(description="The user who set it.")]


class Readiness(Answer):
    """The whole installation. What a program that is away would tell is null."""

    is_ready: Annotated[bool, Field(description="All `peers` are.")]
    peers: list[Peer]
    workers: Annotated[Count | None, Field(description="Worker processes, those that drain too.")]
    most_workers: Annotated[Count, Field(description="The installation's limit of them.")]
    tasks: Annotated[dict[str, int], Field(description="Bidding tasks by state, such as `running`.")]
    autolist: Annotated[dict[str, int], Field(description="Auto-list tasks by state.")]
    sessions: Annotated[Count, Field(description="Clients that are signed in.")]
    exposure: Annotated[SATS, Field(description="Of all users' open bids.")]
    max_exposure: Annotated[SATS | None, Field(description="The limit of that; null: none.")]
    venues: list[VenueState] | None
    control: GlobalState
