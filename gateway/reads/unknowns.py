"""Names that a venue did not know, remembered for some minutes, so that asking for them again costs nothing.

Only people's looks are answered from here: a task that runs must learn at once that its collection is back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from markets.base import NotFound

REMEMBERED_S = 300.0
_MOST = 2_000  # some hundred bytes each
# Answers about a slug, a ticker or an inscription; a wallet that is not there now may be there soon.
_NAMED = frozenset({"floors", "asks", "bids", "traits", "sales", "item", "rune", "rune_asks", "where_by_ord"})


class Unknowns:
    """The keys of answers (`("item", id)`) that were "not found"; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def has(self, key: Hashable) -> bool:
        """Tells whether the venue lately did not know this, or its collection or rune at all."""
        return any(
            self._clock() - self._since[each] < REMEMBERED_S for each in (key, _floor(key)) if each in self._since
        )

    def refuse(self, key: Hashable) -> None:
        """Raises NotFound for what the venue lately did not know."""
        if self.has(key):
            raise NotFound(f"the marketplace did not know it within the last {REMEMBERED_S / 60:.0f} minutes")

    def add(self, key: Hashable) -> None:
        """Remembers that the venue does not know this."""
        if isinstance(key, tuple) and key[0] in _NAMED:
            self._since.pop(key, None)
            self._since[key] = self._clock()
            while len(self._since) > _MOST:
                self._since.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Forgets the key, since the venue knows it."""
        self._since.pop(key, None)

    def __len__(self) -> int:
        return len(self._since)


def _floor(key: Hashable) -> Hashable:
    """Returns the key of the floor of the same collection or rune; it tells unknown ones apart from empty ones."""
    match key:
        case ("asks" | "traits", str() as slug):
            return ("floors", "ordinals", slug)
        case ("bids" | "sales", kind, str() as slug):
            return ("floors", kind, slug)
    return key
