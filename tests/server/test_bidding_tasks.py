"""Bidding tasks over HTTP: create, read, list, change, delete, and many at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from core.layout import journal_path, log_path, older
from core.subscription_plans import SubscriptionPlan
from models.outbox import error_columns
from models.tasks.cycles import record_cycle
from models.tasks.tasks import Task
from server import task_runs
from tests.databases import another
from tests.server.driver import check
from tests.server.ledger_rows import row, started
from tests.worlds.service import Service, with_settings


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


async def listed(service: Service) -> Any:
    """Reads the list twice, so that the second answer is the one that the first left."""
    first, second = await service.ask("GET", "/api/tasks"), await service.ask("GET", "/api/tasks")
    assert (first.status, first.text) == (second.status, second.text)
    return second.json


def by_another_process(service: Service, statement: str) -> None:
    with another(service.settings.database_url) as connection:
        connection.execute(statement)


async def test_what_the_user_does_is_listed_at_once(service: Service) -> None:
    assert await listed(service) == []
    task = await service.new_task()
    assert [shown["id"] for shown in await listed(service)] == [task]
    await service.ask("PUT", f"/api/tasks/{task}", {"bidCount": 7})
    assert (await listed(service))[0]["config"]["bidCount"] == 7
    await service.ask("POST", f"/api/tasks/{task}/start")
    assert (await listed(service))[0]["isRunning"] is True
    await service.ask("POST", f"/api/tasks/{task}/stop")
    assert (await listed(service))[0]["isRunning"] is False
    await service.ask("DELETE", f"/api/tasks/{task}")
    assert await listed(service) == []


async def test_a_workers_cycle_is_listed_at_once(service: Service) -> None:
    task = await service.new_task()
    await listed(service)
    for number in (1, 2):
        by_another_process(service, f"UPDATE tasks SET last_cycle_ms = {number}000, last_cycle_action = 'x'")
        assert (await listed(service))[0]["lastCycle"] == {"time": number, "action": "x"}
    record_cycle(task, 0, time_ms=9000, action="y", error="no", detail="{}", memory="{}")
    assert (await listed(service))[0]["lastError"] == "no"


async def test_nobody_is_shown_anothers_list(service: Service) -> None:
    await service.new_task()
    assert len(await listed(service)) == 1
    assert (await service.api("GET", "/api/tasks", token=service.other_token)).json == []
    assert len(await listed(service)) == 1


async def test_a_session_ended_by_another_process_gets_no_list_any_more(service: Service) -> None:
    await listed(service)
    by_another_process(service, f"DELETE FROM sessions WHERE user_id = {service.user_id}")
    assert (await service.ask("GET", "/api/tasks")).status == 401


async def test_two_changes_at_once_are_both_kept(service: Service) -> None:
    task = await service.new_task()
    await service.ask("POST", f"/api/tasks/{task}/start")

    answers = await asyncio.gather(
        *(service.ask("PUT", f"/api/tasks/{task}", change) for change in ({"bidCount": 7}, {"loopSeconds": 60}))
    )

    assert [answer.status for answer in answers] == [200, 200]
    config = (await service.ask("GET", f"/api/tasks/{task}")).json["config"]
    assert (config["bidCount"], config["loopSeconds"]) == (7, 60)
    assert Task.get_by_id(task).revision == 3


async def act(service: Service, **body: Any) -> Any:
    answer = await service.ask("POST", "/api/tasks/actions", body)
    assert answer.status == 200, answer.text
    check("actOnTasks", answer)
    return answer.json["results"]


async def tagged(service: Service, slug: str, *tags: str) -> int:
    body = {"slug": slug, "hardcapSats": 100_000, "tags": list(tags)}
    return int((await service.ask("POST", "/api/tasks", body)).json["id"])


async def test_each_task_gets_the_answer_of_its_own_operation(service: Service) -> None:
    ours = [await service.new_task(slug=slug) for slug in ("a", "b")]
    theirs = await service.api("POST", "/api/tasks", {"slug": "c", "hardcapSats": 1}, token=service.other_token)
    ids = [*ours, theirs.json["id"], 999]

    begun = await act(service, action="start", ids=ids)
    assert [(each["id"], each["status"]) for each in begun] == list(zip(ids, (200, 200, 404, 404), strict=True))
    assert [each["body"] for each in begun[:2]] == [(await service.ask("GET", f"/api/tasks/{i}")).json for i in ours]
    assert begun[2]["body"] == begun[3]["body"] == {"error": "Not found"}
    assert [row(task).desired for task in ours] == ["running", "running"]

    ended = await act(service, action="stop", ids=ours)
    assert [(each["status"], each["body"]["openBids"]) for each in ended] == [(200, 0), (200, 0)]
    gone = await act(service, action="delete", ids=[*ours, theirs.json["id"]])
    assert [each["status"] for each in gone] == [200, 200, 404]
    assert gone[0]["body"] == {"success": True, "openBids": 0, "closing": None}
    assert (await service.api("GET", "/api/tasks", token=service.other_token)).json[0]["slug"] == "c"


@pytest.mark.parametrize(("action", "said"), [("start", "Nothing was done"), ("stop", "It will stop")])
async def test_a_task_whose_turn_comes_too_late_is_503_and_says_what_was_done(
    service: Service, monkeypatch: pytest.MonkeyPatch, action: str, said: str
) -> None:
    monkeypatch.setattr(task_runs, "BEGINS_S", 0.0)
    task = await started(service) if action == "stop" else await service.new_task()
    (found,) = await act(service, action=action, ids=[task])
    assert (found["status"], found["body"]["error"]) == (503, "Its turn did not come")
    assert said in found["body"]["message"] and row(task).desired == "stopped"


async def test_a_change_is_judged_for_each_task_by_itself(service: Service) -> None:
    one, fixed = await service.new_task(slug="a"), await service.new_task(slug="b", bidMode="fixed")
    results = await act(service, action="change", ids=[one, fixed], change={"hardcapSats": 0, "bidCount": 3})
    single = await service.ask("PUT", f"/api/tasks/{one}", {"hardcapSats": 0, "bidCount": 3})
    assert (results[0]["status"], results[0]["body"]) == (400, single.json)
    assert (results[1]["status"], results[1]["body"]["config"]["bidCount"]) == (200, 3)


async def test_a_tag_stands_for_all_tasks_with_it(service: Service) -> None:
    both, other = [await tagged(service, slug, "long term", slug) for slug in "ab"], await tagged(service, "c")
    results = await act(service, action="change", tag="long term", change={"tags": ["x"]})
    assert [(each["id"], each["body"]["tags"]) for each in results] == [(task, ["x"]) for task in both]
    assert await act(service, action="stop", tag="long term") == []
    assert row(other).tags == "[]"


async def test_a_tag_of_too_many_tasks_is_refused_as_a_whole(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runs, "MOST_IDS", 1)
    both = [await tagged(service, slug, "x") for slug in "ab"]
    answer = await service.ask("POST", "/api/tasks/actions", {"action": "delete", "tag": "x"})
    assert (answer.status, answer.names()) == (400, {"tag"})
    assert all(row(task).deleted_ms is None for task in both)


async def test_a_fault_of_ours_with_one_task_is_no_matter_of_the_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await service.new_task(slug="a"), await service.new_task(slug="b")
    real = task_runs.TaskRuns.stop

    async def stop(self: Any, task_id: str) -> Any:
        return 1 / 0 if int(task_id) == bad else await real(self, task_id)

    monkeypatch.setattr(task_runs.TaskRuns, "stop", stop)
    results = await act(service, action="stop", ids=[bad, good])
    assert [each["status"] for each in results] == [500, 200]
    assert results[0]["body"] == {"error": "Internal Server Error"}


async def test_a_clone_has_all_of_the_other_but_what_is_given(service: Service) -> None:
    task = (await service.ask("POST", "/api/tasks", {"slug": "a", "hardcapSats": 5, "tags": ["t"]})).json
    same = await service.ask("POST", f"/api/tasks/{task['id']}/clone", {"bidCount": 2})
    clone = await service.ask("POST", f"/api/tasks/{task['id']}/clone", {"slug": "b", "bidCount": 2})
    check("cloneTask", clone)
    assert (same.status, clone.status, clone.headers["Location"]) == (409, 201, f"/api/tasks/{clone.json['id']}")
    assert clone.json["config"] == task["config"] | {"slug": "b", "bidCount": 2}
    assert (clone.json["tags"], clone.json["isRunning"], clone.json["venue"]) == (["t"], False, task["venue"])
    wrong = await service.ask("POST", f"/api/tasks/{task['id']}/clone", {"slug": "c", "hardcapSats": 0})
    assert (wrong.status, wrong.names()) == (400, {"hardcapSats"})
    theirs = await service.api("POST", f"/api/tasks/{task['id']}/clone", {"slug": "d"}, token=service.other_token)
    assert theirs.status == 404


async def test_tags_are_listed_by_and_restart_nothing(service: Service) -> None:
    task = await started(service, slug="a")
    settled, revision = len(service.manager.settled), row(task).revision
    changed = await service.ask("PUT", f"/api/tasks/{task}", {"tags": [" b ", "\u00e9", "b"]})
    assert changed.json["tags"] == ["b", "\u00e9"]
    assert (len(service.manager.settled), row(task).revision) == (settled, revision)
    await tagged(service, "other")
    assert [each["id"] for each in (await service.ask("GET", "/api/tasks?tag=%C3%A9")).json] == [task]
    assert (await service.ask("GET", "/api/tasks?tag=e")).json == []
    assert len((await service.ask("GET", "/api/tasks")).json) == 2
    kept = await service.ask("PUT", f"/api/tasks/{task}", {"bidCount": 4})
    assert kept.json["tags"] == ["b", "\u00e9"]


async def test_auto_list_tasks_have_tags_too(service: Service) -> None:
    body = {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs", "tags": ["art"]}
    made = await service.ask("POST", "/api/autolist", body)
    assert made.json["tags"] == ["art"]
    assert len((await service.ask("GET", "/api/autolist?tag=art")).json) == 1
    assert (await service.ask("GET", "/api/autolist?tag=other")).json == []
    changed = await service.ask("PUT", f"/api/autolist/{made.json['id']}", {"tags": []})
    assert changed.json["tags"] == []
