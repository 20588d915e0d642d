"""The real application over HTTP, with small stand-ins for the processes around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop
from tornado.testing import bind_unused_port

from core.settings import Settings
from server import admin, autolist, autolist_preview, health, task_handler, wallet, withdrawal_plan
from server import app as app_module
from server import withdraw as withdrawals
from server.app import make_app, make_server
from server.http import services
from server.urls import ROUTES
from tests.clock import Clock
from tests.shapes import replace
from tests.worlds.service import (
    OTHER,
    OWNER,
    START_MS,
    Api,
    FakeGateway,
    FakeManager,
    FakeSigner,
    Service,
    new_user,
    token_of,
)

# Peers are in the test's own loop, and a busy machine may hold that up for longer than the product waits for them.
_WAITS = (
    (admin, "PATIENCE_S"),
    (app_module, "_SIGNER_S"),
    (autolist, "SHOWN_S"),
    (autolist_preview, "PATIENCE_S"),
    (wallet, "_PATIENCE_S"),
    (health, "PATIENCE_S"),
    (services, "_PING_S"),
    (health, "PATIENCE_S"),
    (task_handler, "PATIENCE_S"),
    (withdrawal_plan, "PATIENCE_S"),
    (withdrawals, "_LOOKS_S"),
    (withdrawals, "_SENDS_S"),
)
_LONG_S = 60.0
# A replay is nice: beside busy neighbours it takes many times as long as alone.
_REPLAY_S = 300.0


def standing_still() -> float:
    """As the clock of limits by the minute, of which a busy machine may take several for one test."""
    return 0.0


@pytest.fixture
def make_service(
    io_loop: IOLoop, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Service]]:
    """Builds the service; takes settings, and manager_wait_s."""
    for module, name in _WAITS:
        monkeypatch.setattr(module, name, _LONG_S)
    for _, handler in ROUTES:
        monkeypatch.setattr(handler, "answers_s", _LONG_S)
    monkeypatch.setattr(services, "WALL_S", _REPLAY_S)
    made: list[tuple[Service, Any]] = []

    def make(manager_wait_s: float = 0.2, **settings: Any) -> Service:
        # No practice market listens at port 1; at its own port one may run that is not the test's.
        own = Settings(data_dir=tmp_path, database_url=database, whitelist=frozenset({"*"}), simulator_port=1)
        chosen = replace(own, **settings)
        clock = Clock(START_MS)
        app = make_app(chosen, clock_ms=clock, manager_wait_s=manager_wait_s)
        services = app.settings["services"]
        for limit in (services.budget, services.loosened, services.sent_by_hand):
            limit._clock = standing_still
        server = make_server(app)
        listener, port = bind_unused_port()
        server.add_socket(listener)
        service = Service(
            Api(f"http://127.0.0.1:{port}"),
            app,
            chosen,
            clock,
            FakeManager(chosen.manager_socket),
            FakeSigner(chosen.signer_socket),
            FakeGateway(chosen.gateway_socket),
        )
        owner = new_user(OWNER)
        service.user_id, service.token = owner.id, token_of(owner)
        service.other_token = token_of(new_user(OTHER))
        service.api.timeout_s = _REPLAY_S
        io_loop.run_sync(service.manager.start)
        io_loop.run_sync(service.signer.start)
        service.gateway.start()
        made.append((service, server))
        return service

    yield make
    for service, server in made:
        service.api.close()
        server.stop()
        io_loop.run_sync(server.close_all_connections)
        service.app.settings["services"].close()
        for peer in (service.manager, service.signer, service.gateway):
            io_loop.run_sync(peer.stop)


@pytest.fixture
def service(request: pytest.FixtureRequest, make_service: Callable[..., Service]) -> Service:
    """The service with default settings, or with those a test names by `with_settings`."""
    return make_service(**getattr(request, "param", {}))
