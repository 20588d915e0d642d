"""The facts process: a gateway without marketplaces that answers the signer's questions about outputs.

It reads a mempool server and indexes (ord, and UniSat if set), never a marketplace. It is a separate process so that no
signature depends on a process that a marketplace's answers may have compromised.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core.settings import Settings
from core.tls import SIGNER, TRADER
from gateway.program import OWN_USER, Adapters, Admission, Program, Status, VerbTable, now_ms, serve
from gateway.reads.chain import ChainFacts
from gateway.reads.snapshots import Snapshots
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import UnisatIndex


class FactsProgram(Program):
    """The parts of one facts process, wired together."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, Admission(settings.facts_clients or OWN_USER, frozenset({SIGNER, TRADER})))
        facts = ChainFacts(sources(settings), self.venues, Snapshots(time.monotonic, now_ms))
        shown = (self.venues.mempool, self.venues.ord, self.venues.unisat)
        self.verbs = VerbTable(facts, Status(settings.market, shown))


def sources(settings: Settings) -> Adapters:
    """Makes the adapters of the data sources in the settings."""
    mempool, ord_url = settings.venue_url("mempool"), settings.venue_url("ord")
    # Only a configured UniSat, because the practice market imitates UniSat's market but not its index.
    unisat = settings.unisat_url
    return Adapters(
        mempool=Mempool(mempool) if mempool else None,
        ord=Ord(ord_url) if ord_url else None,
        unisat_index=UnisatIndex(unisat, settings.unisat_api_key) if unisat else None,
    )


def run(settings: Settings, *, ready: Callable[[], object] = lambda: None) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second. Call it in the main thread."""
    serve(lambda _: FactsProgram(settings), settings.own_facts_socket, settings.facts_listen, ready=ready)
