"""The manager's client while the server stops."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import PeerUnavailable
from core.settings import Settings
from server.http.api_errors import ApiError
from server.http.manager_client import _THREADS, ManagerClient


async def test_a_question_that_waits_for_its_turn_at_a_stop_is_answered(database: str, tmp_path: Path) -> None:
    client = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database))
    done = threading.Event()
    for _ in range(_THREADS):
        client._executor.submit(done.wait)
    waiting = [asyncio.create_task(client.status(1)), asyncio.create_task(client.ready(1))]
    await asyncio.sleep(0.1)

    client.close()

    status, ready = await asyncio.gather(*waiting, return_exceptions=True)
    done.set()
    assert isinstance(status, PeerUnavailable) and "this server stops" in status.message
    assert isinstance(ready, ApiError) and ready.status_code == 503


async def test_a_stopped_server_asks_nobody(database: str, tmp_path: Path) -> None:
    client = ManagerClient(replace(Settings(), data_dir=tmp_path, database_url=database))
    client.close()

    with pytest.raises(PeerUnavailable, match="this server stops"):
        await client.status(1)
