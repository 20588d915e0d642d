"""Auto-list tasks over HTTP: everything but running them."""

from __future__ import annotations

import pytest

from models.tasks import AutolistTask
from tests.server.conftest import Service

INSCRIPTION = "c" * 64 + "i0"


@pytest.mark.gen_test
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
        },
        "listing": None,
        "lastCycle": None,
        "lastError": None,
        "createdAt": "2025-11-20T12:00:00.000Z",
    }
    assert (await service.ask("GET", "/api/autolist")).json[0]["id"] == 1


@pytest.mark.gen_test
async def test_create_without_an_inscription_says_so(service: Service) -> None:
    for given in ({}, {"inscriptionId": None}, {"inscriptionId": ""}):
        answer = await service.ask("POST", "/api/autolist", {**given, "priceMode": "fixed", "x": 1})

        assert (answer.status, answer.json["error"]) == (400, "inscriptionId is required")
        assert answer.names() == {"inscriptionId", "priceSats", "x"}
        assert "inscriptionId: is required" in answer.json["details"]


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
@pytest.mark.parametrize("mode", ["percent", "undercut"])
@pytest.mark.parametrize("reference", ["floor", "traitFloor", "purchase", "lastSale"])
async def test_modes_and_references_come_back_as_given(service: Service, mode: str, reference: str) -> None:
    body = {"inscriptionId": INSCRIPTION, "priceMode": mode, "reference": reference}

    answer = await service.ask("POST", "/api/autolist", body)

    assert (answer.json["config"]["priceMode"], answer.json["config"]["reference"]) == (mode, reference)


@pytest.mark.gen_test
async def test_start_says_that_listings_cannot_be_signed_yet(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})
    path = f"/api/autolist/{task.json['id']}"

    start = await service.ask("POST", f"{path}/start")
    stop = await service.ask("POST", f"{path}/stop")

    assert (start.status, start.details) == (400, ["start: listings cannot be signed yet"])
    assert (stop.status, stop.json["isRunning"]) == (200, False)
    assert stop.json["lastError"] == "start: listings cannot be signed yet"


@pytest.mark.gen_test
async def test_delete_removes_the_row(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})

    answer = await service.ask("DELETE", f"/api/autolist/{task.json['id']}")

    assert (answer.status, answer.json) == (200, {"success": True, "listingCancelled": False})
    assert AutolistTask.select().count() == 0
