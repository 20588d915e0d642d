"""Presets: a user's named configs of bidding tasks, to make tasks of."""

from __future__ import annotations

from collections.abc import Iterable

from peewee import BigIntegerField, CharField, ForeignKeyField, IntegrityError, TextField

from models.database.base import Row, primary_key, transaction
from models.users import User

MOST_PRESETS = 50  # of a user


class Preset(Row):
    """A named config: the JSON object of the fields that were given."""

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE", index=False)
    name = CharField(max_length=100)
    config = TextField()
    created_ms = BigIntegerField()
    updated_ms = BigIntegerField()

    class Meta:
        table_name = "presets"
        indexes = ((("user", "name"), True),)


class PresetExists(Exception):
    """A refusal: the user has presets of these names already."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(", ".join(names))


class TooManyPresets(Exception):
    """A refusal: the user has MOST_PRESETS already, or would have more."""


def of_user(user_id: int) -> list[Preset]:
    """Returns the user's presets by their names."""
    return list(Preset.select().where(Preset.user == user_id).order_by(Preset.name))


def own(user_id: int, preset_id: int) -> Preset | None:
    """Returns the user's preset of this id; None for another user's."""
    found: Preset | None = Preset.get_or_none(Preset.user == user_id, Preset.id == preset_id)
    return found


def add(user_id: int, named: Iterable[tuple[str, str]], now_ms: int, *, replaces: bool = False) -> list[Preset]:
    """Stores presets (name and config), all or none of them; `replaces`: those of the same names give way.

    Raises PresetExists or TooManyPresets.
    """
    wanted = dict(named)
    with transaction():
        there = {preset.name: preset for preset in of_user(user_id)}
        taken = [name for name in wanted if name in there]
        if taken and not replaces:
            raise PresetExists(taken)
        if len(there) + len(wanted) - len(taken) > MOST_PRESETS:
            raise TooManyPresets
        return [_stored(there.get(name), user_id, name, config, now_ms) for name, config in wanted.items()]


def _stored(known: Preset | None, user_id: int, name: str, config: str, now_ms: int) -> Preset:
    if known is None:
        made: Preset = Preset.create(user=user_id, name=name, config=config, created_ms=now_ms, updated_ms=now_ms)
        return made
    known.config, known.updated_ms = config, now_ms
    known.save()
    return known


def change(preset: Preset, now_ms: int, *, name: str | None = None, config: str | None = None) -> None:
    """Writes what is given. Raises PresetExists when the name is another preset's."""
    preset.name = preset.name if name is None else name
    preset.config = preset.config if config is None else config
    preset.updated_ms = now_ms
    try:
        with transaction():
            preset.save()
    except IntegrityError:
        raise PresetExists([preset.name]) from None


def remove(user_id: int, preset_id: int) -> bool:
    """Deletes the user's preset; tells whether there was one."""
    return bool(Preset.delete().where(Preset.user == user_id, Preset.id == preset_id).execute())
