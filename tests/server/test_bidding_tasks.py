"""Bidding tasks over HTTP: create, read, change, delete."""

from __future__ import annotations

import json

import pytest

from core.layout import journal_path, log_path, older
from core.subscription_plans import SubscriptionPlan
from models.outbox import error_columns
from models.tasks.tasks import Task
from tests.server.conftest import Service, with_settings
from tests.server.driver import check

DEFAULTS = {
    "slug": "goosinals",
    "type": "ordinals",
    "bidMode": "percent",
    "bidPercentLow": 0.15,
    "bidPercentHigh": 0.75,
    "bidFixedLow": 10000,
    "bidFixedHigh": 50000,
    "bidCount": 5,
    "hardcapSats": 100000,
    "maxBidTotal": 0,
    "bidExpiryMinutes": None,
    "loopSeconds": None,
    "outbidEnabled": False,
    "outbidMode": "fixed",
    "outbidAmount": 1000,
    "outbidPercent": 0.01,
    "updateBidEnabled": True,
    "onlyBidIfHighest": False,
    "bidType": "collection",
    "traitType": "",
    "traitValue": "",
    "quantity": 1,
    "quantityMode": "quantity",
    "satsPerOrder": 0,
    "useVwap": False,
    "depthSats": 1000000,
    "feeRate": "halfHourFee",
    "cancelOnStop": True,
    "maxFills": 0,
    "spendCapSats": 0,
    "dryRun": False,
    "updateTolerance": None,
    "keepWithinGap": 0.25,
    "minAgeSeconds": None,
    "replaceMode": "auto",
    "bidLevels": None,
    "ladderShape": "even",
    "pauseAfterFillSeconds": 60,
    "maxFillsPerDay": 0,
    "spendCapPerDaySats": 0,
    "onlyWhileFloorBetween": None,
    "pauseOnFloorDrop": None,
    "activeHours": None,
    "ignoreAddresses": [],
    "deliverTo": "ordinalsAddress",
    "onFill": None,
    "budgetId": None,
}


async def test_create_answers_the_stopped_task_with_every_field(service: Service) -> None:
    answer = await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 100000})

    assert answer.status == 201
    assert answer.headers["Location"] == f"/api/tasks/{answer.json['id']}"
    documented = ["id", "slug", "type", "isRunning", "config", "lastCycle", "lastError", "createdAt"]
    assert list(answer.json) == [*documented, "venue", "lastErrorCode", "lastErrorParams", "tags", "fills", "closing"]
    task = answer.json | {
        "config": {k: float(v) if "Percent" in k or "Gap" in k else v for k, v in answer.json["config"].items()}
    }
    assert task["config"] == DEFAULTS
    assert (task["slug"], task["type"], task["isRunning"]) == ("goosinals", "ordinals", False)
    assert task["lastCycle"] is None and task["lastError"] is None
    assert task["createdAt"] == "2025-11-20T12:00:00.000Z"
    assert '"bidPercentLow": 0.15,' in answer.text


async def test_what_was_created_is_read_and_listed(service: Service) -> None:
    first, second = await service.new_task(), await service.new_task(slug="other-slug")

    listed = await service.ask("GET", "/api/tasks")
    one = await service.ask("GET", f"/api/tasks/{first}")

    assert [task["id"] for task in listed.json] == [first, second]
    assert one.json == listed.json[0]


async def test_last_cycle_and_error_are_shown(service: Service) -> None:
    task_id = await service.new_task()
    error = error_columns("no room", ("max_fills", {"most": 2}))
    Task.update(last_cycle_ms=1_763_640_012_999, last_cycle_action="placed 2\u2028, kept 1", **error).execute()

    answer = await service.ask("GET", f"/api/tasks/{task_id}")

    assert answer.json["lastCycle"] == {"time": 1_763_640_012, "action": "placed 2\u2028, kept 1"}
    assert (answer.json["lastError"], answer.json["lastErrorCode"]) == ("no room", "max_fills")
    assert answer.json["lastErrorParams"] == {"most": 2}
    check("getTask", answer)


ROUND_TRIPS = [
    ("slug", "Other.Slug-1_x", "other.slug-1_x"),
    ("slug", "  goosinals ", "goosinals"),
    ("bidMode", "fixed", "fixed"),
    ("bidPercentLow", 0.1, 0.1),
    ("bidPercentLow", 1e-2, 0.01),
    ("bidPercentHigh", 0.999999999999, 0.999999999999),
    ("bidPercentHigh", 1, 1),
    ("bidFixedLow", 10000.0, 10000),
    ("bidFixedHigh", 1e6, 1000000),
    ("bidCount", 100, 100),
    ("bidCount", 1, 1),
    ("hardcapSats", 2_100_000_000_000_000, 2_100_000_000_000_000),
    ("maxBidTotal", 150000, 150000),
    ("bidExpiryMinutes", 60, 60),
    ("bidExpiryMinutes", None, None),
    ("loopSeconds", 5, 5),
    ("loopSeconds", None, None),
    ("outbidEnabled", True, True),
    ("outbidMode", "percent", "percent"),
    ("outbidAmount", 0, 0),
    ("outbidPercent", 0.02, 0.02),
    ("updateBidEnabled", False, False),
    ("onlyBidIfHighest", True, True),
    ("traitType", "Hat", "Hat"),
    ("traitValue", "Blaues Käppi ★", "Blaues Käppi ★"),
    ("quantity", 7, 7),
    ("satsPerOrder", 50000, 50000),
    ("depthSats", 1, 1),
    ("feeRate", "fastestFee", "fastestFee"),
    ("feeRate", 12.5, 12.5),
    ("cancelOnStop", False, False),
    ("maxFills", 3, 3),
    ("spendCapSats", 1000, 1000),
    ("dryRun", True, True),
    ("updateTolerance", 0.02, 0.02),
    ("updateTolerance", None, None),
    ("keepWithinGap", 0, 0),
    ("minAgeSeconds", 0, 0),
    ("minAgeSeconds", None, None),
    ("replaceMode", "makeFirst", "makeFirst"),
    ("ladderShape", "geometric", "geometric"),
    ("bidLevels", [{"at": 2, "count": 1}, {"count": 2, "at": 1.0}], [{"at": 2, "count": 1}, {"at": 1, "count": 2}]),
    ("bidLevels", None, None),
    ("pauseAfterFillSeconds", 0, 0),
    ("maxFillsPerDay", 3, 3),
    ("spendCapPerDaySats", 1000, 1000),
    ("onlyWhileFloorBetween", [50_000, 100_000.0], [50_000, 100_000]),
    ("onlyWhileFloorBetween", None, None),
    (
        "pauseOnFloorDrop",
        {"percent": 0.10, "windowMinutes": 60, "forMinutes": 120},
        {"percent": 0.1, "windowMinutes": 60, "forMinutes": 120},
    ),
    (
        "activeHours",
        {"to": "06:30", "tz": "Europe/Berlin", "from": "22:00"},
        {"tz": "Europe/Berlin", "from": "22:00", "to": "06:30"},
    ),
    ("ignoreAddresses", ["BC1QLZRWCF49YRLTR5GRAYE452QEYPXCRWK7L0WG75"], ["bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"]),
]


@pytest.mark.slow
async def test_each_field_comes_back_as_given_by_create_and_by_put(service: Service) -> None:
    task_id = await service.new_task()
    for place, (field, given, shown) in enumerate(ROUND_TRIPS):
        fields = {"slug": f"slug-{place}", "hardcapSats": 100000, field: given}

        created = await service.ask("POST", "/api/tasks", fields)
        assert created.status == 201, created.text
        await service.ask("DELETE", f"/api/tasks/{created.json['id']}")
        changed = await service.ask("PUT", f"/api/tasks/{task_id}", {field: given})

        assert changed.status == 200, changed.text
        for answer in (created, changed):
            found = answer.json["config"][field]
            if isinstance(shown, dict):
                shown, found = ({key: str(value) for key, value in each.items()} for each in (shown, found))
            assert (found if isinstance(shown, str) else type(shown)(found) if shown is not None else found) == shown
            assert (found is None) == (shown is None)


async def test_a_rune_task_takes_fractions_of_a_token(service: Service) -> None:
    rune = {"slug": "DOG•GO•TO•THE•MOON", "type": "rune", "hardcapSats": 100000, "quantity": "@"}
    body = json.dumps(rune).replace('"@"', "0.00000000000000000000000000000000000001")

    answer = await service.ask("POST", "/api/tasks", body)

    assert answer.status == 201, answer.text
    assert '"quantity": 0.00000000000000000000000000000000000001,' in answer.text
    assert answer.json["slug"] == "DOG•GO•TO•THE•MOON"


async def test_put_changes_only_what_is_given(service: Service) -> None:
    task_id = await service.new_task(bidCount=3, maxBidTotal=7)

    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 4})

    assert answer.status == 200
    assert (answer.json["config"]["bidCount"], answer.json["config"]["maxBidTotal"]) == (4, 7)


async def test_an_empty_put_changes_nothing(service: Service) -> None:
    task_id = await service.new_task()
    before = await service.ask("GET", f"/api/tasks/{task_id}")

    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {})

    assert (answer.status, answer.json) == (200, before.json)
    assert Task.get_by_id(task_id).revision == 1


async def test_put_checks_the_merged_config(service: Service) -> None:
    task_id = await service.new_task(bidPercentHigh=0.5)

    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"bidPercentLow": 0.6})

    assert answer.status == 400
    assert answer.names() == {"bidPercentLow"}


async def test_a_slug_is_unique_for_its_user_after_normalising(service: Service) -> None:
    await service.new_task(slug="goosinals")
    rune = await service.new_task(slug="DOG•GO", type="rune")
    moved = await service.new_task(slug="elsewhere")

    same = await service.ask("POST", "/api/tasks", {"slug": "GOOSINALS", "hardcapSats": 1000})
    same_rune = await service.ask("POST", "/api/tasks", {"slug": "doggo", "type": "rune", "hardcapSats": 1000})
    by_put = await service.ask("PUT", f"/api/tasks/{moved}", {"slug": "Goosinals"})
    itself = await service.ask("PUT", f"/api/tasks/{rune}", {"slug": "D•OGGO"})
    others = await service.api(
        "POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1000}, token=service.other_token
    )

    for answer in (same, same_rune, by_put):
        assert (answer.status, answer.json) == (409, {"error": "Task already exists for this slug"})
    assert (itself.status, others.status) == (200, 201)


@with_settings(plans={"beta": SubscriptionPlan("Beta", 1, 20, 50_000_000, 0, 365)})
async def test_the_plan_limits_tasks_and_a_duplicate_is_told_first(service: Service) -> None:
    first = await service.new_task()

    second = await service.ask("POST", "/api/tasks", {"slug": "other", "hardcapSats": 1})
    duplicate = await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1})
    invalid = await service.ask("POST", "/api/tasks", {"slug": "other"})
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "a" * 64 + "i0"})
    await service.ask("DELETE", f"/api/tasks/{first}")
    again = await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1})

    assert (second.status, second.json["error"]) == (403, "Plan task limit reached")
    assert (duplicate.status, invalid.status, listing.status) == (409, 400, 201)
    assert again.status == 201
    assert again.json["id"] > first


async def test_deleting_a_stopped_task_needs_no_manager(service: Service) -> None:
    task_id = await service.new_task()
    await service.manager.stop()

    answer = await service.ask("DELETE", f"/api/tasks/{task_id}")

    assert (answer.status, answer.json) == (200, {"success": True, "openBids": 0, "closing": None})
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).status == 404
    assert Task.select().count() == 0


async def test_log_and_journal_go_with_the_task_and_no_others(service: Service) -> None:
    task_id = await service.new_task()
    data_dir = service.settings.data_dir
    newest = [log_path(data_dir, task_id), journal_path(data_dir, task_id)]
    of_another = log_path(data_dir, 10 * task_id)
    files = [*newest, *(older(path) for path in newest), older(newest[0], 2)]
    for path in [*files, of_another]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("told nobody")

    assert (await service.ask("DELETE", f"/api/tasks/{task_id}")).status == 200

    assert [path for path in files if path.exists()] == []
    assert of_another.exists()


async def test_levels_set_the_number_of_bids(service: Service) -> None:
    levels = [{"at": 0.7, "count": 2}, {"at": 0.6, "count": 1}]
    made = await service.ask("POST", "/api/tasks", {"slug": "a", "hardcapSats": 1000, "bidLevels": levels})
    assert (made.status, made.json["config"]["bidCount"]) == (201, 3)
    path = f"/api/tasks/{made.json['id']}"
    refused = await service.ask("PUT", path, {"bidCount": 5})
    assert refused.json["details"] == ["bidCount: must be 3, the bids of bidLevels, or be left out"]
    fewer = await service.ask("PUT", path, {"bidLevels": levels[1:]})
    assert fewer.json["config"]["bidCount"] == 1
    even = await service.ask("PUT", path, {"bidLevels": None, "bidCount": 4})
    assert (even.json["config"]["bidCount"], even.json["config"]["bidLevels"]) == (4, None)
    both = await service.ask(
        "POST", "/api/tasks", {"slug": "b", "hardcapSats": 1000, "bidLevels": levels, "bidCount": 3}
    )
    assert both.status == 201
    bad = await service.ask("PUT", path, {"bidLevels": [{"at": "x", "cuont": 1}]})
    assert bad.json["details"] == [
        "bidLevels: 0.at must be a number", "bidLevels: 0.count is required", "bidLevels: 0.cuont unknown field",
    ]  # fmt: skip
