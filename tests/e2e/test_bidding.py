"""Outbidding, rank, spikes, falling floors, shared limits and rune orders, from HTTP to the simulator and back."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cli.commands import in_this_process
from tests.databases import another, rows
from tests.e2e.installation import Installation, Trader, in_path, until

pytestmark = pytest.mark.slow

SETTINGS = {"BIDKEEPER_MIN_AGE_SECONDS": "0"}  # the examples speak of bids that are old enough to be replaced


def fixed(low: int, high: int, count: int, **more: Any) -> dict[str, Any]:
    return {"bidMode": "fixed", "bidFixedLow": low, "bidFixedHigh": high, "bidCount": count, "loopSeconds": 5, **more}


def rivals(service: Installation, slug: str, floor: int, *prices: int) -> None:
    body = {"asks": [{"price": floor}], "bids": [{"price": price} for price in prices]}
    service.sim("PUT", f"/sim/collections/{slug}", body)


def ours(service: Installation, slug: str) -> list[int]:
    """Prices of our live bids, highest first; the scripted rivals' have no message."""
    live: dict[str, int] = {}
    for event in service.history(slug=slug, kind="bid"):
        if event["event"] == "accepted" and event["message"]:
            live[event["orderId"]] = event["price"]
        elif event["event"] in ("cancelled", "expired", "filled"):
            live.pop(event["orderId"], None)
    return sorted(live.values(), reverse=True)


def test_outbids_by_a_fixed_amount_and_keeps_what_is_close(service: Installation, trader: Trader) -> None:
    rivals(service, "fixed-outbid", 100_000, 62_000, 60_500, 41_000)
    task = trader.task(slug="fixed-outbid", **fixed(55_000, 55_000, 1))
    trader.start(task)
    until(lambda: ours(service, "fixed-outbid") == [55_000], "our first bid")
    trader.ok("PUT", f"/api/tasks/{task}", fixed(50_000, 80_000, 3, outbidEnabled=True, outbidAmount=1_000))
    until(lambda: ours(service, "fixed-outbid") == [63_000, 55_000, 50_000], "the least that wins, 55,000 kept")
    trader.next_cycle(task, 2)
    assert ours(service, "fixed-outbid") == [63_000, 55_000, 50_000]
    trader.stop(task)


def test_an_unbeatable_leader_and_only_the_highest(service: Installation, trader: Trader) -> None:
    rivals(service, "unbeatable", 100_000, 79_800, 70_000)
    outbid = {"outbidEnabled": True, "outbidMode": "percent", "outbidPercent": 0.02}
    task = trader.task(slug="unbeatable", **fixed(50_000, 80_000, 1, **outbid))
    trader.start(task)
    until(lambda: ours(service, "unbeatable") == [72_000], "the best place that can be had")
    trader.ok("PUT", f"/api/tasks/{task}", {"onlyBidIfHighest": True})
    until(lambda: ours(service, "unbeatable") == [], "no bid behind another")
    until(lambda: "not_highest" in trader.last_action(task), "the reason")
    trader.stop(task)


def test_only_the_rungs_that_lead(service: Installation, trader: Trader) -> None:
    rivals(service, "leading", 100_000, 42_000)
    task = trader.task(slug="leading", **fixed(30_000, 50_000, 5))
    trader.start(task)
    until(lambda: len(ours(service, "leading")) == 5, "the ladder")
    trader.ok("PUT", f"/api/tasks/{task}", {"onlyBidIfHighest": True})
    until(lambda: ours(service, "leading") == [50_000, 45_000], "the rungs above 42,000")
    trader.stop(task)


def test_a_spike_of_the_floor_is_clamped(service: Installation, trader: Trader) -> None:
    service.put_collection("spiky", [180_000])
    minute = int(time.time()) // 60
    with another(service.database_url) as database:
        database.executemany(
            "INSERT INTO floor_samples (kind, slug_key, measure, minute, reference, low, low_ms, high)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, '100000')",
            [
                ("ordinals", "spiky", "floor", minute - age, "100000", "100000", (minute - age) * 60_000)
                for age in range(1, 31)
            ],
        )
    config = {"bidPercentLow": 0.5, "bidPercentHigh": 0.8, "bidCount": 3, "hardcapSats": 120_000}
    task = trader.task(slug="spiky", **config)
    trader.start(task)
    until(lambda: ours(service, "spiky") == [100_000, 81_000, 63_000], "the ladder under 125,000")
    trader.stop(task)


LADDER = {"bidPercentLow": 0.15, "bidPercentHigh": 0.75, "bidCount": 5, "hardcapSats": 100_000, "loopSeconds": 8}


def test_a_falling_floor_in_order(service: Installation, trader: Trader) -> None:
    service.put_collection("drop", [100_000])
    task = trader.task(slug="drop", **LADDER)
    trader.start(task)
    until(lambda: len(ours(service, "drop")) == 5, "the ladder")
    service.put_collection("drop", [70_000])
    until(lambda: ours(service, "drop") == [52_000, 41_000, 30_000, 21_000, 11_000], "the ladder under the new floor")
    events = service.history(slug="drop", kind="bid")
    prices = {event["orderId"]: event["price"] for event in events if event["event"] == "accepted"}
    done = [(event["event"], prices[event["orderId"]]) for event in events]
    at = {what: number for number, what in enumerate(done)}
    new = [("accepted", price) for price in (52_000, 41_000, 21_000, 11_000)]
    old = [("cancelled", price) for price in (75_000, 60_000, 45_000, 15_000)]
    assert sorted(done[5:]) == sorted(new + old)
    # What is above the range goes at once, what merely makes way once what takes its place is there.
    assert max(at[each] for each in old[:2]) < min(at[each] for each in new)
    assert at["cancelled", 45_000] > at["accepted", 41_000]
    assert at["cancelled", 15_000] > at["accepted", 11_000]
    trader.stop(task)


def test_a_cancel_that_fails_frees_nothing(service: Installation, trader: Trader) -> None:
    service.put_collection("stuck", [100_000])
    task = trader.task(slug="stuck", **LADDER, maxBidTotal=225_000)
    trader.start(task)
    until(lambda: len(ours(service, "stuck")) == 5, "the ladder")
    service.sim("PUT", "/sim/faults", [{"operation": "cancel", "mode": "error_500", "count": 1}])
    service.put_collection("stuck", [70_000])
    until(lambda: 52_000 in ours(service, "stuck"), "the first of the new ladder")
    until(lambda: ours(service, "stuck") == [52_000, 41_000, 30_000, 21_000, 11_000], "all of it, once 75,000 is gone")
    held = 0
    prices: dict[str, int] = {}
    for event in service.history(slug="stuck", kind="bid"):
        if event["event"] == "accepted":
            prices[event["orderId"]] = event["price"]
            held += event["price"]
        else:
            held -= prices[event["orderId"]]
        assert held <= 225_000
    trader.stop(task)


def test_tasks_share_their_users_exposure(service: Installation, trader: Trader) -> None:
    code, *said = in_this_process(service.environment, "plan", "set", trader.address, "narrow")
    assert code == 0, said
    for slug in ("shared-a", "shared-b", "shared-c"):
        service.put_collection(slug, [100_000])
    trader.start(trader.task(slug="shared-a", **fixed(45_000, 75_000, 3)))
    until(lambda: ours(service, "shared-a") == [75_000, 60_000, 45_000], "180,000")
    trader.start(trader.task(slug="shared-b", **fixed(75_000, 75_000, 1)))
    until(lambda: ours(service, "shared-b") == [75_000], "255,000")
    last = trader.task(slug="shared-c", **fixed(45_000, 60_000, 2))
    trader.start(last)
    until(lambda: ours(service, "shared-c") == [45_000], "exactly 300,000")
    until(lambda: "exposure_limit" in (trader.get(last)["lastCycle"] or {"action": ""})["action"], "the reason")
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 300_000
    for task in trader.ok("GET", "/api/tasks"):
        trader.stop(task["id"])


def test_a_rune_ladder_by_vwap_in_sats_mode(service: Installation, trader: Trader) -> None:
    ticker = "EXAMPLE•RUNE"
    asks = [
        {"tokens": 400_000, "unitPrice": "1.00"},
        {"tokens": 300_000, "unitPrice": "1.10"},
        {"tokens": 800_000, "unitPrice": "1.20"},
    ]
    service.sim("PUT", f"/sim/runes/{in_path(ticker)}", {"divisibility": 0, "asks": asks, "bids": []})
    market = trader.ok("GET", f"/api/tasks/rune-market?ticker={in_path(ticker)}&depth=1000000")
    assert str(market["vwap"]).startswith("1.081081")
    task = trader.task(
        slug=ticker,
        type="rune",
        bidPercentLow=0.8,
        bidPercentHigh=0.9,
        bidCount=2,
        quantityMode="sats",
        satsPerOrder=50_000,
        useVwap=True,
        depthSats=1_000_000,
        hardcapSats=60_000,
    )
    trader.start(task)
    until(lambda: ours(service, ticker) == [49_999, 49_999], "two orders of 49,999 sats")
    accepted = service.history(event="accepted", slug=ticker)
    assert sorted(str(event["quantity"]) for event in accepted) == ["51388", "57812"]
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 99_998
    trader.stop(task)


def test_a_trait_bid_goes_by_the_traits_floor(service: Installation, trader: Trader) -> None:
    asks = [
        {"price": 100_000, "traits": {"Hat": "Red"}},
        {"price": 200_000, "traits": {"Hat": "Gold"}},
    ]
    service.sim("PUT", "/sim/collections/hats", {"asks": asks, "bids": []})
    config = {"bidType": "trait", "traitType": "Hat", "traitValue": "Gold", "bidCount": 1, "hardcapSats": 190_000}
    task = trader.task(slug="hats", bidPercentLow=0.5, bidPercentHigh=0.75, **config)
    trader.start(task)
    until(lambda: ours(service, "hats") == [150_000], "three quarters of the gold hats' floor")
    (bid,) = until(lambda: trader.ok("GET", f"/api/tasks/{task}/bids"), "the bid as the venue shows it")
    assert bid["trait"] == {"type": "Hat", "value": "Gold"}
    trader.stop(task)


def test_a_dry_run_only_tells(service: Installation, trader: Trader) -> None:
    service.put_collection("paper", [100_000])
    task = trader.task(slug="paper", hardcapSats=100_000, loopSeconds=5, dryRun=True)
    trader.start(task)
    until(lambda: trader.placed(task, "dry run: placed") == 5, "a ladder on paper")
    trader.next_cycle(task)
    assert service.history(slug="paper", kind="bid") == []
    assert trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 0
    trader.stop_and_drain(task)


def test_a_fill_is_recognised_and_counts(service: Installation, trader: Trader) -> None:
    service.put_collection("sold", [100_000])
    task = trader.task(slug="sold", **fixed(20_000, 40_000, 2, maxFills=1))
    trader.start(task)
    # Two open bids could both be sold, which would be one fill too many.
    until(lambda: ours(service, "sold") == [40_000], "one bid")
    trader.next_cycle(task, 2)  # the fee is told by a balance that was read some seconds before the sale
    service.sim("POST", "/sim/sell", {"slug": "sold"})
    until(lambda: trader.ok("GET", "/api/auth/me")["stats"]["exposure"] == 0, "the fill in the ledger")
    trader.next_cycle(task, 2)
    assert ours(service, "sold") == []
    until(lambda: "max_fills" in trader.last_action(task), "the reason")
    query = "SELECT price_sats, close_reason FROM orders WHERE task_id = ?"
    assert rows(service.database_url, query, [task]) == [(40_000, "filled")]

    def paid() -> Any:
        (fill,) = trader.ok("GET", f"/api/fills?taskId={task}")["fills"]
        return None if fill["networkFee"] is None else fill

    fill = until(paid, "the fill with its fee")
    assert (fill["side"], fill["price"], fill["floorAtFill"], fill["networkFee"]) == ("buy", 40_000, 100_000, 0)
    assert fill["inscriptionId"] and fill["bidPlacedAt"] < fill["filledAt"]
    assert trader.get(task)["fills"] == {"count": 1, "spentSats": 40_000, "last": fill["filledAt"]}
    trader.stop(task)
    trader.ok("DELETE", f"/api/tasks/{task}")
    assert trader.ok("GET", f"/api/fills?taskId={task}")["fills"] == [fill]


def test_halt_cancels_and_run_goes_on(service: Installation, trader: Trader) -> None:
    service.put_collection("halting", [100_000])
    task = trader.task(slug="halting", **fixed(20_000, 40_000, 2))
    trader.start(task)
    until(lambda: ours(service, "halting") == [40_000, 20_000], "the ladder")
    trader.ok("PUT", "/api/control", {"scope": "task", "taskId": task, "state": "halt"})
    until(lambda: ours(service, "halting") == [], "nothing while halted")
    trader.next_cycle(task, 2)
    assert ours(service, "halting") == []
    assert trader.get(task)["isRunning"] is True
    trader.ok("PUT", "/api/control", {"scope": "task", "taskId": task, "state": "run"})
    until(lambda: ours(service, "halting") == [40_000, 20_000], "the ladder again")
    trader.stop(task)


def test_a_preview_says_what_a_start_would_do(service: Installation, trader: Trader) -> None:
    service.put_collection("before", [100_000])
    config = {"slug": "before", **LADDER, "maxBidTotal": 150_000}
    preview = trader.ok("POST", "/api/tasks/preview", config)
    wanted = [rung["price"] for rung in preview["rungs"] if rung["reason"] == "place"]
    assert wanted == [75_000, 60_000, 15_000]
    assert service.history(slug="before", kind="bid") == []
    task = trader.task(**config)
    trader.start(task)
    until(lambda: ours(service, "before") == wanted, "what was foretold")
    trader.stop(task)
