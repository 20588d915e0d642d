"""Presets (a user's named configs), and the slugs of a user's tasks, orders, presets and wallets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal

from msgspec import Struct, field
from peewee import BigIntegerField, CharField, ForeignKeyField, IntegrityError, TextField

from models.database.base import Row, Statement, primary_key, transaction
from models.tasks.cycles import MINUTE
from models.tasks.tasks import BIDDING, Task
from models.users import User
from models.venue_memory import cached_wallet
from strategy.config.bid import canonical_slug, is_ticker, normal_slug

MOST_PRESETS = 50  # of a user


class Preset(Row):
    """A named config: a JSON object of the fields that the user set."""

    id = primary_key()
    user = ForeignKeyField(User, on_delete="CASCADE", index=False)
    name = CharField(max_length=100)
    config = TextField()
    created_ms = BigIntegerField()
    updated_ms = BigIntegerField()

    class Meta:
        indexes = ((("user", "name"), True),)


class PresetExists(Exception):
    """A refusal: the user has presets of these names already."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(", ".join(names))


class TooManyPresets(Exception):
    """A refusal: the user has MOST_PRESETS already, or would have more."""


def of_user(user_id: int) -> list[Preset]:
    """Returns the user's presets, sorted by name."""
    return list(Preset.select().where(Preset.user == user_id).order_by(Preset.name))


def own(user_id: int, preset_id: int) -> Preset | None:
    """Returns the user's preset of this id, or None."""
    found: Preset | None = Preset.get_or_none(Preset.user == user_id, Preset.id == preset_id)
    return found


def add(user_id: int, named: Iterable[tuple[str, str]], now_ms: int, *, replaces: bool = False) -> list[Preset]:
    """Stores presets (name and config), all or none; with `replaces` they replace presets of the same names.

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
    """Writes the given values. Raises PresetExists if another preset has the name."""
    preset.name = preset.name if name is None else name
    preset.config = preset.config if config is None else config
    preset.updated_ms = now_ms
    try:
        with transaction():
            preset.save()
    except IntegrityError:
        raise PresetExists([preset.name]) from None


def remove(user_id: int, preset_id: int) -> bool:
    """Deletes the user's preset; returns whether it existed."""
    return bool(Preset.delete().where(Preset.user == user_id, Preset.id == preset_id).execute())


TASK, ORDER, PRESET, WALLET = SOURCES = ("task", "order", "preset", "wallet")
_NEWEST_ORDERS = 2_000  # because orders are never deleted and a user may have millions
_MINUTE_MS = 60_000


class KnownSlug(Struct):
    """A slug of one `type` (`ordinals`, `rune`), its collection's name if known, and the user's bidding task on it."""

    type: str
    slug: str
    name: str | None = None
    sources: list[str] = field(default_factory=list)
    task_id: int | None = None


def known_slugs(user_id: int, addresses: Iterable[str]) -> list[KnownSlug]:
    """Returns the slugs of the user's tasks, newest orders and presets, and of the cached items at `addresses`."""
    found: dict[tuple[str, str], KnownSlug] = {}

    def known(source: str, type_: str, slug: str) -> KnownSlug:
        slug = canonical_slug(type_, slug)
        each = found.setdefault((type_, normal_slug(type_, slug)), KnownSlug(type_, slug))
        if source not in each.sources:
            each.sources.append(source)
        return each

    for task in Task.select().where(Task.user == user_id, Task.deleted_ms.is_null()):
        if task.kind == BIDDING:
            known(TASK, task.type, task.slug).task_id = task.id
        elif task.collection_id:
            known(TASK, "ordinals", task.collection_id)
    for slug in _of_orders(user_id):
        known(ORDER, "rune" if is_ticker(slug) else "ordinals", slug)
    for type_, slug in _of_presets(user_id):
        known(PRESET, type_, slug)
    for slug, name in _of_wallets(addresses):
        each = known(WALLET, "ordinals", slug)
        each.name = each.name or name
    return list(found.values())


_NEWEST = Statement("SELECT slug FROM orders WHERE user_id = :user ORDER BY id DESC LIMIT :most")
_FLOOR = Statement(
    """
    SELECT floor, minute FROM task_samples WHERE task_id = :task AND step = :step AND floor IS NOT NULL
    ORDER BY minute DESC LIMIT 1
    """
)


def last_floor(task_id: int) -> tuple[Decimal, int] | None:
    """Returns the floor in the task's newest sample and that minute's start in milliseconds, or None."""
    row = _FLOOR.row(task=task_id, step=MINUTE)
    return None if row is None else (Decimal(row[0]), row[1] * _MINUTE_MS)


def _of_orders(user_id: int) -> Iterator[str]:
    newest = _NEWEST.rows(user=user_id, most=_NEWEST_ORDERS)
    yield from dict.fromkeys(slug for (slug,) in newest)


def _of_presets(user_id: int) -> Iterator[tuple[str, str]]:
    for preset in of_user(user_id):
        config = json.loads(preset.config)
        if isinstance(slug := config.get("slug"), str) and slug:
            yield str(config.get("type", "ordinals")), slug


def _of_wallets(addresses: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for address in dict.fromkeys(addresses):
        for line in (cached_wallet(address, 0) or "").splitlines():
            item = json.loads(line)
            if item["collectionId"]:
                yield item["collectionId"], item["collectionName"]
