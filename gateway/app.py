"""The gateway: the only process that talks to marketplaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from core.settings import Settings
from gateway.adapters import Adapters
from gateway.facts import market, sources
from gateway.fence import Fences
from gateway.process import Program, now_ms, serve
from gateway.quota import Quota
from gateway.quota_count import QuotaCount
from gateway.reads import Reads
from gateway.snapshots import Snapshots
from gateway.verbs import Verbs
from gateway.writes import Writes
from markets.satflow import Satflow
from markets.unisat import Unisat

PLAY_KEY = "simulator"


class Gateway(Program):
    """The parts of one gateway, wired together. `least_token` tells a task's token from before the start."""

    def __init__(self, settings: Settings, least_token: Callable[[int], int]) -> None:
        super().__init__(settings, settings.gateway_clients, quota(settings))
        self.fences = Fences(least_token)
        reads = Reads(adapters(settings), self.venues, Snapshots(time.monotonic, now_ms))
        writes = Writes(reads, self.venues.satflow, self.fences, now_ms)
        self.verbs = Verbs(market(settings), reads, writes, self.fences, self.venues)


def adapters(settings: Settings) -> Adapters:
    """The venues and sources that `settings` name."""
    play = settings.market == "simulator"
    satflow, unisat = (settings.venue_url(venue) for venue in ("satflow", "unisat"))
    return replace(
        sources(settings),
        satflow=Satflow(satflow, _satflow_key(settings), market(settings)) if satflow else None,
        unisat=Unisat(unisat, PLAY_KEY if play else settings.unisat_api_key) if unisat else None,
    )


def quota(settings: Settings) -> Quota | None:
    """The month's quota of the marketplace's key, with what was used of it; None where the setting says so."""
    limit = settings.monthly_calls
    if not limit:
        return None
    return Quota(limit, QuotaCount(settings.quota_file, "satflow", _satflow_key(settings), now_ms), now_ms)


def _satflow_key(settings: Settings) -> str:
    return PLAY_KEY if settings.market == "simulator" else settings.satflow_api_key or ""


def run(settings: Settings, least_token: Callable[[int], int], *, ready: Callable[[], object] = lambda: None) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second. Call it in the main thread."""
    serve(lambda: Gateway(settings, least_token), settings.gateway_socket, ready=ready)
