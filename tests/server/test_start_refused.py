"""Refused starts, and the owner's news of them."""

from __future__ import annotations

import pytest

from models.users import Subscription
from tests.server.api import START_MS
from tests.server.conftest import Service, with_settings
from tests.server.running_tasks import row, started

SUPPORTED = {
    "outbidEnabled": {"outbidEnabled": True},
    "onlyBidIfHighest": {"onlyBidIfHighest": True},
    "bidType": {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"},
    "quantityMode": {"slug": "DOG", "type": "rune", "quantityMode": "sats", "satsPerOrder": 5},
    "useVwap": {"slug": "DOG", "type": "rune", "useVwap": True},
    "maxFills": {"maxFills": 1},
    "spendCapSats": {"spendCapSats": 1},
    "dryRun": {"dryRun": True},
}


@pytest.mark.parametrize("field", SUPPORTED)
async def test_every_kind_of_task_is_stored_and_started(service: Service, field: str) -> None:
    task_id = await service.new_task(**SUPPORTED[field])

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert (answer.status, answer.json["isRunning"]) == (200, True)
    assert answer.json["config"][field] == SUPPORTED[field][field]


async def test_start_of_what_cannot_be_done_yet_is_400_and_stays_on_the_task(service: Service) -> None:
    task_id = await service.new_task(quantity=2)

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert (answer.status, answer.names()) == (400, {"quantity"})
    task = (await service.ask("GET", f"/api/tasks/{task_id}")).json
    assert (task["isRunning"], task["lastError"]) == (False, "; ".join(answer.details))
    assert service.manager.settled == []


async def test_put_of_what_cannot_be_done_yet_does_not_break_a_running_task(service: Service) -> None:
    task_id = await started(service)

    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"quantity": 2})

    assert (answer.status, answer.names()) == (400, {"quantity"})
    assert (row(task_id).revision, row(task_id).desired) == (1, "running")


async def test_a_plan_that_is_over_starts_nothing(service: Service) -> None:
    task_id = await service.new_task()
    Subscription.update(expires_ms=START_MS).where(Subscription.user == service.user_id).execute()

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert (answer.status, answer.json) == (403, {"error": "Not allowed to run tasks", "message": "plan expired"})
    assert row(task_id).desired == "stopped"
    assert (await service.ask("GET", "/api/auth/me")).json["subscription"]["status"] == "expired"


@with_settings(whitelist=frozenset())
async def test_who_is_no_longer_listed_starts_nothing(service: Service) -> None:
    task_id = await service.new_task()

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert answer.status == 403
    assert "whitelisted" in answer.json["message"]
