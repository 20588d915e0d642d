"""The replay of bidding tasks."""

from __future__ import annotations

from server.http.answers import (
    INVALID,
    NOT_YOURS,
)
from server.openapi.operation import Operation, one
from server.replay.schemas import Replay, TaskReplay

_TAG = "bidding tasks"
_TAKEN = "There is a task for this slug already."
NOT_ALLOWED = "The plan is over, or the address is not whitelisted any more."
_NO_SESSION = "The marketplace answers to a signed-in wallet only, and no running task has signed in there."

OPERATIONS = {
    "POST /api/tasks/{id}/replay": Operation(
        id="replayTask",
        tag=_TAG,
        summary="What a config would have done on the recorded past",
        text="Runs the task's journal through the decision of a worker, with the task's own config and with the "
        "changed one, on a market on paper. What the journal cannot tell is null and named. It takes seconds, in "
        "a process of its own: one at a time for a user.",
        body=TaskReplay,
        success=one(Replay, "Both results."),
        errors={
            400: INVALID,
            404: NOT_YOURS,
            409: "Nothing is recorded of that time: the task has no journal yet, or it begins later.",
            429: "A replay of yours runs, or more of all users wait than may; `Retry-After` says when to try again.",
            503: "It took too long, or its process ended; a shorter time may do.",
        },
    ),
}
