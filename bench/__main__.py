"""`python -m bench [NAME ...]`: runs all measurements, or those of the named files, and prints one table.

A measurement that fails prints why in its place; the others still run, and the exit code is 1.
"""

from __future__ import annotations

import inspect
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, ModuleType

from bench import (
    answers,
    dashboard,
    decisions,
    idle,
    ledger,
    neighbours,
    reads_and_writes,
    signing,
    starts,
)
from bench.measuring import Row

MODULES = (
    decisions,
    ledger,
    signing,
    reads_and_writes,
    neighbours,
    starts,
    answers,
    idle,
    dashboard,
)
_LONGEST_S = 300

Rows = Callable[[], Iterable[tuple[str, ...]]]


def main(names: list[str]) -> int:
    """Runs the measurements and returns the exit code."""
    short = {module.__name__.rpartition(".")[2]: module for module in MODULES}
    if unknown := set(names) - short.keys():
        print(f"no such measurement: {', '.join(sorted(unknown))} (there is {', '.join(short)})")
        return 2
    began = time.monotonic()
    signal.signal(signal.SIGALRM, _on_alarm)
    print(_machine(), end="\n\n")
    _print(Row("what", "ours", "peer", "ratio", "aim"))
    failures = 0
    for name in names or short:
        for measure in _measurements(short[name]):
            failures += not _run(measure)
    print(f"\n{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}; {failures} failed")
    return 1 if failures else 0


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def _measurements(module: ModuleType) -> Iterator[Rows]:
    """Yields the module's functions named `rows` or `..._rows`, in the file's order."""
    for name, value in list(vars(module).items()):
        is_own = inspect.isfunction(value) and value.__module__ == module.__name__
        if is_own and (name == "rows" or (name.endswith("_rows") and not name.startswith("_"))):
            yield value


def _run(measure: Rows) -> bool:
    signal.alarm(_LONGEST_S)
    try:
        for row in measure():
            _print(Row(*row))
    except Exception as error:
        print(f"{measure.__module__}.{measure.__name__} failed: {type(error).__name__}: {error}", flush=True)
        return False
    finally:
        signal.alarm(0)
    return True


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not done in {_LONGEST_S} s")


def _print(row: Row) -> None:
    print(f"{row.what:<56} {row.ours:>12} {row.peer:>26} {row.ratio:>9}   {row.aim}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
