"""The administrators' operations."""

from __future__ import annotations

from server.admin.users import DEFAULT_USERS, MOST_USERS
from server.admin.whitelist import DEFAULT_ADDRESSES, MOST_ADDRESSES
from server.http.answers import INVALID
from server.http.base import MAX_ID
from server.openapi.operation import Operation, Parameter, many, one
from server.schemas import admin

_TAG = "administration"
_ONLY = "The caller is no administrator, or comes with an API token. That is looked at before all else."


def _count(default: int, most: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", schema, "Most of them to answer.")


OPERATIONS = {
    "GET /api/admin/whitelist": Operation(
        id="listWhitelist",
        tag=_TAG,
        summary="Addresses that may sign in",
        text="Those of the table, a page at a time, and those of the settings.",
        query=(
            _count(DEFAULT_ADDRESSES, MOST_ADDRESSES),
            Parameter("after", {"type": "string", "minLength": 1, "maxLength": 200}, "`next` of the page before."),
        ),
        success=one(admin.WhitelistPage, "One page."),
        errors={400: INVALID, 403: _ONLY},
    ),
    "POST /api/admin/whitelist": Operation(
        id="addToWhitelist",
        tag=_TAG,
        summary="Let an address sign in",
        text="Administrators are made on the machine only, by `bidkeeper whitelist add ADDRESS --admin`.",
        body=admin.WhitelistBody,
        success=one(admin.WhitelistedAddress, "It may sign in.", 201),
        errors={400: INVALID, 403: _ONLY, 409: "It is on the list already."},
    ),
    "DELETE /api/admin/whitelist/{address}": Operation(
        id="removeFromWhitelist",
        tag=_TAG,
        summary="Take an address off the whitelist",
        text="Its sessions and API tokens end, its tasks stop, its bids are cancelled, unless the settings let it in.",
        success=one(admin.TakenOff, "It is off the list."),
        errors={403: _ONLY, 404: "It is not on the list.", 409: "It is an administrator's."},
    ),
    "GET /api/admin/plans": Operation(
        id="listPlans",
        tag=_TAG,
        summary="The plans of this installation",
        text="They are made in the settings.",
        success=many(admin.PlanInfo, "In the order of their keys."),
        errors={403: _ONLY},
    ),
    "GET /api/admin/users": Operation(
        id="listUsers",
        tag=_TAG,
        summary="The users of this installation",
        text="With plan, tasks, exposure and last sign of life.",
        query=(
            _count(DEFAULT_USERS, MOST_USERS),
            Parameter("after", {"type": "integer", "minimum": 0, "maximum": MAX_ID}, "`next` of the page before."),
            Parameter("address", {"type": "string", "minLength": 1, "maxLength": 200}, "Only the one with it."),
        ),
        success=one(admin.UserPage, "One page."),
        errors={400: INVALID, 403: _ONLY},
    ),
    "PUT /api/admin/users/{id}": Operation(
        id="changeUser",
        tag=_TAG,
        summary="Give a user another plan, or another end of it",
        text="An end in the past ends it now: the user's tasks stop and their bids are cancelled.",
        body=admin.UserChange,
        success=one(admin.UserChanged, "The user as they are now."),
        errors={400: INVALID, 403: _ONLY, 404: "There is no such user."},
    ),
    "GET /api/admin/readiness": Operation(
        id="getReadiness",
        tag=_TAG,
        summary="The whole installation in one look",
        text="Its programs, workers, limits, the quotas of its keys and the global control state.",
        success=one(admin.Readiness, "What there is to know; what cannot be asked is null."),
        errors={403: _ONLY},
    ),
}
