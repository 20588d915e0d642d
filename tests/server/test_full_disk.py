"""A disk without room: what cannot be stored is answered in words, and a task that fell silent says so."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import Item
from models import outbox
from models.database.base import transaction
from models.outbox import TASK
from models.tasks.tasks import RUNNING, Task
from tests.disks import full_database
from tests.server.api import new_user, token_of
from tests.server.conftest import ADMIN, Service, with_settings
from tests.server.driver import DOCUMENT, check
from tests.server.test_access import INSCRIPTION, MATRIX, call, row_of

MINUTE_MS = 60_000


async def test_what_cannot_be_stored_is_507_with_words(service: Service) -> None:
    task_id = await service.new_task()
    config = {"slug": "frogs", "hardcapSats": 100_000}
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/api/tasks", config),
        ("PUT", f"/api/tasks/{task_id}", {"hardcapSats": 90_000}),
        ("POST", "/api/presets", {"name": "one", "config": {"hardcapSats": 100_000}}),
        ("PUT", "/api/ceilings", {"maxExposure": 5}),
        ("DELETE", "/api/sessions", None),
    ]
    with full_database():
        for method, path, body in writes:
            answer = await service.ask(method, path, body)
            assert answer.status == 507, (method, path, answer.text)
            assert answer.json["error"] == "The disk is full"
            assert "Make room" in answer.json["message"]
        assert (await service.ask("GET", "/api/tasks")).status == 200
    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"hardcapSats": 90_000})
    assert answer.status == 200


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_no_operation_is_500_on_a_full_disk(service: Service, operation: tuple[str, str]) -> None:
    admin = token_of(new_user(ADMIN))
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    row_id = await row_of(service, operation[1])
    with full_database():
        answer = await call(service, operation, row_id, admin if "admin" in operation[1] else service.token)
    assert answer.status != 500, answer.text
    assert operation[0] != "GET" or answer.status != 507, "a read needs no room"


async def test_a_wrong_statement_is_500(service: Service) -> None:
    with full_database("no such column: x"):
        answer = await service.ask("POST", "/api/tasks", {"slug": "frogs", "hardcapSats": 100_000})
    assert (answer.status, answer.json) == (500, {"error": "Internal Server Error"})


def test_every_write_declares_it() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert ("507" in operation["responses"]) == (method != "get"), (method, path)


def running(task_id: int, last_cycle_ms: int) -> None:
    Task.update(desired=RUNNING, observed=RUNNING, last_cycle_ms=last_cycle_ms, last_cycle_action="x").where(
        Task.id == task_id
    ).execute()


async def test_a_running_task_without_a_cycle_for_three_loops_says_so(service: Service) -> None:
    task_id, began_ms = await service.new_task(loopSeconds=60), service.clock()
    running(task_id, began_ms)
    for minutes, code in ((3, None), (4, None), (5, "no_cycle"), (90, "no_cycle")):
        service.clock.now_ms = began_ms + minutes * MINUTE_MS
        one = await service.ask("GET", f"/api/tasks/{task_id}")
        [listed] = (await service.ask("GET", "/api/tasks")).json
        assert listed == one.json
        assert one.json["lastErrorCode"] == code, minutes
    assert one.json["lastError"].startswith("no cycle was recorded for 90 min")
    assert one.json["lastErrorParams"] == {"silentSeconds": 90 * 60}
    check("getTask", one)


async def test_a_task_that_was_started_a_moment_ago_is_not_silent(service: Service) -> None:
    task_id = await service.new_task(loopSeconds=60)
    running(task_id, service.clock() - 600 * MINUTE_MS)
    with transaction():
        outbox.tell(TASK, service.user_id, task_id, service.clock(), {"observed": RUNNING})
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["lastError"] is None
    service.clock.now_ms += 5 * MINUTE_MS
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["lastErrorCode"] == "no_cycle"


async def test_a_stopped_task_is_not_silent_and_a_slow_one_has_its_time(service: Service) -> None:
    stopped, slow = (
        await service.new_task(),
        await service.new_task(slug="frogs", loopSeconds=3_600, bidExpiryMinutes=180),
    )
    Task.update(last_cycle_ms=service.clock() - 600 * MINUTE_MS).where(Task.id == stopped).execute()
    running(slow, service.clock() - 170 * MINUTE_MS)
    listed = (await service.ask("GET", "/api/tasks")).json
    assert [task["lastError"] for task in listed] == [None, None]
