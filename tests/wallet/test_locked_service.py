"""The whole service with keys for real money: idle while they are locked, trading by itself once they are not.

Its market is Satflow's dialect of a simulator that stands apart, so that nothing real is at stake.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests

from tests.e2e.installation import Installation, Trader, until
from tests.json_lines import ask
from tests.worlds.signer_process import PASSPHRASE, sealed_keystore

pytestmark = pytest.mark.slow

SLUG = "locked-frogs"


@pytest.fixture
def service() -> Iterator[Installation]:
    made = Installation(BIDKEEPER_MARKET="satflow", BIDKEEPER_SATFLOW_API_KEY="any-key")
    origin = f"http://127.0.0.1:{made.simulator_port}"
    for name, prefix in (("SATFLOW", "/satflow/v1"), ("UNISAT", "/unisat"), ("MEMPOOL", "/mempool"), ("ORD", "/ord")):
        made.environment[f"BIDKEEPER_{name}_URL"] = origin + prefix
    venue = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "simulator"],
        env={**made.environment, "BIDKEEPER_MARKET": "simulator", "BIDKEEPER_DATA_DIR": f"{made.data_dir}/venue"},
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: answers(origin), "the marketplace")
        made.put_collection(SLUG, [1_000_000, 1_100_000])
        yield made
    finally:
        made.destroy()
        venue.kill()
        venue.wait()


def answers(origin: str) -> bool:
    try:
        return requests.get(f"{origin}/sim/history", timeout=5).ok
    except requests.RequestException:
        return False


def readiness(service: Installation) -> str:
    try:
        return requests.get(f"{service.url}/readyz", timeout=10).text
    except requests.RequestException:
        return ""


def unlock(service: Installation) -> None:
    ask(service.data_dir / "run" / "signer.sock", "signer", {"op": "unlock", "passphrase": PASSPHRASE}, timeout=60)


def kill_signer(service: Installation) -> None:
    [pid] = service.processes("cli.main signer")
    os.kill(pid, signal.SIGKILL)
    until(lambda: service.processes("cli.main signer") not in ([], [pid]), "another signer")
    until(lambda: "bidkeeper keys unlock" in readiness(service), "a locked signer")


def test_locked_it_idles_and_unlocked_it_trades_on_by_itself(service: Installation) -> None:
    sealed_keystore(service.data_dir)
    with (service.data_dir / "up.out").open("w") as out:
        service.process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "up"],
            env=service.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    until(lambda: "bidkeeper keys unlock" in readiness(service), "a locked signer")
    trader = Trader(service).sign_in()
    task = trader.task(slug=SLUG, bidCount=2, hardcapSats=900_000, loopSeconds=5)
    refused = trader.call("POST", f"/api/tasks/{task}/start")
    assert (refused.status_code, refused.json()["error"]) == (503, "The signer is locked")

    unlock(service)
    until(service._ready, "the ready line")
    trader.start(task)
    placed = until(lambda: len(trader.bids(task)) == 2 and trader.bids(task), "both bids")

    kill_signer(service)
    assert trader.get(task)["isRunning"]
    workers = service.workers(task)
    service.put_collection(SLUG, [500_000, 600_000])  # both bids are too high now, and it can neither cancel nor place
    until(lambda: "locked" in (trader.get(task)["lastError"] or ""), "a task that says why it waits")
    assert service.workers(task) == workers

    unlock(service)
    until(lambda: trader.bids(task) not in ([], placed) and max(trader.bids(task)) < 500_000, "bids for the new market")
    until(lambda: trader.get(task)["lastError"] is None, "a cycle without a complaint")
    assert service.workers(task) == workers
    assert trader.stop(task)["openBids"] == 0
    log = (service.data_dir / "logs" / "signer.log").read_text()
    assert PASSPHRASE not in log
