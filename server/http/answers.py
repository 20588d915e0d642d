"""The words and shapes that the answers of several nouns share."""

from __future__ import annotations

from typing import Literal

from server.http.shapes import Answer

NOT_YOURS = "There is no such task, or it is somebody else's."
INVALID = "The body or the query is wrong; `details` has every fault."
TOO_MANY_LOOKUPS = "You looked too often, or ask too much at once; `Retry-After` says when to come back."
TOO_MANY_LONG_READS = "More of your long reads wait than may; `Retry-After` says when to come back."
UNREADABLE = "The marketplace cannot be read."
TOO_SLOW = "The marketplace takes too long, or many calls to it wait; ask again soon."
SIGNER_AWAY = "The signer cannot be asked, or is locked."
TOO_MANY_RUN = "As many tasks run as this installation lets run at once; `Retry-After` says when to try again."
MANAGER_AWAY = "The manager, or a process that it needs, is away; nothing was changed."


class Success(Answer, frozen=True, kw_only=True):
    """It is done."""

    success: Literal[True] = True
