"""The caller's presets: named configs of bidding tasks, one by one and as a file."""

from __future__ import annotations

from typing import Any

from models import presets
from models.presets import MOST_PRESETS, Preset, PresetExists, TooManyPresets
from server.bidding.tasks import refuse_unknown_budget
from server.http import json_out
from server.http.api_errors import ApiError, invalid, not_found
from server.http.base import SignedIn
from server.http.json_out import Raw
from server.schemas.presets import VERSION, NewPreset, PresetChange, PresetFile, judged


class PresetHandler(SignedIn):
    """The common part of operations on presets."""

    def preset(self, text: str) -> Preset:
        """Returns the caller's own preset with this id in the path. Raises ApiError (404)."""
        found = presets.own(self.user.id, self.path_id(text))
        if found is None:
            raise not_found()
        return found

    def checked(self, config: dict[str, Any], where: str = "") -> dict[str, Any]:
        """Returns a config with its slug in plain form. Raises ApiError (400) for one that no task could have."""
        found, faults = judged(config, self.services.settings)
        if faults:
            raise invalid([f"{where}{fault}" for fault in faults])
        refuse_unknown_budget(self.user.id, found)
        return config | {"slug": found.slug} if "slug" in config else config

    def stored(self, wanted: list[NewPreset], *, replaces: bool = False) -> list[Preset]:
        """Stores presets, all or none. Raises ApiError: 409, 403."""
        named = [(preset.name, json_out.dumps(preset.config)) for preset in wanted]
        try:
            return presets.add(self.user.id, named, self.now_ms, replaces=replaces)
        except PresetExists as error:
            raise _taken(error) from None
        except TooManyPresets:
            message = f"You may have {MOST_PRESETS} presets."
            raise ApiError(403, "Preset limit reached", message=message) from None


class PresetsHandler(PresetHandler):
    """GET and POST /api/presets"""

    def get(self) -> None:
        self.answer([_as_json(preset) for preset in presets.of_user(self.user.id)])

    def post(self) -> None:
        body = self.body(NewPreset)
        (preset,) = self.stored([body.model_copy(update={"config": self.checked(body.config)})])
        self.set_header("Location", f"/api/presets/{preset.id}")
        self.answer(_as_json(preset), 201)


class OnePresetHandler(PresetHandler):
    """GET, PUT and DELETE /api/presets/:id"""

    def get(self, preset_id: str) -> None:
        self.answer(_as_json(self.preset(preset_id)))

    def put(self, preset_id: str) -> None:
        preset, body = self.preset(preset_id), self.body(PresetChange)
        config = None if body.config is None else json_out.dumps(self.checked(body.config))
        try:
            presets.change(preset, self.now_ms, name=body.name, config=config)
        except PresetExists as error:
            raise _taken(error) from None
        self.answer(_as_json(preset))

    def delete(self, preset_id: str) -> None:
        if not presets.remove(self.user.id, self.path_id(preset_id)):
            raise not_found()
        self.answer({"success": True})


class PresetExportHandler(SignedIn):
    """GET /api/presets/export"""

    def get(self) -> None:
        found = presets.of_user(self.user.id)
        shown = [{"name": preset.name, "config": Raw(preset.config)} for preset in found]
        self.answer({"version": VERSION, "presets": shown})


class PresetImportHandler(PresetHandler):
    """POST /api/presets/import"""

    def post(self) -> None:
        body = self.body(PresetFile)
        names = [preset.name for preset in body.presets]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise invalid([f"presets: {name} is there twice" for name in twice])
        checked = [
            preset.model_copy(update={"config": self.checked(preset.config, f"presets: {place}.config ")})
            for place, preset in enumerate(body.presets)
        ]
        self.answer({"presets": [_as_json(preset) for preset in self.stored(checked, replaces=body.replace)]})


def _taken(error: PresetExists) -> ApiError:
    return ApiError(409, "There are presets of these names", message=str(error))


def _as_json(preset: Preset) -> dict[str, object]:
    return {
        "id": preset.id,
        "name": preset.name,
        "config": Raw(preset.config),
        "createdAt": json_out.iso(preset.created_ms),
        "updatedAt": json_out.iso(preset.updated_ms),
    }
