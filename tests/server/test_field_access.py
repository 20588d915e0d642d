"""Rights field by field: what an API token for one task may change by each PUT and PATCH of the description."""

from __future__ import annotations

from typing import Any

import pytest

from models.tasks.tasks import Task
from tests.databases import dump
from tests.server.driver import OPERATIONS
from tests.server.matrix import BY_NAME, api_token, asked, body_of, row_of
from tests.worlds.service import OWNER, Service

# What a task's own token gets for a change of the field: 200, 403 because the field reaches beyond the task, or the
# 400 or 404 that its owner gets as well.
OWN, BEYOND, FIXED, MISSING = 200, 403, 400, 404
HOURS = {"tz": "UTC", "from": "08:00", "to": "09:00"}
DROP = {"percent": 0.1, "windowMinutes": 60, "forMinutes": 120}
RULE = {"autolist": {"pricePercent": 1.1}, "start": True}
TRAIT = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
Decision = tuple[int, dict[str, Any]]

BIDDING: dict[str, Decision] = {
    "slug": (OWN, {"slug": "cats"}),
    "type": (OWN, {"type": "rune", "slug": "DOG"}),
    "bidMode": (OWN, {"bidMode": "fixed"}),
    "bidPercentLow": (OWN, {"bidPercentLow": 0.2}),
    "bidPercentHigh": (OWN, {"bidPercentHigh": 0.8}),
    "bidFixedLow": (OWN, {"bidFixedLow": 20_000}),
    "bidFixedHigh": (OWN, {"bidFixedHigh": 60_000}),
    "bidCount": (OWN, {"bidCount": 2}),
    "hardcapSats": (OWN, {"hardcapSats": 200_000}),
    "maxBidTotal": (OWN, {"maxBidTotal": 900_000}),
    "bidExpiryMinutes": (OWN, {"bidExpiryMinutes": 20}),
    "loopSeconds": (OWN, {"loopSeconds": 60}),
    "outbidEnabled": (OWN, {"outbidEnabled": True}),
    "outbidMode": (OWN, {"outbidMode": "percent"}),
    "outbidAmount": (OWN, {"outbidAmount": 2_000}),
    "outbidPercent": (OWN, {"outbidPercent": 0.02}),
    "updateBidEnabled": (OWN, {"updateBidEnabled": False}),
    "onlyBidIfHighest": (OWN, {"onlyBidIfHighest": True}),
    "bidType": (OWN, TRAIT),
    "traitType": (OWN, {"traitType": "Hat"}),
    "traitValue": (OWN, {"traitValue": "Red"}),
    "quantity": (OWN, {"quantity": 2}),
    "quantityMode": (OWN, {"quantityMode": "sats", "satsPerOrder": 5_000, "type": "rune", "slug": "DOG"}),
    "satsPerOrder": (OWN, {"satsPerOrder": 5_000}),
    "useVwap": (OWN, {"useVwap": True, "type": "rune", "slug": "DOG"}),
    "depthSats": (OWN, {"depthSats": 5_000}),
    "feeRate": (OWN, {"feeRate": 5}),
    "cancelOnStop": (OWN, {"cancelOnStop": False}),
    "maxFills": (OWN, {"maxFills": 3}),
    "spendCapSats": (OWN, {"spendCapSats": 900_000}),
    "dryRun": (OWN, {"dryRun": True}),
    "updateTolerance": (OWN, {"updateTolerance": 0.01}),
    "keepWithinGap": (OWN, {"keepWithinGap": 0.1}),
    "minAgeSeconds": (OWN, {"minAgeSeconds": 5}),
    "replaceMode": (OWN, {"replaceMode": "makeFirst"}),
    "bidLevels": (OWN, {"bidLevels": [{"at": 0.5, "count": 2}]}),
    "ladderShape": (OWN, {"ladderShape": "top"}),
    "pauseAfterFillSeconds": (OWN, {"pauseAfterFillSeconds": 5}),
    "maxFillsPerDay": (OWN, {"maxFillsPerDay": 2}),
    "spendCapPerDaySats": (OWN, {"spendCapPerDaySats": 900_000}),
    "onlyWhileFloorBetween": (OWN, {"onlyWhileFloorBetween": [1, 5]}),
    "pauseOnFloorDrop": (OWN, {"pauseOnFloorDrop": DROP}),
    "activeHours": (OWN, {"activeHours": HOURS}),
    "ignoreAddresses": (OWN, {"ignoreAddresses": [OWNER]}),
    "deliverTo": (BEYOND, {"deliverTo": "vault"}),  # the address that gets the goods
    "onFill": (BEYOND, {"onFill": RULE, "deliverTo": "vault"}),  # other tasks
    "budgetId": (BEYOND, {"budgetId": 1}),  # other tasks' limits
    "tags": (BEYOND, {"tags": ["all"]}),  # the tasks that their owner stops together
    "venue": (FIXED, {"venue": "ordnet"}),
}
LISTING: dict[str, Decision] = {
    "inscriptionId": (FIXED, {"inscriptionId": "7" * 64 + "i0"}),
    "collectionId": (OWN, {"collectionId": "cats"}),
    "priceMode": (OWN, {"priceMode": "undercut"}),
    "pricePercent": (OWN, {"pricePercent": 1.2}),
    "priceSats": (OWN, {"priceSats": 9_000}),
    "undercutSats": (OWN, {"undercutSats": 9}),
    "minPriceSats": (OWN, {"minPriceSats": 9_000}),
    "costSats": (OWN, {"costSats": 9_000}),
    "minMargin": (OWN, {"minMargin": 0.2}),
    "reference": (OWN, {"reference": "lastSale"}),
    "allowBelowReference": (OWN, {"allowBelowReference": True}),
    "traitType": (OWN, {"traitType": "Hat"}),
    "traitValue": (OWN, {"traitValue": "Red"}),
    "loopSeconds": (OWN, {"loopSeconds": 60}),
    "dryRun": (OWN, {"dryRun": True}),
    "priceSchedule": (OWN, {"priceSchedule": [{"afterHours": 1, "pricePercent": 1.1}]}),
    "ignoreAddresses": (OWN, {"ignoreAddresses": [OWNER]}),
    "venue": (FIXED, {"venue": "ordnet"}),
    "tags": (BEYOND, {"tags": ["all"]}),
}
# By scope: the two wider ones, another task's, and the task's own.
CONTROL: dict[str, Decision] = {
    "scope": (BEYOND, {"scope": "user", "state": "run"}),
    "taskId": (MISSING, {"scope": "task", "taskId": 999, "state": "halt"}),
    "state": (OWN, {"scope": "task", "state": "halt"}),
}
REACHED = {"changeTask": BIDDING, "changeAutolistTask": LISTING, "setControl": CONTROL}
CHANGING = [name for name, (method, _, _) in OPERATIONS.items() if method in ("PUT", "PATCH")]


def fields_of(name: str) -> set[str]:
    schema = body_of(name)
    assert schema is not None
    return set(schema["properties"])


def test_each_field_that_a_token_for_one_task_may_reach_has_a_decision() -> None:
    assert {name: set(decisions) for name, decisions in REACHED.items()} == {name: fields_of(name) for name in REACHED}
    for name, (_, path, _) in OPERATIONS.items():
        is_of_one_task = path.startswith(("/api/tasks/{id}", "/api/autolist/{id}", "/api/control"))
        assert (name in REACHED) == (is_of_one_task and name in CHANGING), name


async def new_row(service: Service, name: str) -> tuple[int, str, str]:
    """Returns a new task of the owner's, its address for this operation, and a token for it with every scope."""
    Task.delete().execute()
    row_id = await row_of(service, BY_NAME[name][1])
    return row_id, asked(BY_NAME[name], row_id)[0], api_token(service.user_id, "rtc", row_id)


@pytest.mark.parametrize("name", REACHED)
async def test_each_field_is_changed_or_refused_as_decided(service: Service, name: str) -> None:
    assert (await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"] == 1
    for field, (expected, body) in REACHED[name].items():
        row_id, url, token = await new_row(service, name)
        given = {"taskId": row_id} | body if name == "setControl" and field == "state" else body
        await service.api("GET", "/api/control", token=token)  # so that the token's use is noted already
        before = dump(service.settings.database_url)

        answer = await service.api("PUT", url, given, token=token)

        assert answer.status == expected, f"{field}: {answer.text}"
        assert (dump(service.settings.database_url) == before) == (expected != OWN), field
        if expected == BEYOND:
            assert answer.json["error"] == "Not allowed to this token"
            assert field in answer.names()
            assert (await service.ask("PUT", url, given)).status == 200, f"{field}: its owner may"


@pytest.mark.parametrize("name", [name for name in CHANGING if name not in REACHED])
async def test_no_field_of_another_operation_is_open_to_a_token_for_one_task(service: Service, name: str) -> None:
    row_id = await row_of(service, BY_NAME[name][1])
    (url, _), task_id = asked(BY_NAME[name], row_id), await service.new_task(slug="own")
    token = api_token(service.user_id, "rtc", task_id)
    await service.api("GET", "/api/control", token=token)
    before = dump(service.settings.database_url)

    for field in fields_of(name):
        answer = await service.api(BY_NAME[name][0], url, {field: None}, token=token)
        assert (answer.status, answer.json["error"]) == (403, "Not allowed to this token"), field
    assert dump(service.settings.database_url) == before


async def test_a_token_may_repeat_what_its_owner_set_and_start_that(service: Service) -> None:
    budget = (await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"]
    owners = {"deliverTo": "vault", "onFill": RULE, "budgetId": budget, "tags": ["all"]}
    task_id = await service.new_task(**owners)
    token = api_token(service.user_id, "t", task_id)

    answer = await service.api("PUT", f"/api/tasks/{task_id}", owners | {"bidCount": 2}, token=token)

    assert answer.status == 200, answer.text
    assert (answer.json["config"]["bidCount"], answer.json["tags"]) == (2, ["all"])
    assert (await service.api("POST", f"/api/tasks/{task_id}/start", token=token)).status == 200
    nulls = {"onFill": None, "budgetId": None, "tags": [], "deliverTo": "ordinalsAddress"}
    for field, value in nulls.items():
        body = {"onFill": None, field: value} if field == "deliverTo" else {field: value}
        answer = await service.api("PUT", f"/api/tasks/{task_id}", body, token=token)
        assert (answer.status, field in answer.names()) == (403, True), answer.text


async def test_a_token_for_all_tasks_changes_what_one_for_a_task_may_not(service: Service) -> None:
    task_id = await service.new_task(deliverTo="vault")
    token = api_token(service.user_id, "t", None)
    for body in ({"onFill": RULE}, {"tags": ["all"]}, {"onFill": None, "deliverTo": "ordinalsAddress"}):
        assert (await service.api("PUT", f"/api/tasks/{task_id}", body, token=token)).status == 200
