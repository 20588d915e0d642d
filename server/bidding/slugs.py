"""A search of the collections and runes that the caller has had to do with, for a field that one types into.

It asks no marketplace: what is typed costs no call, however fast, and tells nobody what others here trade.
"""

from __future__ import annotations

from typing import Any

from core import pasted
from models.known_slugs import SOURCES, KnownSlug, known_slugs, last_floor
from server.http import json_out
from server.http.base import SignedIn
from server.http.query import Query
from strategy.bid_config import CHOICES, normal_slug

MOST_SLUGS = 20


class SlugsHandler(SignedIn):
    """GET /api/tasks/slugs"""

    takes_query = True

    def get(self) -> None:
        query = Query(self, "q", "type")
        text, type_ = query.own_words("q") or "", query.choice("type", CHOICES["type"])
        query.refuse_faults()
        known = known_slugs(self.user.id, [self.user.address, self.user.ordinals_address])
        ranked = [(rank, each) for each in known if type_ in (None, each.type) and (rank := _rank(each, text))]
        ranked.sort(key=lambda pair: (pair[0], pair[1].slug))
        self.answer(
            {"slugs": [_as_json(each) for _, each in ranked[:MOST_SLUGS]], "isWhole": len(ranked) <= MOST_SLUGS}
        )


def _rank(known: KnownSlug, text: str) -> tuple[int, int] | None:
    """Returns where a slug stands among those found, least first; None when the text is neither in it nor its name."""
    texts = [normal_slug(known.type, known.slug).casefold(), (known.name or "").casefold()]
    name = pasted.without_spacers(text) if known.type == "rune" else text
    wanted = [name.casefold(), text.casefold()]
    places = [whole.find(part) for whole, part in zip(texts, wanted, strict=True)]
    if max(places) < 0:
        return None
    return (0 if 0 in places else 1), min(SOURCES.index(source) for source in known.sources)


def _as_json(known: KnownSlug) -> dict[str, Any]:
    floor, at_ms = (None if known.task_id is None else last_floor(known.task_id)) or (None, None)
    return {
        "slug": known.slug,
        "type": known.type,
        "name": known.name,
        "taskId": known.task_id,
        "sources": known.sources,
        "floor": floor,
        "floorAt": None if at_ms is None else json_out.iso(at_ms),
    }
