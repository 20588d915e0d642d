"""A config tried on a task's recorded past: both results, what the journal cannot tell, and the bounds of the work."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from core.fields import iso
from core.layout import journal_path, older
from core.process import hold_lock
from server.http import services as starter
from server.http.blocking import Turns
from server.replay import journal
from server.replay.journal import JournalPart
from server.replay.program import after_fills, compared
from strategy.config.bid import BidConfig
from strategy.decision import Entry
from strategy.journal import Encoder
from strategy.replay import simulate
from tests.replay.recorded import LOOP, START, a_day, carried_out, entry, sale
from tests.server.driver import check
from tests.shapes import replace
from tests.worlds.service import Service

GOOSINALS = BidConfig(slug="goosinals", hardcap_sats=100_000)
OF_BIDS = ("placed", "cancelled", "fills", "spentSats", "averagePrice", "newestFills", "firstShare")


def of_goosinals(entries: Iterable[Entry]) -> list[Entry]:
    return [replace(each, config=replace(each.config, slug="goosinals")) for each in entries]


def write(path: Path, entries: Iterable[Entry]) -> Path:
    encoder = Encoder()
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{encoder.line(each)}\n" for each in entries))
    return path


async def recorded_task(service: Service, entries: Iterable[Entry] | None = None) -> int:
    """Returns a task of the owner that has recorded these cycles, a day of a market by default."""
    task = await service.new_task()
    write(journal_path(service.settings.data_dir, task), of_goosinals(a_day() if entries is None else entries))
    return task


async def replayed(service: Service, task: int, **body: Any) -> Any:
    answer = await service.ask("POST", f"/api/tasks/{task}/replay", body)
    check("replayTask", answer)
    assert answer.status == 200, answer.text
    return answer.json


def gaps(result: dict[str, Any]) -> dict[str, bool]:
    return {gap["what"]: gap["isWhole"] for gap in result["unknown"]}


def in_process(tmp_path: Path, entries: Iterable[Entry], changed: BidConfig, own: BidConfig = GOOSINALS) -> Any:
    path = write(tmp_path / "task-1.jsonl", of_goosinals(entries))
    return result(path, own, changed)


def result(path: Path, own: BidConfig, changed: BidConfig) -> Any:
    found = compared(JournalPart([path], None, None), own, changed).compared
    return to_builtins(found, builtin_types=(Decimal,), enc_hook=Decimal)


@pytest.mark.slow
async def test_both_configs_are_tried_on_the_same_cycles(service: Service) -> None:
    task = await recorded_task(service)

    found = await replayed(service, task, bidPercentHigh=0.65, bidCount=2)

    assert (found["cycles"], found["from"], found["to"]) == (100, iso(START), iso(START + 99 * LOOP))
    assert {change["field"]: (change["before"], change["after"]) for change in found["changes"]} == {
        "bidPercentHigh": (Decimal("0.75"), Decimal("0.65")),
        "bidCount": (5, 2),
    }
    own, changed = found["own"], found["changed"]
    alone = simulate(of_goosinals(a_day()), lambda recorded: GOOSINALS, after_fills, is_journal=True)
    assert own["fills"] == len(alone.fills) == 4 and own["spentSats"] == sum(
        fill["price"] for fill in own["newestFills"]
    )
    assert changed["fills"] == 0 and changed["averagePrice"] is None  # nobody sold at 65 % of the floor
    assert Decimal("0.9") < own["firstShare"] < 1 and own["placed"] > changed["placed"] > 0
    assert own["calls"]["total"] == sum(own["calls"][name] for name in ("asks", "bids", "ownBids", "place", "cancel"))
    assert (own["unknown"], changed["unknown"]) == ([], [])


@pytest.mark.slow
async def test_without_changes_both_results_are_the_same(service: Service) -> None:
    task = await recorded_task(service)
    found = await replayed(service, task)
    assert found["changes"] == [] and found["own"] == found["changed"]


@pytest.mark.slow
async def test_a_span_of_time_is_all_that_is_replayed(service: Service) -> None:
    task = await recorded_task(service)
    span = {"from": iso(START + 10 * LOOP), "to": iso(START + 19 * LOOP)}
    found = await replayed(service, task, **span)
    assert (found["cycles"], found["from"], found["to"]) == (10, span["from"], span["to"])
    assert (found["journalFrom"], found["isCut"], found["own"]["fills"]) == (iso(START), False, 1)

    later = await service.ask("POST", f"/api/tasks/{task}/replay", {"from": "2030-01-01"})
    check("replayTask", later)
    assert (later.status, later.json["error"]) == (409, "Nothing is recorded")
    assert later.json["message"] == f"The journal begins at {iso(START)} and has no cycle of that time."


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"bidCount": 0}, "bidCount: "),
        ({"slug": "dogs"}, "slug: the journal is about the task's own"),
        ({"from": "noon"}, "from: must be a time such as"),
        ({"to": 5}, "to: must be a time such as"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "from: must not be after to"),
        ({"venue": "magiceden"}, "venue: cannot be changed"),
        ({"budgetId": 77}, "budgetId: is no budget of yours"),
        ({"surprise": 1}, "surprise: unknown field"),
    ],
)
async def test_a_bad_body_is_told_and_starts_nothing(service: Service, body: dict[str, Any], fault: str) -> None:
    task = await recorded_task(service)
    service.app.settings["services"].replays.run = None  # it would fail
    answer = await service.ask("POST", f"/api/tasks/{task}/replay", body)
    check("replayTask", answer)
    assert answer.status == 400 and any(text.startswith(fault) for text in answer.json["details"]), answer.text


async def test_without_a_journal_there_is_nothing_to_replay(service: Service) -> None:
    task = await service.new_task()
    answer = await service.ask("POST", f"/api/tasks/{task}/replay", {})
    check("replayTask", answer)
    assert (answer.status, answer.json["error"]) == (409, "Nothing is recorded")
    other = await service.api("POST", f"/api/tasks/{task}/replay", {}, token=service.other_token)
    assert other.status == 404


@pytest.mark.slow
async def test_the_users_own_hard_cap_holds_for_both(service: Service) -> None:
    task = await recorded_task(service)
    assert (await service.ask("PUT", "/api/ceilings", {"maxHardcap": 50_000})).status == 200
    found = await replayed(service, task, hardcapSats=90_000)
    assert found["own"]["fills"] == found["changed"]["fills"] == 0  # sold at 70,000


@pytest.mark.slow
async def test_a_user_has_one_replay_at_a_time_in_whichever_process(service: Service) -> None:
    task = await recorded_task(service)
    held = hold_lock(service.settings.run_dir / f"replay-{service.user_id}.lock")
    assert held is not None
    answer = await service.ask("POST", f"/api/tasks/{task}/replay", {})
    check("replayTask", answer)
    assert (answer.status, answer.json["message"]) == (429, "One of yours runs: one at a time.")
    os.close(held)
    both = await asyncio.gather(*(service.ask("POST", f"/api/tasks/{task}/replay", {}) for _ in range(2)))
    assert sorted(answer.status for answer in both) == [200, 429]
    await replayed(service, task)


async def test_a_server_process_runs_only_so_many(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await recorded_task(service)
    monkeypatch.setattr(service.app.settings["services"].replays, "_turns", Turns(0, 1, patience_s=0.01))
    answer = await service.ask("POST", f"/api/tasks/{task}/replay", {})
    check("replayTask", answer)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "5")


@pytest.mark.slow
async def test_one_that_takes_too_long_is_ended_and_the_next_may_run(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await recorded_task(service)
    with monkeypatch.context() as hurried:
        hurried.setattr(starter, "WALL_S", 0.0)
        answer = await service.ask("POST", f"/api/tasks/{task}/replay", {})
    check("replayTask", answer)
    assert answer.status == 503 and "shorter time" in answer.json["message"]
    await replayed(service, task)


@pytest.mark.slow
@pytest.mark.gen_test(timeout=600)
async def test_the_loop_answers_others_while_a_replay_runs(service: Service) -> None:
    task = await recorded_task(service, (entry(cycle, 100_000 + cycle % 50) for cycle in range(1_000)))
    running = asyncio.ensure_future(replayed(service, task))
    waits = []
    while not running.done():
        start = time.monotonic()
        assert (await service.ask("GET", f"/api/tasks/{task}")).status == 200
        waits.append(time.monotonic() - start)
        await asyncio.sleep(0.02)
    assert (await running)["cycles"] == 1_000
    assert len(waits) > 5 and sorted(waits)[len(waits) // 2] < 0.5


@pytest.mark.slow
def test_the_program_is_nice_bounded_and_without_network(tmp_path: Path) -> None:
    probe = (
        "import json, os, resource, socket, sys\n"
        "from server.replay import program\n"
        "program._be_modest()\n"
        "try: socket.socket(); network = True\n"
        "except PermissionError: network = False\n"
        "try: wrote = os.write(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), b'x')\n"
        "except OSError: wrote = 0\n"
        "limits = [resource.getrlimit(each)[1] for each in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]\n"
        "print(json.dumps([os.nice(0), limits, network, wrote]))"
    )
    nice = os.nice(0)
    found = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / "file")], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(found.stdout) == [min(19, nice + 10), [40, 512 << 20], False, 0]


def test_bids_of_others_that_were_never_read_leave_the_result_open(tmp_path: Path) -> None:
    entries = carried_out(entry(cycle, 100_000, sales=(sale(90_000, START, cycle),)) for cycle in range(10))
    found = in_process(tmp_path, entries, replace(GOOSINALS, outbid_enabled=True))
    assert gaps(found["changed"]) == {"bids": True} and gaps(found["own"]) == {"bids": True}
    assert {name: found["changed"][name] for name in OF_BIDS} == dict.fromkeys(OF_BIDS)
    assert found["own"]["placed"] > 0 and found["own"]["firstShare"] is None


def test_sales_that_were_never_read_leave_the_fills_open(tmp_path: Path) -> None:
    found = in_process(tmp_path, carried_out(entry(cycle, 100_000) for cycle in range(5)), GOOSINALS)["own"]
    assert gaps(found)["sales"] is True
    assert found["fills"] is None and found["newestFills"] is None and found["placed"] > 0


def test_some_missing_sales_are_named_and_the_known_fills_counted(tmp_path: Path) -> None:
    entries = [
        entry(cycle, 100_000, sales=(sale(60_000, START + 40_000),) if cycle == 4 else None) for cycle in range(9)
    ]
    found = in_process(tmp_path, carried_out(entries), GOOSINALS)["own"]
    told = next(gap for gap in found["unknown"] if gap["what"] == "sales")
    assert (told["missing"], told["of"], told["isWhole"], found["fills"]) == (8, 9, False, 1)


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        ({"bid_type": "trait", "trait_type": "Hat", "trait_value": "Red"}, "trait"),
        ({"budget_id": 5}, "budget"),
    ],
)
def test_what_was_recorded_for_another_config_is_not_used(tmp_path: Path, change: dict[str, Any], gap: str) -> None:
    found = in_process(tmp_path, a_day(), replace(GOOSINALS, **change))
    assert gaps(found["changed"])[gap] is True and found["changed"]["placed"] is None
    assert gap not in gaps(found["own"])


def test_addresses_that_were_ignored_then_are_missing_and_new_ones_are_left_out(tmp_path: Path) -> None:
    entries = [replace(each, config=replace(each.config, ignore_addresses=("bc1qother",))) for each in a_day()]
    found = in_process(tmp_path, entries, replace(GOOSINALS, ignore_addresses=("bc1qother", "bc1qrival")), GOOSINALS)
    assert gaps(found["own"])["ignored"] is True and "ignored" not in gaps(found["changed"])


@pytest.mark.slow
def test_a_config_that_looks_more_often_has_no_number_of_calls(tmp_path: Path) -> None:
    found = in_process(tmp_path, a_day(), replace(GOOSINALS, loop_seconds=5))
    assert gaps(found["changed"])["pace"] is True and found["changed"]["calls"] is None
    slower = in_process(tmp_path, a_day(), replace(GOOSINALS, loop_seconds=300))["changed"]
    assert slower["cycles"] == 12  # every ninth, as nine tenths of its time are enough


def test_cycles_of_another_slug_are_passed_over_and_counted(tmp_path: Path) -> None:
    cycles = of_goosinals(a_day())
    before = [replace(each, config=replace(each.config, slug="dogs")) for each in cycles[:30]]
    path = write(tmp_path / "task-1.jsonl", [*before, *cycles[30:]])
    found = result(path, GOOSINALS, GOOSINALS)
    assert (found["otherCycles"], found["cycles"], found["from"]) == (30, 70, iso(START + 30 * LOOP))


def test_only_the_newest_part_of_a_large_journal_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cycles, path = of_goosinals(a_day()), tmp_path / "task-1.jsonl"
    paths = [write(older(path), cycles[:60]), write(path, cycles[60:])]
    assert len(list(JournalPart(paths, None, None).entries())) == 100
    monkeypatch.setattr(journal, "MOST_CYCLES", 50)
    taken = JournalPart(paths, None, None)
    assert (list(taken.entries()), taken.is_cut, taken.first_ms) == (cycles[50:], True, START)
    monkeypatch.setattr(journal, "MOST_BYTES", path.stat().st_size)
    taken = JournalPart(paths, None, None)
    assert (list(taken.entries()), taken.is_cut) == (cycles[60:], True)


def test_spoilt_lines_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "task-1.jsonl", of_goosinals(a_day()))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:90], lines[90][:40] + "\n", *lines[91:]]))
    found = result(path, GOOSINALS, GOOSINALS)
    assert (found["cycles"], found["unreadCycles"]) == (90, 10)
