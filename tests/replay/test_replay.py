"""The command on journals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from strategy.decision import BudgetRoom, PlannedBid
from strategy.reasons import Reason
from tests.replay.recorded import (
    CONFIG,
    LIMITS,
    LOOP,
    START,
    a_day,
    ask,
    bid,
    carried_out,
    entry,
    journal,
    replay,
    sale,
)
from tests.shapes import replace

Replayed = Callable[..., Any]


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def replayed(capsys: pytest.CaptureFixture[str]) -> Replayed:
    """Runs the command and returns what it printed as JSON."""

    def run(*arguments: object) -> Any:
        assert replay(*arguments, "--json") == 0, capsys.readouterr()
        return json.loads(capsys.readouterr().out, parse_float=Decimal)

    return run


def placed(found: Any) -> list[list[int]]:
    """Prices placed in each cycle that placed something."""
    prices = [[each["price"] for each in step["placed"]] for step in found["decisions"]]
    return [each for each in prices if each]


@pytest.mark.parametrize("flags", [(), ("--json",), ("--set", "bidPercentHigh=0.8"), ("--verify",)])
@pytest.mark.slow
def test_two_runs_print_the_same_bytes(flags: tuple[str, ...], tmp_path: Path, capfdbinary: Any) -> None:
    path = journal(tmp_path / "j.jsonl", a_day())
    printed = []
    for _ in range(2):
        assert replay(path, *flags) == 0
        printed.append(capfdbinary.readouterr().out)

    assert printed[0] == printed[1]
    assert len(printed[0]) > 100


@pytest.mark.thorough
@pytest.mark.slow
def test_processes_print_the_same_bytes_whatever_their_hash_seed(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", a_day())
    printed = [
        subprocess.run(
            [sys.executable, "-m", "cli.main", "replay", str(path), "--set", "bidCount=4"],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[2],
        ).stdout
        for seed in ("1", "2")
    ]

    assert printed[0] == printed[1]
    assert b"simulated: 100 cycles" in printed[0]


def test_unchanged_config_makes_the_recorded_decisions_again(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(entry(cycle, 100_000, 110_000) for cycle in range(40))

    found = replayed(journal(tmp_path / "j.jsonl", recorded))

    assert found["verified"] == {"decisions": 40, "different": 0, "differences": []}
    # Five at once, renewed with 90 s left of 16 minutes.
    assert placed(found) == [[75_000, 60_000, 45_000, 30_000, 15_000]] * 2
    assert found["changes"] == {}
    assert found["summary"]["calls"] == {"asks": 40, "bids": 0, "own_bids": 40, "place": 10, "cancel": 1}


def test_set_changes_the_decisions(tmp_path: Path, replayed: Replayed) -> None:
    path = journal(tmp_path / "j.jsonl", carried_out([entry(0, 100_000), entry(1, 100_000)]))

    found = replayed(path, "--set", "bidPercentHigh=0.8", "--set", "bidCount=2")

    assert placed(found) == [[80_000, 15_000]]
    assert found["changes"] == {"bidPercentHigh": [Decimal("0.75"), Decimal("0.8")], "bidCount": [5, 2]}
    assert found["verified"]["different"] == 0  # against the recorded config


def test_limits_follow_what_is_set(tmp_path: Path, replayed: Replayed) -> None:
    path = journal(tmp_path / "j.jsonl", carried_out([entry(0, 100_000)]))

    assert placed(replayed(path, "--set", "maxBidTotal=150000")) == [[75_000, 60_000, 15_000]]


def test_a_shared_budget_holds_as_it_was_recorded_unless_another_is_set(tmp_path: Path, replayed: Replayed) -> None:
    config, limits = replace(CONFIG, budget_id=3), replace(LIMITS, budget=BudgetRoom(3, "both", 75_000))
    file = journal(tmp_path / "a.jsonl", carried_out([entry(0, 100_000, config=config, limits=limits)]))
    assert placed(replayed(file)) == [[75_000]]
    assert placed(replayed(file, "--set", "budgetId=null")) == [[75_000, 60_000, 45_000, 30_000, 15_000]]


def test_task_names_the_journal_in_the_data_directory_with_its_older_file(data_dir: Path, replayed: Replayed) -> None:
    recorded = carried_out(entry(cycle, 100_000) for cycle in range(4))
    (data_dir / "journal").mkdir()
    journal(data_dir / "journal" / "task-17.jsonl.1", recorded[:2])
    journal(data_dir / "journal" / "task-17.jsonl", recorded[2:])

    assert replayed("--task", 17)["cycles"] == 4


@pytest.mark.parametrize("arguments", [("--task", "18"), ("nowhere.jsonl",)])
def test_no_such_journal(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(*arguments) == 1
    assert "journal" in capsys.readouterr().err or "No such file"


def test_verify_catches_a_changed_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = carried_out(entry(cycle, 100_000) for cycle in range(3))
    plan = recorded[0].plan
    assert plan is not None
    dearer = replace(plan, to_place=(PlannedBid(0, 76_000, Decimal(1)), *plan.to_place[1:]))

    assert replay(journal(tmp_path / "right.jsonl", recorded), "--verify") == 0
    assert "3 of 3 recorded decisions come out the same" in capsys.readouterr().out
    wrong = [replace(recorded[0], plan=dearer), *recorded[1:]]
    assert replay(journal(tmp_path / "wrong.jsonl", wrong), "--verify") == 1

    printed = capsys.readouterr().out
    assert "2 of 3 recorded decisions come out the same" in printed
    assert "2027-01-15T08:00:00.000Z differs in to_place" in printed


def test_verify_takes_notes_without_quantities_from_earlier_versions(tmp_path: Path) -> None:
    entries = a_day()
    plans = [each.plan for each in entries if each.plan is not None]
    assert any(note.quantity for plan in plans for note in plan.rungs)
    former = [
        replace(each, plan=replace(plan, rungs=tuple(replace(note, quantity=None) for note in plan.rungs)))
        for each, plan in zip(entries, plans, strict=True)
    ]
    assert replay(journal(tmp_path / "former.jsonl", former), "--verify") == 0


def test_verify_knows_what_the_worker_left_undone(tmp_path: Path) -> None:
    """A plan that was cut short because own bids were unknown, or control said halt, comes out the same."""
    recorded = carried_out(
        entry(cycle, 100_000 - 20_000 * (cycle % 2), restraint=restraint)
        for cycle, restraint in enumerate([None, Reason.OWN_BIDS_UNKNOWN, None, Reason.REDUCE, None, Reason.HALT, None])
    )

    assert replay(journal(tmp_path / "j.jsonl", recorded), "--verify") == 0
    halted = recorded[5].plan
    assert halted is not None
    assert len(halted.to_cancel) == 5


def test_fills_and_their_prices_against_the_floor(tmp_path: Path, replayed: Replayed) -> None:
    day = 24 * 3_600_000 // LOOP
    recorded = carried_out(
        [
            entry(0, 100_000),
            entry(1, 90_000, sales=(sale(70_000, START + 1_000),)),
            entry(day + 1, 150_000, sales=()),
        ]
    )

    found = replayed(journal(tmp_path / "j.jsonl", recorded))

    assert found["fills"] == [
        {
            "time": "2027-01-15T08:00:01.000Z",
            "price": 75_000,
            "quantity": 1,
            "soldAt": 70_000,
            "floor": 100_000,
            "floor24hLater": 150_000,
        }
    ]
    summary = found["summary"]
    assert (summary["averagePriceToFloor"], summary["averagePriceToFloor24hLater"]) == (Decimal("0.75"), Decimal("0.5"))
    assert summary["spentSats"] == 75_000
    assert "sales are not known for 1 of 3 cycles" in found["notes"]


def test_after_a_fill_nothing_is_placed_for_a_minute(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(
        [
            entry(0, 100_000),
            entry(1, 100_000, sales=(sale(70_000, START + LOOP - 1),)),
            entry(2, 100_000),
            entry(3, 100_000),
        ]
    )

    found = replayed(journal(tmp_path / "j.jsonl", recorded))

    assert placed(found) == [[75_000, 60_000, 45_000, 30_000, 15_000], [75_000]]
    assert found["decisions"][-1]["time"] == "2027-01-15T08:01:30.000Z"
    assert found["summary"]["skipped"] == {"fill_pause": 2}


def test_max_fills_counts_simulated_fills(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(
        [entry(0, 100_000), entry(9, 100_000, sales=(sale(70_000, START + 1_000),)), entry(18, 100_000)]
    )

    found = replayed(journal(tmp_path / "j.jsonl", recorded), "--set", "maxFills=1")

    assert len(found["fills"]) == 1
    assert found["decisions"][-1]["live"] == []


def test_time_as_top_bidder(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(
        [
            entry(0, 100_000, bids=(bid(74_000),)),  # ahead for 30 s
            entry(1, 100_000, bids=(bid(76_000),)),  # behind for 30 s
            entry(2, 100_000),  # not known
            entry(3, 100_000, bids=()),  # alone, for the 120 s until that book is stale
            entry(103, 100_000, bids=()),
        ]
    )

    summary = replayed(journal(tmp_path / "j.jsonl", recorded))["summary"]

    assert (summary["topBidderSeconds"], summary["rankKnownSeconds"]) == (150, 180)


def test_skipped_rungs_by_reason(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(entry(cycle, 12_000) for cycle in range(3))

    assert replayed(journal(tmp_path / "j.jsonl", recorded))["summary"]["skipped"] == {"range_empty (min_bid)": 15}


def test_slower_loop_takes_every_second_cycle(tmp_path: Path, replayed: Replayed) -> None:
    path = journal(tmp_path / "j.jsonl", carried_out(entry(cycle, 100_000) for cycle in range(10)))

    assert replayed(path, "--set", "loopSeconds=60")["summary"]["cycles"] == 5


def test_last_line_that_was_never_finished_is_left_out_with_a_note(tmp_path: Path, replayed: Replayed) -> None:
    path = journal(tmp_path / "j.jsonl", carried_out(entry(cycle, 100_000) for cycle in range(4)))
    path.write_bytes(path.read_bytes()[:-20])

    found = replayed(path)

    assert found["cycles"] == 3
    assert found["notes"][0] == "j.jsonl line 4 is left out: it was never finished"


def test_damaged_line_is_left_out_with_all_that_need_it(tmp_path: Path, replayed: Replayed) -> None:
    recorded = carried_out(entry(cycle, 100_000 - 1_000 * cycle) for cycle in range(6))
    lines = journal(tmp_path / "j.jsonl", recorded[:4]).read_text().splitlines()
    after = journal(tmp_path / "after.jsonl", recorded[4:]).read_text().splitlines()
    (tmp_path / "j.jsonl").write_text("\n".join([lines[0], lines[1][:40], *lines[2:], *after]) + "\n")

    found = replayed(tmp_path / "j.jsonl")

    assert found["cycles"] == 3
    assert found["notes"][0].startswith("j.jsonl line 2 is left out: ")
    assert found["notes"][1] == "j.jsonl lines 3 to 4 need it and are left out"
    assert found["verified"] == {"decisions": 3, "different": 0, "differences": []}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("bidPercentHi=0.8", "bidPercentHi: unknown field"),
        ("bidPercentLow=0.9", "bidPercentLow: must not be above the high end"),
        ("bidCount=1e999", "bidCount: "),
        ("bidCount=NaN", "bidCount: must be a whole number"),
        ("slug=loud-dogs", "j.jsonl is about quiet-cats, not loud-dogs"),
        ("bidCount", "must be NAME=VALUE"),
        ('bidCount=1, "x": 2', "bidCount: must be a whole number"),
    ],
)
def test_bad_change(change: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = journal(tmp_path / "j.jsonl", carried_out([entry(0, 100_000)]))

    assert replay(path, "--set", change) == 1
    assert complaint in capsys.readouterr().err


def test_text_says_what_json_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = carried_out([entry(0, 100_000), entry(1, 100_000, sales=(sale(70_000, START + 1_000),))])

    assert replay(journal(tmp_path / "j.jsonl", recorded), "--set", "bidMode=fixed") == 0

    printed = capsys.readouterr().out
    assert "fill rule: a recorded sale into a bid at price s fills our simulated bid p if p > s" in printed
    assert "changed: bidMode from percent to fixed" in printed
    assert "placed 5, kept 0, cancelled 0; placed 50,000 40,000 30,000 20,000 10,000" in printed
    assert "fills: none" in printed


def test_config_of_the_recording_is_its_last(tmp_path: Path, replayed: Replayed) -> None:
    """A task changed on the way: each cycle is replayed with the config it had, and --set comes on top of each."""
    fewer = replace(CONFIG, bid_count=2)
    recorded = carried_out([entry(0, 100_000), entry(1, 100_000), entry(20, 100_000, config=fewer)])

    found = replayed(journal(tmp_path / "j.jsonl", recorded), "--set", "bidPercentHigh=0.7")

    assert placed(found)[0] == [70_000, 56_000, 42_000, 28_000, 15_000]
    # Of two rungs the lower one keeps what is within a quarter of the gap between 70,000 and 15,000.
    assert found["decisions"][-1]["live"] == [70_000, 28_000]


@pytest.mark.parametrize(
    ("balance_sats", "change", "live"),
    [
        (10**12, "bidCount=5", [75_000, 60_000, 45_000, 30_000, 15_000]),
        (100_000, "bidCount=5", [15_000]),  # 25,000 are left, of which 2,000 are kept for fees
        (
            10**12,
            "spendCapSats=260000",
            [75_000, 60_000, 45_000],
        ),  # 185,000 are left
    ],
)
def test_what_simulated_fills_spent_is_gone(
    balance_sats: int, change: str, live: list[int], tmp_path: Path, replayed: Replayed
) -> None:
    limits = replace(LIMITS, balance_sats=balance_sats)
    recorded = carried_out(
        [
            entry(0, 100_000, limits=limits),
            entry(1, 100_000, limits=limits, sales=(sale(70_000, START + 1_000),)),
            entry(40, 100_000, limits=limits),
        ]
    )

    found = replayed(journal(tmp_path / "j.jsonl", recorded), "--set", change)

    assert found["summary"]["spentSats"] == 75_000
    assert found["decisions"][-1]["live"] == live


def test_what_was_recorded_for_another_trait_is_not_used(tmp_path: Path, replayed: Replayed) -> None:
    red = replace(CONFIG, bid_type="trait", trait_type="Hat", trait_value="Red", outbid_enabled=True, bid_count=1)
    recorded = carried_out([entry(0, 100_000, config=red, bids=(bid(50_000),), trait_asks=(ask(100_000),))])
    path = journal(tmp_path / "j.jsonl", recorded)

    same, other = replayed(path, "--set", "bidCount=2"), replayed(path, "--set", "traitValue=Blue")

    assert [len(each) for each in placed(same)] == [2]
    assert placed(other) == []
    assert other["summary"]["skipped"] == {"bids_unknown": 1}
    assert "bids of others are wanted and not known in 1 of 1 cycles" in other["notes"]


def test_floor_long_after_a_fill_is_not_the_one_a_day_later(tmp_path: Path, replayed: Replayed) -> None:
    two_days = 48 * 3_600_000 // LOOP
    recorded = carried_out(
        [entry(0, 100_000), entry(1, 100_000, sales=(sale(70_000, START + 1_000),)), entry(two_days, 150_000)]
    )

    found = replayed(journal(tmp_path / "j.jsonl", recorded))

    assert found["fills"][0]["floor24hLater"] is None
    assert found["summary"]["fillsWithFloor24hLater"] == 0
    assert found["summary"]["averagePriceToFloor24hLater"] is None
