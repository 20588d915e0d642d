"""An installation's venues and sources of data, with their budgets and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from core.settings import dialect_of
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.base import NotSupported
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.adapter import Unisat
from markets.unisat.index import UnisatIndex

Needed = TypeVar("Needed")


@dataclass(frozen=True, slots=True)
class Adapters:
    """Marketplaces by name, the default one first, and sources of data; None is a source that is not set."""

    markets: Mapping[str, Adapter] = field(default_factory=dict)
    unisat: Unisat | None = None
    unisat_index: UnisatIndex | None = None
    mempool: Mempool | None = None
    ord: Ord | None = None

    def speaking(self, dialect: str) -> Adapter | None:
        """Returns the marketplace that speaks `dialect`, or None."""
        return next((each for name, each in self.markets.items() if dialect_of(name) == dialect), None)


@dataclass(frozen=True, slots=True)
class Venues:
    """The adapters' budgets and counts: one for each key, so UniSat's market and data share one."""

    markets: Mapping[str, Venue]
    unisat: Venue
    mempool: Venue
    ord: Venue

    def all(self) -> tuple[Venue, ...]:
        return tuple(dict.fromkeys((*self.markets.values(), self.unisat, self.mempool, self.ord)))


def needed(adapter: Needed | None, setting: str) -> Needed:
    """Returns `adapter`. Raises NotSupported, naming the missing setting, when it is None."""
    if adapter is None:
        raise NotSupported(f"not set up here: BIDKEEPER_{setting} is not set")
    return adapter
