"""The operations on the control of all bids."""

from __future__ import annotations

from server.http.answers import INVALID
from server.openapi.operation import Operation, one
from server.schemas import control

_TAG = "control"

OPERATIONS = {
    "GET /api/control": Operation(
        id="getControl",
        tag=_TAG,
        summary="Whether my bids and listings may be placed",
        text="For everybody, for the caller, and for each task that has a state of its own.",
        success=one(control.Controls, "The states that apply to me; the strictest holds."),
    ),
    "PUT /api/control": Operation(
        id="setControl",
        tag=_TAG,
        summary="Stop placing bids, cancel all of them, or go on",
        text=f"{control.STATE_TEXT} It holds immediately and survives restarts: open bids that must go are cancelled "
        "together, and `closing` counts those that are still there. A stricter state waits for nothing.",
        body=control.ControlChange,
        success=one(control.ControlsChanged, "It is stored."),
        errors={
            400: INVALID,
            403: "The global state is for admins.",
            404: "There is no such task, or it is somebody else's.",
            409: "It was changed at the same time; nothing was loosened.",
            429: "Too many states were loosened within a minute; `Retry-After` says when to come back.",
            503: "The signer cannot be told, so nothing was loosened. Or a stricter state is in force, and not yet "
            "stored.",
        },
    ),
}
