"""The common part of the administrators' operations: nobody else gets an answer, and every change is in the log."""

from __future__ import annotations

import logging

from core.errors import PeerError
from server.http.api_errors import ApiError
from server.http.base import SignedIn

log = logging.getLogger(__name__)


class AdminHandler(SignedIn):
    """A handler for administrators who are signed in. To everybody else all of it is 403, before any other check."""

    def admit(self) -> None:
        super().admit()
        if not self.is_admin:
            raise ApiError(403, "Only for administrators")

    def record(self, words: str) -> None:
        """Writes a change to the log, with its author."""
        log.warning("administrator %d (%s) %s", self.user.id, self.user.address, words)

    async def enforce(self) -> int | None:
        """Has the manager stop what is not allowed any more and returns how many tasks; None when it is away.

        It then finds out by itself, within some seconds of its start.
        """
        try:
            return await self.services.manager.enforce()
        except PeerError as error:
            log.warning("failed to tell the manager of a change of rights: %s", error.message)
            return None
