"""The demo, from an empty data directory, does its work to the end, and takes no more of the machine for it.

One run for all of the tests here: four minutes beside the rest of the suite, an hour in `make faults`, as long as
BIDKEEPER_SOAK_MINUTES says in `make soak`. Whether memory and files level off, ten minutes and more can tell.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from cli.demo import TaskFigures
from drills.soak.judging import is_at_work, is_ours
from drills.soak.watch import STEADY_AFTER_S, Record, Watch
from tests.e2e.installation import Installation

pytestmark = pytest.mark.slow
MINUTES = float(os.environ.get("BIDKEEPER_SOAK_MINUTES", "4"))
# A loop is two minutes at most.
RECENTLY_S = 150.0
MB = 1 << 20

RUNS = [pytest.param(MINUTES), pytest.param(60.0, marks=pytest.mark.faults)]
each_run = pytest.mark.parametrize("record", RUNS, indirect=True)
each_long_run = pytest.mark.parametrize("record", [run for run in RUNS if run.values[0] >= 10], indirect=True)


@pytest.fixture(scope="module")
def record(request: pytest.FixtureRequest) -> Iterator[Record]:
    made = Installation()
    try:
        made.up("demo")
        try:
            found = Watch(made).look_for(request.param * 60)
        except BaseException:
            print(made.output(), made.last_words())
            raise
        print(figures(found))
        yield found
    finally:
        made.destroy()


@each_run
def test_a_newcomer_sees_what_it_is_for(record: Record) -> None:
    for what in (
        r"task .*: placed \d+, kept [1-9]",
        r"task .*: (filled \d+, )?placed [1-9]\d*, kept \d+.*, cancelled [1-9]",
        r"task .*: filled [1-9]",
        r"auto-list task .*: listed at",
        # By the market's whim the floor moves by less than 1 % in the first minutes.
        r"auto-list task .*: (repriced|kept at .*: wanted)",
    ):
        assert re.search(what, record.output), f"no {what!r} in:\n{record.output}"


@each_long_run
def test_a_listing_follows_the_floor(record: Record) -> None:
    assert re.search(r"auto-list task .*: repriced", record.output), record.output


@each_run
def test_every_task_places_or_keeps_to_the_end(record: Record) -> None:
    bidding = [name for name in record.running if name.startswith("tasks ")]
    assert len(bidding) == 3, record.running
    for name in record.running:
        assert any(is_at_work(cycle["detail"]) for cycle in record.newest(name, RECENTLY_S)), f"{name} does nothing"


@each_run
def test_no_cycle_has_an_error(record: Record) -> None:
    assert not record.errors
    assert not [(name, cycle["error"]) for name, cycles in record.cycles.items() for cycle in cycles if cycle["error"]]


@each_run
def test_every_rung_has_a_bid_or_is_left_without_by_the_market_or_the_user(record: Record) -> None:
    ours = [
        (name, cycle["action"])
        for name, cycles in record.cycles.items()
        for cycle in cycles
        if is_ours(cycle["detail"])
    ]

    assert not ours


@each_long_run
def test_memory_levels_off(record: Record) -> None:
    before, after = record.steady.memory, record.last.memory
    grown = {name: (before[name], after[name]) for name in before if after.get(name, 0) > before[name] * 1.3 + 8 * MB}

    assert not grown
    assert sum(after.values()) < sum(before.values()) * 1.15 + 10 * MB


@each_long_run
def test_files_grow_by_what_is_rotated_or_kept_for_good_only(record: Record) -> None:
    """Journals and logs are rotated; orders, signatures and their audit are kept, some hundreds an hour."""
    hours = (record.last.at - record.steady.at) / 3600
    grown = sum(record.last.data.values()) - sum(record.steady.data.values())

    assert grown < 6 * MB + 12 * MB * hours, (record.steady.data, record.last.data)


@each_run
def test_it_ends_in_time_and_prints_its_figures(record: Record) -> None:
    assert record.took_to_end < 60  # 5 to 7 where nothing else runs
    lines = record.output[record.output.rindex("results after ") :].splitlines()
    told = [line.split(":")[0] for line in lines]
    assert sum(name.startswith("  task ") for name in told) == 3
    assert any(name.startswith("  auto-list task ") for name in told)
    assert re.search(r"calls to marketplaces and data sources: [\d,]+ \(", lines[-1])


def figures(record: Record) -> str:
    """Writes the outside figures and their cost; the demo's own figures are the end of its output."""
    seconds = record.last.at - record.steady.at
    lines = [record.output[record.output.rindex("results after ") :].rstrip()]
    for name, cycles in sorted(record.cycles.items()):
        counted = TaskFigures(is_listing=name.startswith("autolist"))
        for cycle in cycles:
            counted.count(cycle)
        reasons = Counter(
            rung.get("fate") or rung["reason"] for cycle in cycles for rung in cycle["detail"].get("rungs", ())
        )
        lines.append(f"{name}: {counted}; rungs {dict(reasons)}")
    cpu = record.last.cpu_seconds - record.steady.cpu_seconds
    lines.append(f"from {STEADY_AFTER_S:.0f} s on: {cpu:.1f} processor seconds in {seconds:.0f} s")
    for what, before, after in (
        ("memory", record.steady.memory, record.last.memory),
        ("files", record.steady.data, record.last.data),
    ):
        total = sum(before.values()), sum(after.values())
        lines.append(f"{what}: {total[0] / MB:.1f} -> {total[1] / MB:.1f} MB")
        for name in sorted(after, key=lambda name: -after[name]):
            lines.append(f"  {name}: {before.get(name, 0) / MB:.2f} -> {after[name] / MB:.2f}")
    return "\n".join(lines)
