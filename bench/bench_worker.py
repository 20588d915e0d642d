"""Workers for measurements: `python -m bench.bench_worker idle|quick [zygote] ...`, one worker or its zygote.

An idle one takes its lock and waits; a quick one does its real work a few times without a pause between, then waits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from core.settings import Settings
from workers.context import Context, Job
from workers.process import main

CYCLES = 20


class Idle:
    """A job with nothing to do."""

    def __init__(self, kind: str, context: Context) -> None:
        pass

    def cycle(self) -> float | None:
        return 3600.0


class Quick:
    """The real job, in a hurry."""

    def __init__(self, kind: str, context: Context) -> None:
        from workers.process.jobs import make_job

        self._job: Job = make_job(kind, context, until_cycle=lambda slug, loop_s, now_s: 0.0)
        self._left = CYCLES

    def cycle(self) -> float | None:
        self._job.cycle()
        self._left -= 1
        return 0.01 if self._left else 3600.0


JOBS = {"idle": Idle, "quick": Quick}


def start(job: str, argv: Sequence[str]) -> None:
    def run(argv: Sequence[str], settings: Settings | None = None) -> int:
        return main.run(argv, JOBS[job], settings)

    if argv[0] == "zygote":
        from workers.spawning import zygote

        zygote.main(argv[1:], run)
    else:
        sys.exit(run(argv))


if __name__ == "__main__":
    start(sys.argv[1], sys.argv[2:])
