"""The practice marketplace as a program: one Tornado application on the loopback address."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tornado import web
from tornado.httpserver import HTTPServer

from simulator import control
from simulator.handler import NotFound
from simulator.venues import mempool, ord
from simulator.venues.ordinalswallet import reads as ordinalswallet_reads
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
from simulator.world import StateFile, World

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
STEP_SECONDS = 1.0
SAVE_SECONDS = 2.0
# The connection cuts off larger bodies; below this size the handler answers 413 itself.
MAX_REQUEST = 16 << 20
# The modules with routes, in the order in which routes are matched.
_VENUES = (
    *(satflow_reads, satflow_writes, unisat_reads, unisat_runes, unisat_writes),
    *(ordinalswallet_reads, ordinalswallet_writes),
    *(ordnet_sign_in, ordnet_reads, ordnet_offers, ordnet_item_offers, ordnet_listings, mempool, ord),
)


def make_app(world: World) -> web.Application:
    return web.Application(
        [*(route for venue in _VENUES for route in venue.routes(world)), *control.routes(world)],
        default_handler_class=NotFound,
        default_handler_args={"world": world},
    )


def run(
    port: int, seed: int, background: bool, state_file: Path, seller_fee_ppm: int = 0, *, scenes: bool = False
) -> None:
    """Serves 127.0.0.1:`port` until SIGTERM or SIGINT; then saves and returns within a second.

    Continues from `state_file` if it exists. Raises OSError if the port is taken.
    """
    made = partial(World, seed=seed, background=background, seller_fee_ppm=seller_fee_ppm, scenes=scenes)
    asyncio.run(_serve(port, made, state_file))


async def _serve(port: int, make: Callable[[], World], state_file: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    world = make()
    state = StateFile(state_file, world)
    state.load()
    # The play wallet is created and saved before any client sees it: otherwise a kill would orphan its user's tasks.
    log.info("play wallet %s", world.play_wallet.address)
    state.save()
    server = HTTPServer(make_app(world), max_buffer_size=MAX_REQUEST, max_body_size=MAX_REQUEST)
    server.listen(port, address=HOST)
    log.info(
        "practice market on http://%s:%s, seed %s, answers as %s, background traders %s, scenes: %s",
        *(HOST, port, world.seed, world.shape, world.background, ", ".join(world.scenes.names) or "none"),
    )
    beats = [
        asyncio.create_task(_beat(STEP_SECONDS, world.step)),
        asyncio.create_task(_beat(SAVE_SECONDS, state.save_if_changed)),
    ]
    await stop.wait()
    server.stop()
    for beat in beats:
        beat.cancel()
    state.save()


async def _beat(every_seconds: float, act: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        try:
            act()
        except Exception:
            log.exception("a background step failed; the next one runs as usual")
