"""The operations on auto-list tasks and inscriptions."""

from __future__ import annotations

from server.openapi.operation import INVALID, NOT_YOURS, SIGNER_AWAY, UNREADABLE, Operation, Parameter, many, one
from server.schemas import answers
from server.schemas.task_bodies import AutolistTaskChange, NewAutolistTask

_TAG = "auto-list tasks"
_INSCRIPTIONS = "inscriptions"
_REFRESH = Parameter("refresh", {"type": "string"}, "`1` reads afresh what is else kept for 5 minutes.")

OPERATIONS = {
    "GET /api/autolist": Operation(
        id="listAutolistTasks",
        tag=_TAG,
        summary="My auto-list tasks",
        success=many(answers.AutolistTask, "Oldest first."),
    ),
    "POST /api/autolist": Operation(
        id="createAutolistTask",
        tag=_TAG,
        summary="Create an auto-list task",
        body=NewAutolistTask,
        success=one(answers.AutolistTask, "Created; it is stopped.", 201, ("Location",)),
        errors={400: INVALID, 409: "There is a task for this inscription already."},
    ),
    "GET /api/autolist/{id}": Operation(
        id="getAutolistTask",
        tag=_TAG,
        summary="One auto-list task",
        success=one(answers.AutolistTask, "The task."),
        errors={404: NOT_YOURS},
    ),
    "PUT /api/autolist/{id}": Operation(
        id="changeAutolistTask",
        tag=_TAG,
        summary="Change an auto-list task",
        text="Changes only what is given.",
        body=AutolistTaskChange,
        success=one(answers.AutolistTask, "The task as it is now."),
        errors={400: INVALID, 404: NOT_YOURS},
    ),
    "DELETE /api/autolist/{id}": Operation(
        id="deleteAutolistTask",
        tag=_TAG,
        summary="Delete an auto-list task",
        success=one(answers.DeletedAutolistTask, "Deleted."),
        errors={404: NOT_YOURS},
    ),
    "POST /api/autolist/{id}/start": Operation(
        id="startAutolistTask",
        tag=_TAG,
        summary="Start an auto-list task",
        text="Refused for now: listings cannot be signed yet.",
        success={},
        errors={400: "It cannot be started yet.", 404: NOT_YOURS},
    ),
    "POST /api/autolist/{id}/stop": Operation(
        id="stopAutolistTask",
        tag=_TAG,
        summary="Stop an auto-list task",
        text="The listing stays at the marketplace.",
        success=one(answers.AutolistTask, "It is stopped."),
        errors={404: NOT_YOURS},
    ),
    "GET /api/autolist/wallet/ordinals": Operation(
        id="listInscriptions",
        tag=_INSCRIPTIONS,
        summary="Inscriptions at my ordinals address and vault",
        query=(_REFRESH,),
        success=many(answers.WalletInscription, "At most 500."),
        errors={400: INVALID, 404: "The marketplace does not know an address.", 502: UNREADABLE, 503: SIGNER_AWAY},
    ),
    "GET /api/autolist/item/{inscriptionId}": Operation(
        id="getInscription",
        tag=_INSCRIPTIONS,
        summary="One inscription",
        query=(_REFRESH,),
        success=one(answers.Inscription, "The inscription."),
        errors={400: INVALID, 404: "There is no such inscription.", 502: UNREADABLE},
    ),
}
