"""Administration: the whitelist, users and their plans, and the state of the whole installation.

All callers except signed-in administrators get a 403, before any other check. Each change is logged. Administrators
can only be added on the machine itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, structs

from core.errors import BidkeeperError, PeerError
from core.fields import MAX_ID, Address, Count, Sats, Time, iso, text_of, within, words
from models import accounts, summaries
from models.summaries import ListedUser, listed_user, users_after, users_of_plans
from models.tasks.tasks import BIDDING, LISTING
from models.users import DAY_MS, EVERYBODY, GLOBAL, RUN, Control, Whitelist
from server.control import heed_limits
from server.health import PATIENCE_S, missing_peers
from server.http.answers import INVALID, ApiError, invalid, not_found
from server.http.base import SignedIn, route
from server.http.shapes import (
    AS_TEXT,
    NO_TIME,
    Answer,
    Asked,
    Body,
    Wrong,
    as_pasted,
    exact,
    milliseconds,
    read_by,
    shown_as,
    text,
)
from wallet.address import AddressError, pasted_sign_in_address

log = logging.getLogger(__name__)

_LATEST_MS = 253_402_300_799_000  # the year 9999
_ONLY = "The caller is no administrator, or comes with an API token. That is looked at before all else."

State = Literal["run", "reduce", "halt"]
Limit = Annotated[int, within(1, 500), words("Most of them to answer.")]


# ---- who may sign in


class WhitelistBody(Body, frozen=True, kw_only=True):
    """An address that may sign in from now on."""

    address: Annotated[str, read_by(as_pasted(pasted_sign_in_address))]


class WhitelistAsked(Asked, frozen=True, kw_only=True):
    """The query for a page of the whitelist."""

    limit: Limit = 100
    after: Annotated[Annotated[str, text_of(1, 200)] | None, words("`next` of the page before.")] = None


class WhitelistedAddress(Answer, frozen=True, kw_only=True):
    """An address on the list."""

    address: Address
    is_admin: bool
    added_at: Time


class SettingsAddress(Answer, frozen=True, kw_only=True):
    """An address that the settings let in; only the operator can take it out."""

    address: Address
    is_admin: bool


class WhitelistPage(Answer, frozen=True, kw_only=True):
    """The addresses that may sign in."""

    is_open: Annotated[bool, words("Everybody may: the settings say `*`.")]
    from_settings: list[SettingsAddress]
    addresses: Annotated[list[WhitelistedAddress], words("In their order.")]
    next: Annotated[str | None, words("`after` of the next page; null: there is none.")]


class TakenOff(Answer, frozen=True, kw_only=True):
    """An address that is off the list."""

    address: Address
    may_sign_in: Annotated[bool, words("The settings let it in all the same: nothing of it has ended.")]
    tasks_stopped: Annotated[
        Count | None, words("Null: nothing had to, or the manager is away and does it when it is back.")
    ]


# ---- users and plans


class PlanInfo(Answer, frozen=True, kw_only=True):
    """A plan of the settings."""

    key: str
    name: str
    max_tasks: Count
    max_bids_per_task: Count
    max_exposure: Sats
    price_sats: Sats
    duration_days: Count
    users: Annotated[Count, words("Those who have it, ended or not.")]


class UsersAsked(Asked, frozen=True, kw_only=True):
    """The query for a page of users."""

    limit: Limit = 100
    after: Annotated[Annotated[int, within(0, MAX_ID)] | None, words("`next` of the page before.")] = None
    address: Annotated[
        Annotated[str, text_of(1, 200), read_by(pasted_sign_in_address)] | None, words("Only the one with it.")
    ] = None


class UserInfo(Answer, frozen=True, kw_only=True):
    """A user in numbers."""

    id: int
    address: Address
    display_name: str | None
    is_admin: bool
    may_sign_in: bool
    plan: Annotated[str | None, words("Its key, also of a plan that is not offered any more.")]
    plan_ends_at: Time | None
    plan_is_over: bool
    tasks: Annotated[Count, words("Of both kinds.")]
    running: Annotated[Count, words("Those of them that are wanted to run.")]
    exposure: Annotated[Sats, words("Of all open bids, without dry runs.")]
    open_bids: Count
    last_seen_at: Annotated[
        Time | None, words("The last use of a session or API token, to a minute; null: none is left that tells.")
    ]
    created_at: Time


class UserPage(Answer, frozen=True, kw_only=True):
    """Users in the order of their first sign-in."""

    users: list[UserInfo]
    next: Annotated[int | None, words("`after` of the next page; null: there is none.")]


class UserChanged(UserInfo, frozen=True, kw_only=True):
    """A user with another plan, or another end of it."""

    tasks_stopped: Annotated[Count | None, words("Null: the manager is away and does it when it is back.")]


def _time(value: Any) -> int:
    found = milliseconds(text(value))
    if not 0 <= found <= _LATEST_MS:
        raise Wrong(NO_TIME)
    return found


class UserChange(Body, frozen=True, kw_only=True):
    """Another plan for a user, or another end of it."""

    plan: Annotated[str | None, words("The key of a plan; left out: the one that the user has.")] = None
    ends_at: Annotated[
        Annotated[int, read_by(_time), AS_TEXT] | None,
        words("A time or a day in ISO 8601, in UTC; left out: the plan's duration from now."),
    ] = None


# ---- the installation


class Peer(Answer, frozen=True, kw_only=True):
    """One program, or the database."""

    name: str
    is_ready: bool
    reason: Annotated[str | None, words("Why it is not.")]


class UserCalls(Answer, frozen=True, kw_only=True):
    """A user's calls of this month or day."""

    id: int
    used: Count


class KeyQuota(Answer, frozen=True, kw_only=True):
    """The quota of a marketplace's key in a calendar month or day (UTC)."""

    limit: Count
    used: Count
    left: Count
    projected: Annotated[Count, words("Of the whole period, if it went on like the last hour.")]
    stretch_seconds: Annotated[Count, words("How old reads may be so that all its quotas last.")]
    ends_at: Time
    users: Annotated[list[UserCalls], words("Those with the most calls.")]


class VenueState(Answer, frozen=True, kw_only=True):
    """A marketplace as the gateway sees it. What it does not tell is null."""

    name: str
    is_cut_off: Annotated[bool, words("It does not answer and is only probed.")]
    paused_seconds: Annotated[
        Annotated[Decimal, Meta(extra_json_schema={"minimum": 0})] | None,
        words("Until it is asked again, by its own wish."),
    ]
    waiting: Annotated[Count | None, words("Requests that wait for their turn.")]
    skew_seconds: Annotated[Decimal | None, words("How far its clock is from ours.")]
    quota: Annotated[KeyQuota | None, words("The month's. Null: its key has none.")]
    quota_today: Annotated[KeyQuota | None, words("The day's. Null: its key has none.")]


class ControlState(Answer, frozen=True, kw_only=True):
    """The control state of the whole installation."""

    state: State
    set_at: Time | None
    set_by: Annotated[int | None, words("The user who set it.")]


class Readiness(Answer, frozen=True, kw_only=True):
    """The whole installation. What a program that is away would tell is null."""

    is_ready: Annotated[bool, words("All `peers` are.")]
    peers: list[Peer]
    workers: Annotated[Count | None, words("Worker processes, those that drain too.")]
    most_workers: Annotated[Count, words("The installation's limit of them.")]
    tasks: Annotated[dict[str, int], words("Bidding tasks by state, such as `running`.")]
    autolist: Annotated[dict[str, int], words("Auto-list tasks by state.")]
    sessions: Annotated[Count, words("Clients that are signed in.")]
    exposure: Annotated[Sats, words("Of all users' open bids.")]
    max_exposure: Annotated[Sats | None, words("The limit of that; null: none.")]
    venues: list[VenueState] | None
    control: ControlState


class Administration(SignedIn):
    """The administrators' operations."""

    tag = "administration"

    def admit(self) -> None:
        super().admit()
        if not self.is_admin:
            raise ApiError(403, "Only for administrators")

    def _record(self, change: str) -> None:
        """Logs a change with its author."""
        log.warning("administrator %d (%s) %s", self.user.id, self.user.address, change)

    async def _enforce(self) -> int | None:
        """Has the manager stop tasks that are no longer allowed; returns the number of them, None without an answer.

        Without an answer, the manager finds the change itself within seconds of its start.
        """
        try:
            return await self.services.manager.enforce()
        except PeerError as error:
            log.warning("failed to notify the manager of a change of rights: %s", error.message)
            return None

    @route("GET /api/admin/whitelist", says="One page.", errors={400: INVALID, 403: _ONLY})
    def list_whitelist(self, asked: WhitelistAsked) -> WhitelistPage:
        """Addresses that may sign in

        Those of the table, a page at a time, and those of the settings.
        """
        rows, settings = accounts.listed(asked.limit, asked.after or ""), self.services.settings
        return WhitelistPage(
            is_open="*" in settings.whitelist,
            from_settings=[
                SettingsAddress(address=address, is_admin=address in settings.admins)
                for address in sorted((settings.whitelist | settings.admins) - {"*"})
            ],
            addresses=[_listed(row) for row in rows],
            next=rows[-1].address if len(rows) == asked.limit else None,
        )

    @route(
        "POST /api/admin/whitelist",
        says="It may sign in.",
        status=201,
        errors={400: INVALID, 403: _ONLY, 409: "It is on the list already."},
    )
    def add_to_whitelist(self, given: WhitelistBody) -> WhitelistedAddress:
        """Let an address sign in

        Administrators are made on the machine only, by `bidkeeper whitelist add ADDRESS --admin`.
        """
        row = accounts.add(given.address, self.now_ms)
        if row is None:
            raise ApiError(409, "The address is on the list already")
        self._record(f"put {given.address} on the whitelist")
        return _listed(row)

    @route(
        "DELETE /api/admin/whitelist/{address}",
        says="It is off the list.",
        errors={403: _ONLY, 404: "It is not on the list.", 409: "It is an administrator's."},
    )
    async def remove_from_whitelist(self, named: str) -> TakenOff:
        """Take an address off the whitelist

        Its sessions and API tokens end, its tasks stop, its bids are cancelled, unless the settings let it in.
        """
        try:
            address = pasted_sign_in_address(named)
        except AddressError as error:
            raise ApiError(404, "Not found", message=f"The address in the path: {error}.") from None
        row = accounts.find(address)
        if row is None:
            raise not_found()
        if row.is_admin:
            message = "`bidkeeper whitelist remove` does it, on the machine."
            raise ApiError(409, "An administrator is not taken off here", message=message)
        removed = accounts.remove(self.services.entitlements, address)
        self._record(f"took {address} off the whitelist")
        stopped = None if removed.may_still else await self._enforce()
        return TakenOff(address=address, may_sign_in=removed.may_still, tasks_stopped=stopped)

    @route("GET /api/admin/plans", says="In the order of their keys.", errors={403: _ONLY})
    def list_plans(self) -> list[PlanInfo]:
        """The plans of this installation

        They are made in the settings.
        """
        counts = users_of_plans()
        return [
            shown_as(PlanInfo, plan, key=key, users=counts.get(key, 0))
            for key, plan in sorted(self.services.settings.plans.items())
        ]

    @route("GET /api/admin/users", says="One page.", errors={400: INVALID, 403: _ONLY})
    def list_users(self, asked: UsersAsked) -> UserPage:
        """The users of this installation

        With plan, tasks, exposure and last sign of life.
        """
        found = users_after(asked.after or 0, asked.limit, asked.address)
        return UserPage(
            users=[self._shown(each) for each in found], next=found[-1].id if len(found) == asked.limit else None
        )

    def user_of_path(self, user_id: str) -> ListedUser:
        """Returns the user of this id. Raises ApiError (404)."""
        found = listed_user(self.path_id(user_id))
        if found is None:
            raise not_found()
        return found

    @route(
        "PUT /api/admin/users/{id}",
        of=user_of_path,
        says="The user as they are now.",
        errors={400: INVALID, 403: _ONLY, 404: "There is no such user."},
    )
    async def change_user(self, user: ListedUser, given: UserChange) -> UserChanged:
        """Give a user another plan, or another end of it

        An end in the past ends it now: the user's tasks stop and their bids are cancelled.
        """
        plans = self.services.settings.plans
        plan = user.plan if given.plan is None else given.plan
        if plan is None or plan not in plans:
            raise invalid([f"plan: must be one of {', '.join(sorted(plans))}"])
        ends_ms = given.ends_at
        if ends_ms is None:
            if given.plan is None:
                raise invalid(["plan: is required without endsAt"])
            ends_ms = self.now_ms + plans[plan].duration_days * DAY_MS
        accounts.set_plan(user.id, plan, ends_ms, self.now_ms)
        self._record(f"gave user {user.id} ({user.address}) the plan {plan} until {iso(ends_ms)}")
        stopped = await self._enforce()
        await heed_limits(self.services, user.id, self.now_ms)
        found = self._shown(self.user_of_path(str(user.id)))
        return UserChanged(tasks_stopped=stopped, **structs.asdict(found))

    def _shown(self, user: ListedUser) -> UserInfo:
        entitlements = self.services.entitlements
        return shown_as(
            UserInfo,
            user,
            is_admin=entitlements.is_admin(user.address),
            may_sign_in=entitlements.may_sign_in(user.address),
            plan_is_over=user.plan_ends_ms is None or user.plan_ends_ms <= self.now_ms,
            exposure=user.exposure_sats,
            last_seen_at=None if user.seen_ms is None else iso(user.seen_ms),
        )

    @route("GET /api/admin/readiness", says="What there is to know; what cannot be asked is null.", errors={403: _ONLY})
    async def get_readiness(self) -> Readiness:
        """The whole installation in one look

        Its programs, workers, limits, the quotas of its keys and the global control state.
        """
        missing, workers, venues = await asyncio.gather(missing_peers(self), self._workers(), self._venues())
        self.require_signed_in()
        row = Control.get_or_none(Control.scope == GLOBAL, Control.subject_id == EVERYBODY)
        return Readiness(
            is_ready=not any(missing.values()),
            peers=[Peer(name=name, is_ready=not reason, reason=reason or None) for name, reason in missing.items()],
            workers=workers,
            most_workers=self.services.settings.max_workers,
            tasks=_running(BIDDING),
            autolist=_running(LISTING),
            sessions=summaries.sessions(self.now_ms),
            exposure=summaries.exposure(),
            max_exposure=self.services.settings.max_exposure_sats or None,
            venues=None if venues is None else [_venue(name, told) for name, told in sorted(venues.items())],
            control=ControlState(
                state=cast(State, RUN if row is None else row.state),
                set_at=None if row is None else iso(row.set_ms),
                set_by=None if row is None else row.by_user,
            ),
        )

    async def _workers(self) -> int | None:
        try:
            each = await self.services.manager.status(PATIENCE_S)
        except BidkeeperError:
            return None
        return sum(status.workers for status in each)

    async def _venues(self) -> Mapping[str, Any] | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                status = await self.services.market(lambda market: market.status())
        except (BidkeeperError, TimeoutError):
            return None
        found: Mapping[str, Any] = status.get("venues", {})
        return found


def _listed(row: Whitelist) -> WhitelistedAddress:
    return shown_as(WhitelistedAddress, row, is_admin=bool(row.is_admin))


def _running(kind: str) -> dict[str, int]:
    """Counts tasks by observed state; states without tasks are left out."""
    counts: dict[str, int] = {}
    for (_, observed), count in summaries.tasks_by_state(kind).items():
        if count:
            counts[observed] = counts.get(observed, 0) + count
    return counts


def _venue(name: str, told: Mapping[str, Any]) -> VenueState:
    quota: Mapping[str, Any] = told.get("quota") or {}
    return VenueState(
        name=name,
        is_cut_off=bool(told.get("is_cut_off")),
        paused_seconds=_exact(told.get("paused_s")),
        waiting=told.get("waiting"),
        skew_seconds=_exact(told.get("skew_s")),
        quota=_quota(quota, quota.get("stretch_s", 0)),
        quota_today=_quota(quota.get("day", {}), quota.get("stretch_s", 0)),
    )


def _exact(number: float | None) -> Decimal | None:
    return None if number is None else exact(Decimal(str(number)))


def _quota(quota: Mapping[str, Any], stretch_s: int) -> KeyQuota | None:
    """Returns the quota of a period, None if the key has none. The tightest quota decides how far reads are spread."""
    if "limit" not in quota:
        return None
    return KeyQuota(
        limit=quota["limit"],
        used=quota["used"],
        left=quota["left"],
        projected=quota["projected"],
        stretch_seconds=stretch_s,
        ends_at=iso(quota["ends_ms"]),
        users=[UserCalls(id=int(user), used=used) for user, used in quota.get("users", {}).items()],
    )
