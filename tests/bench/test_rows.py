"""Every row of `make bench` can still be measured: each is, once, in its smallest form. What it prints is no figure.

Rows on a whole installation share one, and those that compare servers share these: to start them costs more than all
that is measured on them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, nullcontext
from types import ModuleType
from typing import Any, ClassVar

import pytest
from playwright.sync_api import expect

from bench import (
    __main__ as bench,
)
from bench import answers, dashboard, idle, measuring, reads_and_writes, starts, traders_database
from bench import installed as home_of_bench
from bench.installed import Home
from bench.reads_and_writes import Server
from tests.e2e.installation import Installation, Trader, until
from tests.needs import LIBATOMIC, need, require
from tests.web.visitor import PATIENCE_MS, Person

pytestmark = pytest.mark.slow

# Smaller values of constants.
SMALLEST: dict[ModuleType, dict[str, Any]] = {
    traders_database: {"USERS": 10},
    reads_and_writes: {"ROUNDS": 1, "_READ_S": 0.1, "_WRITES": 10},
    starts: {"ONE_BY_ONE": 1, "BURST": 2},
    answers: {"ROUNDS": 1},
    dashboard: {"TASKS": 3, "MANY": 3, "_FIRST_S": 2, "CYCLES": 5, "ROUNDS": 1, "KILLS": 1, "SLOWER": 1},
    idle: {"USERS": 1, "TASKS_EACH": 3, "LOOP_S": 5, "LOOPS": 2, "IN_TIME": 0.3},
}
AT_HOME = (starts, answers, idle)  # on a whole installation
# It leaves servers whose tasks have different numbers; an installation without a manager.
LAST = (reads_and_writes.write_rows, starts.rows)


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


MEASUREMENTS = sorted(
    ((module, measure) for module in bench.MODULES for measure in bench._measurements(module)),
    key=lambda each: each[1] in LAST,
)


def once(call: Callable[[], object], *, calls: int, rounds: int = 0) -> float:
    return measuring.median_seconds(call, calls=1, rounds=1)


class Guest(Trader):
    """A trader whose tasks are stopped when their row has been measured."""

    all: ClassVar[list[Trader]] = []

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation)
        self.all.append(self)


class GuestInABrowser(Person):
    """The same, whose wallet is in a browser."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation)
        Guest.all.append(self)


class Shared:
    """The installation, and the servers that are compared, each started when the first row asks for it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._home: Home | None = None
        self._compared = reads_and_writes._servers
        self._servers: tuple[list[Server], list[str]] | None = None

    def servers(self) -> tuple[list[Server], list[str]]:
        if self._servers is None:
            self._servers = self._stack.enter_context(self._compared())
        return self._servers

    def home(self) -> Home:
        if self._home is None:
            # A bid may be replaced at once, as one of the rows wants it.
            self._home = self._stack.enter_context(
                home_of_bench.installed(max_tasks=100, BIDKEEPER_MIN_AGE_SECONDS="0")
            )
        return self._home

    def clear(self) -> None:
        """Stops the tasks of the last row, for the next finds none."""
        guests, Guest.all[:] = Guest.all[:], []
        for trader in guests:
            for task in trader.ok("GET", "/api/tasks") if "Authorization" in trader.session.headers else ():
                trader.stop(task["id"])
        if guests:
            until(lambda: not self.home().workers(), "the end of a row's workers")


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for module, values in SMALLEST.items():
            for name, value in values.items():
                patched.setattr(module, name, value)
        for module in bench.MODULES:
            if hasattr(module, "median_seconds"):
                patched.setattr(module, "median_seconds", once)
        expect.set_options(timeout=180_000)
        yield
        expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def shared(small: None) -> Iterator[Shared]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        made = Shared(stack)
        for module in AT_HOME:
            patched.setattr(module, "installed", lambda max_tasks, **settings: nullcontext(made.home()))
        patched.setattr(reads_and_writes, "_servers", lambda: nullcontext(made.servers()))
        patched.setattr(dashboard, "installation", lambda **settings: nullcontext(made.home()._installation))
        patched.setattr(home_of_bench, "Trader", Guest)
        patched.setattr(dashboard, "Person", GuestInABrowser)
        yield made


@pytest.mark.parametrize(
    ("module", "measure"),
    [pytest.param(*each, id=f"{name_of(each[0])}.{each[1].__name__}") for each in MEASUREMENTS],
)
def test_it_is_measured(
    module: ModuleType,
    measure: Callable[[], Iterable[tuple[str, ...]]],
    shared: Shared,
    request: pytest.FixtureRequest,
) -> None:
    if module is reads_and_writes:
        require("" if measuring.PEER_PYTHON.exists() else "missing: make .venv-bench/.ok")
    if module is dashboard:
        need("chromium", LIBATOMIC)
    if measure not in LAST:
        request.addfinalizer(shared.clear)

    rows = [measuring.Row(*row) for row in measure()]

    assert rows and any(digit in row.ours for row in rows for digit in "123456789")
    for row in rows:
        print(row)
        assert row.what and any(map(str.isdigit, row.ours)), row
