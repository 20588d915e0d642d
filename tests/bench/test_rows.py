"""Every row of `make bench` can still be measured: each is, once, in its smallest form. What it prints is no figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import ModuleType
from typing import Any

import pytest

from bench import __main__ as bench
from bench import processes, timing
from tests.conftest import need
from tests.web.visitor import CHROMIUM, TO_INSTALL

pytestmark = pytest.mark.slow

# What to make smaller, by the file's name and the constant's.
SMALLEST: dict[str, dict[str, Any]] = {
    "reads_and_writes": {"ROUNDS": 1, "_READ_S": 0.1, "_WRITES": 20},
    "starts": {"ONE_BY_ONE": 1, "BURST": 2},
    "workers": {"IN_TURN": 1, "AT_ONCE": 2, "GROUP": 2},
    "venue_reads": {"USERS": 2, "LOOP_S": 5, "LOOPS": 2, "WALLETS": 2, "ASKERS": 7},
    "answers": {"ROUNDS": 1},
    "endurance": {"HOURS": 0.4, "PLAIN_TASKS": 3, "PLAIN_HOURS": 0.1},
    "streams": {"TASKS": 20, "STREAMS": 2, "OF_USER": 2, "LOOPS_S": (5.0,), "SECONDS": 2.0},
    "dashboard": {"TASKS": 3, "CYCLES": 5, "ROUNDS": 1, "KILLS": 1},
    "idle": {"USERS": 1, "TASKS_EACH": 3, "LOOP_S": 5, "LOOPS": 1},
}
# What a file's measurements have made before they begin, each for itself: here it is made once for all of them.
MADE_BEFORE = {"reads_and_writes": "_servers", "dashboard": "_dashboard"}
WITH_PEERS = ("reads_and_writes",)
IN_A_BROWSER = ("dashboard",)


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


MEASUREMENTS = [
    pytest.param(module, measure, id=f"{name_of(module)}.{measure.__name__}")  # type: ignore[attr-defined]
    # A browser's event loop goes on in this thread, and new tasks are others on each server: both come last.
    for module in sorted(bench.MODULES, key=lambda module: name_of(module) in IN_A_BROWSER)
    for measure in sorted(bench._measurements(module), key=lambda measure: measure.__name__ == "write_rows")
]


@pytest.fixture(scope="module")
def made_before() -> Iterator[Callable[[ModuleType], Callable[[], AbstractContextManager[Any]]]]:
    made: dict[str, Any] = {}
    with ExitStack() as stack:

        def of(module: ModuleType) -> Callable[[], AbstractContextManager[Any]]:
            make = getattr(module, MADE_BEFORE[name_of(module)])

            def given() -> AbstractContextManager[Any]:
                if name_of(module) not in made:
                    made[name_of(module)] = stack.enter_context(make())
                return nullcontext(made[name_of(module)])

            return given

        yield of


def once(call: Callable[[], object], *, calls: int, rounds: int = 0) -> float:
    return timing.median_seconds(call, calls=1, rounds=1)


@pytest.mark.parametrize(("module", "measure"), MEASUREMENTS)
def test_it_is_measured(
    module: ModuleType,
    measure: Callable[[], Iterable[tuple[str, ...]]],
    made_before: Callable[[ModuleType], Callable[[], AbstractContextManager[Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name_of(module) in WITH_PEERS:
        need("make .venv-bench/.ok", processes.PEER_PYTHON.exists())
    if name_of(module) in IN_A_BROWSER:
        need(TO_INSTALL, CHROMIUM.exists())
    changes: dict[str, Any] = dict(SMALLEST.get(name_of(module), {}))
    if hasattr(module, "median_seconds"):
        changes["median_seconds"] = once
    if name_of(module) in MADE_BEFORE:
        changes[MADE_BEFORE[name_of(module)]] = made_before(module)
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)

    rows = [timing.Row(*row) for row in measure()]

    assert rows and any(digit in row.ours for row in rows for digit in "123456789")
    for row in rows:
        print(row)
        assert row.what and any(map(str.isdigit, row.ours)), row
