"""Two server processes on one database: neither undoes what the other was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tornado.testing import bind_unused_port

from core.errors import PeerRefused
from core.program_calls import Settle, Settled
from models.tasks.tasks import STOPPED
from server.app import make_app, make_server
from strategy.config.bid import load_bid_config
from strategy.config.listing import load_listing_config
from tests.server import autolist_tasks
from tests.server.ledger_rows import row, started
from tests.worlds.service import Api, Service, with_settings


@pytest.fixture
def second(service: Service) -> Iterator[Api]:
    """The API of another process."""
    app = make_app(service.settings, clock_ms=service.clock, manager_wait_s=30.0)
    server = make_server(app)
    listener, port = bind_unused_port()
    server.add_socket(listener)
    api = Api(f"http://127.0.0.1:{port}")
    yield api
    api.close()
    server.stop()
    app.settings["services"].close()


async def at_once(service: Service, second: Api, path: str, here: Any, there: Any) -> list[int]:
    """Changes a running task here and there while the manager has no time; returns the statuses."""
    service.manager.state = "busy"
    asked = [
        asyncio.ensure_future(service.ask("PUT", path, here)),
        asyncio.ensure_future(second("PUT", path, there, token=service.token)),
    ]
    await asyncio.sleep(0.4)
    service.manager.state = "ready"
    return [answer.status for answer in await asyncio.gather(*asked)]


@pytest.mark.slow
@with_settings(manager_wait_s=30.0)
async def test_a_change_of_a_bidding_task_takes_the_others_along(service: Service, second: Api) -> None:
    task_id = await started(service)
    for caps in (50_000, 40_000, 30_000):
        given = {"hardcapSats": caps}, {"bidCount": caps // 10_000}
        assert await at_once(service, second, f"/api/tasks/{task_id}", *given) == [200, 200]
        config = load_bid_config(row(task_id).config)
        assert (config.hardcap_sats, config.bid_count) == (caps, caps // 10_000)


@pytest.mark.slow
@with_settings(manager_wait_s=30.0)
async def test_a_change_of_a_listing_takes_the_others_along(service: Service, second: Api) -> None:
    task_id = await autolist_tasks.started(service)
    path = f"/api/autolist/{task_id}"
    for least in (50_000, 60_000):
        given = {"minPriceSats": least}, {"undercutSats": least // 1_000}
        assert await at_once(service, second, path, *given) == [200, 200]
        config = load_listing_config(row(task_id).config)
        assert (config.min_price_sats, config.undercut_sats) == (least, least // 1_000)


@pytest.mark.slow
@with_settings(manager_wait_s=30.0)
async def test_a_delete_that_fails_does_not_undo_a_stop(service: Service, second: Api) -> None:
    task_id = await started(service)
    settle, turn, asked = service.manager.settle, asyncio.Lock(), asyncio.Event()

    async def handle(request: Settle) -> Settled:
        """Answers one question about a task at a time, as the manager does, the first of them with a failure."""
        async with turn:
            if not asked.is_set():
                asked.set()
                await asyncio.sleep(0.5)
                raise PeerRefused("manager", "stop_failed", "process 1 does not end")
        await asyncio.wait([delete])  # by then the failure has been answered
        return await settle(request)

    service.manager.settle = handle
    delete = asyncio.ensure_future(service.ask("DELETE", f"/api/tasks/{task_id}"))
    await asyncio.wait_for(asked.wait(), 30)
    stop = await second("POST", f"/api/tasks/{task_id}/stop", token=service.token)
    assert (await delete).status == 503 and stop.status == 200
    assert (row(task_id).desired, row(task_id).observed) == (STOPPED, STOPPED) and stop.json["isRunning"] is False
