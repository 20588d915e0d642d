"""Many tasks at once, a task like another, and tags: each answer is that of the single operation."""

from __future__ import annotations

from typing import Any

import pytest

from server import task_runs
from tests.server.conftest import Service
from tests.server.driver import check
from tests.server.running_tasks import row, started


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


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": [1]}, "action"),
        ({"action": "burn", "ids": [1]}, "action"),
        ({"action": "stop"}, "ids"),
        ({"action": "stop", "ids": [1], "tag": "a"}, "ids"),
        ({"action": "stop", "ids": []}, "ids"),
        ({"action": "stop", "ids": [True]}, "ids"),
        ({"action": "stop", "ids": [*range(1, 102)]}, "ids"),
        ({"action": "change", "ids": [1]}, "change"),
        ({"action": "stop", "ids": [1], "change": {}}, "change"),
        ({"action": "stop", "ids": [1], "force": True}, "force"),
    ],
)
async def test_what_cannot_be_meant_is_refused_as_a_whole(service: Service, body: Any, field: str) -> None:
    answer = await service.ask("POST", "/api/tasks/actions", body)
    assert (answer.status, field in answer.names()) == (400, True)


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


@pytest.mark.parametrize("tags", ["a", [""], ["x" * 41], [5], ["a"] * 21])
async def test_what_are_no_tags_is_refused(service: Service, tags: Any) -> None:
    answer = await service.ask("POST", "/api/tasks", {"slug": "a", "hardcapSats": 5, "tags": tags})
    assert (answer.status, answer.names()) == (400, {"tags"})
