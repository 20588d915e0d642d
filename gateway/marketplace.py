"""One marketplace of the installation, wired together, and the lookup of a request's marketplace."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from msgspec.structs import replace

from gateway.limits.call_budget import CallBudget
from gateway.limits.fence import Fences
from gateway.limits.lookup_budget import LookupBudget
from gateway.limits.windows import Windows
from gateway.quota.quota import Quota
from gateway.quota_restraint import QuotaRestraint
from gateway.reads.common import CommonReads
from gateway.reads.market_reads import MarketReads
from gateway.reads.offers import OfferReads
from gateway.reads.snapshots import Snapshots
from gateway.venue import Venue
from gateway.writes import Writes
from markets import venues
from markets.adapter import Adapter
from markets.base import NotSupported
from markets.capabilities import Capabilities, VenueFacts


class Marketplace:
    """One marketplace: its reads, its writes, and their limits.

    Its answers are kept apart from other venues', in `snapshots` of its own.
    """

    def __init__(
        self,
        adapter: Adapter,
        venue: Venue,
        common: CommonReads,
        snapshots: Snapshots,
        fences: Fences,
        now_ms: Callable[[], int],
    ) -> None:
        self.adapter = adapter
        self.venue = venue
        self.reads = MarketReads(adapter, venue, common, snapshots)
        self.offers = OfferReads(adapter, venue)
        self.writes = Writes(adapter, self.reads, venue, fences, now_ms)
        self.scarcity = QuotaRestraint(venue.quota, lookups=venue.lookups)

    def facts(self, *, is_default: bool, user: int | None = None) -> VenueFacts:
        """Returns the venue's facts, with what is left of its quotas, and the user's part of them."""
        known, quota = venues.facts(self.adapter.name, is_default=is_default), self.venue.quota
        known = replace(known, connection=self.venue.connection())
        return known if quota is None else replace(known, quota=quota.facts(user))


class Marketplaces:
    """The marketplaces that are set up here, by name; requests that name none mean `default`.

    `why_not` says why a venue is not set up.
    """

    def __init__(self, default: str, markets: Mapping[str, Marketplace], why_not: Callable[[str], str | None]) -> None:
        self.default = default
        self._why_not = why_not
        self._markets = markets

    def find(self, venue: str | None) -> Marketplace | None:
        """Returns the marketplace that a request's `venue` means, or None when it is not set up."""
        return self._markets.get(self._name(venue))

    def of(self, venue: str | None) -> Marketplace:
        """Returns the marketplace that a request means. Raises NotSupported, naming the missing setting, when it is
        not set up.
        """
        found = self.find(venue)
        if found is None:
            raise NotSupported(self._why_not(self._name(venue)) or "not set up here")
        return found

    def all(self) -> tuple[Marketplace, ...]:
        return tuple(self._markets.values())

    def _name(self, venue: str | None) -> str:
        return self.default if venue is None else venue


def market_venue(can: Capabilities, threads: Executor, quota: Quota | None, lookups: LookupBudget) -> Venue:
    """Makes the venue, the limits of a marketplace's calls, from its capabilities."""
    # Some of several slots stay free for cancels and reads of own bids.
    budget = CallBudget(can.rate_per_s, can.burst, can.slots, time.monotonic, spare=min(2, can.slots - 1))
    return Venue(can.name, budget, threads, quota, Windows(can, time.monotonic), lookups)
