"""The facts process: a gateway without markets, which answers the signer's questions about outputs.

It asks a mempool server and indexes, UniSat's where that is set, and never the market at which something is traded. It
is a process of its own so that no signature depends on one that a marketplace's answers may have fooled.
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
    """Makes the sources of facts that `settings` name."""
    mempool, ord_url = settings.venue_url("mempool"), settings.venue_url("ord")
    # The practice market speaks UniSat's market, not its index: only a configured UniSat is asked for facts.
    unisat = settings.unisat_url
    return Adapters(
        mempool=Mempool(mempool) if mempool else None,
        ord=Ord(ord_url) if ord_url else None,
        unisat_index=UnisatIndex(unisat, settings.unisat_api_key) if unisat else None,
    )


def run(settings: Settings, *, ready: Callable[[], object] = lambda: None) -> None:
    """Serves until SIGTERM or SIGINT, then ends within a second. Call it in the main thread."""
    serve(lambda _: FactsProgram(settings), settings.own_facts_socket, settings.facts_listen, ready=ready)
