"""A plan that is told before it is carried out, and what stops it: over HTTP, against the whole installation."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow

LADDER = {"bidCount": 3, "hardcapSats": 100_000, "loopSeconds": 5}
PRICES = [75_000, 45_000, 15_000]


def planned(answer: Any) -> list[tuple[int, str]]:
    return [(rung["price"], rung["reason"]) for rung in answer["rungs"]]


def reason_of(trader: Trader, task: int) -> set[str]:
    [newest] = trader.ok("GET", f"/api/tasks/{task}/cycles?limit=1")
    return {rung["reason"] for rung in newest["detail"].get("rungs", ())}  # a cycle that got nowhere has none


def test_what_the_preview_tells_is_what_the_worker_does(service: Installation, trader: Trader) -> None:
    service.put_collection("owls", [100_000, 110_000])

    before = trader.ok("POST", "/api/tasks/preview", {"slug": "owls", **LADDER})
    assert service.live_prices("owls") == []
    task = trader.task(slug="owls", **LADDER)
    trader.start(task)
    until(lambda: service.live_prices("owls") == PRICES, "the ladder")
    after = until(lambda: _kept(trader, task), "a preview that keeps all bids")

    assert planned(before) == [(price, "place") for price in PRICES]
    assert (before["taskId"], before["total"], before["errors"]) == (None, sum(PRICES), [])
    assert (after["taskId"], after["total"]) == (task, 0)
    unknown = trader.call("POST", "/api/tasks/preview", {"slug": "no-such-birds", **LADDER})
    assert unknown.status_code == 404, unknown.text


def _kept(trader: Trader, task: int) -> Any:
    """The worker may not have heard of its bids yet."""
    answer = trader.ok("POST", "/api/tasks/preview", {"taskId": task})
    return answer if {reason for _, reason in planned(answer)} == {"kept"} else None


def test_reduce_and_halt_hold_and_run_goes_on(service: Installation, trader: Trader) -> None:
    service.put_collection("control-cats", [100_000])
    task = trader.task(slug="control-cats", **LADDER)
    trader.start(task)
    until(lambda: service.live_prices("control-cats") == PRICES, "the ladder")

    halted = trader.ok("PUT", "/api/control", {"scope": "task", "taskId": task, "state": "halt"})
    until(lambda: service.live_prices("control-cats") == [], "no bid")
    until(lambda: reason_of(trader, task) == {"halt"}, "the reason")
    trader.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    trader.ok("PUT", "/api/control", {"scope": "task", "taskId": task, "state": "run"})
    until(lambda: reason_of(trader, task) == {"reduce"}, "the reason")
    assert service.live_prices("control-cats") == []
    running = trader.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
    until(lambda: service.live_prices("control-cats") == PRICES, "the ladder again")

    assert (halted["signerTold"], halted["tasks"][0]["signerState"]) == (True, "halt")
    assert (running["effective"], running["user"]["signerState"]) == ({"state": "run", "scope": "global"}, "run")
    assert trader.call("PUT", "/api/control", {"scope": "global", "state": "halt"}).status_code == 403


def test_a_halt_holds_while_the_signer_is_away_and_reaches_it_when_it_is_back(
    service: Installation, trader: Trader
) -> None:
    [signer] = service.processes("cli.main", "signer")
    os.kill(signer, signal.SIGSTOP)
    try:
        answer = trader.ok("PUT", "/api/control", {"scope": "user", "state": "halt"})
        loosened = trader.call("PUT", "/api/control", {"scope": "user", "state": "run"})
    finally:
        os.kill(signer, signal.SIGCONT)

    assert (answer["signerTold"], answer["user"]["state"], answer["user"]["signerState"]) == (False, "halt", None)
    assert loosened.status_code == 503
    until(lambda: trader.ok("GET", "/api/control")["user"]["signerState"] == "halt", "the signer's state")


def test_a_task_that_leaves_its_bids_at_a_stop_cancels_them_when_it_is_deleted(
    service: Installation, trader: Trader
) -> None:
    service.put_collection("control-dogs", [100_000])
    task = trader.task(slug="control-dogs", cancelOnStop=False, **LADDER)
    trader.start(task)
    until(lambda: service.live_prices("control-dogs") == PRICES, "the ladder")

    answer = trader.ok("DELETE", f"/api/tasks/{task}")

    assert answer.keys() == {"success", "openBids", "closing"} and answer["success"] is True
    until(lambda: service.live_prices("control-dogs") == [], "the end of every bid")
    assert trader.call("GET", f"/api/tasks/{task}").status_code == 404
    assert trader.task(slug="control-dogs", **LADDER) > task
