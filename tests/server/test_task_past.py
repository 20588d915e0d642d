"""A task's past: its log and cycles, one moment of it, and its columns."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.fields import iso
from core.layout import MOST_LOG_BYTES, end_of_log, journal_path, older
from models.database import base
from models.ledger.states import Order
from models.tasks import cycles
from models.tasks.cycles import Sample, add_sample
from models.tasks.tasks import Task
from server.replay import journal
from server.replay.journal import moment_of
from server.task_log import camel_keys
from strategy.decision import Entry
from strategy.journal import Encoder
from tests.replay.recorded import LOOP, START, carried_out, entry
from tests.server.driver import check
from tests.server.ledger_rows import MINUTE_MS, open_order
from tests.shapes import replace
from tests.worlds.market import bid
from tests.worlds.service import START_MS, Service
from tests.worlds.worker import World
from workers.bidding.moment import Journal

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


CYCLES = carried_out(entry(number, 100_000 + 1_000 * number, 150_000) for number in range(6))


def write(path: Path, entries: list[Entry]) -> None:
    encoder = Encoder()
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{encoder.line(each)}\n" for each in entries))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A data directory with a journal of task 1: three cycles in the older file, three in the newer."""
    write(older(journal_path(tmp_path, 1)), CYCLES[:3])
    write(journal_path(tmp_path, 1), CYCLES[3:])
    return tmp_path


@pytest.mark.parametrize("number", range(6))
def test_the_newest_cycle_before_the_moment_is_found_in_either_file(kept: Path, number: int) -> None:
    at = START + number * LOOP
    for time_ms in (at, at + LOOP - 1):
        assert moment_of(kept, 1, time_ms) == (CYCLES[number], START, "")


def test_a_moment_before_the_journal_is_not_guessed(kept: Path) -> None:
    assert moment_of(kept, 1, START - 1) == (None, START, "the journal does not reach back that far")
    assert moment_of(kept, 2, START) == (None, None, "the journal is empty: no cycle was written to it")


def test_a_line_whose_beginning_is_gone_is_not_read_as_another(kept: Path) -> None:
    path = journal_path(kept, 1)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    found = moment_of(kept, 1, START + 4 * LOOP)
    assert (found.entry, found.why) == (None, "the journal's line of that moment needs one that is gone")


def test_a_spoilt_line_costs_what_hangs_on_it_and_a_torn_one_itself(kept: Path) -> None:
    path = journal_path(kept, 1)
    first, second, third = path.read_text().splitlines()
    path.write_text(f"{first}\n{second[:-9]}\n{third}\n")
    assert moment_of(kept, 1, START + 3 * LOOP).entry == CYCLES[3]
    assert "cannot be read" in moment_of(kept, 1, START + 5 * LOOP).why
    path.write_text(f"{first}\n{second}\n{third[:-9]}")
    assert moment_of(kept, 1, START + 5 * LOOP).entry == CYCLES[4]


def test_no_more_than_so_much_of_a_file_is_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "READ_BYTES", journal_path(kept, 1).stat().st_size - 1)
    found = moment_of(kept, 1, START + 5 * LOOP)
    assert (found.entry, "needs one that is gone" in found.why) == (None, True)


@pytest.mark.parametrize("block", [1, 100, 1000])
def test_files_are_read_from_the_end_in_growing_parts_with_the_same_outcome(
    kept: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(journal, "BLOCK_BYTES", block)
    for number in range(6):
        assert moment_of(kept, 1, START + number * LOOP) == (CYCLES[number], START, "")
    assert moment_of(kept, 1, START - 1).why == "the journal does not reach back that far"


def test_what_was_decided_last_takes_no_more_than_the_end_of_a_long_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journal_path(tmp_path, 1)
    entries = [entry(number, *range(100_000 + number, 100_040)) for number in range(40)]
    writer = Journal(path)
    for each in entries * 3:
        writer.write(each)
    monkeypatch.setattr(journal, "BLOCK_BYTES", 10_000)
    read = list[int]()

    def counted(file: BinaryIO, most_bytes: int) -> list[bytes]:
        read.append(most_bytes)
        return last_lines(file, most_bytes)

    last_lines = journal._last_lines
    monkeypatch.setattr(journal, "_last_lines", counted)

    assert moment_of(tmp_path, 1, START + 40 * LOOP).entry == entries[-1]
    assert sum(read) < path.stat().st_size / 4


async def test_bids_and_decision_of_a_moment_are_told_with_their_reasons(service: Service) -> None:
    task = await service.new_task()
    stood, gone, later = (open_order(service, task, number) for number in (3, 4, 5))
    then = START_MS - 60_000
    Order.update(created_ms=then - 1).where(Order.id.in_([stood.id, gone.id])).execute()
    Order.update(closed_ms=then, state="closed", close_reason="cancelled").where(Order.id == gone.id).execute()
    Order.update(created_ms=then + 1).where(Order.id == later.id).execute()
    cycle = next(each for each in CYCLES if each.plan is not None and each.plan.bids)
    assert cycle.plan is not None
    told = cycle.plan.bids[0].reason
    note = replace(cycle.plan.bids[0], order_id=stood.id)
    config = replace(cycle.config, slug=stood.slug)
    decided = replace(cycle, now_ms=then - 5, config=config, plan=replace(cycle.plan, bids=(note,)))
    write(journal_path(service.settings.data_dir, task), [decided])
    with base.transaction():
        add_sample(task, Sample(Decimal(99), open_count=2, exposure_sats=70_000), then)

    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")

    check("readTaskMoment", answer)
    assert [(order["id"], order["reason"]) for order in answer.json["orders"]] == [(stood.id, told)]
    past = answer.json["cycle"]
    assert (past["time"], past["reference"], answer.json["cycleUnknown"]) == (iso(then - 5), cycle.plan.reference, None)
    assert [rung["reason"] for rung in past["rungs"]] == [note.reason for note in cycle.plan.rungs]
    assert cycle.snapshot is not None
    assert past["book"]["asks"]["levels"][0]["unitPrice"] == min(ask.unit_price for ask in cycle.snapshot.asks)
    assert past["book"]["bidsUnknown"] == "they were not read"
    assert {each["rank"] for each in [*answer.json["orders"], *past["rungs"]]} == {None}
    assert (answer.json["sample"]["floor"], answer.json["sample"]["exposure"]) == (99, 70_000)
    rivals = (bid(40_000, placed_ms=then), bid(30_000, placed_ms=then), bid(20_000, placed_ms=then))
    seen = replace(decided, snapshot=replace(cycle.snapshot, bids=rivals))
    path = journal_path(service.settings.data_dir, task)
    write(path, [seen])
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
    assert [order["rank"] for order in answer.json["orders"]] == [2], "older than its equal"
    own = [order.price_sats for order in sorted(cycle.own, key=lambda order: -order.price_sats)]
    assert (own[2:4], own[4] < 20_000) == ([45_000, 30_000], True)
    assert [rung["rank"] for rung in answer.json["cycle"]["rungs"]] == [1, 2, 3, 6, 8], "younger than its equal"
    assert seen.snapshot is not None
    write(path, [replace(seen, snapshot=replace(seen.snapshot, are_bids_whole=False))])
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
    assert [order["rank"] for order in answer.json["orders"]] == [None], "a bid that is not understood may be ahead"
    assert [rung["rank"] for rung in answer.json["cycle"]["rungs"]] == [1, None, None, None, None]
    write(path, [seen])
    for change in ({"slug": "other"}, {"slug": stood.slug, "trait_type": "Hat", "trait_value": "Red"}):
        Order.update(**change).where(Order.id == stood.id).execute()
        answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
        assert [order["rank"] for order in answer.json["orders"]] == [None], "it competes in another book"


async def test_what_the_journal_does_not_know_is_said(service: Service) -> None:
    task = await service.new_task()
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time=2025-01-01")
    check("readTaskMoment", answer)
    assert answer.json["cycleUnknown"] == "the journal is empty: no cycle was written to it"
    assert (answer.json["orders"], answer.json["cycle"], answer.json["sample"]) == ([], None, None)


@pytest.mark.parametrize("query", ["", "?time=noon", "?time=0001-01-01T00:00:00%2B14:00", f"?time={iso(START_MS + 1)}"])
async def test_a_moment_has_to_be_named_and_past(service: Service, query: str) -> None:
    task = await service.new_task()
    assert (await service.ask("GET", f"/api/tasks/{task}/at{query}")).status == 400


HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def sampled(task: int, floor: str, time_ms: int) -> None:
    with base.transaction():
        add_sample(task, Sample(Decimal(floor), own_top=Decimal(75_000), open_count=2, exposure_sats=130_000), time_ms)


async def test_a_day_is_told_by_minutes_and_more_by_hours(service: Service) -> None:
    task = await service.new_task()
    for ago_ms, floor in ((40 * DAY_MS, "90000"), (2 * MINUTE_MS, "100000"), (0, "0.5")):
        sampled(task, floor, START_MS - ago_ms)

    day = await service.ask("GET", f"/api/tasks/{task}/series")
    year = await service.ask("GET", f"/api/tasks/{task}/series?from={iso(START_MS - 365 * DAY_MS)}")

    check("readTaskSeries", day)
    minute = START_MS // MINUTE_MS * 60
    assert day.json == {
        "step": "minute",
        "time": [minute - 120, minute],
        "floor": [100_000, 0.5],
        "reference": [None, None],
        "bestBid": [None, None],
        "ownTop": [75_000, 75_000],
        "ownLow": [None, None],
        "open": [2, 2],
        "exposure": [130_000, 130_000],
    }
    assert (year.json["step"], year.json["floor"][0], year.json["floor"][-1]) == ("hour", 90_000, 0.5)


async def test_the_step_and_the_span_can_be_chosen(service: Service) -> None:
    task = await service.new_task()
    for hour in range(3):
        sampled(task, str(100 + hour), START_MS - hour * HOUR_MS)
    span = f"from={iso(START_MS - HOUR_MS)}&to={iso(START_MS)}"
    assert (await service.ask("GET", f"/api/tasks/{task}/series?{span}")).json["floor"] == [101]
    by_hours = await service.ask("GET", f"/api/tasks/{task}/series?step=hour")
    assert (by_hours.json["step"], by_hours.json["floor"]) == ("hour", [102, 101, 100])


@pytest.mark.parametrize("query", ["step=day", "from=2026-01-02&to=2026-01-01", "from=yesterday"])
async def test_what_cannot_be_meant_is_refused(service: Service, query: str) -> None:
    task = await service.new_task()
    assert (await service.ask("GET", f"/api/tasks/{task}/series?{query}")).status == 400
