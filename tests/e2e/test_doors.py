"""A running installation whose sockets are removed, as a cleaner of temporary files does it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from tests import postgresql
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow

DOORS = ("facts", "gateway", "hooks", "manager", "signer")
CONFIG = {"bidMode": "fixed", "bidFixedLow": 50_000, "bidFixedHigh": 60_000, "bidCount": 4, "loopSeconds": 5}


@pytest.fixture(scope="module")
def own() -> Iterator[Installation]:
    made = Installation()
    made.up()
    yield made
    made.destroy()


def _missing(service: Installation) -> list[str]:
    answer = requests.get(service.url + "/readyz", timeout=30)
    assert answer.status_code in (200, 503), answer.text
    return list(answer.json().get("missing", []))


def _remove_sockets(run: Path) -> None:
    for name in DOORS:
        (run / f"{name}.sock").unlink(missing_ok=True)


def _remove_directory(run: Path) -> None:
    shutil.rmtree(run, ignore_errors=True)


def _stop(trader: Trader, task: int) -> None:
    trader.call("POST", f"/api/tasks/{task}/stop")  # 503 where it comes before the manager's new socket


def _halt(trader: Trader, task: int) -> None:
    trader.ok("PUT", "/api/control", {"scope": "user", "state": "halt"})


@pytest.mark.parametrize("brake", [_stop, _halt])
@pytest.mark.parametrize("remove", [_remove_sockets, _remove_directory])
def test_a_brake_cancels_every_bid_after_all_sockets_were_removed(
    brake: Callable[[Trader, int], None], remove: Callable[[Path], None], own: Installation
) -> None:
    run, slug = own.data_dir / "run", f"doors-{brake.__name__}-{remove.__name__}"
    modes = {name: (run / f"{name}.sock").stat().st_mode for name in DOORS}
    own.put_collection(slug, [100_000])
    trader = Trader(own).sign_in()
    task = trader.task(slug=slug, **CONFIG)
    trader.start(task)
    until(lambda: len(own.live_prices(slug)) == 4, "four bids")
    programs = {name: own.processes(f"cli.main {name}") for name in DOORS}
    removed_at: list[float] = []

    def removed_and_named() -> bool:
        # On a busy machine a program may be faster than the question.
        removed_at.append(time.monotonic())
        remove(run)
        return _missing(own) == list(DOORS)

    until(removed_and_named, "readiness names every program whose socket is missing")
    brake(trader, task)
    until(lambda: own.live_prices(slug) == [], "the end of every bid")
    cancelled_s = time.monotonic() - removed_at[-1]
    until(lambda: _missing(own) == [], "ready again")
    until(lambda: trader.bids(task) == [], "no open bid in the ledger")

    print(f"{slug}: all bids cancelled {cancelled_s:.1f} s after the sockets were removed (aim: 15 s)")
    if remove is _remove_sockets or not postgresql.is_wanted():  # there a lease names its holder's directory
        assert {name: own.processes(f"cli.main {name}") for name in DOORS} == programs, "no program was restarted"
    assert {name: (run / f"{name}.sock").stat().st_mode for name in DOORS} == modes
    assert run.stat().st_mode & 0o777 == 0o700
    trader.stop_and_drain(task)


def test_a_second_installation_is_refused_after_the_locks_were_removed(own: Installation) -> None:
    shutil.rmtree(own.data_dir / "run")
    until(lambda: _missing(own) == [], "ready again")
    until(lambda: (own.data_dir / "run" / "up.lock").exists(), "the lock of the installation")
    second = subprocess.run(
        [sys.executable, "-m", "cli.main", "up"], env=own.environment, capture_output=True, text=True, timeout=60
    )
    assert (second.returncode, "in use by another" in second.stderr) == (1, True)
