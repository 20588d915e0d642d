"""Orders from HTTP through worker, signer and gateway to the simulator, and what survives a kill."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.installation import Installation, Trader, in_path, until

pytestmark = pytest.mark.slow

SEED = 2  # the venue answers as clients have seen it

EXAMPLES = [
    (
        "ladder",
        100_000,
        {"bidPercentLow": 0.15, "bidPercentHigh": 0.75, "bidCount": 5, "hardcapSats": 100_000},
        [75_000, 60_000, 45_000, 30_000, 15_000],
    ),
    (
        "rounding-and-cap",
        87_300,
        {"bidPercentLow": 0.60, "bidPercentHigh": 0.85, "bidCount": 4, "hardcapSats": 70_000},
        [70_000, 64_000, 58_000, 53_000],
    ),
    (
        "budget",
        100_000,
        {
            "bidPercentLow": 0.15,
            "bidPercentHigh": 0.75,
            "bidCount": 5,
            "hardcapSats": 100_000,
            "maxBidTotal": 150_000,
        },
        [75_000, 60_000, 15_000],
    ),
]


@pytest.mark.parametrize(("slug", "floor", "config", "prices"), EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_worked_examples(
    service: Installation, trader: Trader, slug: str, floor: int, config: dict[str, float], prices: list[int]
) -> None:
    service.put_collection(slug, [floor, floor + 10_000])
    task = trader.task(slug=slug, **config)
    assert trader.get(task)["isRunning"] is False
    assert trader.start(task)["isRunning"] is True
    until(lambda: service.live_prices(slug) == prices, f"{prices} at the simulator")
    until(lambda: trader.placed(task) == len(prices), "the report of what was placed")
    until(lambda: trader.bids(task) == prices, "the same as the service shows them")
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == sum(prices)
    if slug == "budget":
        assert "2 task_total" in trader.said(task)
    trader.stop_and_drain(task)
    assert service.live_prices(slug) == []
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 0


def test_a_rune_ladder_in_quantity_mode(service: Installation, trader: Trader) -> None:
    ticker = "PRACTICE•RUNE"
    asks = [{"tokens": 400_000, "unitPrice": "1.00"}, {"tokens": 300_000, "unitPrice": "1.10"}]
    service.sim("PUT", f"/sim/runes/{in_path(ticker)}", {"divisibility": 0, "asks": asks, "bids": []})
    task = trader.task(
        slug=ticker, type="rune", bidPercentLow=0.8, bidPercentHigh=0.9, bidCount=3, quantity=50_000, hardcapSats=90_000
    )
    trader.start(task)
    until(lambda: service.live_prices(ticker) == [45_000, 42_500, 40_000], "three rungs of order totals")
    accepted = service.history(event="accepted", slug=ticker)
    assert {str(event["quantity"]) for event in accepted} == {"50000"}
    trader.stop(task)


def test_the_ladder_follows_a_falling_floor_and_never_meets_an_ask(service: Installation, trader: Trader) -> None:
    service.put_collection("falling", [100_000])
    task = trader.task(slug="falling", hardcapSats=100_000, loopSeconds=5)
    trader.start(task)
    until(lambda: len(service.live_prices("falling")) == 5, "the first ladder")
    service.put_collection("falling", [70_000])
    until(lambda: max(service.live_prices("falling"), default=0) == 52_000, "the ladder under the new floor")
    assert "cancelled" in trader.last_action(task) or trader.next_cycle(task)
    prices = [event["price"] for event in service.history(event="accepted", slug="falling")]
    assert max(prices) == 75_000
    trader.stop(task)


def test_put_restarts_the_worker_with_the_new_config(service: Installation, trader: Trader) -> None:
    service.put_collection("changing", [100_000])
    task = trader.task(slug="changing", hardcapSats=100_000)
    trader.start(task)
    until(lambda: len(service.live_prices("changing")) == 5, "the first ladder")
    before = service.workers(task)
    changed = trader.ok("PUT", f"/api/tasks/{task}", {"hardcapSats": 40_000})
    assert (changed["isRunning"], changed["config"]["hardcapSats"]) == (True, 40_000)
    assert service.workers(task) != before
    until(lambda: max(service.live_prices("changing"), default=0) == 40_000, "nothing above the new cap")
    trader.ok("DELETE", f"/api/tasks/{task}")
    until(lambda: service.live_prices("changing") == [], "the end of every bid")
    assert trader.call("GET", f"/api/tasks/{task}").status_code == 404


def test_killing_the_server_changes_nothing_for_the_workers(service: Installation, trader: Trader) -> None:
    service.put_collection("steady", [100_000])
    task = trader.task(slug="steady", hardcapSats=100_000, loopSeconds=5)
    trader.start(task)
    workers = service.workers(task)
    assert len(workers) == 1
    for pid in service.processes("cli.main server"):
        os.kill(pid, signal.SIGKILL)
    until(lambda: _answers(trader), "the server's return")
    assert service.workers(task) == workers
    trader.next_cycle(task)
    trader.stop(task)


def _answers(trader: Trader) -> bool:
    try:
        return trader.call("GET", "/healthz").status_code == 200
    except OSError:
        return False


LADDER = [75_000, 45_000, 15_000]


# Each victim and each moment once; the other two pairs are for `make faults`.
@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("worker", "placing"),
        ("manager", "settled"),
        pytest.param("worker", "settled", marks=pytest.mark.faults),
        pytest.param("manager", "placing", marks=pytest.mark.faults),
    ],
)
def test_kill_9_while_five_tasks_run(service: Installation, trader: Trader, victim: str, moment: str) -> None:
    slugs = [f"{victim}-{moment}-{number}" for number in range(5)]
    for slug in slugs:
        service.put_collection(slug, [100_000])
    tasks = {trader.task(slug=slug, bidCount=3, hardcapSats=100_000, loopSeconds=5): slug for slug in slugs}
    for task in tasks:
        trader.start(task)
    if moment == "settled":
        until(lambda: all(service.live_prices(slug) == LADDER for slug in slugs), "five ladders")
    else:
        until(lambda: any(service.live_prices(slug) for slug in slugs), "a first bid")
    before = service.workers_of(tasks)
    assert all(len(pids) == 1 for pids in before.values())
    affected = list(tasks)[:1] if victim == "worker" else list(tasks)
    killed = before[affected[0]] if victim == "worker" else service.processes("cli.main manager")
    began = time.monotonic()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)

    def back() -> bool:
        now = service.workers_of(tasks)
        assert all(len(pids) <= 1 for pids in now.values()), "two workers of one task"
        return all(now[task] and now[task] != before[task] for task in affected)

    until(back, "the tasks' return", 180)
    print(f"kill -9 {victim} ({moment}): {len(affected)} tasks back after {time.monotonic() - began:.1f} s")
    trader.next_cycle_of_all(affected)
    for slug in slugs:
        # A bid that was on its way when its worker died may never have arrived: its rung is left alone then.
        live = service.live_prices(slug)
        assert len(live) == len(set(live)), "a bid was placed twice"
        assert live == LADDER if moment == "settled" else set(live) <= set(LADDER)
    with ThreadPoolExecutor(len(tasks)) as pool:
        assert all(stopped["isRunning"] is False for stopped in pool.map(trader.stop, tasks))
    assert len(service.history(event="accepted", kind="bid")) <= 15, "every bid is placed once"
    until(lambda: all(service.live_prices(slug) == [] for slug in slugs), "the end of every bid")


def test_a_stop_in_the_midst_of_placing_leaves_nothing_open(service: Installation, trader: Trader) -> None:
    slugs = [f"midst-{number}" for number in range(4)]
    for slug in slugs:
        service.put_collection(slug, [100_000])
    tasks = [trader.task(slug=slug, hardcapSats=100_000) for slug in slugs]
    for task in tasks:
        trader.start(task)
    until(lambda: any(service.live_prices(slug) for slug in slugs), "a first bid")
    for slug, task in zip(slugs, tasks, strict=True):
        assert trader.stop(task)["isRunning"] is False
        accepted = len(service.history(event="accepted", slug=slug))
        trader.stop_and_drain(task)
        assert service.live_prices(slug) == []
        assert len(service.history(event="accepted", slug=slug)) == accepted
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 0


def test_a_lost_answer_never_makes_a_second_bid(service: Installation, trader: Trader) -> None:
    service.put_collection("lost-answer", [100_000])
    task = trader.task(slug="lost-answer", bidCount=2, hardcapSats=100_000, loopSeconds=5)
    service.sim("PUT", "/sim/faults", [{"operation": "place", "mode": "accept_then_500", "count": 2}])
    trader.start(task)
    until(lambda: service.live_prices("lost-answer") == [75_000, 15_000], "the ladder")
    trader.next_cycle(task, 2)
    assert service.live_prices("lost-answer") == [75_000, 15_000]
    assert len(service.history(event="accepted", slug="lost-answer")) == 2
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 90_000
    trader.stop_and_drain(task)
    assert service.live_prices("lost-answer") == []


def test_no_own_bids_no_placing(service: Installation, trader: Trader) -> None:
    service.put_collection("blind", [100_000])
    task = trader.task(slug="blind", hardcapSats=100_000, loopSeconds=5)
    service.sim("PUT", "/sim/faults", [{"operation": "own_bids", "mode": "error_500", "count": 1000}])
    trader.start(task)
    until(lambda: trader.get(task)["lastError"], "the reason")
    assert service.history(event="accepted", slug="blind") == []
    service.sim("PUT", "/sim/faults", [])
    until(lambda: len(service.live_prices("blind")) == 5, "the ladder once the venue answers")
    until(lambda: trader.get(task)["lastError"] is None, "the error's end")
    trader.stop(task)


def test_what_cannot_be_done_yet_is_refused_at_start(service: Installation, trader: Trader) -> None:
    task = trader.task(slug="later", hardcapSats=100_000, quantity=2)
    answer = trader.call("POST", f"/api/tasks/{task}/start")
    assert answer.status_code == 400
    assert any(detail.startswith("quantity: ") for detail in answer.json()["details"])
    assert trader.get(task)["lastError"]
    assert trader.get(task)["isRunning"] is False
    assert service.workers(task) == []
