"""The marketplaces of the installation, each wired together, and the verbs of the gateway that answers for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from gateway.program import Answer, Call, VerbTable, answers, marked, methods
from gateway.quota import QuotaRestraint, current_origin
from gateway.reads.books import Books, Floors, Runes
from gateway.reads.own import Network, Own
from gateway.reads.snapshots import Snapshots, Source
from gateway.venue import Venue
from gateway.writes import Fences, Writes
from markets import venues, verbs
from markets.adapter import Adapter
from markets.base import NotSupported
from markets.capabilities import VenueFacts
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
        self.table = methods(self, self.floors, Books(adapter, source, runes, self.floors), own, writes)

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


class GatewayVerbs(VerbTable):
    """The gateway's verbs: those of `markets` by name, of `holders`, and about itself.

    Requests that name no marketplace mean `default`; `why_not` says why one is not set up. `runes` is the scarcity of
    their provider's quota.
    """

    def __init__(
        self,
        markets: Mapping[str, Marketplace],
        default: str,
        why_not: Callable[[str], str | None],
        fences: Fences,
        runes: QuotaRestraint,
        *holders: object,
    ) -> None:
        super().__init__(*holders)
        self._markets = markets
        self._default = default
        self._why_not = why_not
        self._fences = fences
        self._runes = runes

    def has(self, kind: type[Args[Any]]) -> bool:
        return super().has(kind) or kind in _OF_MARKETS

    def method(self, request: Request, kind: type[Args[Any]]) -> Answer:
        """Returns the method for a request. Raises NotSupported when the marketplace that it means is not set up."""
        if super().has(kind):
            return super().method(request, kind)
        market = self._market(request)
        if market is None:
            raise NotSupported(self._why_not(self._name(request)) or "not set up here")
        return market.table[kind]

    def max_age_s(self, request: Request, kind: type[Args[Any]]) -> float:
        market = self._market(request)
        if kind.quota_of == "runes":
            return self._runes.stretched_s(kind, request.max_age_s)
        return request.max_age_s if market is None else market.scarcity.stretched_s(kind, request.max_age_s)

    def remark(self, request: Request) -> str:
        market = self._market(request)
        if market is None:
            return ""
        scarcity = self._runes if verbs.BY_NAME[request.verb].quota_of == "runes" else market.scarcity
        return scarcity.remark() + market.venue.skew.remark()

    def _market(self, request: Request) -> Marketplace | None:
        return self._markets.get(self._name(request))

    def _name(self, request: Request) -> str:
        return self._default if request.venue is None else request.venue

    @answers(verbs.Venues)
    async def _venues(self, call: Call[verbs.Venues]) -> str:
        user = current_origin().user
        return text([each.facts(is_default=name == self._default, user=user) for name, each in self._markets.items()])

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
