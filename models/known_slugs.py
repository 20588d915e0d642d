"""The collections and runes that this installation knows of a user by what the user has done here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from models.database.base import Statement
from models.inscriptions import cached_wallet
from models.presets import of_user
from models.tasks.samples import MINUTE
from models.tasks.tasks import BIDDING, Task
from strategy.bid_config import canonical_slug, is_ticker, normal_slug

TASK, ORDER, PRESET, WALLET = SOURCES = ("task", "order", "preset", "wallet")
_NEWEST_ORDERS = 2_000  # a user's orders are never deleted, and there may be millions
_MINUTE_MS = 60_000


@dataclass(slots=True)
class KnownSlug:
    """A slug of one `type` (`ordinals`, `rune`), its collection's name if known, and the user's bidding task on it."""

    type: str
    slug: str
    name: str | None = None
    sources: list[str] = field(default_factory=list)
    task_id: int | None = None


def known_slugs(user_id: int, addresses: Iterable[str]) -> list[KnownSlug]:
    """Returns the slugs of the user's tasks, newest orders, presets, and of the items last seen at their addresses."""
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
    """Returns the floor that the task saw last, and the beginning of that minute in milliseconds."""
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
