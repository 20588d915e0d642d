"""Weeks of simulated time on every course, a process for each: `python -m drills.endurance.month [COURSE ...]`.

The table that is printed has one line for each task; below it stands what must not be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from drills.endurance.stage import DEMO, LADDERS, NAMES, Ladder, Stage
from drills.endurance.task_time import TaskTime
from tests.shapes import asdict

HEAD = (
    "course   rungs outbid  places   an hour  cancels   fills  calls   a bid-hour  without  longest  limited"
    "   bought  paid/floor  peak signed"
)
FORECAST_WITHIN = 0.03
FIRST_H = 0.25  # in which ladders are placed that stood nowhere, which no forecast tells
# A task without loopSeconds is foretold for a market that stands still, and looks more often wherever one moves at all.
LOOPS = {"calm": 30}
SETTLED_H = 12  # by then a task has as many cycles as are kept, and two thirds of the run are enough to see growth


class Line(NamedTuple):
    """One task of the table; shares are of its time, `longest` in cycles, `peak` of what may be signed for it."""

    course: str
    rungs: int
    outbids: bool
    hours: float
    places: int
    cancels: int
    fills: int
    calls: int
    bid_hours: float
    without: float
    longest: int
    limited: float
    bought: float
    paid: float
    peak: float

    def text(self) -> str:
        return (
            f"{self.course:<8} {self.rungs:>5} {'yes' if self.outbids else 'no':>6} {self.places:>7,} "
            f"{self.places / self.hours:>9.1f} {self.cancels:>8,} {self.fills:>7,} {self.calls:>6,} "
            f"{self.calls / max(self.bid_hours, 0.001):>12.1f} {self.without:>8.2%} {self.longest:>8} "
            f"{self.limited:>8.2%} {self.bought:>8.2%} {self.paid:>11.3f} {self.peak:>12.0%}"
        )


@dataclass(frozen=True)
class Soaked:
    """The result of one stage. `sent` are calls to the venue, `told` is the forecast; both without its beginning."""

    lines: list[Line]
    problems: list[str]
    sent: int
    told: float
    sizes: list[dict[str, int]]
    cpu_s: float
    cycles: int

    @property
    def off(self) -> float:
        """By which share more was sent than foretold."""
        return self.sent / self.told - 1


def stages(names: Iterable[str], ladders: tuple[Ladder, ...] = LADDERS) -> list[tuple[str, tuple[Ladder, ...]]]:
    """Returns the houses: the demo has only three collections, so it takes two."""
    found = []
    for name in names:
        parts = [[each for each in ladders if each.outbids == outbids] for outbids in (False, True)]
        found += [(name, tuple(part)) for part in (parts if name == DEMO else [list(ladders)]) if part]
    return found


def soak(
    name: str,
    ladders: tuple[Ladder, ...],
    hours: float,
    *,
    seed: int = 1,
    life_minutes: int | None = None,
    loop_seconds: int | None = None,
    parts: int = 6,
) -> Soaked:
    """Runs one stage; what is kept is measured after each of `parts`."""
    began = time.process_time()
    loop_seconds = loop_seconds or LOOPS.get(name)
    with Stage(
        name, ladders, seed=seed, life_minutes=life_minutes, loop_seconds=loop_seconds, keeps_journals=True
    ) as stage:
        stage.run(FIRST_H)
        sent_at_first, told_at_first = sum(stage.calls().values()), stage.forecast()
        for _ in range(parts):
            stage.run((hours - FIRST_H) / parts)
            stage.note_sizes()
        lines = [_line(stage, ladder, task) for ladder, task in zip(ladders, stage.times, strict=True)]
        found = [problem for task in stage.times for problem in task.problems()]
        found += sorted(set(stage.house.complaints))
        return Soaked(
            lines,
            found,
            sum(stage.calls().values()) - sent_at_first,
            stage.forecast() - told_at_first,
            stage.sizes,
            time.process_time() - began,
            sum(task.cycles for task in stage.times),
        )


def _line(stage: Stage, ladder: Ladder, task: TaskTime) -> Line:
    whole_ms = stage.hours * 3_600_000
    return Line(
        stage.name,
        ladder.rungs,
        ladder.outbids,
        stage.hours,
        task.places,
        task.cancels,
        task.fills,
        stage.calls_about(task),
        task.live_ms / 3_600_000,
        task.without,
        task.longest,
        task.limited_ms / whole_ms,
        task.filled_ms / whole_ms,
        task.paid / max(1, task.fills),
        task.peak_share,
    )


def growth_problems(sizes: list[dict[str, int]], hours: float, lasting: float = 1.25) -> Iterator[str]:
    """Yields the sizes that still grew in the last third, though everything kept for a time had its time before.

    Orders, the audit log and the signer's signatures are records: they are kept for ever, with a number of bytes for
    each order.
    """
    if len(sizes) < 3 or hours < SETTLED_H:
        return
    before, last = sizes[len(sizes) * 2 // 3 - 1], sizes[-1]
    for name in ("journals", "memory", "cycles", "floor_samples"):
        if last[name] > lasting * before[name] + 1_000_000 * (name in ("journals", "memory")):
            yield f"{name} grew from {before[name]:,} to {last[name]:,} in the last third"
    orders = last["orders"] - before["orders"]
    for name, most in (("database", 2_000), ("signer", 4_000)):
        if last[name] - before[name] > most * orders + 4_000_000:
            yield f"{name} grew by {last[name] - before[name]:,} bytes with {orders:,} orders"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("courses", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}; all when left out")
    parser.add_argument("--days", type=float, default=30.0, help="simulated days (30)")
    parser.add_argument("--life", type=int, help="bidExpiryMinutes; the service's own when left out")
    parser.add_argument("--loop", type=int, help="loopSeconds; the service's own when left out")
    parser.add_argument("--rungs", type=int, nargs="*", help="ladders of so many rungs (1 5 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="sizes and all numbers as JSON, behind the table")
    options = parser.parse_args(argv)
    ladders = tuple(each for each in LADDERS if not options.rungs or each.rungs in options.rungs)
    print(
        f"{options.days:g} days, seed {options.seed}, bids of {options.life or 'the default'} minutes\n{HEAD}",
        flush=True,
    )
    problems: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        chosen = stages(options.courses, ladders)
        asked = [
            pool.submit(
                soak,
                name,
                part,
                options.days * 24,
                seed=options.seed,
                life_minutes=options.life,
                loop_seconds=options.loop,
            )
            for name, part in chosen
        ]
        for (name, _), each in zip(chosen, asked, strict=True):
            done = each.result()
            print(*(line.text() for line in done.lines), sep="\n")
            print(
                f"{'':8} sent {done.sent:,} calls, foretold {done.told:,.0f} ({done.off:+.1%}); "
                f"{done.cycles:,} cycles, {1000 * done.cpu_s / max(1, done.cycles):.1f} ms of CPU each",
                flush=True,
            )
            if options.json:
                print(json.dumps(asdict(done) | {"course": name}))
            problems += [
                f"{name}: {problem}" for problem in (*done.problems, *growth_problems(done.sizes, options.days * 24))
            ]
            if name == "calm" and abs(done.off) > FORECAST_WITHIN:
                problems.append(f"{name}: the forecast is off by {done.off:+.1%}")
    print(*(problems or ["nothing that must not be"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
