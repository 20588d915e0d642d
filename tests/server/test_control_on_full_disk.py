"""Control states on a full disk: in force without a row, and stored when there is room."""

from __future__ import annotations

import pytest
from peewee import OperationalError

from models import users
from server import control
from server.control import store_again
from tests.server.conftest import Service
from tests.server.running_tasks import open_order
from tests.server.test_control import NOW, put, row


def disk_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(control, "_store", full)


async def test_halt_on_a_full_disk_is_in_force_and_stored_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, services = await service.new_task(), service.app.settings["services"]
    with monkeypatch.context() as full:
        disk_fills(full)
        answer = await put(service, "task", "halt", task_id)
        await store_again(services)  # which tells both again, since one of them may have been away

    assert (answer.status, answer.json["error"]) == (503, "In force, not yet stored")
    assert "open bids are being cancelled" in answer.json["message"]
    assert service.signer.told == [("task", str(task_id), "halt")] * 2
    assert service.manager.heeded == [("task", task_id, "halt")] * 2
    assert row(service, task_id) == "run"
    await store_again(services)
    assert (row(service, task_id), services.unstored) == ("halt", {})


@pytest.mark.parametrize("away", ["signer", "manager"])
async def test_halt_on_a_full_disk_names_the_peer_that_is_away(
    service: Service, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    disk_fills(monkeypatch)
    await (service.signer if away == "signer" else service.manager).stop()

    answer = await put(service, "user", "halt")

    assert (answer.status, answer.json["error"]) == (503, "In force, not yet stored")
    assert f"the {away} does not have it" in answer.json["message"].lower()


async def test_halt_that_nothing_took_is_not_in_force(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_fills(monkeypatch)
    await service.signer.stop()
    await service.manager.stop()

    answer = await put(service, "user", "halt")

    assert (answer.status, answer.json["error"]) == (503, "Not in force")


async def test_halt_of_a_full_disk_is_not_stored_over_a_later_run(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server's, which knows nothing of what this one has still to store."""
    with monkeypatch.context() as full:
        disk_fills(full)
        await put(service, "user", "halt")
    service.clock.now_ms += 1
    users.put_control("user", service.user_id, "run", service.user_id, service.clock.now_ms)

    await store_again(service.app.settings["services"])

    assert row(service) == "run"


async def test_bids_of_a_halt_without_a_row_are_counted(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signer's state is shown, so without a count the page would call the task halted while its bids are open."""
    task_id = await service.new_task()
    open_order(service, task_id)
    disk_fills(monkeypatch)

    await put(service, "user", "halt")
    seen = (await service.ask("GET", "/api/control")).json
    other = await service.api("GET", "/api/control", token=service.other_token)

    [task] = seen["tasks"]
    assert (task["effective"]["state"], task["closing"]) == ("halt", {"open": 1, "unknown": 0, "since": NOW})
    assert (seen["closing"], other.json["closing"]) == (task["closing"], None)
