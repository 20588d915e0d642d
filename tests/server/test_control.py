"""Run, reduce and halt: their rights, the answers shown, and what holds without signer or disk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from peewee import OperationalError
from tornado.ioloop import IOLoop

from models import users
from models.tasks.tasks import Task
from models.users import EVERYBODY
from server import control
from server.control import remind_signer, store_again
from tests.server.ledger_rows import open_order
from tests.worlds.service import ADMIN, OWNER, START_MS, Service, new_user, token_of, with_settings

NOW = "2025-11-20T12:00:00.000Z"


async def put(service: Service, scope: str, state: str, task_id: int | None = None) -> Any:
    more = {} if task_id is None else {"taskId": task_id}
    return await service.ask("PUT", "/api/control", {"scope": scope, "state": state, **more})


def row(service: Service, task_id: int = 0) -> str:
    return users.control_of(service.user_id, task_id).state


async def signer_dies(service: Service) -> None:
    await service.signer.stop()


async def test_nothing_set_is_run_everywhere(service: Service) -> None:
    task_id = await service.new_task()

    answer = await service.ask("GET", "/api/control")

    run = {"state": "run", "signerState": "run", "setAt": None}
    everywhere = {"state": "run", "scope": "global"}
    assert answer.json == {
        "global": run | {"closing": None},
        "user": run,
        "tasks": [{"taskId": task_id, **run, "effective": everywhere, "closing": None}],
        "autolist": [],
        "effective": everywhere,
        "haltFile": False,
        "closing": None,
    }


async def test_a_state_goes_to_the_row_and_to_the_signer(service: Service) -> None:
    task_id = await service.new_task()

    task = await put(service, "task", "halt", task_id)
    user = await put(service, "user", "reduce")

    assert (task.status, user.status, user.json["signerTold"]) == (200, 200, True)
    assert service.signer.told == [("task", str(task_id), "halt"), ("user", OWNER, "reduce")]
    assert user.json["user"] == {"state": "reduce", "signerState": "reduce", "setAt": NOW}
    assert user.json["effective"] == {"state": "reduce", "scope": "user"}
    [shown] = user.json["tasks"]
    assert (shown["state"], shown["effective"]) == ("halt", {"state": "halt", "scope": "task"})
    assert row(service, task_id) == "halt"


async def test_a_bidding_and_an_auto_list_task_are_held_apart(service: Service) -> None:
    bidding_id = await service.new_task()
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "c" * 64 + "i0"})
    assert listing.status == 201
    listing_id = listing.json["id"]

    halted = await put(service, "autolist", "halt", listing_id)
    reduced = await put(service, "task", "reduce", bidding_id)
    foreign = await service.api(
        "PUT", "/api/control", {"scope": "autolist", "taskId": listing_id, "state": "run"}, token=service.other_token
    )
    of_other_kind = [await put(service, "autolist", "halt", bidding_id), await put(service, "task", "halt", listing_id)]
    nowhere = await put(service, "autolist", "halt", listing_id + 1)
    unnamed = await put(service, "autolist", "halt")

    assert (halted.status, halted.json["signerTold"]) == (200, True)
    assert service.signer.told == [("task", str(listing_id), "halt"), ("task", str(bidding_id), "reduce")]
    assert (row(service, listing_id), row(service, bidding_id)) == ("halt", "reduce")
    [bidding], [listed] = reduced.json["tasks"], reduced.json["autolist"]
    assert (bidding["taskId"], bidding["state"], bidding["signerState"]) == (bidding_id, "reduce", "reduce")
    assert (listed["taskId"], listed["state"], listed["signerState"]) == (listing_id, "halt", "halt")
    assert listed["effective"] == {"state": "halt", "scope": "task"}
    assert reduced.json["effective"] == {"state": "run", "scope": "global"}
    assert [answer.status for answer in (foreign, nowhere, *of_other_kind)] == [404] * 4
    assert (unnamed.status, unnamed.names()) == (400, {"taskId"})


@with_settings(admins=frozenset({ADMIN}))
async def test_only_admins_hold_everybody_and_others_see_it(service: Service) -> None:
    admin = token_of(new_user(ADMIN))

    refused = await put(service, "global", "halt")
    answer = await service.api("PUT", "/api/control", {"scope": "global", "state": "halt"}, token=admin)
    seen = await service.ask("GET", "/api/control")

    assert (refused.status, refused.json) == (403, {"error": "Only admins may set the global state"})
    assert (answer.status, service.signer.told) == (200, [("global", "", "halt")])
    assert seen.json["effective"] == {"state": "halt", "scope": "global"}
    assert users.Control.get().subject_id == EVERYBODY


async def test_a_user_sees_and_sets_nobody_elses(service: Service) -> None:
    task_id = await service.new_task()
    await put(service, "user", "halt")
    await put(service, "task", "halt", task_id)
    body = {"scope": "task", "taskId": task_id, "state": "run"}

    other = await service.api("GET", "/api/control", token=service.other_token)
    foreign = await service.api("PUT", "/api/control", body, token=service.other_token)
    spoilt = await service.api("PUT", "/api/control", body | {"state": "x"}, token=service.other_token)

    assert (other.json["tasks"], other.json["effective"]["state"]) == ([], "run")
    assert (foreign.status, spoilt.status) == (404, 404), "404 comes before 400"
    assert row(service, task_id) == "halt"


@pytest.mark.parametrize("task_id", [0, -1, 999, 2**63, 10**30])
async def test_a_task_that_no_row_can_be_is_404(service: Service, task_id: int) -> None:
    answer = await put(service, "task", "halt", task_id)

    assert (answer.status, answer.json) == (404, {"error": "Not found"})


async def test_a_deleted_task_is_404_and_not_shown(service: Service) -> None:
    task_id = await service.new_task()
    Task.update(deleted_ms=1).execute()

    assert (await put(service, "task", "halt", task_id)).status == 404
    assert (await service.ask("GET", "/api/control")).json["tasks"] == []


async def test_without_a_signer_stricter_is_stored_and_looser_is_refused(service: Service) -> None:
    await put(service, "user", "reduce")
    await signer_dies(service)

    halted = await put(service, "user", "halt")
    loosened = await put(service, "user", "run")
    reduced = await put(service, "user", "reduce")

    assert (halted.status, halted.json["signerTold"]) == (200, False)
    assert halted.json["user"] == {"state": "halt", "signerState": None, "setAt": NOW}
    assert (halted.json["effective"]["state"], halted.json["haltFile"]) == ("halt", None)
    assert (loosened.status, reduced.status) == (503, 503)
    assert row(service) == "halt"


async def test_a_locked_signer_takes_it_all_the_same(service: Service) -> None:
    service.signer.state = "locked"

    halted, running = await put(service, "user", "halt"), await put(service, "user", "run")

    assert (halted.json["signerTold"], running.json["signerTold"]) == (True, True)
    assert (row(service), service.signer.controls) == ("run", {})


async def test_to_tighten_the_row_is_first_and_to_loosen_it_is_last(service: Service) -> None:
    rows: list[tuple[str, str]] = []
    service.signer.before_control = lambda state: rows.append((state, row(service)))

    await put(service, "user", "halt")
    await put(service, "user", "reduce")
    await put(service, "user", "run")

    assert rows[0] == ("halt", "halt")
    assert ("reduce", "halt") in rows and ("run", "reduce") in rows
    assert (row(service), service.signer.controls) == ("run", {})


async def test_a_halt_that_comes_while_another_loosens_wins(service: Service) -> None:
    await put(service, "user", "reduce")

    def halt_meanwhile(state: str) -> None:
        if state == "run":
            users.put_control("user", service.user_id, "halt", None, START_MS)

    service.signer.before_control = halt_meanwhile
    answer = await put(service, "user", "run")

    assert (answer.status, answer.json["error"]) == (409, "The state was changed at the same time")
    assert (row(service), service.signer.controls) == ("halt", {("user", OWNER): "halt"})


async def test_the_signer_is_told_what_the_row_says_in_the_end(service: Service) -> None:
    def halt_meanwhile(state: str) -> None:
        if state == "reduce":
            users.put_control("user", service.user_id, "halt", None, START_MS)

    service.signer.before_control = halt_meanwhile
    answer = await put(service, "user", "reduce")

    assert (answer.json["user"]["state"], answer.json["user"]["signerState"]) == ("halt", "halt")


async def test_what_only_the_signer_has_counts_too(service: Service) -> None:
    task_id = await service.new_task()
    service.signer.controls = {("task", str(task_id)): "halt"}
    service.signer.has_halt_file = True

    seen = (await service.ask("GET", "/api/control")).json

    assert (seen["haltFile"], seen["effective"]) == (True, {"state": "reduce", "scope": "global"})
    [task] = seen["tasks"]
    assert (task["state"], task["signerState"], task["effective"]["state"]) == ("run", "halt", "halt")


async def test_a_signer_that_was_away_or_lost_its_file_is_reminded(service: Service) -> None:
    task_id = await service.new_task()
    await signer_dies(service)
    await put(service, "user", "halt")
    await put(service, "task", "reduce", task_id)
    users.put_control("global", EVERYBODY, "reduce", None, START_MS)
    users.put_control("task", 5, "halt", None, START_MS)
    services = service.app.settings["services"]
    await remind_signer(services)  # it is still away
    await service.signer.start()

    await remind_signer(services)
    told = {("global", ""): "reduce", ("user", OWNER): "halt", ("task", str(task_id)): "reduce"}
    told[("task", str(5))] = "halt"
    assert service.signer.controls == told
    service.signer.told.clear()
    await remind_signer(services)

    assert service.signer.told == [], "it knows"


async def test_a_signer_that_is_stricter_is_left_so(service: Service) -> None:
    await put(service, "user", "reduce")
    service.signer.controls[("user", OWNER)] = "halt"
    service.signer.told.clear()

    await remind_signer(service.app.settings["services"])

    assert service.signer.told == []


def test_states_survive_the_server(service: Service, io_loop: IOLoop) -> None:
    io_loop.run_sync(lambda: put(service, "user", "halt"))

    assert [(each.scope, each.state, each.by_user) for each in users.controls_of(service.user_id)] == [
        ("user", "halt", service.user_id)
    ]


async def test_one_user_loosens_so_often_a_minute_and_keeps_nobody_else_from_it(service: Service) -> None:
    """The signer bounds all users' together, so without this one could hold up everybody."""
    for _ in range(30):
        await put(service, "user", "halt")
        assert (await put(service, "user", "run")).status == 200
    assert (await put(service, "user", "run")).status == 200, "nothing is loosened by that"
    assert (await put(service, "user", "halt")).status == 200, "tightening never waits"

    refused = await put(service, "user", "reduce")

    assert (refused.status, row(service)) == (429, "halt")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert service.signer.told[-1] == ("user", OWNER, "halt")
    other = token_of(new_user(ADMIN))
    for state in ("halt", "run"):
        answer = await service.api("PUT", "/api/control", {"scope": "user", "state": state}, token=other)
        assert answer.status == 200


async def test_signer_and_manager_learn_of_a_halt_at_the_same_time(service: Service) -> None:
    """Each answers only when the other has been asked, too: one after the other would end in neither."""
    asked = {"signer": asyncio.Event(), "manager": asyncio.Event()}
    handle = service.signer._handle

    async def waits(me: str, other: str) -> None:
        asked[me].set()
        await asyncio.wait_for(asked[other].wait(), 60)

    async def handle_after(request: dict[str, Any]) -> Any:
        if request["op"] == "control":
            await waits("signer", "manager")
        return handle(request)

    await service.signer.stop()
    service.signer._handle = handle_after  # type: ignore[assignment,method-assign]
    await service.signer.start()
    service.manager.before_heeding = lambda: waits("manager", "signer")

    answer = await put(service, "user", "halt")

    assert (answer.status, answer.json["signerTold"], row(service)) == (200, True, "halt")
    assert service.manager.heeded == [("user", service.user_id, "halt")]


async def test_halt_without_a_manager_is_stored_and_signed_no_more(service: Service) -> None:
    await service.manager.stop()

    answer = await put(service, "user", "halt")

    assert (answer.status, answer.json["signerTold"], row(service)) == (200, True, "halt")


async def test_run_reaches_the_manager_after_its_row(service: Service) -> None:
    await put(service, "user", "halt")
    rows: list[str] = []
    service.manager.before_heeding = lambda: rows.append(row(service))

    await put(service, "user", "run")

    assert (rows, service.manager.heeded[-1]) == (["run"], ("user", service.user_id, "run"))


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
