"""A practice market on a real port, with its time in the test's hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado import web
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.testing import bind_unused_port

from simulator.app import make_app
from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import Desk


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(request: pytest.FixtureRequest, clock: Clock) -> World:
    """A market of seed 1, or of the one that a test names by `AS_SEEN`."""
    return World(seed=getattr(request, "param", 1), clock=clock.ms, monotonic=clock.seconds)


@pytest.fixture
def app(world: World) -> web.Application:
    return make_app(world)


@pytest.fixture
def desk(io_loop: IOLoop, app: web.Application, world: World, clock: Clock) -> Iterator[Desk]:
    server = HTTPServer(app)
    listener, port = bind_unused_port()
    server.add_socket(listener)
    made = Desk(port, world, clock)
    yield made
    made.kept_open.close()
    server.stop()
    io_loop.run_sync(server.close_all_connections)
