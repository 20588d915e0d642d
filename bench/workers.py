"""What a worker costs before it does anything: its imports, against those of an empty interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from bench.timing import Row, median_seconds


def rows() -> Iterator[Row]:
    def run(program: str) -> float:
        return median_seconds(lambda: subprocess.run([sys.executable, "-c", program], check=True), calls=1, rounds=9)

    empty, worker = run("pass"), run("import workers.main, workers.jobs")
    yield "import everything a worker needs", f"{worker * 1e3:.0f} ms", f"{worker / empty:.1f} x an empty interpreter"
    yield "private memory of a worker, imports done", f"{_private_kib() / 1024:.1f} MiB", "aim (zygote): 4 MiB"


def _private_kib() -> int:
    program = (
        "import workers.main, workers.jobs\n"
        "text = open('/proc/self/smaps_rollup').read()\n"
        "print(sum(int(line.split()[1]) for line in text.splitlines() if line.startswith('Private_')))"
    )
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)
