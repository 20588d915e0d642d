"""The routes of every venue, in the order in which they are tried."""

from __future__ import annotations

from typing import Any

from simulator.venues import mempool, ord
from simulator.venues.ordinalswallet import reads as ordinalswallet_reads
from simulator.venues.ordinalswallet import writes as ordinalswallet_protected
from simulator.venues.ordinalswallet import writes as ordinalswallet_writes
from simulator.venues.ordnet import handler as ordnet_sign_in
from simulator.venues.ordnet import item_offers as ordnet_item_offers
from simulator.venues.ordnet import listings as ordnet_listings
from simulator.venues.ordnet import offers as ordnet_offers
from simulator.venues.ordnet import reads as ordnet_reads
from simulator.venues.satflow import reads as satflow_reads
from simulator.venues.satflow import writes as satflow_writes
from simulator.venues.unisat import reads as unisat_reads
from simulator.venues.unisat import runes as unisat_runes
from simulator.venues.unisat import writes as unisat_writes
from simulator.world import World

_MODULES = (
    *(satflow_reads, satflow_writes, unisat_reads, unisat_runes, unisat_writes),
    *(ordinalswallet_reads, ordinalswallet_writes, ordinalswallet_protected),
    *(ordnet_sign_in, ordnet_reads, ordnet_offers, ordnet_item_offers, ordnet_listings, mempool, ord),
)


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    return [route for module in _MODULES for route in module.routes(world)]
