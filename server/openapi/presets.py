"""The operations on presets."""

from __future__ import annotations

from server.http.answers import INVALID, NOT_YOURS
from server.openapi.operation import Operation, many, one
from server.schemas import presets
from server.schemas.answers import Success

_TAG = "presets"
_TAKEN = "There is a preset of this name already."
_FULL = "There are as many presets as a user may have."

OPERATIONS = {
    "GET /api/presets": Operation(
        id="listPresets",
        tag=_TAG,
        summary="My presets",
        text="Named configs, to make bidding tasks of.",
        success=many(presets.PresetShown, "By their names."),
    ),
    "POST /api/presets": Operation(
        id="createPreset",
        tag=_TAG,
        summary="Store a preset",
        text="Its config is judged as that of a new bidding task for some slug; what is left out stays left out.",
        body=presets.NewPreset,
        success=one(presets.PresetShown, "Stored.", 201, ("Location",)),
        errors={400: INVALID, 403: _FULL, 409: _TAKEN},
    ),
    "GET /api/presets/{id}": Operation(
        id="getPreset",
        tag=_TAG,
        summary="One preset",
        text="By its id.",
        success=one(presets.PresetShown, "The preset."),
        errors={404: NOT_YOURS},
    ),
    "PUT /api/presets/{id}": Operation(
        id="changePreset",
        tag=_TAG,
        summary="Change a preset",
        text="Name, config or both. Tasks that were made of it stay as they are.",
        body=presets.PresetChange,
        success=one(presets.PresetShown, "The preset as it is now."),
        errors={400: INVALID, 404: NOT_YOURS, 409: _TAKEN},
    ),
    "DELETE /api/presets/{id}": Operation(
        id="deletePreset",
        tag=_TAG,
        summary="Delete a preset",
        text="Tasks that were made of it stay.",
        success=one(Success, "Deleted."),
        errors={404: NOT_YOURS},
    ),
    "GET /api/presets/export": Operation(
        id="exportPresets",
        tag=_TAG,
        summary="All my presets as a file",
        text="As `importPresets` takes them, here or at another installation.",
        success=one(presets.PresetExport, "All of them."),
    ),
    "POST /api/presets/import": Operation(
        id="importPresets",
        tag=_TAG,
        summary="Store the presets of a file",
        text="All or none; each is judged as by `createPreset`.",
        body=presets.PresetFile,
        success=one(presets.ImportedPresets, "Stored, in the file's order."),
        errors={400: INVALID, 403: _FULL, 409: "There are presets of these names, and `replace` is not set."},
    ),
}
