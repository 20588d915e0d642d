"""A task's record for its owner: log lines without secrets, and cycles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.layout import MOST_LOG_BYTES, end_of_log
from models.tasks import cycles
from models.tasks.tasks import Task
from server.task_log import camel_keys
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.driver import check
from tests.worlds.worker import World

KEY = "L" + "4" * 51


def log_of(service: Service, task_id: int) -> Path:
    service.settings.log_dir.mkdir(exist_ok=True)
    return service.settings.log_dir / f"task-{task_id}.log"


async def test_the_newest_lines_come_oldest_first(service: Service) -> None:
    task_id = await service.new_task()
    log_of(service, task_id).write_text("".join(f"line {n}\n" for n in range(1200)))

    default = await service.ask("GET", f"/api/tasks/{task_id}/log")
    three = await service.ask("GET", f"/api/tasks/{task_id}/log?lines=3")
    most = await service.ask("GET", f"/api/tasks/{task_id}/log?lines=1000")

    assert (default.status, len(default.json["lines"])) == (200, 200)
    assert three.json == {"lines": ["line 1197", "line 1198", "line 1199"]}
    assert (most.json["lines"][0], len(most.json["lines"])) == ("line 200", 1000)


async def test_before_the_first_start_and_after_a_rotation_there_are_no_lines(service: Service) -> None:
    task_id = await service.new_task()
    never = await service.ask("GET", f"/api/tasks/{task_id}/log")
    log_of(service, task_id).write_text("")
    rotated = await service.ask("GET", f"/api/tasks/{task_id}/log")

    assert [(answer.status, answer.json) for answer in (never, rotated)] == [(200, {"lines": []})] * 2


@pytest.mark.parametrize("name", ["log?lines", "cycles?limit"])
@pytest.mark.parametrize("text", ["0", "-1", "1001", "1e2", "1.0", "x", "", "9" * 5000, "%D9%A3", "%00", "%2B5"])
async def test_bad_counts_are_400(service: Service, name: str, text: str) -> None:
    task_id = await service.new_task()

    answer = await service.ask("GET", f"/api/tasks/{task_id}/{name}={text}")

    assert (answer.status, answer.names()) == (400, {name.partition("?")[2]})


async def test_a_log_that_cannot_be_read_is_503_and_names_no_path(service: Service) -> None:
    task_id = await service.new_task()
    log_of(service, task_id).mkdir()

    answer = await service.ask("GET", f"/api/tasks/{task_id}/log")

    assert (answer.status, answer.json) == (503, {"error": "The log cannot be read"})


async def test_secrets_and_control_characters_are_masked(service: Service) -> None:
    task_id = await service.new_task()
    log_of(service, task_id).write_bytes(
        f"crashed with {KEY}\nAuthorization: Bearer {service.token}\na\x1b[31mb\rc\u2028d\n".encode() + b"\xff\x00 end"
    )

    answer = await service.ask("GET", f"/api/tasks/{task_id}/log")

    assert answer.json["lines"] == [
        "crashed with [masked]",
        "Authorization: Bearer [masked]",
        "a?[31mb?c?d",
        "\ufffd? end",
    ]
    assert KEY not in answer.text and service.token not in answer.text


async def test_a_log_of_json_is_shown_as_text(service: Service) -> None:
    task_id = await service.new_task()
    told = {"time": "2026-11-28T07:34:42.001Z", "level": "ERROR", "program": "worker", "task": task_id, "logger": "x"}
    failed = told | {"message": "failed", "exception": f"Traceback:\nValueError: {KEY}"}
    lines = ["text from before", json.dumps(told | {"message": "begins"}), json.dumps(failed), "Fatal Python error"]
    log_of(service, task_id).write_text("".join(f"{line}\n" for line in lines))

    whole = await service.ask("GET", f"/api/tasks/{task_id}/log")
    end = await service.ask("GET", f"/api/tasks/{task_id}/log?lines=3")

    assert whole.json["lines"] == [
        "text from before",
        f"2026-11-28T07:34:42.001Z ERROR task-{task_id} x: begins",
        f"2026-11-28T07:34:42.001Z ERROR task-{task_id} x: failed",
        "Traceback:",
        "ValueError: [masked]",
        "Fatal Python error",
    ]
    assert end.json["lines"] == whole.json["lines"][-3:]


def test_a_secret_that_the_cut_went_through_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    rest = "\n" + "x" * 99
    # The file begins a few bytes before what is read, so that the cut goes through the key.
    path.write_text(f"leading {KEY}" + rest * ((MOST_LOG_BYTES - 40) // len(rest)) + "\n")

    lines = end_of_log(path, 10_000)

    assert not any("444" in line for line in lines)
    assert lines[-1] == "x" * 99


def test_no_more_is_read_than_a_quarter_of_a_mebibyte(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(("y" * 1023 + "\n") * 1000)
    assert len(end_of_log(path, 1000)) == MOST_LOG_BYTES // 1024 - 1
    path.write_text("z" * (MOST_LOG_BYTES + 1))
    assert end_of_log(path, 1000) == []


def test_a_secret_over_two_lines_is_masked_where_the_lines_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("bearer\nabcdefghijklmnop\nlast\n")

    assert "abcdefgh" not in "".join(end_of_log(path, 2))


async def test_cycles_are_told_newest_first_in_camel_case(service: Service) -> None:
    task_id = await service.new_task()
    Task.update(token=1).execute()
    detail = {
        "errors": ["price_sats: odd"],
        "seen": {"taken_ms": 5, "own_asks": None},
        "rungs": [{"rung": 1, "price_sats": 10, "reason": "surplus", "detail": 'say "own_asks": {"a_b": 1}'}],
    }
    for number in range(60):
        cycles.record_cycle(
            task_id,
            1,
            time_ms=START_MS + 1000 * number,
            action=f"cycle {number}",
            error=None if number else "trouble",
            detail=json.dumps(detail),
            memory="{}",
        )

    default = await service.ask("GET", f"/api/tasks/{task_id}/cycles")
    two = await service.ask("GET", f"/api/tasks/{task_id}/cycles?limit=2")
    all_of_them = await service.ask("GET", f"/api/tasks/{task_id}/cycles?limit=200")

    assert (default.status, len(default.json), len(all_of_them.json)) == (200, 50, 60)
    assert [cycle["action"] for cycle in two.json] == ["cycle 59", "cycle 58"]
    assert two.json[0] == {
        "time": START_MS // 1000 + 59,
        "action": "cycle 59",
        "error": None,
        "detail": {
            "errors": ["price_sats: odd"],
            "seen": {"takenMs": 5, "ownAsks": None},
            "rungs": [{"rung": 1, "priceSats": 10, "reason": "surplus", "detail": detail["rungs"][0]["detail"]}],
        },
    }
    assert all_of_them.json[-1]["error"] == "trouble"
    check("listCycles", all_of_them)


async def test_the_cycle_of_a_real_worker_is_as_described(service: Service) -> None:
    world = World()
    own = world.task()
    world.bidder(own).cycle()
    Task.update(user=service.user_id).where(Task.id == own).execute()

    answer = await service.ask("GET", f"/api/tasks/{own}/cycles")

    assert (answer.status, len(answer.json)) == (200, 1)
    check("listCycles", answer)
    detail = answer.json[0]["detail"]
    assert detail.keys() >= {"seen", "rungs", "bids", "errors"}
    assert detail["rungs"][0].keys() >= {"rung", "priceSats", "reason", "fate", "placedOrder"}
    assert detail["seen"].keys() >= {"takenMs", "ownAsks", "balanceSats"}


keys = st.text(st.characters(exclude_characters="_"), max_size=5) | st.sampled_from(["a_b", "A_b", 'x"a_b":', "_a"])
json_values = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(['"own_asks":', '\\"a_b": ', "{", ',"c_d', "a\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None)
@given(json_values, st.sampled_from([None, (",", ":")]), st.booleans())
@pytest.mark.slow
def test_only_keys_are_renamed(value: object, separators: tuple[str, str] | None, ascii_only: bool) -> None:
    def renamed(item: object) -> object:
        if isinstance(item, list):
            return [renamed(each) for each in item]
        if isinstance(item, dict):
            return {camel(key): renamed(each) for key, each in item.items()}
        return item

    def camel(key: str) -> str:
        return key if key != "a_b" else "aB"

    text = json.dumps(value, separators=separators, ensure_ascii=ascii_only)

    assert json.loads(camel_keys(text)) == renamed(value)
