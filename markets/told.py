"""Names, volumes and pictures of collections and runes in venues' answers to other questions.

They are for people who choose a name; no decision hangs on them. A reader of answers notes them here, which never
raises. The gateway listens around each call, and keeps what it gets.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from msgspec import Struct

from core.fields import INSCRIPTION
from markets import parse
from markets.base import Kind

_LONGEST = 200
_INSCRIPTION = re.compile(INSCRIPTION, re.ASCII)
_thread = threading.local()


class Told(Struct, frozen=True):
    """A collection or rune in one row of an answer; None = it is not there.

    `volume` is all that was paid at the venue, in sats. `item` is an inscription of the collection (or its icon's),
    `image_url` the address of the collection's picture, or of the item's.
    `is_public`: the venue showed it unasked, so that it says nothing about what a user here wants.
    """

    kind: Kind
    slug: str
    name: str | None = None
    floor: Decimal | None = None
    listed: int | None = None
    volume: int | None = None
    item: str | None = None
    image_url: str | None = None
    is_public: bool = False


@contextmanager
def telling(note: Callable[[Told], None]) -> Iterator[None]:
    """Gives `note` all collections and runes that this thread reads meanwhile."""
    before = getattr(_thread, "note", None)
    _thread.note = note
    try:
        yield
    finally:
        _thread.note = before


def tell(
    slug: Any,
    kind: Kind = "ordinals",
    *,
    name: Any = None,
    floor: Decimal | None = None,
    listed: int | None = None,
    volume: Any = None,
    item: Any = None,
    image: Any = None,
    asked: str | None = None,
) -> None:
    """Notes the collection or rune `slug`; what is not clearly a value is left out.

    `asked` is the one that was asked for, in an answer that may have others.
    """
    note = getattr(_thread, "note", None)
    if note is None or not isinstance(slug, str) or not 0 < len(slug) <= _LONGEST or not slug.isprintable():
        return
    known = (parse.name_to_show(name) or "").strip()
    note(
        Told(
            kind,
            slug,
            name=known or None,
            floor=floor,
            listed=listed,
            volume=_sats(volume),
            item=item if isinstance(item, str) and _INSCRIPTION.fullmatch(item) else None,
            image_url=parse.link(image),
            is_public=asked is not None and parse.same(asked) != parse.same(slug),
        )
    )


def _sats(value: Any) -> int | None:
    try:
        return parse.sats(parse.integral(value), "volume") or None
    except parse.Unreadable:
        return None
