"""A practice market on a real port, with its time in the test's hands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tornado import web
from tornado.httpserver import HTTPServer

from simulator.app import make_app
from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import Desk


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(clock: Clock) -> World:
    return World(seed=1, clock=clock.ms, monotonic=clock.seconds)


@pytest.fixture
def app(world: World) -> web.Application:
    return make_app(world)


@pytest.fixture
def desk(http_server: HTTPServer, http_port: int, world: World, clock: Clock) -> Iterator[Desk]:
    made = Desk(http_port, world, clock)
    yield made
    made.kept_open.close()
