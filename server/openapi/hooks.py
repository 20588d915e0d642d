"""The operations on hooks."""

from __future__ import annotations

from models.hooks.bounds import CODE_AGAIN_MS, CODES_A_DAY, CODES_OF_ADDRESS_A_DAY
from models.hooks.codes import CODE_MS, MOST_TRIES
from server.hooks.handler import DEFAULT_DELIVERIES, MOST_DELIVERIES
from server.http.answers import INVALID
from server.openapi.operation import Operation, Parameter, many, one
from server.schemas.answers import Success
from server.schemas.hooks import Deliveries, DeliveryShown, HookChange, HookCode, HookMade, HookShown, NewHook

_TAG = "hooks"
_NOT_YOURS = "There is none of this id, or it is somebody else's."
_NO_CODE = "The hook waits for its code."
_TOO_MANY = "Too much was sent by hand; `Retry-After` says when to try again."

OPERATIONS = {
    "GET /api/hooks": Operation(
        id="listHooks",
        tag=_TAG,
        summary="My hooks",
        text="Where you are told what happens, oldest first.",
        success=many(HookShown, "Without their secrets."),
    ),
    "POST /api/hooks": Operation(
        id="createHook",
        tag=_TAG,
        summary="Be told somewhere",
        text="It is told of what happens from now on. Addresses must be public and https, unless the operator allows "
        "others. A mail hook is mailed a code, and waits for it: see `confirmHook`.",
        body=NewHook,
        success=one(HookMade, "Made. A webhook's key, if it was made here, is told this once.", 201, ("Location",)),
        errors={400: INVALID, 403: "You have as many hooks as you may."},
    ),
    "GET /api/hooks/{id}": Operation(
        id="getHook",
        tag=_TAG,
        summary="One hook",
        text="With the number of deliveries that wait.",
        success=one(HookShown, "The hook."),
        errors={404: _NOT_YOURS},
    ),
    "PUT /api/hooks/{id}": Operation(
        id="changeHook",
        tag=_TAG,
        summary="Change a hook",
        text="Only what is given changes. What has happened before is delivered as it was. Another address of a mail "
        "hook waits for a new code.",
        body=HookChange,
        success=one(HookShown, "The hook."),
        errors={400: INVALID, 404: _NOT_YOURS},
    ),
    "DELETE /api/hooks/{id}": Operation(
        id="deleteHook",
        tag=_TAG,
        summary="Delete a hook",
        text="With all that waits for it.",
        success=one(Success, "Deleted."),
        errors={404: _NOT_YOURS},
    ),
    "POST /api/hooks/{id}/test": Operation(
        id="testHook",
        tag=_TAG,
        summary="Try a hook",
        text="Sends an event `test`, once. Look at its delivery for what became of it.",
        success=one(DeliveryShown, "It will be sent in a moment.", 202),
        errors={404: _NOT_YOURS, 409: _NO_CODE, 429: _TOO_MANY},
    ),
    "POST /api/hooks/{id}/code": Operation(
        id="sendHookCode",
        tag=_TAG,
        summary="Send a mail hook a new code",
        text=f"To an address at most {CODES_OF_ADDRESS_A_DAY} a day and one in {CODE_AGAIN_MS // 60_000} minutes, for "
        f"you at most {CODES_A_DAY} a day. An address that you have confirmed before has that many for you alone. "
        "A new code ends the one before.",
        success=one(HookShown, "It will be sent as soon as you may be sent a mail.", 202),
        errors={404: _NOT_YOURS, 409: "It waits for no code.", 429: "`Retry-After` says when to try again."},
    ),
    "POST /api/hooks/{id}/confirm": Operation(
        id="confirmHook",
        tag=_TAG,
        summary="Confirm a mail hook's address",
        text=f"With the code from its mail, within {CODE_MS // 60_000} minutes. After {MOST_TRIES} wrong tries a code "
        "is void. From then on the hook is told of what happened since it was made.",
        body=HookCode,
        success=one(HookShown, "Confirmed."),
        errors={400: "`details` says what is wrong with the code.", 404: _NOT_YOURS, 409: "It waits for no code."},
    ),
    "GET /api/hooks/{id}/deliveries": Operation(
        id="listDeliveries",
        tag=_TAG,
        summary="What a hook was told",
        text="Of all that wait and the newest 200 others.",
        query=(
            Parameter(
                "limit",
                {"type": "integer", "minimum": 1, "maximum": MOST_DELIVERIES, "default": DEFAULT_DELIVERIES},
                "Most of them to answer.",
            ),
        ),
        success=one(Deliveries, "Newest first."),
        errors={400: INVALID, 404: _NOT_YOURS},
    ),
    "POST /api/hooks/{id}/deliveries/{deliveryId}/redeliver": Operation(
        id="redeliver",
        tag=_TAG,
        summary="Send one once more",
        text="With all its tries anew.",
        success=one(DeliveryShown, "It will be sent in a moment.", 202),
        errors={404: _NOT_YOURS, 409: f"It waits to be sent already, or is a code. {_NO_CODE}", 429: _TOO_MANY},
    ),
}
