"""Start, stop, and changes to running tasks; refused starts, and the manager's client."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError
from tornado.ioloop import IOLoop

from core.call import Request
from core.errors import PeerUnavailable
from core.program_calls import Readiness, Settle, Settled
from core.settings import Settings
from models import users
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import Subscription, User
from server.control import store_again
from server.http import services
from server.http.answers import ApiError
from server.http.services import ManagerClient
from tests.server import autolist_tasks
from tests.server.driver import check
from tests.server.ledger_rows import open_order, row, started
from tests.shapes import replace
from tests.worlds.service import OWNER, START_MS, Answer, Service, with_settings


def says_the_manager_is_away(answer: Answer) -> bool:
    return (answer.status, answer.json["error"]) == (503, "The manager is away")


NAMES = {"GET": "get{}Task", "PUT": "change{}Task", "DELETE": "delete{}Task"}
NAMES |= {"POST/start": "start{}Task", "POST/stop": "stop{}Task"}


@dataclass(frozen=True)
class One:
    """A task of one kind, asked over HTTP; each answer is as described."""

    service: Service
    kind: str
    id: int

    async def __call__(self, method: str, more: str = "", body: Any = None) -> Answer:
        answer: Answer = await self.service.ask(method, f"/api/{self.kind}/{self.id}{more}", body)
        check(NAMES[method + more].format("" if self.kind == "tasks" else "Autolist"), answer)
        return answer

    async def start(self) -> None:
        assert (await self("POST", "/start")).status == 200


@pytest.fixture(params=["tasks", "autolist"])
def one(request: pytest.FixtureRequest, service: Service, io_loop: IOLoop) -> One:
    """A stopped bidding task, or a stopped auto-list task."""
    new = service.new_task if request.param == "tasks" else partial(autolist_tasks.new_task, service)
    return One(service, request.param, io_loop.run_sync(new))


async def test_start_answers_the_running_task_once_the_manager_settled_it(service: Service, one: One) -> None:
    answer = await one("POST", "/start")

    assert (answer.status, answer.json["id"], answer.json["isRunning"]) == (200, one.id, True)
    assert service.manager.settled == [one.id]
    assert (row(one.id).desired, row(one.id).observed) == ("running", "running")


async def test_starting_twice_and_stopping_twice_does_nothing_twice(service: Service, one: One) -> None:
    await one.start()

    again = await one("POST", "/start")
    stops = [await one("POST", "/stop") for _ in range(2)]

    assert (again.status, again.json["isRunning"]) == (200, True)
    assert [(stop.status, stop.json["isRunning"]) for stop in stops] == [(200, False)] * 2
    assert service.manager.settled == [one.id] * 2


async def test_parallel_starts_ask_the_manager_once(service: Service, one: One) -> None:
    answers = await asyncio.gather(*(one("POST", "/start") for _ in range(10)))

    assert {answer.status for answer in answers} == {200}
    assert service.manager.settled == [one.id]


async def test_stop_without_a_manager_is_503_and_holds(service: Service, one: One) -> None:
    await one.start()
    await service.manager.stop()

    for _ in range(2):
        answer = await one("POST", "/stop")
        assert says_the_manager_is_away(answer)
        assert "will be stopped" in answer.json["message"] and "nothing was changed" not in answer.json["message"]
    assert row(one.id).desired == "stopped"
    await service.manager.start()
    assert (await one("POST", "/stop")).status == 200


CHANGES = {"tasks": ({"bidCount": 2}, {"slug": "other"}), "autolist": ({"pricePercent": 2}, {"collectionId": "others"})}


async def test_put_on_a_running_task_restarts_it_with_the_new_config(service: Service, one: One) -> None:
    await one.start()
    change, _ = CHANGES[one.kind]

    answers = [await one("PUT", body=change) for _ in range(2)]

    for answer in answers:
        assert (answer.status, answer.json["isRunning"]) == (200, True)
        assert change.items() <= answer.json["config"].items()
    assert service.manager.settled == [one.id] * 2, "the second one changes nothing"
    assert row(one.id).revision == 2


async def test_a_put_that_cannot_be_carried_out_is_taken_back(service: Service, one: One) -> None:
    await one.start()
    before = (await one("GET")).json
    service.manager.refuse = ("signer_locked", "no passphrase yet")
    change, move = CHANGES[one.kind]

    answer = await one("PUT", body=change | move)

    assert (answer.status, answer.json) == (503, {"error": "The signer is locked", "message": "no passphrase yet"})
    assert (await one("GET")).json == before
    assert row(one.id).revision == 3


async def test_a_delete_that_cannot_be_carried_out_is_taken_back(service: Service, one: One) -> None:
    await one.start()
    service.manager.refuse = ("internal", "failed; the log has the reason")

    assert (await one("DELETE")).status == 503
    assert (await one("GET")).json["isRunning"] is True


async def test_stop_answers_how_many_bids_are_still_open(service: Service) -> None:
    task_id = await started(service)
    open_order(service, task_id)

    answer = await service.ask("POST", f"/api/tasks/{task_id}/stop")

    assert (answer.status, answer.json["isRunning"], answer.json["openBids"]) == (200, False, 1)
    assert "openBids" not in (await service.ask("GET", f"/api/tasks/{task_id}")).json


async def test_start_without_a_manager_is_503_and_changes_nothing(service: Service) -> None:
    task_id = await service.new_task()
    tasks.set_error(row(task_id), "left by an earlier cycle")
    await service.manager.stop()

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert says_the_manager_is_away(answer)
    assert (row(task_id).desired, row(task_id).last_error) == ("stopped", "left by an earlier cycle")


@with_settings(manager_wait_s=60.0)
async def test_a_manager_that_comes_back_in_time_is_waited_for(service: Service) -> None:
    task_id = await service.new_task()
    await service.manager.stop()

    start = asyncio.ensure_future(service.ask("POST", f"/api/tasks/{task_id}/start"))
    await asyncio.sleep(0.3)
    assert not start.done()
    await service.manager.start()

    assert (await start).status == 200


async def test_put_and_delete_of_a_running_task_without_a_manager_change_nothing(service: Service) -> None:
    task_id = await started(service)
    before = await service.ask("GET", f"/api/tasks/{task_id}")
    await service.manager.stop()

    put = await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 2})
    delete = await service.ask("DELETE", f"/api/tasks/{task_id}")

    assert says_the_manager_is_away(put) and says_the_manager_is_away(delete)
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json == before.json
    assert row(task_id).revision == 1


async def test_put_on_a_stopped_task_needs_no_manager(service: Service) -> None:
    task_id = await service.new_task()
    await service.manager.stop()

    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 2, "outbidEnabled": True})

    assert (answer.status, answer.json["config"]["bidCount"]) == (200, 2)


async def test_while_a_delete_may_still_fail_its_slug_is_taken(service: Service) -> None:
    task_id = await started(service)
    body = {"slug": "goosinals", "hardcapSats": 1}
    created: list[asyncio.Future[Answer]] = []

    def create_meanwhile() -> None:
        created.append(asyncio.ensure_future(service.ask("POST", "/api/tasks", body)))

    service.manager.before_settling = create_meanwhile
    service.manager.refuse = ("signer_locked", "")
    refused = await service.ask("DELETE", f"/api/tasks/{task_id}")
    meanwhile = await created[0]

    assert (refused.status, meanwhile.status) == (503, 409)
    assert [task["id"] for task in (await service.ask("GET", "/api/tasks")).json] == [task_id]
    assert (row(task_id).desired, row(task_id).deleted_ms) == ("running", None)


async def test_a_delete_that_is_refused_keeps_what_the_task_said(service: Service) -> None:
    task_id = await started(service)
    tasks.set_error(row(task_id), "the venue is away")
    before = await service.ask("GET", f"/api/tasks/{task_id}")
    service.manager.refuse = ("internal", "")

    await service.ask("DELETE", f"/api/tasks/{task_id}")

    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json == before.json


@pytest.mark.parametrize("how", ["stop", "delete", "stop many"])
async def test_a_stop_that_has_no_room_on_the_disk_halts_the_task(
    service: Service, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await started(service)

    def full(*_: object) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(tasks, "set_desired", full)
    path = {"stop": ("POST", f"/api/tasks/{task_id}/stop"), "delete": ("DELETE", f"/api/tasks/{task_id}")}
    body = {"action": "stop", "ids": [task_id]}
    answer = await service.ask(*path.get(how, ("POST", "/api/tasks/actions")), body if how == "stop many" else None)

    told = answer.json["results"][0] if how == "stop many" else {"status": answer.status, "body": answer.json}
    assert (told["status"], told["body"]["error"]) == (503, "In force, not yet stored")
    assert service.signer.controls == {("task", str(task_id)): "halt"}
    assert ("task", task_id, "halt") in service.manager.heeded
    monkeypatch.undo()
    await store_again(service.app.settings["services"])
    assert users.control_of(service.user_id, task_id) == ("halt", "task")


async def test_a_hidden_task_stays_hidden_when_its_bids_cannot_be_waited_for(service: Service) -> None:
    task_id = await started(service)
    open_order(service, task_id)

    def refuse_the_second() -> None:
        if service.manager.settled:
            service.manager.refuse = ("gateway_unavailable", "")

    service.manager.settled.clear()
    service.manager.before_settling = refuse_the_second
    answer = await service.ask("DELETE", f"/api/tasks/{task_id}")

    assert (answer.status, answer.json["openBids"], answer.json["closing"]["open"]) == (200, 1, 1)
    assert (row(task_id).desired, row(task_id).deleted_ms) == ("stopped", START_MS)
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).status == 404


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        ("signer_unavailable", 503),
        ("signer_locked", 503),
        ("gateway_unavailable", 503),
        ("start_failed", 503),
        ("not_entitled", 403),
        ("too_many_workers", 429),
        ("unheard_of", 503),
    ],
)
async def test_a_refused_start_leaves_the_task_stopped(service: Service, refusal: str, status: int) -> None:
    task_id = await service.new_task()
    service.manager.refuse = (refusal, "because")

    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert (answer.status, answer.json["message"]) == (status, "because")
    assert row(task_id).desired == "stopped"


async def test_deleting_a_running_task_stops_it_first(service: Service) -> None:
    task_id = await started(service)
    open_order(service, task_id)

    answer = await service.ask("DELETE", f"/api/tasks/{task_id}")

    assert (answer.status, answer.json["openBids"], answer.json["closing"]["open"]) == (200, 1, 1)
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).status == 404
    assert (await service.ask("GET", "/api/tasks")).json == []
    hidden = row(task_id)
    assert (hidden.desired, hidden.deleted_ms) == ("stopped", START_MS)
    assert (await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1})).status == 201


async def test_deleting_a_stopped_task_with_open_bids_needs_the_manager(service: Service) -> None:
    task_id = await service.new_task()
    open_order(service, task_id, state="unknown")
    await service.manager.stop()

    assert says_the_manager_is_away(await service.ask("DELETE", f"/api/tasks/{task_id}"))
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).status == 200


async def test_a_crashed_task_can_be_started_and_stopped(service: Service) -> None:
    task_id = await started(service)
    Task.update(observed="crashed").execute()

    shown = (await service.ask("GET", f"/api/tasks/{task_id}")).json["isRunning"]
    stop = await service.ask("POST", f"/api/tasks/{task_id}/stop")
    Task.update(observed="crashed", desired="running").execute()
    start = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert shown is False
    assert (stop.status, stop.json["isRunning"]) == (200, False)
    assert (start.status, start.json["isRunning"]) == (200, True)
    assert service.manager.settled == [task_id] * 3


async def test_a_stop_is_wanted_before_a_start_that_waits_for_the_manager(service: Service) -> None:
    task_id = await service.new_task()
    await service.manager.stop()

    start = asyncio.ensure_future(service.ask("POST", f"/api/tasks/{task_id}/start"))
    stop = await service.ask("POST", f"/api/tasks/{task_id}/stop")

    assert (await start).status == 503
    assert stop.status == 200
    assert row(task_id).desired == "stopped"


async def test_a_task_deleted_while_its_start_waits_is_404(service: Service) -> None:
    task_id = await service.new_task()

    def delete() -> None:
        tasks.mark_deleted(row(task_id), START_MS)

    service.manager.before_settling = delete
    answer = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert answer.status == 404


async def test_a_manager_that_starts_up_is_not_ready(service: Service) -> None:
    service.manager.state = "starting"
    task_id = await service.new_task()

    assert says_the_manager_is_away(await service.ask("POST", f"/api/tasks/{task_id}/start"))


async def test_exposure_counts_every_open_order(service: Service) -> None:
    task_id = await started(service)
    for number, state in enumerate(("reserved", "signed", "submitted", "live", "cancelling", "unknown", "closed"), 1):
        open_order(service, task_id, number, state)

    me = await service.ask("GET", "/api/auth/me")

    assert me.json["stats"] == {
        "taskCount": 1,
        "maxTasks": 20,
        "exposure": 10_000 * (1 + 2 + 3 + 4 + 5 + 6),
        "openBids": 6,
        "maxExposure": 50_000_000,
    }
    assert User.get_by_id(service.user_id).address == OWNER


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
