"""The operations on auto-list tasks and inscriptions."""

from __future__ import annotations

from markets.pictures import MEDIA
from server.http.answers import (
    INVALID,
    MANAGER_AWAY,
    NOT_YOURS,
    SIGNER_AWAY,
    TOO_MANY_LOOKUPS,
    TOO_MANY_RUN,
    TOO_SLOW,
    UNREADABLE,
)
from server.listing import placeholder
from server.openapi.operation import AnswerBody, Operation, Parameter, many, one
from server.schemas.listing import answers as answers
from server.schemas.listing import preview as preview
from server.schemas.listing.preview import AutolistPreview
from server.schemas.task_bodies import AutolistTaskChange, NewAutolistTask
from server.tasks import NOT_ALLOWED

_TAG = "auto-list tasks"
_INSCRIPTIONS = "inscriptions"
_DRAWN = (*MEDIA[1:], placeholder.MEDIA)
_REFRESH = Parameter(
    "refresh", {"type": "string"}, "`1` reads afresh what is older than 20 seconds; else it is kept for 5 minutes."
)


TAG = Parameter("tag", {"type": "string", "minLength": 1, "maxLength": 200}, "Only those with this tag.")

OPERATIONS = {
    "GET /api/autolist": Operation(
        id="listAutolistTasks",
        tag=_TAG,
        summary="My auto-list tasks",
        text="With their configs, the newest listing and the newest cycle of each.",
        query=(TAG,),
        success=many(answers.AutolistTask, "Oldest first."),
        errors={400: INVALID},
    ),
    "POST /api/autolist": Operation(
        id="createAutolistTask",
        tag=_TAG,
        summary="Create an auto-list task",
        text="What is left out of the config is the default. Nothing is listed before a start.",
        body=NewAutolistTask,
        success=one(answers.WrittenAutolistTask, "Created; it is stopped.", 201, ("Location",)),
        errors={
            400: INVALID,
            403: "There are 500 auto-list tasks already.",
            409: "There is a task for this inscription already.",
        },
    ),
    "POST /api/autolist/preview": Operation(
        id="previewAutolistTask",
        tag=_TAG,
        summary="The price that would be asked now, and why",
        text="Decided as in a live cycle; then the marketplace drafts the listing and the signer judges the draft. "
        "Nothing is signed or listed.",
        body=AutolistPreview,
        success=one(preview.ListingPreview, "What a cycle would do now."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LOOKUPS, 503: SIGNER_AWAY, 504: TOO_SLOW},
    ),
    "GET /api/autolist/{id}": Operation(
        id="getAutolistTask",
        tag=_TAG,
        summary="One auto-list task",
        text="With its config, its newest listing and what its newest cycle did.",
        success=one(answers.AutolistTask, "The task."),
        errors={404: NOT_YOURS},
    ),
    "PUT /api/autolist/{id}": Operation(
        id="changeAutolistTask",
        tag=_TAG,
        summary="Change an auto-list task",
        text="Changes only what is given. A running task starts anew with the result; its listing is edited in place.",
        body=AutolistTaskChange,
        success=one(answers.WrittenAutolistTask, "The task as it is now."),
        errors={400: INVALID, 403: NOT_ALLOWED, 404: NOT_YOURS, 429: TOO_MANY_RUN, 503: MANAGER_AWAY},
    ),
    "DELETE /api/autolist/{id}": Operation(
        id="deleteAutolistTask",
        tag=_TAG,
        summary="Delete an auto-list task",
        text="Ends its worker and cancels its listing. What the marketplace does not cancel at once is tried again "
        "until it is gone.",
        success=one(answers.DeletedAutolistTask, "Deleted."),
        errors={404: NOT_YOURS, 503: MANAGER_AWAY},
    ),
    "POST /api/autolist/{id}/start": Operation(
        tag=_TAG,
        id="startAutolistTask",
        summary="Start an auto-list task",
        text="Answers when its worker runs. Starting a running task does nothing. A listing that is there is adopted.",
        success=one(answers.AutolistTask, "It runs."),
        errors={
            400: "Its config leaves something open, or there is no such inscription; `details` has it.",
            403: NOT_ALLOWED,
            404: NOT_YOURS,
            409: "The inscription is not in the vault; `message` says where to send it.",
            429: TOO_MANY_RUN,
            503: f"{SIGNER_AWAY} Or: {MANAGER_AWAY}",
        },
    ),
    "POST /api/autolist/{id}/stop": Operation(
        tag=_TAG,
        id="stopAutolistTask",
        summary="Stop an auto-list task",
        text="Answers when its worker is gone. The listing stays at the marketplace.",
        success=one(answers.StoppedAutolistTask, "It is stopped."),
        errors={404: NOT_YOURS, 503: "The manager is away; the wish is kept and holds when it is back."},
    ),
    "GET /api/autolist/wallet/ordinals": Operation(
        id="listInscriptions",
        tag=_INSCRIPTIONS,
        summary="Inscriptions at my ordinals address and vault",
        text="Each with the address that holds it, and its listing where the marketplace knows one.",
        query=(_REFRESH,),
        success=many(answers.WalletInscription, "At most 500."),
        errors={
            400: INVALID,
            404: "The marketplace does not know an address.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
    ),
    "GET /api/autolist/item/{inscriptionId}": Operation(
        id="getInscription",
        tag=_INSCRIPTIONS,
        summary="One inscription",
        text="What the marketplace of the installation tells of it; what it does not tell is null.",
        query=(_REFRESH,),
        success=one(answers.Inscription, "The inscription."),
        errors={400: INVALID, 404: "There is no such inscription.", 429: TOO_MANY_LOOKUPS, 502: UNREADABLE},
    ),
    "GET /api/autolist/item/{inscriptionId}/image": Operation(
        id="getInscriptionPicture",
        tag=_INSCRIPTIONS,
        summary="The picture of one inscription",
        text="Fetched by the service, so that a browser asks nobody else what its owner holds. Its type is found in "
        "its bytes, of which there are 2,000,000 at most. In place of anything else (a page, SVG, text, a picture that "
        "cannot be had now) a drawing says so, whose type is `image/svg+xml`, as no picture's is.",
        success={200: AnswerBody("The picture, or a drawing in its place.", None, media=MEDIA[0], others=_DRAWN)},
        errors={404: "There is no such inscription.", 429: TOO_MANY_LOOKUPS, 502: UNREADABLE},
    ),
}
