"""The caller's sessions and API tokens: which there are, and their end. No API token makes or ends any of them."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal, cast

from msgspec import Meta, structs

from core.fields import Time, text_of, within, words
from models import accounts, users
from models.accounts import MAX_API_TOKENS, MAX_DAYS, SCOPES, ApiToken, NotAnyMore, TooManyApiTokens
from models.tasks import tasks
from models.tasks.tasks import BIDDING, LISTING
from models.users import DAY_MS
from server.http import answers
from server.http.answers import INVALID, NOT_YOURS, ApiError, Success, not_found, unauthorized
from server.http.base import MAX_ID, SignedIn
from server.http.gate import hash_of
from server.http.route import route
from server.http.shapes import Answer, Body, Wrong, read_by

Scope = Literal["read", "trade", "control"]


class SessionShown(Answer, frozen=True, kw_only=True):
    """A client that is signed in."""

    id: int
    client: Annotated[str, words("Browser and system, or the program's name, by its own word.")]
    created_at: Time
    used_at: Annotated[Time, words("To a minute.")]
    is_current: Annotated[bool, words("Whether it is the one that asks.")]


def _scopes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or any(each not in SCOPES for each in value):
        raise Wrong(f"must be a list of {', '.join(SCOPES[:-1])} and {SCOPES[-1]}")
    return tuple(scope for scope in SCOPES if scope in value)


class ApiTokenBody(Body, frozen=True, kw_only=True):
    """A token for a program. Whatever its scopes, it withdraws nothing, makes no token and changes no profile."""

    name: Annotated[str, text_of(1, 100)]
    scopes: Annotated[
        tuple[Scope, ...],
        Meta(min_length=1),
        read_by(_scopes),
        words(
            "`read` sees; `trade` creates, changes, starts, stops, deletes tasks; `control` stops, and sets control."
        ),
    ]
    task_id: Annotated[int | None, words("Good for this task alone, of either kind; null: for all.")] = None
    expires_in_days: Annotated[int, within(1, MAX_DAYS)] = 90


class ApiTokenShown(Answer, frozen=True, kw_only=True):
    """An API token, without itself."""

    id: int
    name: str
    scopes: list[Scope]
    task_id: int | None
    created_at: Time
    used_at: Annotated[Time | None, words("To a minute; null: never.")]
    expires_at: Time


class NewApiToken(ApiTokenShown, frozen=True, kw_only=True):
    """An API token that was just made."""

    token: Annotated[str, words("The bearer token; it is not shown again.")]


class Sessions(SignedIn):
    """The operations on what may act for the caller."""

    tag = "sessions"

    @route("GET /api/sessions", says="The sessions, the one used last first.")
    def list_sessions(self) -> list[SessionShown]:
        """Where I am signed in

        `client` and `usedAt` tell a session that is not yours; of the token only a hash is stored.
        """
        return [
            SessionShown(
                id=row.id,
                client=row.client,
                created_at=answers.iso(row.created_ms),
                used_at=answers.iso(row.used_ms),
                is_current=row.token_hash == self.caller.token_hash,
            )
            for row in users.sessions_of(self.user.id, self.now_ms)
        ]

    @route("DELETE /api/sessions", says="Nobody acts for the caller any more but the tasks that run.")
    def sign_out_everywhere(self) -> Success:
        """End all sessions and API tokens

        This session, too, and every challenge that could make another.
        """
        accounts.end_sessions(self.user.id)
        return Success()

    @route(
        "DELETE /api/sessions/{id}",
        says="Its token is void.",
        errors={404: "There is no such session, or it is somebody else's."},
    )
    def end_session(self, session_id: str) -> Success:
        """End one session

        Also one's own, as signOut does.
        """
        if not users.end_session_of(self.user.id, self.path_id(session_id)):
            raise not_found()
        return Success()

    @route("GET /api/tokens", says="Those that are not over, oldest first, without the tokens themselves.")
    def list_api_tokens(self) -> list[ApiTokenShown]:
        """My API tokens

        With their scopes, task, end and last use.
        """
        return [_shown(token) for token in accounts.tokens_of(self.user.id, self.now_ms)]

    @route(
        "POST /api/tokens",
        says="The token.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: "There are 20 already, or an API token asks.", 404: NOT_YOURS},
    )
    def create_api_token(self, given: ApiTokenBody) -> NewApiToken:
        """Make a token for a program

        It is sent as a session's is. Whatever its scopes, it cannot withdraw, make or end tokens and sessions, change
        the profile or the own ceilings, or act as an admin.
        """
        if given.task_id is not None:
            self._refuse_foreign(given.task_id)
        token, now_ms = secrets.token_urlsafe(32), self.now_ms
        try:
            row = accounts.add_token(
                hash_of(token),
                self.user.id,
                may_still=self.is_signed_in,
                name=given.name,
                scopes=" ".join(given.scopes),
                task=given.task_id,
                created_ms=now_ms,
                expires_ms=now_ms + given.expires_in_days * DAY_MS,
            )
        except TooManyApiTokens:
            raise ApiError(403, "Token limit reached", message=f"You may have {MAX_API_TOKENS} API tokens.") from None
        except NotAnyMore:
            raise unauthorized() from None
        self.set_header("Location", f"/api/tokens/{row.id}")
        return NewApiToken(token=token, **structs.asdict(_shown(row)))

    def _refuse_foreign(self, task_id: int) -> None:
        kinds = (BIDDING, LISTING) if 0 < task_id <= MAX_ID else ()
        if not any(tasks.own(self.user.id, kind, task_id) for kind in kinds):
            raise not_found()

    @route(
        "DELETE /api/tokens/{id}",
        says="It is void.",
        errors={404: "There is no such token, or it is somebody else's."},
    )
    def end_api_token(self, token_id: str) -> Success:
        """End an API token

        It holds for its next request already.
        """
        if not accounts.remove_token(self.user.id, self.path_id(token_id)):
            raise not_found()
        return Success()


def _shown(token: ApiToken) -> ApiTokenShown:
    return ApiTokenShown(
        id=token.id,
        name=token.name,
        scopes=cast(list[Scope], token.scopes.split()),
        task_id=token.task_id,
        created_at=answers.iso(token.created_ms),
        used_at=None if token.used_ms is None else answers.iso(token.used_ms),
        expires_at=answers.iso(token.expires_ms),
    )
