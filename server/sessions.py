"""The caller's sessions: which there are, and the end of one or of everything that is signed in."""

from __future__ import annotations

from models import sessions
from server.http import json_out
from server.http.api_errors import not_found
from server.http.base import SignedIn


class SessionsHandler(SignedIn):
    """GET and DELETE /api/sessions"""

    def get(self) -> None:
        self.answer(
            [
                {
                    "id": row.id,
                    "client": row.client,
                    "createdAt": json_out.iso(row.created_ms),
                    "usedAt": json_out.iso(row.used_ms),
                    "isCurrent": row.token_hash == self.caller.token_hash,
                }
                for row in sessions.sessions_of(self.user.id, self.now_ms)
            ]
        )

    def delete(self) -> None:
        sessions.end_sessions(self.user.id)
        self.answer({"success": True})


class OneSessionHandler(SignedIn):
    """DELETE /api/sessions/:id"""

    def delete(self, session_id: str) -> None:
        if not sessions.end_session_of(self.user.id, self.path_id(session_id)):
            raise not_found()
        self.answer({"success": True})
