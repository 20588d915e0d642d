"""Auto-list tasks over HTTP, but for running them."""

from __future__ import annotations

import pytest

from models.tasks.tasks import Task
from tests.server.autolist_tasks import INSCRIPTION
from tests.server.conftest import Service


async def test_create_answers_the_stopped_task(service: Service) -> None:
    answer = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION, "pricePercent": 1.1})

    assert answer.status == 201
    assert answer.headers["Location"] == f"/api/autolist/{answer.json['id']}"
    assert '"pricePercent": 1.1,' in answer.text
    assert answer.json["config"].pop("pricePercent")
    assert answer.json == {
        "id": 1,
        "inscriptionId": INSCRIPTION,
        "collectionId": None,
        "isRunning": False,
        "config": {
            "priceMode": "percent",
            "priceSats": 0,
            "undercutSats": 1000,
            "minPriceSats": 0,
            "costSats": None,
            "minMargin": 0,
            "reference": "floor",
            "allowBelowReference": False,
            "traitType": "",
            "traitValue": "",
            "loopSeconds": None,
            "dryRun": False,
            "priceSchedule": [],
            "ignoreAddresses": [],
        },
        "listing": None,
        "lastCycle": None,
        "lastError": None,
        "lastErrorCode": None,
        "lastErrorParams": None,
        "createdAt": "2025-11-20T12:00:00.000Z",
        "venue": "simulator",
        "sourceFillId": None,
        "costSource": None,
        "tags": [],
        "warnings": ["no minPriceSats and no costSats: the price follows the market down without a limit"],
    }
    assert (await service.ask("GET", "/api/autolist")).json[0]["id"] == 1


async def test_a_price_over_time_comes_back_as_given(service: Service) -> None:
    steps = [{"afterHours": 0, "pricePercent": 1.3}, {"afterHours": 48, "priceSats": 115_000}]
    body = {"inscriptionId": INSCRIPTION, "priceSchedule": steps, "ignoreAddresses": ["BC1Q" + "Q" * 38]}
    made = await service.ask("POST", "/api/autolist", body)
    assert made.status == 201, made.text
    assert (
        '"priceSchedule": [{"afterHours": 0, "pricePercent": 1.3}, {"afterHours": 48, "priceSats": 115000}]'
        in made.text
    )
    assert made.json["config"]["ignoreAddresses"] == ["bc1q" + "q" * 38]
    path = f"/api/autolist/{made.json['id']}"
    below = await service.ask("PUT", path, {"priceSchedule": [{"afterHours": 0, "pricePercent": 0.9}]})
    text = "priceSchedule: has a pricePercent below 1, the reference price: set allowBelowReference if that is meant"
    assert (below.status, below.json["details"]) == (400, [text])
    none = await service.ask("PUT", path, {"priceSchedule": [], "ignoreAddresses": []})
    assert (none.json["config"]["priceSchedule"], none.json["config"]["ignoreAddresses"]) == ([], [])


async def test_create_without_an_inscription_says_so(service: Service) -> None:
    for given in ({}, {"inscriptionId": None}, {"inscriptionId": ""}):
        answer = await service.ask("POST", "/api/autolist", {**given, "priceMode": "fixed", "x": 1})

        assert (answer.status, answer.json["error"]) == (400, "inscriptionId is required")
        assert answer.names() == {"inscriptionId", "priceSats", "x"}
        assert "inscriptionId: is required" in answer.json["details"]


async def test_an_inscription_has_one_task_of_its_user(service: Service) -> None:
    body = {"inscriptionId": INSCRIPTION}
    first = await service.ask("POST", "/api/autolist", body)

    second = await service.ask("POST", "/api/autolist", body)
    others = await service.api("POST", "/api/autolist", body, token=service.other_token)
    await service.ask("DELETE", f"/api/autolist/{first.json['id']}")
    again = await service.ask("POST", "/api/autolist", body)

    assert (second.status, second.json) == (409, {"error": "Task already exists for this inscription"})
    assert (others.status, again.status) == (201, 201)
    assert again.json["id"] > others.json["id"]


async def test_put_changes_only_what_is_given_and_checks_the_whole(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION, "minMargin": 0.1})
    path = f"/api/autolist/{task.json['id']}"

    fixed = await service.ask("PUT", path, {"priceMode": "fixed", "priceSats": 5000, "collectionId": "goosinals"})
    contradiction = await service.ask("PUT", path, {"minPriceSats": 5001})
    moved = await service.ask("PUT", path, {"inscriptionId": "d" * 64 + "i0"})
    same = await service.ask("PUT", path, {"inscriptionId": INSCRIPTION, "costSats": 4000})

    assert (fixed.status, fixed.json["collectionId"]) == (200, "goosinals")
    assert (contradiction.status, contradiction.names()) == (400, {"priceSats"})
    assert (moved.status, moved.names()) == (400, {"inscriptionId"})
    assert same.status == 200
    config = same.json["config"]
    assert (config["priceMode"], config["priceSats"], config["costSats"]) == ("fixed", 5000, 4000)
    assert '"minMargin": 0.1,' in same.text


@pytest.mark.parametrize("mode", ["percent", "undercut"])
@pytest.mark.parametrize("reference", ["floor", "traitFloor", "purchase", "lastSale"])
async def test_modes_and_references_come_back_as_given(service: Service, mode: str, reference: str) -> None:
    body = {"inscriptionId": INSCRIPTION, "priceMode": mode, "reference": reference}

    answer = await service.ask("POST", "/api/autolist", body)

    assert (answer.json["config"]["priceMode"], answer.json["config"]["reference"]) == (mode, reference)


async def test_a_multiple_below_one_has_to_be_meant(service: Service) -> None:
    body = {"inscriptionId": INSCRIPTION, "pricePercent": 0.9}
    refused = await service.ask("POST", "/api/autolist", body)
    meant = await service.ask("POST", "/api/autolist", body | {"allowBelowReference": True})
    path = f"/api/autolist/{meant.json['id']}"
    taken_back = await service.ask("PUT", path, {"allowBelowReference": False})
    raised = await service.ask("PUT", path, {"allowBelowReference": False, "pricePercent": 1})

    assert (refused.status, refused.names()) == (400, {"pricePercent"})
    assert "allowBelowReference" in refused.details[0]
    assert meant.status == 201
    assert (taken_back.status, taken_back.names()) == (400, {"pricePercent"})
    assert raised.status == 200


async def test_a_price_without_a_guard_is_warned_of_where_it_is_written(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})
    path = f"/api/autolist/{task.json['id']}"
    guarded = await service.ask("PUT", path, {"minPriceSats": 50_000})
    unguarded = await service.ask("PUT", path, {"minPriceSats": 0})
    read = await service.ask("GET", path)

    assert len(task.json["warnings"]) == len(unguarded.json["warnings"]) == 1
    assert "warnings" not in guarded.json and "warnings" not in read.json


async def test_create_and_put_need_nobody_but_the_database(service: Service) -> None:
    service.gateway.down = True
    await service.manager.stop()
    await service.signer.stop()
    body = {"inscriptionId": INSCRIPTION, "reference": "traitFloor", "traitType": "Hat", "traitValue": "Any"}
    task = await service.ask("POST", "/api/autolist", body)
    path = f"/api/autolist/{task.json['id']}"

    assert task.status == 201
    assert (await service.ask("PUT", path, {"pricePercent": 2})).status == 200
    assert (await service.ask("DELETE", path)).status == 200


async def test_delete_of_an_idle_task_removes_the_row(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})

    answer = await service.ask("DELETE", f"/api/autolist/{task.json['id']}")

    assert (answer.status, answer.json) == (200, {"success": True, "listingCancelled": False})
    assert Task.select().count() == 0
    assert service.manager.settled == []
