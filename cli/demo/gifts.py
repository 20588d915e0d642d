"""The practice market's gifts to the demo user: one to be sold, and a shelf of others to look at."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count

from simulator.pictures import Kind, kind_of

# Pictures, and one of each other thing that people inscribe.
_SHELF: tuple[tuple[str, Kind], ...] = (
    ("quantum-cats-demo", "picture"),
    ("nodemonkes-demo", "picture"),
    ("quantum-cats-demo", "picture"),
    ("nodemonkes-demo", "svg"),
    ("quantum-cats-demo", "text"),
    ("nodemonkes-demo", "picture"),
    ("quantum-cats-demo", "large"),
    ("nodemonkes-demo", "picture"),
)


def gifts(vault: str, collection: str) -> list[dict[str, str]]:
    """Returns the gifts to a vault, always the same ones; the first is of `collection`, to be sold."""
    wanted: tuple[tuple[str, Kind], ...] = ((collection, "picture"), *_SHELF)
    return [{"id": next(_ids(vault, at, kind)), "collection": slug} for at, (slug, kind) in enumerate(wanted)]


def _ids(vault: str, at: int, kind: Kind) -> Iterator[str]:
    """Returns the ids of inscriptions whose content is of this kind."""
    ids = (f"{hashlib.sha256(f'{vault} {at} {number}'.encode()).hexdigest()}i0" for number in count())
    return (found for found in ids if kind_of(found) == kind)
