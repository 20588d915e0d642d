"""Health and readiness over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, RequestHandler

from core import version
from core.local_server import serve
from models import base
from models.leases import leases
from server import health
from tests import postgresql
from tests.ports import free_ports
from tests.server.conftest import Service, with_settings

(PORT,) = free_ports(1)
VERSION = {"version": version.VERSION, "commit": version.running().commit or None}


class Anything(RequestHandler):
    def get(self) -> None:
        self.finish({})


@pytest.fixture(autouse=True)
def facts(service: Service) -> Iterator[socket.socket]:
    """Listens in the place of `facts`: only its listening is checked."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(service.settings.facts_socket))
        listener.listen()
        yield listener


@pytest.fixture(autouse=True)
def hooks(service: Service, io_loop: IOLoop) -> Iterator[asyncio.Server]:
    """Answers in the place of `hooks`."""
    server = io_loop.run_sync(lambda: serve(service.settings.hooks_socket, lambda request: {"state": "ready"}))
    yield server
    server.close()


@pytest.fixture
def simulator(service: Service) -> None:
    server = HTTPServer(Application([(r"/sim/requests", Anything)], log_function=lambda handler: None))
    server.listen(PORT, "127.0.0.1")


@pytest.mark.gen_test
async def test_health_needs_nobody(service: Service) -> None:
    await service.manager.stop()

    answer = await service.api("GET", "/healthz")

    assert (answer.status, answer.json) == (200, {"status": "ok"} | VERSION)


@pytest.mark.gen_test
@with_settings(simulator_port=PORT)
async def test_ready_when_everybody_answers(service: Service, simulator: None) -> None:
    answer = await service.api("GET", "/readyz")

    assert (answer.status, answer.json) == (200, {"status": "ready"} | VERSION)


@pytest.mark.gen_test
@with_settings(market="satflow")
async def test_an_unknown_commit_is_null(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "running", lambda: version.Version("0.1.0", ""))
    assert (await service.api("GET", "/readyz")).json == {"status": "ready", "version": "0.1.0", "commit": None}


@pytest.mark.gen_test
@with_settings(market="satflow")
async def test_a_real_market_needs_no_simulator(service: Service) -> None:
    assert (await service.api("GET", "/readyz")).status == 200


@pytest.mark.gen_test
@with_settings(market="satflow")
@postgresql.only
async def test_what_another_machine_keeps_is_not_missing_here(service: Service, hooks: asyncio.Server) -> None:
    hooks.close()
    before = await service.api("GET", "/readyz")
    taken = leases.take(base.database.obj, leases.HOOKS, leases.Holder("there", "b.example"), 300)
    kept = await service.api("GET", "/readyz")
    assert isinstance(taken, leases.Taken)
    leases.give_back(base.database.obj, leases.HOOKS, taken.token)
    after = await service.api("GET", "/readyz")
    assert [answer.status for answer in (before, kept, after)] == [503, 200, 503]


@pytest.mark.gen_test
@with_settings(simulator_port=PORT)
async def test_not_ready_names_who_is_missing(
    service: Service, simulator: None, facts: socket.socket, hooks: asyncio.Server
) -> None:
    service.signer.state = "locked"
    locked = await service.api("GET", "/readyz")
    await service.signer.stop()
    await service.manager.stop()
    await service.gateway.stop()
    service.gateway.path.unlink()
    facts.close()
    hooks.close()
    away = await service.api("GET", "/readyz")

    assert (locked.status, locked.json["missing"]) == (503, ["signer"])
    assert locked.details == ["signer: locked: no passphrase"]
    assert (away.status, away.json["missing"]) == (503, ["facts", "gateway", "hooks", "manager", "signer"])
    assert away.headers["X-Content-Type-Options"] == "nosniff"
    through_a_proxy = await service.api("GET", "/readyz", headers={"X-Forwarded-For": "198.51.100.1"})
    assert (
        through_a_proxy.json
        == {
            "error": "Not ready",
            "missing": away.json["missing"],
        }
        | VERSION
    ), "no host and no user"


@pytest.mark.gen_test
@with_settings(market="satflow")
@pytest.mark.slow
async def test_who_does_not_answer_in_time_is_missing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(health, "PATIENCE_S", 5.0)
    monkeypatch.setattr(health, "_database", never)

    answer = await service.api("GET", "/readyz")

    assert (answer.status, answer.json["missing"]) == (503, ["database"])
