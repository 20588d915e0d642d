"""The wall clock of every program jumps while tasks bid; the market's own does not, and by more no bid is placed."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from drills.faults.evidence import AskMove
from drills.faults.fleet import CONFIG, FLOOR, TOTAL, Fleet
from tests.databases import another
from tests.e2e.installation import Installation, until

pytestmark = pytest.mark.slow

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
YEAR = 365 * 24 * HOUR
FAR_MS = 24 * HOUR
MOST_MS = 30 * SECOND  # by which our clock may be off for a bid to be placed
ON_THE_WIRE_MS = 2 * SECOND  # a bid that went out a moment before the jump
JUMPS = [SECOND, -SECOND, 5 * MINUTE, -5 * MINUTE, HOUR, -HOUR]
# A session and a plan end within such a jump, so nobody may bid until the clock is back; and a task that the manager
# has looked at meanwhile stays stopped until its owner starts it again.
FAR = [10 * FAR_MS, -YEAR, 10 * YEAR]
# The times of a row are by a clock that jumped, so sums by them say nothing: `_watch` looks at sums as they are.
_OF_ROWS = " in the ledger "

Shift = Callable[[int], None]


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    made = tmp_path / "clock"
    made.write_bytes(struct.pack("<q", 0))
    return made


@pytest.fixture
def shift(clock: Path) -> Shift:
    def shift(shift_ms: int) -> None:
        with clock.open("r+b") as file:
            file.write(struct.pack("<q", shift_ms))

    return shift


@pytest.fixture
def service(clock: Path) -> Iterator[Installation]:
    shifted = str(Path(__file__).with_name("shifted"))
    path = os.pathsep.join(filter(None, (shifted, os.environ.get("PYTHONPATH"))))
    made = Installation(BIDKEEPER_TEST_CLOCK=str(clock), PYTHONPATH=path)
    yield made
    made.destroy()


def jump(service: Installation, shift: Shift, jumps: list[int], tasks: int, seconds: float) -> None:
    """After each jump and each return there are cycles, and what they did is checked at the end."""
    service.up()
    fleet = Fleet(service, tasks)
    fleet.start()
    until(lambda: fleet.placed() >= 2 * tasks, "the ladders")
    closed: list[tuple[int, int]] = []
    late: str | None = None
    for shift_ms in jumps:
        for now_ms in (shift_ms, 0):
            shift(now_ms)
            began_ms = time.time_ns() // 1_000_000
            _watch(fleet, seconds)
            if MOST_MS < abs(now_ms) < FAR_MS:
                late = _newcomer(fleet, len(closed))
                until(lambda: "clock_skew" in _said(fleet.trader.get(fleet.tasks[-1])), "a newcomer that waits")
                _watch(fleet, seconds)
            if abs(now_ms) > MOST_MS:
                closed.append((began_ms + ON_THE_WIRE_MS, time.time_ns() // 1_000_000))
            if not now_ms and late is not None:
                slug = late
                until(lambda slug=slug: any(bid.slug == slug for bid in fleet.taken()), "the newcomer's ladder")
                late = None
            if not now_ms and abs(shift_ms) >= FAR_MS:
                fleet.trader.sign_in()
                fleet.start()
                _watch(fleet, seconds)
            if abs(now_ms) < FAR_MS:
                until(lambda by=now_ms: _are_cycling_by(fleet, by, seconds), "its cycles")  # type: ignore[misc]
    until(service.ready_again, "every program, by the right time")
    fleet.trader.sign_in()
    fleet.start()
    fleet.trader.next_cycle_of_all(fleet.tasks, 2)
    fleet.stop()
    until(lambda: all(bid.end_ms for bid in fleet.taken()), "the end of every bid")
    assert [line for line in fleet.disagreements() if _OF_ROWS not in line] == []
    assert closed
    tried = [row for row in service.history() if row["event"] in ("accepted", "refused") and row["kind"] == "bid"]
    assert [row for row in tried for begin, end in closed if begin <= row["time"] < end] == []
    farthest = max(map(abs, jumps)) / HOUR
    print(f"{2 * len(jumps)} jumps of up to {farthest:,.0f} h: {fleet.placed()} placed, 0 disagreements")


def _newcomer(fleet: Fleet, number: int) -> str:
    """Makes one more task, which would place its ladder at once."""
    slug = f"late-{number}"
    fleet.service.put_collection(slug, [FLOOR])
    fleet.slugs.append(slug)
    fleet.asks.append(AskMove(0, slug, FLOOR))
    fleet.tasks.append(fleet.trader.task(slug=slug, **CONFIG))
    fleet.trader.start(fleet.tasks[-1])
    return slug


def _said(task: dict[str, Any]) -> str:
    return str((task["lastCycle"] or {}).get("action"))


def _watch(fleet: Fleet, seconds: float) -> None:
    """For so long no task's open orders sum up to more than is allowed, whatever times are written on them."""
    held = "SELECT task_id, sum(price_sats) FROM orders WHERE state <> 'closed' AND NOT dry_run GROUP BY task_id"
    until_s = time.monotonic() + seconds
    with another(fleet.service.database_url) as database:
        while time.monotonic() < until_s:
            assert {task: sats for task, sats in database.rows(held) if sats > TOTAL} == {}
            database.commit()
            time.sleep(0.1)


def _are_cycling_by(fleet: Fleet, shift_ms: int, seconds: float) -> bool:
    """Tells whether the last cycles are of about now, as the clock that is shifted so far says."""
    now_ms = time.time_ns() // 1_000_000 + shift_ms
    times = [fleet.trader.get(task)["lastCycle"]["time"] for task in fleet.tasks]
    return all(abs(cycle_s - now_ms / 1000) < seconds + 20 for cycle_s in times)


@pytest.mark.faults
def test_jumps_of_seconds_to_an_hour(service: Installation, shift: Shift) -> None:
    jump(service, shift, [5 * MINUTE, -HOUR], tasks=3, seconds=6)


@pytest.mark.faults
def test_jumps_of_every_size(service: Installation, shift: Shift) -> None:
    jump(service, shift, [*JUMPS, *FAR, *reversed(JUMPS)], tasks=5, seconds=8)
