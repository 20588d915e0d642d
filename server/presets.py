"""The caller's presets: named configs of bidding tasks, one by one and as a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, UnsetType

from core.fields import Time, text_of, words
from models import presets
from models.accounts import READ, TRADE
from models.presets import MOST_PRESETS, PresetExists, TooManyPresets
from server import task_config, task_handler
from server.http.answers import INVALID, NOT_YOURS, ApiError, Success, invalid, not_found
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Body, Wrong, described_as, dumps, read_by, shown_as
from server.task_config import BiddingTaskChange
from server.tasks import refuse_unknown_budget

VERSION = 1
_ANY_SLUG = "ANY"  # valid as a collection's slug and as a ticker
_TAKEN = "There is a preset of this name already."
_FULL = "There are as many presets as a user may have."


def _version(value: Any) -> int:
    if value != VERSION or isinstance(value, bool):
        raise Wrong(f"must be {VERSION}")
    return VERSION


Name = Annotated[str, text_of(1, 100)]
Config = Annotated[dict[str, Any], described_as(BiddingTaskChange)]  # `_checked` judges it
StoredConfig = Annotated[Raw, described_as(BiddingTaskChange)]


class NewPreset(Body, frozen=True, kw_only=True):
    """A named config of bidding tasks."""

    name: Name
    config: Annotated[Config, words("Fields of a new bidding task; a slug is not needed.")]


class PresetChange(Body, frozen=True, kw_only=True):
    """A change of a preset; a config is replaced as a whole."""

    name: Name | UnsetType = UNSET
    config: Config | UnsetType = UNSET


class PresetFile(Body, frozen=True, kw_only=True):
    """Presets as `exportPresets` writes them."""

    version: Annotated[Literal[1], read_by(_version)]
    presets: Annotated[tuple[NewPreset, ...], Meta(max_length=MOST_PRESETS)]
    replace: Annotated[bool, words("Presets of the same names give way; else they are 409.")] = False


class PresetShown(Answer, frozen=True, kw_only=True):
    """A named config of bidding tasks."""

    id: int
    name: str
    config: Annotated[StoredConfig, words("The fields that were given.")]
    created_at: Time
    updated_at: Time


class PresetInFile(Answer, frozen=True, kw_only=True):
    """One preset of a file."""

    name: str
    config: StoredConfig


class PresetExport(Answer, frozen=True, kw_only=True):
    """All presets, as `importPresets` takes them."""

    version: Literal[1] = 1
    presets: list[PresetInFile]


class ImportedPresets(Answer, frozen=True, kw_only=True):
    """The presets that were stored."""

    presets: list[PresetShown]


class Presets(SignedIn):
    """The operations on the caller's presets."""

    tag = "presets"

    def own(self, preset_id: str) -> presets.Preset:
        """Returns the caller's preset of this id. Raises ApiError (404)."""
        found = presets.own(self.user.id, self.path_id(preset_id))
        if found is None:
            raise not_found()
        return found

    @route("GET /api/presets", READ, says="By their names.")
    def list_presets(self) -> list[PresetShown]:
        """My presets

        Named configs, to make bidding tasks of.
        """
        return [_shown(preset) for preset in presets.of_user(self.user.id)]

    @route(
        "POST /api/presets",
        TRADE,
        says="Stored.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: _FULL, 409: _TAKEN},
    )
    def create_preset(self, given: NewPreset) -> PresetShown:
        """Store a preset

        Its config is judged as that of a new bidding task for some slug; what is left out stays left out.
        """
        (preset,) = self._stored([(given.name, self._checked(given.config))])
        self.set_header("Location", f"/api/presets/{preset.id}")
        return _shown(preset)

    @route("GET /api/presets/export", READ, says="All of them.")
    def export_presets(self) -> PresetExport:
        """All my presets as a file

        As `importPresets` takes them, here or at another installation.
        """
        found = presets.of_user(self.user.id)
        return PresetExport(presets=[PresetInFile(name=each.name, config=_raw(each.config)) for each in found])

    @route(
        "POST /api/presets/import",
        TRADE,
        says="Stored, in the file's order.",
        errors={400: INVALID, 403: _FULL, 409: "There are presets of these names, and `replace` is not set."},
    )
    def import_presets(self, given: PresetFile) -> ImportedPresets:
        """Store the presets of a file

        All or none; each is judged as by `createPreset`.
        """
        names = [preset.name for preset in given.presets]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise invalid([f"presets: {name} is there twice" for name in twice])
        checked = [
            (preset.name, self._checked(preset.config, f"presets: {place}.config "))
            for place, preset in enumerate(given.presets)
        ]
        return ImportedPresets(presets=[_shown(each) for each in self._stored(checked, replaces=given.replace)])

    @route("GET /api/presets/{id}", READ, of=own, says="The preset.", errors={404: NOT_YOURS})
    def get_preset(self, preset: presets.Preset) -> PresetShown:
        """One preset

        By its id.
        """
        return _shown(preset)

    @route(
        "PUT /api/presets/{id}",
        TRADE,
        of=own,
        says="The preset as it is now.",
        errors={400: INVALID, 404: NOT_YOURS, 409: _TAKEN},
    )
    def change_preset(self, preset: presets.Preset, given: PresetChange) -> PresetShown:
        """Change a preset

        Name, config or both. Tasks that were made of it stay as they are.
        """
        config = None if given.config is UNSET else self._checked(given.config)
        try:
            presets.change(preset, self.now_ms, name=given.name or None, config=config)
        except PresetExists as error:
            raise _taken(error) from None
        return _shown(preset)

    @route("DELETE /api/presets/{id}", TRADE, of=own, says="Deleted.", errors={404: NOT_YOURS})
    def delete_preset(self, preset: presets.Preset) -> Success:
        """Delete a preset

        Tasks that were made of it stay.
        """
        if not presets.remove(self.user.id, preset.id):
            raise not_found()
        return Success()

    def _checked(self, given: dict[str, Any], where: str = "") -> str:
        """Returns a config in its stored form, with a normalised slug.

        Raises ApiError (400) for a config that is not valid for any new task, whatever its slug.
        """
        config, details = task_config.merged({"slug": _ANY_SLUG, **given}, None)
        venue, unknown = task_handler.named_venue(given, self.services.settings)
        if faults := [*details, *unknown] or task_handler.unfit_for_bids(venue, config):
            raise invalid([f"{where}{fault}" for fault in faults])
        refuse_unknown_budget(self.user.id, config)
        return dumps(given | {"slug": config.slug} if "slug" in given else given)

    def _stored(self, wanted: list[tuple[str, str]], *, replaces: bool = False) -> list[presets.Preset]:
        """Stores presets (name, config), all or none. Raises ApiError: 409, 403."""
        try:
            return presets.add(self.user.id, wanted, self.now_ms, replaces=replaces)
        except PresetExists as error:
            raise _taken(error) from None
        except TooManyPresets:
            message = f"You may have {MOST_PRESETS} presets."
            raise ApiError(403, "Preset limit reached", message=message) from None


def _taken(error: PresetExists) -> ApiError:
    return ApiError(409, "There are presets of these names", message=str(error))


def _raw(config: str) -> Raw:
    return Raw(config.encode())


def _shown(preset: presets.Preset) -> PresetShown:
    return shown_as(PresetShown, preset, config=_raw(preset.config))
