"""The operations on what may act for a user: sessions, API tokens, and the user's own ceilings."""

from __future__ import annotations

from server.http.answers import INVALID
from server.openapi.operation import Operation, many, one
from server.schemas.answers import Success
from server.schemas.api_tokens import ApiTokenBody, ApiTokenShown, NewApiToken, SessionShown
from server.schemas.approvals import ApprovalBody, Ceilings, CeilingsBody
from server.schemas.auth import Challenge

_TAG = "sessions"

OPERATIONS = {
    "POST /api/auth/approval": Operation(
        id="openApproval",
        tag=_TAG,
        summary="Ask for the text that approves a change",
        text="What a stolen token must not do needs the sign-in address's signature each time. The text says the whole "
        "change and is good for nothing else. Its id and signature go into the change itself, as `approvalId` and "
        "`approvalSignature`.",
        body=ApprovalBody,
        success=one(Challenge, "The text, to be signed by the sign-in address."),
        errors={400: INVALID, 429: "Too many sign-in calls; `Retry-After` says when to come back."},
    ),
    "GET /api/sessions": Operation(
        id="listSessions",
        tag=_TAG,
        summary="Where I am signed in",
        text="`client` and `usedAt` tell a session that is not yours; of the token only a hash is stored.",
        success=many(SessionShown, "The sessions, the one used last first."),
    ),
    "DELETE /api/sessions": Operation(
        id="signOutEverywhere",
        tag=_TAG,
        summary="End all sessions and API tokens",
        text="This session, too, and every challenge that could make another.",
        success=one(Success, "Nobody acts for the caller any more but the tasks that run."),
    ),
    "DELETE /api/sessions/{id}": Operation(
        id="endSession",
        tag=_TAG,
        summary="End one session",
        text="Also one's own, as signOut does.",
        success=one(Success, "Its token is void."),
        errors={404: "There is no such session, or it is somebody else's."},
    ),
    "GET /api/tokens": Operation(
        id="listApiTokens",
        tag=_TAG,
        summary="My API tokens",
        text="With their scopes, task, end and last use.",
        success=many(ApiTokenShown, "Those that are not over, oldest first, without the tokens themselves."),
    ),
    "POST /api/tokens": Operation(
        id="createApiToken",
        tag=_TAG,
        summary="Make a token for a program",
        text="It is sent as a session's is. Whatever its scopes, it cannot withdraw, make or end tokens and sessions, "
        "change the profile or the own ceilings, or act as an admin.",
        body=ApiTokenBody,
        success=one(NewApiToken, "The token.", 201, ("Location",)),
        errors={
            400: INVALID,
            403: "There are 20 already, or an API token asks.",
            404: "There is no such task, or it is somebody else's.",
        },
    ),
    "DELETE /api/tokens/{id}": Operation(
        id="endApiToken",
        tag=_TAG,
        summary="End an API token",
        text="It holds for its next request already.",
        success=one(Success, "It is void."),
        errors={404: "There is no such token, or it is somebody else's."},
    ),
    "GET /api/ceilings": Operation(
        id="getCeilings",
        tag=_TAG,
        summary="My own ceilings",
        text="Null where none is set: then the plan alone holds.",
        success=one(Ceilings, "The ceilings."),
    ),
    "PUT /api/ceilings": Operation(
        id="setCeilings",
        tag=_TAG,
        summary="Lower my own ceilings, or raise them with a signature",
        text="They hold in every decision, reservation and signature; workers are started anew with them. To raise or "
        "take away one needs an approval of exactly this change.",
        body=CeilingsBody,
        success=one(Ceilings, "The ceilings as they are now."),
        errors={400: INVALID},
    ),
}
