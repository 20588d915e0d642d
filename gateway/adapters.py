"""The venues of an installation, and the budgets and counts that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from gateway.venue import Venue
from markets.base import NotSupported
from markets.mempool import Mempool
from markets.ord import Ord
from markets.satflow import Satflow
from markets.unisat import Unisat
from markets.unisat_index import UnisatIndex

Adapter = TypeVar("Adapter")


@dataclass(frozen=True, slots=True)
class Adapters:
    """The venues of this installation; None = it is not set."""

    satflow: Satflow | None = None
    unisat: Unisat | None = None
    unisat_index: UnisatIndex | None = None
    mempool: Mempool | None = None
    ord: Ord | None = None


@dataclass(frozen=True, slots=True)
class Venues:
    """The budgets and counts that belong to the adapters."""

    satflow: Venue
    unisat: Venue
    mempool: Venue
    ord: Venue

    def all(self) -> tuple[Venue, ...]:
        return self.satflow, self.unisat, self.mempool, self.ord


def needed(adapter: Adapter | None, setting: str) -> Adapter:
    """`adapter`, or NotSupported with the name of the setting that it wants."""
    if adapter is None:
        raise NotSupported(f"not set up here: BIDKEEPER_{setting} is not set")
    return adapter
