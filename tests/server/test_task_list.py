"""The kept task list: changes by any process must be seen at once."""

from __future__ import annotations

import asyncio
from typing import Any

from models.tasks.cycles import record_cycle
from models.tasks.tasks import Task
from tests.databases import another
from tests.server.conftest import Service


async def listed(service: Service) -> Any:
    """Reads the list twice, so that the second answer is the one that the first left."""
    first, second = await service.ask("GET", "/api/tasks"), await service.ask("GET", "/api/tasks")
    assert (first.status, first.text) == (second.status, second.text)
    return second.json


def by_another_process(service: Service, statement: str) -> None:
    with another(service.settings.database_url) as connection:
        connection.execute(statement)


async def test_what_the_user_does_is_listed_at_once(service: Service) -> None:
    assert await listed(service) == []
    task = await service.new_task()
    assert [shown["id"] for shown in await listed(service)] == [task]
    await service.ask("PUT", f"/api/tasks/{task}", {"bidCount": 7})
    assert (await listed(service))[0]["config"]["bidCount"] == 7
    await service.ask("POST", f"/api/tasks/{task}/start")
    assert (await listed(service))[0]["isRunning"] is True
    await service.ask("POST", f"/api/tasks/{task}/stop")
    assert (await listed(service))[0]["isRunning"] is False
    await service.ask("DELETE", f"/api/tasks/{task}")
    assert await listed(service) == []


async def test_a_workers_cycle_is_listed_at_once(service: Service) -> None:
    task = await service.new_task()
    await listed(service)
    for number in (1, 2):
        by_another_process(service, f"UPDATE tasks SET last_cycle_ms = {number}000, last_cycle_action = 'x'")
        assert (await listed(service))[0]["lastCycle"] == {"time": number, "action": "x"}
    record_cycle(task, 0, time_ms=9000, action="y", error="no", detail="{}", memory="{}")
    assert (await listed(service))[0]["lastError"] == "no"


async def test_nobody_is_shown_anothers_list(service: Service) -> None:
    await service.new_task()
    assert len(await listed(service)) == 1
    assert (await service.api("GET", "/api/tasks", token=service.other_token)).json == []
    assert len(await listed(service)) == 1


async def test_a_session_ended_by_another_process_gets_no_list_any_more(service: Service) -> None:
    await listed(service)
    by_another_process(service, f"DELETE FROM sessions WHERE user_id = {service.user_id}")
    assert (await service.ask("GET", "/api/tasks")).status == 401


async def test_two_changes_at_once_are_both_kept(service: Service) -> None:
    task = await service.new_task()
    await service.ask("POST", f"/api/tasks/{task}/start")

    answers = await asyncio.gather(
        *(service.ask("PUT", f"/api/tasks/{task}", change) for change in ({"bidCount": 7}, {"loopSeconds": 60}))
    )

    assert [answer.status for answer in answers] == [200, 200]
    config = (await service.ask("GET", f"/api/tasks/{task}")).json["config"]
    assert (config["bidCount"], config["loopSeconds"]) == (7, 60)
    assert Task.get_by_id(task).revision == 3
