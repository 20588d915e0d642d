"""The gateway: the only process that talks to marketplaces."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from core.settings import PLAY_MARKET, Settings, dialect_of
from core.tls import TRADER
from gateway.adapters import Adapters
from gateway.admission import OWN_USER, Admission
from gateway.facts_program import sources
from gateway.limits.fence import Fences
from gateway.limits.lookup_budget import LookupBudget
from gateway.marketplace import Marketplace, Marketplaces, market_venue
from gateway.pictures.kept import KeptPictures
from gateway.pictures.pictures import Pictures
from gateway.pictures.source import PictureSource
from gateway.play_wallet import PlayWalletVerbs
from gateway.quota.count import Counts, QuotaCount
from gateway.quota.quota import Quota
from gateway.quota.quota_file import QuotaFile
from gateway.quota.quota_pace import DAY, MONTH
from gateway.quota.quota_table import QuotaTable
from gateway.quota_restraint import QuotaRestraint
from gateway.reads.common import CommonReads
from gateway.reads.snapshots import Snapshots
from gateway.registry import key_of, market_adapters
from gateway.venue import Venue
from gateway.verb_server import Program, Right, needs_none, now_ms, serve
from gateway.verbs import Verbs
from gateway.withdrawals import Withdrawals
from markets.adapter import Adapter
from markets.unisat.adapter import Unisat
from models.database.base import is_postgresql

MOST_ANSWERS = 500  # answers kept of each marketplace
_SWITCH_S = 0.0005  # a thread that judges a picture has the interpreter no longer before the loop gets it


class Gateway(Program):
    """The parts of one gateway, wired together. `least_token` gives a task's token from before the start."""

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
        common = CommonReads(found, self.venues, snapshots)
        self.markets = Marketplaces(
            settings.market,
            {
                name: Marketplace(adapter, venues[name], common, snapshots.beside(MOST_ANSWERS), self.fences, now_ms)
                for name, adapter in found.markets.items()
            },
            settings.why_no_venue,
        )
        runes = QuotaRestraint(self.venues.unisat.quota, "runes", self._lookups)
        withdrawals = Withdrawals(self.markets, found.mempool, self.venues.mempool, snapshots, now_ms)
        practice = settings.simulator_url if settings.market == PLAY_MARKET else None
        source = PictureSource(practice, public_name=settings.public_name)
        self.pictures = Pictures(source, KeptPictures(settings.pictures_dir))
        others = [withdrawals, self.pictures]
        if settings.has_play_wallet:  # for everybody, at the practice market
            others.append(PlayWalletVerbs(settings.simulator_url, self.threads))
        self.verbs = Verbs(self.markets, common, self.fences, self.venues.all(), runes, *others)

    async def stop(self) -> None:
        await super().stop()
        self.cut_off = self.pictures.close() or self.cut_off

    def _venue(self, adapter: Adapter) -> Venue:
        dialect = dialect_of(adapter.name) or ""
        if dialect == "unisat":
            return self.venues.unisat  # one key for both its market and its data
        return market_venue(adapter.capabilities(), self.threads, self._quotas.get(dialect), self._lookups)


def make_adapters(settings: Settings) -> Adapters:
    """Makes the adapters of the venues and sources that `settings` name."""
    unisat = settings.venue_url("unisat")
    return replace(
        sources(settings),
        markets=market_adapters(settings),
        unisat=Unisat(unisat, key_of(settings, "unisat")) if unisat else None,
    )


def quotas(settings: Settings) -> dict[str, Quota]:
    """Makes the quotas by dialect, with the calls used so far; venues without a quota are left out."""
    limits = {
        name: dict(zip((MONTH, DAY), calls, strict=True))
        for name in _WITH_KEYS
        if any(calls := settings.key_calls(name))
    }
    if not limits:
        return {}
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
    is_the_one: Callable[[], bool] = lambda: True,
    ready: Callable[[], object] = lambda: None,
    right: Right = needs_none,
) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second; see `serve`. Call it in the main thread."""
    sys.setswitchinterval(_SWITCH_S)
    make = partial(Gateway, settings, least_token, is_the_one)
    serve(make, settings.own_gateway_socket, settings.gateway_listen, ready=ready, right=right)
