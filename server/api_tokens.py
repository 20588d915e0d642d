"""The caller's API tokens: made and ended by somebody who is signed in, never by such a token."""

from __future__ import annotations

import secrets

from models import api_tokens
from models.api_tokens import MAX_API_TOKENS, ApiToken, NotAnyMore, TooManyApiTokens
from models.tasks import tasks
from models.tasks.table import BIDDING, LISTING
from models.users import DAY_MS
from server.http import json_out
from server.http.api_errors import ApiError, not_found, unauthorized
from server.http.base import MAX_ID, SignedIn
from server.http.callers import hash_of
from server.schemas.api_tokens import ApiTokenBody


class ApiTokensHandler(SignedIn):
    """GET and POST /api/tokens"""

    def get(self) -> None:
        self.answer([_as_json(token) for token in api_tokens.of_user(self.user.id, self.now_ms)])

    def post(self) -> None:
        body = self.body(ApiTokenBody)
        if body.task_id is not None:
            self._refuse_foreign(body.task_id)
        token, now_ms = secrets.token_urlsafe(32), self.now_ms
        try:
            row = api_tokens.add(
                hash_of(token),
                self.user.id,
                may_still=self.is_signed_in,
                name=body.name,
                scopes=" ".join(body.scopes),
                task=body.task_id,
                created_ms=now_ms,
                expires_ms=now_ms + body.expires_in_days * DAY_MS,
            )
        except TooManyApiTokens:
            raise ApiError(403, "Token limit reached", message=f"You may have {MAX_API_TOKENS} API tokens.") from None
        except NotAnyMore:
            raise unauthorized() from None
        self.set_header("Location", f"/api/tokens/{row.id}")
        self.answer(_as_json(row) | {"token": token}, 201)

    def _refuse_foreign(self, task_id: int) -> None:
        kinds = (BIDDING, LISTING) if 0 < task_id <= MAX_ID else ()
        if not any(tasks.own(self.user.id, kind, task_id) for kind in kinds):
            raise not_found()


class OneApiTokenHandler(SignedIn):
    """DELETE /api/tokens/:id"""

    def delete(self, token_id: str) -> None:
        if not api_tokens.remove(self.user.id, self.path_id(token_id)):
            raise not_found()
        self.answer({"success": True})


def _as_json(token: ApiToken) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes.split(),
        "taskId": token.task_id,
        "createdAt": json_out.iso(token.created_ms),
        "usedAt": None if token.used_ms is None else json_out.iso(token.used_ms),
        "expiresAt": json_out.iso(token.expires_ms),
    }
