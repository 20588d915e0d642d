"""Adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from core.settings import dialect_of
from gateway.venue import Venue
from markets.adapter import Adapter
from markets.base import (
    NotSupported,
)
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import Unisat, UnisatIndex

Needed = TypeVar("Needed")


class Adapters(Struct, frozen=True):
    """Marketplaces by name, the default one first, and sources of data; None is a source that is not set."""

    markets: Mapping[str, Adapter] = {}
    unisat: Unisat | None = None
    unisat_index: UnisatIndex | None = None
    mempool: Mempool | None = None
    ord: Ord | None = None

    def speaking(self, dialect: str) -> Adapter | None:
        """Returns the marketplace that speaks `dialect`, or None."""
        return next((each for name, each in self.markets.items() if dialect_of(name) == dialect), None)


class Venues(Struct, frozen=True):
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
