"""Builds the gateway, the only process that talks to marketplaces, from the settings."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from core.settings import PLAY_MARKET, Settings, dialect_of
from core.tls import TRADER
from gateway.facts_program import sources
from gateway.pictures import KeptPictures, Pictures, PictureSource
from gateway.program import (
    OWN_USER,
    Adapters,
    Admission,
    Answer,
    Call,
    Program,
    Right,
    Status,
    VerbTable,
    answers,
    marked,
    methods,
    needs_none,
    now_ms,
    serve,
)
from gateway.quota import ORIGIN, LookupBudget, Priority, Quota, QuotaRestraint
from gateway.quota_count import DAY, MONTH, Counts, QuotaCount, QuotaFile
from gateway.reads.books import Books, Floors, Runes
from gateway.reads.chain import ChainFacts
from gateway.reads.snapshots import Network, Own, Snapshots, Source
from gateway.reads.told import Directories, Directory
from gateway.venue import CallBudget, Venue, Windows
from gateway.writes import Broadcasts, Fences, Writes
from markets import venues, verbs
from markets.adapter import Adapter
from markets.base import NotSupported, Unavailable
from markets.http import Http
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.ordnet.adapter import OrdNet
from markets.parse import Unreadable, table
from markets.satflow.adapter import Satflow
from markets.unisat.adapter import UnisatMarket
from markets.unisat.index import Unisat
from markets.venues import VenueFacts
from markets.verbs import Args, Request, text
from models.database.base import is_postgresql


class Marketplace:
    """One marketplace: its reads, its writes, and their limits.

    `snapshots` stores this marketplace's answers only.
    """

    def __init__(
        self,
        adapter: Adapter,
        venue: Venue,
        runes: Runes,
        network: Network,
        snapshots: Snapshots,
        fences: Fences,
        told: Directories,
        now_ms: Callable[[], int],
    ) -> None:
        self.adapter = adapter
        self.venue = venue
        self.scarcity = QuotaRestraint(venue.quota, lookups=venue.lookups)
        source = Source(venue, snapshots)
        self.floors = Floors(adapter, source, runes)
        own = Own(adapter, source, network)
        writes = Writes(adapter, own, venue, fences, now_ms)
        self.table = methods(self, self.floors, Books(adapter, source, runes, self.floors), own, writes, told)

    @answers(verbs.Profile)
    async def _profile(self, call: Call[verbs.Profile]) -> str:
        return text(self.adapter.profile(call.args.kind))

    def facts(self, *, is_default: bool, user: int | None = None) -> VenueFacts:
        """Returns the venue's facts, with its quotas' use and the user's share of them."""
        known, quota = venues.facts(self.adapter.name, is_default=is_default), self.venue.quota
        known = replace(known, connection=self.venue.connection())
        return known if quota is None else replace(known, quota=quota.facts(user))


# Every verb that a marketplace can answer, even if no marketplace is set up.
_OF_MARKETS = frozenset(
    kind for part in (Marketplace, Floors, Books, Own, Writes, Directories) for kind in marked(part)
)


class GatewayVerbs(VerbTable):
    """The verbs of `markets` (by name), of `holders`, and of the gateway itself.

    A request that names no marketplace means `default`. `why_not` returns the reason why a marketplace is not set up.
    `runes` restrains reads of rune data by their provider's quota.
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

    def found(self, request: Request, kind: type[Args[Any]]) -> tuple[Answer, float]:
        """Finds the method as the base class does. Raises NotSupported if the request's marketplace is not set up."""
        market = self._market(request)
        if kind in self._table or kind not in _OF_MARKETS:
            method, max_age_s = super().found(request, kind)
        elif market is None:
            raise NotSupported(self._why_not(self._name(request)) or "not set up here")
        else:
            method, max_age_s = market.table[kind], request.max_age_s
        scarcity = self._scarcity(market, kind)
        return method, max_age_s if scarcity is None else scarcity.stretched_s(kind, max_age_s)

    def remark(self, request: Request) -> str:
        market, kind = self._market(request), verbs.BY_NAME[request.verb]
        if market is None or (scarcity := self._scarcity(market, kind)) is None:
            return ""
        return scarcity.remark() + market.venue.skew.remark()

    def _scarcity(self, market: Marketplace | None, kind: type[Args[Any]]) -> QuotaRestraint | None:
        if kind.quota_of == "runes":
            return self._runes
        return None if market is None else market.scarcity

    def _market(self, request: Request) -> Marketplace | None:
        return self._markets.get(self._name(request))

    def _name(self, request: Request) -> str:
        return self._default if request.venue is None else request.venue

    @answers(verbs.Venues)
    async def _venues(self, call: Call[verbs.Venues]) -> str:
        user = ORIGIN.get().user
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


MOST_ANSWERS = 500  # answers kept of each marketplace
_SWITCH_S = 0.0005  # short, so that a thread that checks a picture soon hands the interpreter back to the loop


class Gateway(Program):
    """The parts of one gateway, wired together. `least_token` returns a task's last known lease token."""

    def __init__(
        self, settings: Settings, least_token: Callable[[int], int], is_the_one: Callable[[], bool] = lambda: True
    ) -> None:
        self._quotas = quotas(settings)
        self._lookups = LookupBudget(settings.lookups_per_minute, time.monotonic)
        clients = settings.gateway_clients - settings.users_of_signer
        admission = Admission(clients or OWN_USER, frozenset({TRADER}))
        super().__init__(settings, admission, self._quotas.get("unisat"), self._lookups)
        self.fences = Fences(least_token, is_the_one)
        found = make_adapters(settings)
        venues = {name: self._venue(adapter) for name, adapter in found.markets.items()}
        self.venues = replace(self.venues, markets=venues)
        snapshots = Snapshots(time.monotonic, now_ms)
        runes = Runes(found.unisat, Source(self.venues.unisat, snapshots))
        network = Network(found.mempool, Source(self.venues.mempool, snapshots))

        told = {each: Directory(now_ms, shows_items=settings.market == PLAY_MARKET) for each in self.venues.all()}
        for each, directory in told.items():
            each.told = directory.note

        def market(name: str, adapter: Adapter) -> Marketplace:
            kept, known = snapshots.beside(MOST_ANSWERS), Directories(told[venues[name]], told[self.venues.unisat])
            return Marketplace(adapter, venues[name], runes, network, kept, self.fences, known, now_ms)

        self.markets = {name: market(name, adapter) for name, adapter in found.markets.items()}
        practice = settings.simulator_url if settings.market == PLAY_MARKET else None
        source = PictureSource(practice, public_name=settings.public_name)
        self.pictures = Pictures(source, KeptPictures(settings.pictures_dir))
        holders: list[object] = [
            runes,
            network,
            ChainFacts(found, self.venues, snapshots),
            Broadcasts(found.mempool, self.venues.mempool, now_ms),
            Status(settings.market, self.venues.all(), lambda: {"writes_under_way": len(self.fences)}),
            self.pictures,
        ]
        if settings.has_play_wallet:  # at the practice market, shared by all users
            holders.append(PlayWallet(settings.simulator_url, self.threads))
        scarcity = QuotaRestraint(self.venues.unisat.quota, "runes", self._lookups)
        self.verbs = GatewayVerbs(self.markets, settings.market, settings.why_no_venue, self.fences, scarcity, *holders)

    async def stop(self) -> None:
        await super().stop()
        self.cut_off = self.pictures.close() or self.cut_off

    def _venue(self, adapter: Adapter) -> Venue:
        dialect = dialect_of(adapter.name) or ""
        if dialect == "unisat":
            return self.venues.unisat  # because UniSat's market and its data share one key
        can = adapter.capabilities()
        # Keep up to two slots free for cancels and reads of own bids.
        budget = CallBudget(can.rate_per_s, can.burst, can.slots, time.monotonic, spare=min(2, can.slots - 1))
        windows = Windows(can, time.monotonic)
        return Venue(can.name, budget, self.threads, self._quotas.get(dialect), windows, self._lookups)


def make_adapters(settings: Settings) -> Adapters:
    """Makes the adapters of the venues and data sources in the settings."""
    unisat = settings.venue_url("unisat")
    return replace(
        sources(settings),
        markets=market_adapters(settings),
        unisat=Unisat(unisat, key_of(settings, "unisat")) if unisat else None,
    )


def quotas(settings: Settings) -> dict[str, Quota]:
    """Returns the quotas by dialect, with the calls used so far; venues without a quota are left out."""
    limits = {
        name: dict(zip((MONTH, DAY), calls, strict=True))
        for name in _WITH_KEYS
        if any(calls := settings.key_calls(name))
    }
    if not limits:
        return {}
    # Imported here because most keys have no quota and the database's packages are slow to import.
    from gateway.quota_table import QuotaTable

    counts: Counts = QuotaFile(settings.quota_file)
    if is_postgresql(settings.database_url):
        counts = QuotaTable(settings.database_url, counts)
    return {
        dialect: Quota(each, QuotaCount(counts, dialect, key_of(settings, dialect), now_ms), now_ms)
        for dialect, each in limits.items()
    }


_WITH_KEYS = ("satflow", "unisat")


def run(
    settings: Settings,
    least_token: Callable[[int], int],
    *,
    ready: Callable[[], object] = lambda: None,
    right: Callable[[], AbstractContextManager[Right]] = needs_none,
) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second; see `serve`. Call it in the main thread."""
    sys.setswitchinterval(_SWITCH_S)

    def make(held: Right) -> Gateway:
        return Gateway(settings, least_token, held.is_ours)

    serve(make, settings.own_gateway_socket, settings.gateway_listen, ready=ready, right=right)


PLAY_KEY = "simulator"


def market_adapters(settings: Settings) -> dict[str, Adapter]:
    """Returns the adapters of the marketplaces in the settings, by name, the default one first."""
    found = {}
    for name in settings.venues:
        dialect = dialect_of(name) or ""
        base = settings.venue_url(dialect)
        if base is not None:
            found[name] = adapter_of(name, base, key_of(settings, dialect), settings)
    return found


def adapter_of(name: str, base: str, key: str, settings: Settings) -> Adapter:
    """Makes the adapter of the marketplace `name` at the address `base`."""
    return _MAKERS[dialect_of(name) or ""](base, key, name, settings)


def key_of(settings: Settings, dialect: str) -> str:
    """Returns our API key for the marketplace, or "" if it needs none."""
    if settings.market == PLAY_MARKET:
        return PLAY_KEY
    given: str | None = getattr(settings, f"{dialect}_api_key", None)
    return given or ""


_MAKERS: Mapping[str, Callable[[str, str, str, Settings], Adapter]] = {
    "satflow": lambda base, key, name, settings: Satflow(base, key, name, settings.satflow_rune_price),
    "ordnet": lambda base, key, name, settings: OrdNet(base, name),
    "unisat": lambda base, key, name, settings: UnisatMarket(base, key, name),
    "ordinalswallet": lambda base, key, name, settings: OrdinalsWallet(
        base, name, is_protecting=settings.ordinalswallet_protected_listings
    ),
}


_PLAY_ROUTE = "/sim/play-wallet"


class PlayWallet:
    """The play wallet of the practice market at `url`.

    It has its own call budget, so that users who sign in again and again do not use up the tasks' calls.
    """

    def __init__(self, url: str, threads: Executor) -> None:
        self._http = Http(url, {})
        self._venue = Venue("play wallet", CallBudget(rate=50, burst=50, slots=2, clock=time.monotonic), threads)

    @answers(verbs.PlayAddress)
    async def _address(self, call: Call[verbs.PlayAddress]) -> str:
        return await self._ask(call, "address", lambda: self._http.read(_PLAY_ROUTE))

    @answers(verbs.PlaySignature)
    async def _sign(self, call: Call[verbs.PlaySignature]) -> str:
        """Returns a BIP-322 signature (base64)."""
        message = {"message": call.args.message}
        return await self._ask(call, "signature", lambda: self._http.read(f"{_PLAY_ROUTE}/sign", post=message))

    async def _ask(self, call: Call[Any], name: str, ask: Callable[[], Any]) -> str:
        def found() -> str:
            try:
                value = table(ask(), "play wallet").get(name)
            except Unreadable as error:
                raise Unavailable(f"failed to understand the play wallet: {error}") from error
            if not isinstance(value, str) or not value:
                raise Unavailable(f"failed to understand the play wallet: no {name}")
            return value

        verb = call.request.verb
        return text(await self._venue.read(verb, verb, Priority.LOOKUP, found))
