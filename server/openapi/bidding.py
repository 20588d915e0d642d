"""The operations on bidding tasks, and the market lookups before one is made."""

from __future__ import annotations

from server.http.answers import (
    INVALID,
    MANAGER_AWAY,
    NOT_YOURS,
    TOO_MANY_RUN,
)
from server.openapi.operation import Operation, Parameter, many, one
from server.schemas import bidding_answers as answers
from server.schemas.actions import ActionResults, TaskActions
from server.schemas.task_bodies import BiddingTaskChange, NewBiddingTask

_TAG = "bidding tasks"
_TAKEN = "There is a task for this slug already."
NOT_ALLOWED = "The plan is over, or the address is not whitelisted any more."
_NO_SESSION = "The marketplace answers to a signed-in wallet only, and no running task has signed in there."

TAG = Parameter("tag", {"type": "string", "minLength": 1, "maxLength": 200}, "Only those with this tag.")

OPERATIONS = {
    "GET /api/tasks": Operation(
        id="listTasks",
        tag=_TAG,
        summary="My bidding tasks",
        text="With their configs, and the newest cycle of each. Ask with `If-None-Match` when it is polled.",
        query=(TAG,),
        success=many(answers.BiddingTask, "Oldest first."),
        errors={400: INVALID},
    ),
    "POST /api/tasks": Operation(
        id="createTask",
        tag=_TAG,
        summary="Create a bidding task",
        text="What is left out of the config is the default. Nothing is placed before a start.",
        body=NewBiddingTask,
        success=one(answers.BiddingTask, "Created; it is stopped.", 201, ("Location",)),
        errors={400: INVALID, 403: "The plan's task limit is reached.", 409: _TAKEN},
    ),
    "GET /api/tasks/{id}": Operation(
        id="getTask",
        tag=_TAG,
        summary="One bidding task",
        text="With its config and what its newest cycle did.",
        success=one(answers.BiddingTask, "The task."),
        errors={404: NOT_YOURS},
    ),
    "PUT /api/tasks/{id}": Operation(
        id="changeTask",
        tag=_TAG,
        summary="Change a bidding task",
        text="Changes only what is given; the worker of a running task is restarted with it.",
        body=BiddingTaskChange,
        success=one(answers.BiddingTask, "The task as it is now."),
        errors={400: INVALID, 403: NOT_ALLOWED, 404: NOT_YOURS, 409: _TAKEN, 429: TOO_MANY_RUN, 503: MANAGER_AWAY},
    ),
    "DELETE /api/tasks/{id}": Operation(
        id="deleteTask",
        tag=_TAG,
        summary="Stop and delete a bidding task",
        text="Answers when its worker has ended; the rest is drained in the background.",
        success=one(answers.DeletedBiddingTask, "Deleted; its bids are cancelled."),
        errors={404: NOT_YOURS, 503: MANAGER_AWAY},
    ),
    "POST /api/tasks/{id}/clone": Operation(
        id="cloneTask",
        tag=_TAG,
        summary="Create a bidding task like another",
        text="With the config, marketplace and tags of the other, but for what is given, which must have another slug.",
        body=BiddingTaskChange,
        success=one(answers.BiddingTask, "Created; it is stopped.", 201, ("Location",)),
        errors={400: INVALID, 403: "The plan's task limit is reached.", 404: NOT_YOURS, 409: _TAKEN},
    ),
    "POST /api/tasks/actions": Operation(
        id="actOnTasks",
        tag=_TAG,
        summary="Start, stop, delete or change many tasks",
        text="Each task gets the answer that its own operation would give; one that fails is no matter of the others. "
        "Ten are handled at a time.",
        body=TaskActions,
        success=one(ActionResults, "One result for each task."),
        errors={400: INVALID},
    ),
    "POST /api/tasks/{id}/start": Operation(
        id="startTask",
        tag=_TAG,
        summary="Start a bidding task",
        text="Answers when its worker runs. Starting a running task does nothing.",
        success=one(answers.BiddingTask, "It runs."),
        errors={
            400: "Its config asks for what cannot be done (yet); `details` has it.",
            403: NOT_ALLOWED,
            404: NOT_YOURS,
            429: TOO_MANY_RUN,
            503: MANAGER_AWAY,
        },
    ),
    "POST /api/tasks/{id}/stop": Operation(
        id="stopTask",
        tag=_TAG,
        summary="Stop a bidding task",
        text="Answers when its worker is gone and, with `cancelOnStop`, its bids are cancelled.",
        success=one(answers.StoppedBiddingTask, "It is stopped."),
        errors={404: NOT_YOURS, 503: "The manager is away; the wish is kept and holds when it is back."},
    ),
}
