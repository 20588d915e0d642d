"""Several pytests at once, each of which takes the next files when it is done: `python -m tests.side_by_side 8 [...]`.

What follows the number of processes is pytest's: options for each of them, and the folders and files to be divided.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Any

from tests.ordering import groups_of
from tests.queued import VARIABLE, WIDTH

_SIGN_OF_LIFE_S = 30
_SILENT = ("-o", "console_output_style=classic")  # no percentages, which count another whole
_GOOD = (0, 5)  # pytest's for passed, and for no test
_SHOWN = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


@dataclass
class Run:
    """What is known of the whole."""

    began: float
    groups: int
    counts: Counter[str] = field(default_factory=Counter)
    begun: int = 0
    taken: dict[int, list[str]] = field(default_factory=dict)  # by process; of the last one it may have run nothing yet

    done: set[int] = field(default_factory=set)  # the processes that came to the end of their tests

    def hear(self, said: dict[str, Any]) -> None:
        """Takes in what a process says."""
        if "begins" in said:
            self.begun += 1
            self.taken.setdefault(said["pid"], []).append(said["begins"])
        if "done" in said:
            self.done.add(said["done"])
            rest = [files[-1] for pid, files in self.taken.items() if pid not in self.done]
            print(f"{self.seconds:5.0f} s: nothing is left but {', '.join(rest) or 'the sum'}", flush=True)
        self.counts.update(said.get("counts", {}))
        if "bad" in said:
            print(said["bad"], flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def sum(self) -> str:
        """Returns the numbers in pytest's words."""
        parts = [f"{self.counts[word]} {word}" for word in _SHOWN if self.counts[word]]
        minutes, seconds = divmod(int(self.seconds), 60)
        of_hours = f" ({minutes // 60}:{minutes % 60:02}:{seconds:02})" if minutes else ""
        return f"{', '.join(parts) or 'no tests ran'} in {self.seconds:.2f}s{of_hours}"


def main(arguments: Sequence[str]) -> int:
    processes, *rest = arguments
    paths = [each for each in rest if Path(each.partition("::")[0]).exists()]
    options = [each for each in rest if each not in paths]
    groups = groups_of(paths or ["tests"])
    left, queue = os.pipe()
    os.write(queue, b"".join(number.to_bytes(WIDTH) for number in range(len(groups))))
    os.close(queue)
    with tempfile.TemporaryDirectory(prefix="bk-side-by-side-") as home:
        (listed := Path(home) / "groups.json").write_text(json.dumps(groups))
        heard, said = os.pipe()
        outputs = [(Path(home) / f"{number}.txt").open("w+") for number in range(int(processes))]
        started = [_start(options, f"{left}:{said}:{listed}", (left, said), output) for output in outputs]
        for end in (left, said):
            os.close(end)
        run = Run(time.monotonic(), len(groups))
        _listen(run, heard, started)
        for each in outputs:
            each.seek(0)
            print(each.read().rstrip())
            each.close()
    bad = [each for each in started if each.returncode not in _GOOD or each.pid not in run.done]
    for each in bad:
        if each.pid in run.done:
            continue
        files = " and ".join(run.taken.get(each.pid, ["nothing"])[-2:])
        print(f"a process ended with {each.returncode}; it had last taken {files}")
    print(run.sum())
    return 1 if bad else 0 if run.counts else 5


def _start(options: Sequence[str], queue: str, ends: tuple[int, int], output: IO[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "tests.queued", "-p", "no:cacheprovider", *_SILENT, *options],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=ends,
        env=os.environ | {VARIABLE: queue},
    )


def _listen(run: Run, heard: int, started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Takes in what the processes say until all have ended."""
    os.set_blocking(heard, False)
    rest, shown = b"", run.seconds
    with DefaultSelector() as selector, open(heard, "rb", buffering=0) as words:
        selector.register(words, EVENT_READ)
        is_over = False
        while not is_over:
            is_over = all(each.poll() is not None for each in started)  # then there is nothing after this read
            selector.select(0 if is_over else 1)
            *lines, rest = (rest + (words.read(1 << 20) or b"")).split(b"\n")
            for line in lines:
                run.hear(json.loads(line))
            if run.seconds - shown > _SIGN_OF_LIFE_S:
                shown = run.seconds
                print(f"{shown:5.0f} s: {run.begun} of {run.groups} groups of files begun, {run.sum()}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
