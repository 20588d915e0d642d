"""Collections and runes by name, as the answers of a venue show them: kept for people to choose from.

No venue is asked for them. Of each venue the MOST_KEPT seen last are kept, each for KEPT_MS after it was seen last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from msgspec.structs import asdict, replace

from gateway.program import Call, answers
from markets import verbs
from markets.base import Kind, Known
from markets.parse import same
from markets.told import Told
from markets.verbs import text

MOST_KEPT = 2_000  # below a kilobyte each
KEPT_MS = 30 * 86_400_000
MOST_FOUND = 20  # by a part of a name
_FACE = ("item", "image_url")


class Directory:
    """The collections and runes that one venue showed. `note` may be called in any thread; `now_ms` is the epoch.

    `shows_items`: pictures are found by an inscription's id alone, as on the practice market.
    """

    def __init__(self, now_ms: Callable[[], int], *, shows_items: bool = False) -> None:
        self._now_ms = now_ms
        self._shows_items = shows_items
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Kind, str], Known] = OrderedDict()

    def note(self, told: Told) -> None:
        """Keeps this; what it leaves out stays as it was."""
        now_ms, key = self._now_ms(), (told.kind, same(told.slug))
        with self._lock:
            known = self._kept.pop(key, None) or Known(told.kind, told.slug)
            self._kept[key] = self._joined(known, told, now_ms)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def _joined(self, known: Known, told: Told, now_ms: int) -> Known:
        given = {name: value for name, value in asdict(told).items() if value is not None and name not in _FACE}
        given["is_public"] = told.is_public or known.is_public
        if told.listed is not None:  # it has a floor, or nothing is listed
            given |= {"floor": told.floor, "floor_ms": now_ms}
        is_picture = told.image_url is not None or (self._shows_items and told.item is not None)
        # The picture stays: of many items of a collection, the first is its face.
        if is_picture and not (known.image_url or (self._shows_items and known.item)):
            given |= {"item": told.item, "image_url": told.image_url}
        return replace(known, **given, told_ms=now_ms)

    def of(self, kind: Kind, slugs: Iterable[str]) -> list[Known]:
        """Returns what is known of these."""
        with self._lock:
            found = [self._kept.get((kind, same(slug))) for slug in slugs]
        return self._young(each for each in found if each is not None)

    def named(self, kind: Kind, part: str, *, only_public: bool = False) -> list[Known]:
        """Returns those whose slug or name has `part`: the most traded first, of equals those that begin with it."""
        wanted = same(part).strip()
        bare = wanted.replace(" ", "")
        with self._lock:
            every = [known for (its, _), known in self._kept.items() if its == kind]
            every = [known for known in every if known.is_public or not only_public]

        def rank(known: Known) -> tuple[int, bool, str]:
            starts = _texts(known)[0].startswith(bare) or _texts(known)[1].startswith(wanted)
            return -(known.volume or 0), not starts, known.slug

        found = (each for each in every if bare in _texts(each)[0] or wanted in _texts(each)[1])
        return sorted(self._young(found), key=rank)

    def __len__(self) -> int:
        return len(self._kept)

    def _young(self, found: Iterable[Known]) -> list[Known]:
        since_ms = self._now_ms() - KEPT_MS
        return [each for each in found if each.told_ms > since_ms]


def _texts(known: Known) -> tuple[str, str]:
    return same(known.slug), same(known.name or "")


class Directories:
    """Answers for one marketplace: from its own directory, and for runes also from that of their provider."""

    def __init__(self, *told: Directory) -> None:
        self._told = dict.fromkeys(told)

    @answers(verbs.Collections)
    async def _collections(self, call: Call[verbs.Collections]) -> str:
        kind, slugs, part = call.args.kind, call.args.slugs, call.args.part
        found: dict[str, Known] = {}
        for each in (known for told in self._told for known in told.of(kind, slugs)):
            found.setdefault(same(each.slug), each)
        if part is not None:
            others: dict[str, Known] = {}
            for each in (
                known for told in self._told for known in told.named(kind, part, only_public=call.args.only_public)
            ):
                if (key := same(each.slug)) not in found:
                    others.setdefault(key, each)
            found |= dict(list(others.items())[: MOST_FOUND + 1])  # one more, so that it shows that there are more
        return text(list(found.values()))
