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
from simulator.venues import all_routes
from simulator.world import StateFile, World

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
STEP_SECONDS = 1.0
SAVE_SECONDS = 2.0
# Larger bodies are cut off by the connection; up to here the handler answers 413 itself.
MAX_REQUEST = 16 << 20


def make_app(world: World) -> web.Application:
    """Makes the application that answers for `world`; time and chance are the world's."""
    return web.Application(
        [*all_routes.routes(world), *control.routes(world)],
        default_handler_class=NotFound,
        default_handler_args={"world": world},
        log_function=_log_request,
    )


def _log_request(handler: web.RequestHandler) -> None:
    request = handler.request
    log.debug("%s %s %s", handler.get_status(), request.method, request.path)


def run(
    port: int, seed: int, background: bool, state_file: Path, seller_fee_ppm: int = 0, *, scenes: bool = False
) -> None:
    """Answers on 127.0.0.1:`port` until SIGTERM or SIGINT; then saves and returns within a second.

    Goes on from `state_file` when there is one. Raises OSError when the port is taken.
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
    # Made and on disk before anybody is told of it: its user's tasks would be nobody's after a kill.
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
            log.exception("failed in the background; the next beat goes on")
