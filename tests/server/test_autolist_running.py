"""Start, stop and change auto-list tasks: what is refused, what the manager is asked, what the caller hears."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from markets.base import Item, NotFound, Unavailable, Whereabouts
from models import accounts
from models.tasks import tasks
from tests.server.api import START_MS
from tests.server.autolist_tasks import INSCRIPTION, OUTPOINT, VAULT, call, lies_at, listed, new_task, row, started
from tests.server.conftest import OWNER, Service


async def test_start_answers_the_running_task_once_the_manager_settled_it(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, VAULT)

    answer = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.json["id"], answer.json["isRunning"]) == (200, task_id, True)
    assert service.manager.settled == [task_id]
    assert (row(task_id).desired, row(task_id).observed) == ("running", "running")


async def test_starting_twice_and_stopping_twice_does_nothing_twice(service: Service) -> None:
    task_id = await started(service)

    again = await call(service, "POST", task_id, "/start")
    stops = [await call(service, "POST", task_id, "/stop") for _ in range(2)]

    assert (again.status, again.json["isRunning"]) == (200, True)
    assert [(stop.status, stop.json["isRunning"]) for stop in stops] == [(200, False)] * 2
    assert service.manager.settled == [task_id] * 2


async def test_parallel_starts_ask_the_manager_once(service: Service) -> None:
    task_id = await new_task(service)

    answers = await asyncio.gather(*(call(service, "POST", task_id, "/start") for _ in range(10)))

    assert {answer.status for answer in answers} == {200}
    assert service.manager.settled == [task_id]


async def test_a_bidding_task_runs_and_stops_by_itself(service: Service) -> None:
    bidding_id = await service.new_task()
    task_id = await started(service)

    assert (await service.ask("GET", f"/api/tasks/{bidding_id}")).json["isRunning"] is False
    stop = await service.ask("POST", f"/api/tasks/{bidding_id}/stop")

    assert stop.status == 200
    assert (await call(service, "GET", task_id)).json["isRunning"] is True


async def test_an_inscription_in_its_escrow_is_as_good_as_in_the_vault(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.more_keys = {"escrows": {OWNER: "simulator-ordnet"}}
    lies_at(service, OWNER)
    assert (await call(service, "POST", task_id, "/start")).status == 200


async def test_an_inscription_elsewhere_is_409_and_says_where_to_send_it(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, OWNER)

    answer = await call(service, "POST", task_id, "/start")
    shown = await call(service, "GET", task_id)
    lies_at(service, VAULT)
    arrived = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.json["error"]) == (409, "The inscription is not in the vault")
    assert OWNER in answer.json["message"] and VAULT in answer.json["message"]
    assert VAULT in shown.json["lastError"] and shown.json["isRunning"] is False
    assert (arrived.status, arrived.json["lastError"]) == (200, None)
    assert service.manager.settled == [task_id]


async def test_what_left_the_vault_while_listed_is_its_workers_to_find_out(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, "bc1qbuyer")
    assert (await call(service, "POST", task_id, "/start")).status == 409
    listed(service, task_id)
    assert (await call(service, "POST", task_id, "/start")).status == 200


async def test_a_user_has_no_more_tasks_than_a_wallet_shows_inscriptions(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_AUTOLIST_TASKS", 1)
    task_id = await new_task(service)
    body = {"inscriptionId": "e" * 64 + "i0"}
    answer = await service.ask("POST", "/api/autolist", body)
    assert (answer.status, answer.json["error"]) == (403, "Task limit reached")
    await call(service, "DELETE", task_id)
    assert (await service.ask("POST", "/api/autolist", body)).status == 201


async def test_an_inscription_that_is_nowhere_is_400(service: Service) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = NotFound()

    answer = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.names()) == (400, {"inscriptionId"})
    assert (await call(service, "GET", task_id)).json["lastError"] == answer.details[0]


@pytest.mark.parametrize("said", [Unavailable("away"), Whereabouts(INSCRIPTION, OUTPOINT, None, None, START_MS)])
async def test_who_cannot_say_where_it_is_says_nothing_against_a_start(service: Service, said: Any) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = said

    assert (await call(service, "POST", task_id, "/start")).status == 200


async def test_a_start_with_the_market_away_needs_manager_and_signer_only(service: Service) -> None:
    task_id = await new_task(service, collectionId=None)
    service.gateway.down = True

    assert (await call(service, "POST", task_id, "/start")).status == 200


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"reference": "purchase"}, {"costSats"}),
        ({"reference": "traitFloor"}, {"traitType", "traitValue"}),
        ({"reference": "traitFloor", "traitType": "Hat"}, {"traitValue"}),
        ({"reference": "traitFloor", "traitType": "Hat", "traitValue": "Green"}, {"traitValue"}),
        ({"reference": "traitFloor", "traitType": "Shoes", "traitValue": "Red"}, {"traitType"}),
    ],
)
async def test_what_a_config_leaves_open_is_400_at_start_and_at_a_running_tasks_put(
    service: Service, fields: dict[str, Any], named: set[str]
) -> None:
    stopped = await new_task(service, **fields)
    running = await started(service, inscriptionId="e" * 64 + "i0")

    start = await call(service, "POST", stopped, "/start")
    put = await call(service, "PUT", running, "", fields)

    assert (start.status, start.names()) == (400, named)
    assert (put.status, put.names()) == (400, named)
    assert row(stopped).last_error == "; ".join(start.details)
    assert row(running).revision == 1


async def test_the_collection_is_looked_up_where_the_price_hangs_on_it(service: Service) -> None:
    priced = await new_task(service, collectionId=None)
    fixed = await new_task(
        service, inscriptionId="e" * 64 + "i0", collectionId=None, priceMode="fixed", priceSats=50_000
    )
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    unknown = await call(service, "POST", priced, "/start")
    alone = await call(service, "POST", fixed, "/start")
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, collection_id="goosinals")
    found = await call(service, "POST", priced, "/start")
    green = {"reference": "traitFloor", "traitType": "Hat", "traitValue": "Green"}
    traited = await new_task(service, inscriptionId="b" * 64 + "i0", collectionId=None, **green)
    untold = await call(service, "POST", traited, "/start")
    other = await new_task(service, inscriptionId="f" * 64 + "i0", collectionId=None)
    service.gateway.answers["item"] = NotFound()
    nowhere = await call(service, "POST", other, "/start")
    await call(service, "PUT", other, "", {"reference": "lastSale"})
    by_sales = await call(service, "POST", other, "/start")

    assert (unknown.status, unknown.names()) == (400, {"collectionId"})
    assert (alone.status, alone.json["collectionId"]) == (200, None)
    assert (found.status, found.json["collectionId"]) == (200, "goosinals")
    assert (untold.status, untold.names()) == (400, {"traitValue"})
    assert (nowhere.status, nowhere.names()) == (by_sales.status, by_sales.names()) == (400, {"collectionId"})


async def test_a_locked_signer_an_ended_plan_and_a_manager_that_is_away(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.state = "locked"
    locked = await call(service, "POST", task_id, "/start")
    service.signer.state = "ready"
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)
    over = await call(service, "POST", task_id, "/start")
    accounts.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    service.manager.refuse = ("not_entitled", "plan expired")
    refused = await call(service, "POST", task_id, "/start")
    service.manager.refuse = None
    await service.manager.stop()
    away = await call(service, "POST", task_id, "/start")

    assert (locked.status, locked.json["error"]) == (503, "The signer is locked")
    assert (over.status, refused.status) == (403, 403)
    assert (away.status, away.json["error"]) == (503, "The manager is away")
    assert (row(task_id).desired, row(task_id).last_error) == ("stopped", None)


async def test_the_checks_come_in_their_order(service: Service) -> None:
    """404, 400, 409, 403: each is only told where those before it have nothing to say."""
    task_id = await new_task(service, reference="purchase")
    lies_at(service, OWNER)
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)

    foreign = await service.api("POST", f"/api/autolist/{task_id}/start", token=service.other_token)
    open_config = await call(service, "POST", task_id, "/start")
    await call(service, "PUT", task_id, "", {"costSats": 10_000})
    elsewhere = await call(service, "POST", task_id, "/start")
    lies_at(service, VAULT)
    over = await call(service, "POST", task_id, "/start")

    assert [each.status for each in (foreign, open_config, elsewhere, over)] == [404, 400, 409, 403]


async def test_stop_leaves_the_listing_and_says_so(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)

    answer = await call(service, "POST", task_id, "/stop")

    assert (answer.status, answer.json["isRunning"], answer.json["listingCancelled"]) == (200, False, False)
    assert "stays" in answer.json["message"]
    assert answer.json["listing"]["state"] == "live"


async def test_stop_without_a_manager_is_503_and_holds(service: Service) -> None:
    task_id = await started(service)
    await service.manager.stop()

    answer = await call(service, "POST", task_id, "/stop")

    assert (answer.status, answer.json["error"]) == (503, "The manager is away")
    assert "will be stopped" in answer.json["message"]
    assert row(task_id).desired == "stopped"


async def test_put_on_a_running_task_restarts_it_with_the_new_config(service: Service) -> None:
    task_id = await started(service)

    answer = await call(service, "PUT", task_id, "", {"pricePercent": 1.2})
    same = await call(service, "PUT", task_id, "", {"pricePercent": 1.2})

    assert (answer.status, answer.json["isRunning"]) == (200, True)
    assert '"pricePercent": 1.2,' in answer.text
    assert same.status == 200
    assert service.manager.settled == [task_id] * 2
    assert row(task_id).revision == 2


async def test_a_put_that_cannot_be_carried_out_is_taken_back(service: Service) -> None:
    task_id = await started(service)
    before = (await call(service, "GET", task_id)).json
    service.manager.refuse = ("signer_locked", "no passphrase yet")

    answer = await call(service, "PUT", task_id, "", {"pricePercent": 2, "collectionId": "others"})

    assert (answer.status, answer.json) == (503, {"error": "The signer is locked", "message": "no passphrase yet"})
    assert (await call(service, "GET", task_id)).json == before
    assert row(task_id).revision == 3
