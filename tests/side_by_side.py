"""Several pytests at once, each of which takes the next files when it is done: `python -m tests.side_by_side 8 [...]`.

What follows the number of processes is pytest's: options for each of them, and the folders and files to be divided.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Any

from tests.ordering import FOLDERS, groups_of

Start = Callable[[], subprocess.Popen[bytes]]

VARIABLE = "BIDKEEPER_TEST_QUEUE"  # the ends of two queues, the way to say something, and the file with all groups
WIDTH = 4  # bytes of a group's number in the queue, of which a read gets one, whoever else reads
_SIGN_OF_LIFE_S = 30
_APART_S = 2
_LAST = 5  # nice(1): a third of what the others get while all want the processors
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
    is_to_end: bool = False  # at the next look

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
    count, *rest = arguments
    paths = [each for each in rest if Path(each.partition("::")[0]).exists()]
    options = [each for each in rest if each not in paths]
    waiting, computing = groups_of(paths or FOLDERS)
    groups = [*waiting, *computing]
    run = Run(time.monotonic(), len(groups))
    for each_signal in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each_signal, lambda *_: setattr(run, "is_to_end", True))
    with tempfile.TemporaryDirectory(prefix="bk-side-by-side-") as home:
        (listed := Path(home) / "groups.json").write_text(json.dumps(groups))
        to_wait, to_compute = _queue(range(len(waiting))), _queue(range(len(waiting), len(groups)))
        heard, said = os.pipe()
        outputs = [(Path(home) / f"{number}.txt").open("w+", errors="backslashreplace") for number in range(int(count))]
        starts = []
        for number, output in enumerate(outputs):
            own, other = (to_compute, to_wait) if number < _computers(len(outputs)) else (to_wait, to_compute)
            queue = f"{own}:{other}:{said}:{listed}"
            starts.append(partial(_start, options, queue, (own, other, said), output, is_last=own == to_compute))
        ended = _listen(run, heard, starts)
        for end in (to_wait, to_compute, said):
            os.close(end)
        for each in outputs:
            each.seek(0)
            print(each.read().rstrip())
            each.close()
    bad = [process for process in ended if process.returncode not in _GOOD or process.pid not in run.done]
    for process in bad:
        if process.pid in run.done:
            continue
        files = " and ".join(run.taken.get(process.pid, ["nothing"])[-2:])
        print(f"a process ended with {process.returncode}; it had last taken {files}")
    print(run.sum())
    return 1 if bad else 0 if run.counts else 5


def _computers(processes: int) -> int:
    """Returns how many of the processes begin with what computes: few of those keep all processors busy."""
    return (processes + 2) // 4


def _queue(numbers: Iterable[int]) -> int:
    """Returns the end of a queue of these numbers."""
    end, start = os.pipe()
    os.write(start, b"".join(number.to_bytes(WIDTH) for number in numbers))
    os.close(start)
    return end


def _start(
    options: Sequence[str], queue: str, ends: tuple[int, ...], output: IO[str], *, is_last: bool
) -> subprocess.Popen[bytes]:
    """Starts a pytest; one that is last gets what the others leave of the processors."""
    made = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "tests.queued", "-p", "no:cacheprovider", *_SILENT, *options],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=ends,
        env=os.environ | {VARIABLE: queue},
        process_group=0,  # it hears of Ctrl-C once, from here: a second one would break its tests' ends off
    )
    if is_last:
        # Only root may make a process nicer than its parent less so: `nice make test` would fail.
        os.setpriority(os.PRIO_PROCESS, made.pid, max(_LAST, os.getpriority(os.PRIO_PROCESS, made.pid)))
    return made


def _listen(run: Run, heard: int, starts: Sequence[Start]) -> list[subprocess.Popen[bytes]]:
    """Starts the processes and takes in what they say until all have ended.

    Those that begin with what waits are started one after another: each starts an installation, and many at once
    keep each other from being ready in time. When the run is to end, each breaks off its test, and ends what that has
    started.
    """
    left = [(max(0, number - _computers(len(starts))) * _APART_S, start) for number, start in enumerate(starts)]
    started: list[subprocess.Popen[bytes]] = []
    os.set_blocking(heard, False)
    rest, shown = b"", run.seconds
    with DefaultSelector() as selector, open(heard, "rb", buffering=0) as words:
        selector.register(words, EVENT_READ)
        is_over = False
        while not is_over:
            if run.is_to_end:
                run.is_to_end = False
                left.clear()
                for each in started:
                    each.send_signal(signal.SIGINT)
            while left and run.seconds >= left[0][0]:
                started.append(left.pop(0)[1]())
            is_over = not left and all(each.poll() is not None for each in started)  # nothing comes after this read
            selector.select(0 if is_over else 1)
            *lines, rest = (rest + (words.read(1 << 20) or b"")).split(b"\n")
            for line in lines:
                run.hear(json.loads(line))
            if run.seconds - shown > _SIGN_OF_LIFE_S:
                shown = run.seconds
                print(f"{shown:5.0f} s: {run.begun} of {run.groups} groups of files begun, {run.sum()}", flush=True)
    return started


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
