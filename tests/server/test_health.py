"""Health and readiness over HTTP."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, RequestHandler

from core import version
from core.call import Verbs
from core.files import FLOOR_BYTES
from core.local_server import serve
from core.program_calls import DeliveryCounts, HooksReadiness, PingHooks
from models import schema
from models.database import base
from models.leases import leases
from server import health
from server.http import services
from tests import postgresql
from tests.databases import kept_from_writing
from tests.ports import free_ports
from tests.worlds.service import Service, with_settings

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


def ready(asked: PingHooks) -> HooksReadiness:
    return HooksReadiness("ready", DeliveryCounts(0, 0, 0))


@pytest.fixture(autouse=True)
def hooks(service: Service, io_loop: IOLoop) -> Iterator[asyncio.Server]:
    """Answers in the place of `hooks`."""
    server = io_loop.run_sync(lambda: serve(service.settings.hooks_socket, Verbs("hooks", {PingHooks: ready})))
    yield server
    server.close()


@pytest.fixture
def simulator(service: Service) -> None:
    server = HTTPServer(Application([(r"/sim/requests", Anything)], log_function=lambda handler: None))
    server.listen(PORT, "127.0.0.1")


async def test_health_needs_nobody(service: Service) -> None:
    await service.manager.stop()

    answer = await service.api("GET", "/healthz")

    assert (answer.status, answer.json) == (200, {"status": "ok"} | VERSION)


@with_settings(simulator_port=PORT)
async def test_ready_when_everybody_answers(service: Service, simulator: None) -> None:
    answer = await service.api("GET", "/readyz")

    assert (answer.status, answer.json) == (200, {"status": "ready"} | VERSION)


@with_settings(market="satflow")
async def test_an_unknown_commit_is_null(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "running", lambda: version.Version("0.1.0", ""))
    assert (await service.api("GET", "/readyz")).json == {"status": "ready", "version": "0.1.0", "commit": None}


@with_settings(market="satflow")
async def test_a_real_market_needs_no_simulator(service: Service) -> None:
    assert (await service.api("GET", "/readyz")).status == 200


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


@with_settings(market="satflow")
async def test_a_gateway_whose_socket_was_removed_is_missing(service: Service) -> None:
    """The server keeps connections to the gateway, which work without the file."""
    before = await service.ask("GET", "/api/wallet")
    assert (await service.api("GET", "/readyz")).status == 200
    service.gateway.path.unlink()
    kept = await service.ask("GET", "/api/wallet")
    answer = await service.api("GET", "/readyz")

    assert (before.status, kept.status) == (200, 200)
    assert (answer.status, answer.json["missing"]) == (503, ["gateway"])
    assert answer.details == ["gateway: failed to ask the gateway: No such file or directory"]


@with_settings(market="satflow")
async def test_a_disk_with_little_room_is_full(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def statvfs(path: Path) -> Any:
        found = real(path)
        if path != service.settings.signer_files:
            return found
        return os.statvfs_result((*found[:4], (FLOOR_BYTES - 1) // found.f_frsize, *found[5:]))

    service.settings.signer_files.mkdir()
    monkeypatch.setattr(os, "statvfs", statvfs)
    full = await service.api("GET", "/readyz")
    remote = await service.api("GET", "/readyz", headers={"X-Forwarded-For": "198.51.100.1"})
    monkeypatch.undo()
    mended = await service.api("GET", "/readyz")

    assert (full.status, full.json["error"], full.json["missing"]) == (503, "Disk full", ["disk"])
    assert full.details == [f"disk: disk full: 63 MiB are free at {service.settings.signer_files}, 64 are needed"]
    assert (remote.json["error"], remote.details) == ("Disk full", [])
    assert mended.status == 200


@with_settings(market="satflow")
async def test_a_write_that_fails_is_a_reason_and_is_tried_until_it_succeeds(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unwritable(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    found = []
    for write in (no_room, unwritable, os.pwrite):
        monkeypatch.setattr(os, "pwrite", write)
        answer = await service.api("GET", "/readyz")
        found.append((answer.status, answer.json.get("error"), answer.json.get("missing")))
    assert found == [(503, "Disk full", ["disk"]), (503, "Not ready", ["disk"]), (200, None, None)]


@with_settings(market="satflow")
@postgresql.left_out("its word for it is another one")
async def test_a_database_that_takes_no_write_is_missing(service: Service) -> None:
    base.database.execute_sql("PRAGMA query_only = 1")
    answer = await service.api("GET", "/readyz")
    base.database.execute_sql("PRAGMA query_only = 0")

    assert (answer.status, answer.json["missing"]) == (503, ["database"])
    assert answer.details == ["database: attempt to write a readonly database"]
    assert (await service.api("GET", "/readyz")).status == 200


@with_settings(market="satflow")
async def test_readiness_does_not_wait_for_another_process_that_is_writing(service: Service, database: str) -> None:
    with kept_from_writing(database):
        assert (await service.api("GET", "/readyz")).status == 200


@with_settings(market="satflow")
async def test_readiness_writes_once_in_ten_seconds(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    now, synced, committed = [0.0], [], []
    writes = health.Writes(service.settings, lambda: now[0])
    service.app.settings["writes"] = writes
    real = base.write_fault
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(base, "write_fault", lambda: committed.append(1) or real())
    for now[0] in (0.0, 1.0, 9.9, 10.0, 11.0, 20.0):
        assert (await service.api("GET", "/readyz")).status == 200

    assert (len(synced), len(committed)) == (3, 3)
    file = service.settings.data_dir / "readyz"
    assert (file.stat().st_size, file.stat().st_mode & 0o777) == (21, 0o600)


@with_settings(market="satflow")
async def test_a_write_that_hangs_holds_one_thread(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    begun = []
    monkeypatch.setattr(health, "PATIENCE_S", 0.2)
    monkeypatch.setattr(os, "fsync", lambda _: begun.append(1) or may_end.wait(60))
    answers = [(await service.api("GET", "/readyz")).details for _ in range(3)]
    may_end.set()

    # Another part may be slow on a busy machine: only the disk's reasons are judged.
    found = [reason for details in answers for reason in details if reason.startswith("disk")]
    late, waiting = "disk: no answer within 0.2 s", "disk: a write has not ended yet"
    assert (found, len(begun)) == ([late, waiting, waiting], 1)


@with_settings(market="satflow")
@pytest.mark.parametrize(
    ("part", "look"), [("manager", "places"), ("hooks", "kept_elsewhere"), ("database", "pending")]
)
async def test_a_database_that_is_away_is_the_reason_of_each_part_that_needs_it(
    part: str, look: str, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the connection was closed")

    module = {"places": services, "kept_elsewhere": leases, "pending": schema}[look]
    monkeypatch.setattr(module, look, away)
    answer = await service.api("GET", "/readyz")
    assert (answer.status, answer.details) == (503, [f"{part}: the connection was closed"])


@with_settings(simulator_port=PORT)
@pytest.mark.parametrize(("skew_s", "missing"), [(None, []), (29.0, []), (3600.4, ["clock"]), (-3600.4, ["clock"])])
async def test_readiness_names_a_clock_by_which_no_bid_is_placed(
    service: Service, simulator: None, skew_s: float | None, missing: list[str]
) -> None:
    service.gateway.answers["status"] = {"venues": {"simulator": {"skew_s": skew_s}}}
    answer = await service.api("GET", "/readyz")
    assert answer.json.get("missing", []) == missing
    assert [line for line in answer.details if "3600 s" in line] == (answer.details if missing else [])


@with_settings(simulator_port=PORT)
async def test_one_marketplace_with_a_wrong_clock_is_not_ours(service: Service, simulator: None) -> None:
    service.gateway.answers["status"] = {"venues": {"a": {"skew_s": 3600.0}, "b": {"skew_s": 0.1}}}
    assert (await service.api("GET", "/readyz")).status == 200


@with_settings(market="satflow")
@pytest.mark.slow
async def test_who_does_not_answer_in_time_is_missing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(_: object) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(health, "PATIENCE_S", 5.0)
    monkeypatch.setattr(health, "_database", never)

    answer = await service.api("GET", "/readyz")

    assert (answer.status, answer.json["missing"]) == (503, ["database"])
