"""The marketplaces of the installation, each wired together, and the verbs of the gateway that answers for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from msgspec.structs import replace

from gateway.program import Answer, Call, VerbTable, answers, marked, table
from gateway.quota import LookupBudget, Quota, QuotaRestraint, current_origin
from gateway.reads.books import Books, Floors, Runes
from gateway.reads.own import Network, Own
from gateway.reads.snapshots import Snapshots, Source
from gateway.venue import CallBudget, Venue, Windows
from gateway.writes import Fences, Writes
from markets import venues, verbs
from markets.adapter import Adapter
from markets.base import NotSupported
from markets.capabilities import Capabilities, VenueFacts
from markets.verbs import Args, Request, text


class Marketplace:
    """One marketplace: its reads, its writes, and their limits.

    Its answers are kept apart from other venues', in `snapshots` of its own.
    """

    def __init__(
        self,
        adapter: Adapter,
        venue: Venue,
        runes: Runes,
        network: Network,
        snapshots: Snapshots,
        fences: Fences,
        now_ms: Callable[[], int],
    ) -> None:
        self.adapter = adapter
        self.venue = venue
        self.scarcity = QuotaRestraint(venue.quota, lookups=venue.lookups)
        source = Source(venue, snapshots)
        self.floors = Floors(adapter, source, runes)
        own = Own(adapter, source, network)
        writes = Writes(adapter, own, venue, fences, now_ms)
        self.table = table(self, self.floors, Books(adapter, source, runes, self.floors), own, writes)

    @answers(verbs.Profile)
    async def _profile(self, call: Call[verbs.Profile]) -> str:
        return text(self.adapter.profile(call.args.kind))

    def facts(self, *, is_default: bool, user: int | None = None) -> VenueFacts:
        """Returns the venue's facts, with what is left of its quotas, and the user's part of them."""
        known, quota = venues.facts(self.adapter.name, is_default=is_default), self.venue.quota
        known = replace(known, connection=self.venue.connection())
        return known if quota is None else replace(known, quota=quota.facts(user))


# The verbs that a marketplace answers, whether one is set up or not.
_OF_MARKETS = frozenset(kind for part in (Marketplace, Floors, Books, Own, Writes) for kind in marked(part))


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


class GatewayVerbs(VerbTable):
    """The gateway's verbs: those of its marketplaces, of `holders`, and about itself.

    `runes` is the scarcity of their provider's quota, for reads of runes.
    """

    def __init__(self, markets: Marketplaces, fences: Fences, runes: QuotaRestraint, *holders: object) -> None:
        super().__init__(*holders)
        self._markets = markets
        self._fences = fences
        self._runes = runes

    def has(self, kind: type[Args[Any]]) -> bool:
        return super().has(kind) or kind in _OF_MARKETS

    def method(self, request: Request, kind: type[Args[Any]]) -> Answer:
        """Returns the method for a request. Raises NotSupported when the marketplace that it means is not set up."""
        return super().method(request, kind) if super().has(kind) else self._markets.of(request.venue).table[kind]

    def max_age_s(self, request: Request, kind: type[Args[Any]]) -> float:
        scarcity = self._scarcity(request, kind)
        return request.max_age_s if scarcity is None else scarcity.stretched_s(kind, request.max_age_s)

    def remark(self, request: Request) -> str:
        market, scarcity = self._markets.find(request.venue), self._scarcity(request, verbs.BY_NAME[request.verb])
        return "" if market is None or scarcity is None else scarcity.remark() + market.venue.skew.remark()

    def _scarcity(self, request: Request, kind: type[Args[Any]]) -> QuotaRestraint | None:
        if kind.quota_of == "runes":
            return self._runes
        market = self._markets.find(request.venue)
        return None if market is None else market.scarcity

    @answers(verbs.Venues)
    async def _venues(self, call: Call[verbs.Venues]) -> str:
        user, default = current_origin().user, self._markets.default
        return text([each.facts(is_default=each.adapter.name == default, user=user) for each in self._markets.all()])

    @answers(verbs.Fence)
    async def _fence(self, call: Call[verbs.Fence]) -> str:
        return text(await self._fences.raise_to(call.given("task"), call.given("token")))

    @answers(verbs.FenceAll)
    async def _fence_all(self, call: Call[verbs.FenceAll]) -> str:
        tokens = call.args.tokens
        least = await asyncio.gather(*(self._fences.raise_to(task, token) for task, token in tokens))
        return text([(task, seen) for (task, token), seen in zip(tokens, least, strict=True) if seen > token])

    @answers(verbs.Hold)
    async def _hold(self, call: Call[verbs.Hold]) -> str:
        await self._fences.hold(frozenset(call.args.tasks), call.args.hold_s)
        return "null"


def market_venue(can: Capabilities, threads: Executor, quota: Quota | None, lookups: LookupBudget) -> Venue:
    """Makes the venue, the limits of a marketplace's calls, from its capabilities."""
    # Some of several slots stay free for cancels and reads of own bids.
    budget = CallBudget(can.rate_per_s, can.burst, can.slots, time.monotonic, spare=min(2, can.slots - 1))
    return Venue(can.name, budget, threads, quota, Windows(can, time.monotonic), lookups)
