"""The manager's client: users in turn, and while the server stops."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from core.call import Request
from core.errors import PeerUnavailable
from core.program_calls import Readiness, Settle, Settled
from core.settings import Settings
from server.http import services
from server.http.answers import ApiError
from server.http.services import ManagerClient
from tests.shapes import replace


async def test_a_question_that_waits_for_its_turn_at_a_stop_is_answered(database: str, tmp_path: Path) -> None:
    client = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database))
    done = threading.Event()
    for _ in range(client._executor._max_workers):
        client._executor.submit(done.wait)
    waiting = [asyncio.create_task(client.status(1)), *(asyncio.create_task(client.ready(1)) for _ in range(20))]
    await asyncio.sleep(0.1)

    client.close()

    status, *ready = await asyncio.gather(*waiting, return_exceptions=True)
    done.set()
    assert isinstance(status, PeerUnavailable) and "this server stops" in status.message
    assert all(isinstance(each, ApiError) and each.status_code == 503 for each in ready)


async def test_a_brake_that_waits_for_its_turn_at_a_stop_is_answered(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, done = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database)), threading.Event()
    monkeypatch.setattr(services, "call", lambda *args, **named: done.wait(60))
    asked, *waiting = (asyncio.create_task(client.heed("user", 1, 1, "halt", 1)) for _ in range(6))
    await asyncio.sleep(0.1)

    client.close()

    try:
        answered, _ = await asyncio.wait(waiting, timeout=20)
        assert len(answered) == 4 and not asked.done()  # two had their turns
        errors = [each.exception() for each in answered]
        assert all(isinstance(each, PeerUnavailable) and "this server stops" in each.message for each in errors)
    finally:
        done.set()
        await asyncio.wait([asked, *waiting])


async def test_stops_of_one_user_that_hang_leave_threads_to_another(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, done = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database)), threading.Event()

    def asked(address: object, name: str, request: Request[object], *, timeout: float) -> object:
        if isinstance(request, Settle):
            done.wait(60)
            return Settled("stopped", 0)
        return Readiness("ready")

    monkeypatch.setattr(services, "call", asked)
    stops = [asyncio.create_task(client.settle(1, task)) for task in range(60)]
    try:
        await asyncio.sleep(0)
        await asyncio.wait_for(client.ready(2), 30)
        assert await client.state() == "ready"
        assert not any(stop.done() for stop in stops)
    finally:
        done.set()
    await asyncio.gather(*stops)
    client.close()


async def test_a_stopped_server_asks_nobody(database: str, tmp_path: Path) -> None:
    client = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database))
    client.close()

    with pytest.raises(PeerUnavailable, match="this server stops"):
        await client.status(1)
