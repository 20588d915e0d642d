"""Bids that are transactions, from HTTP to the practice market's ord.net and back: sessions, coins, drafts, crashes."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.databases import rows
from tests.e2e.installation import Installation, Trader, until

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

SETTINGS = {"BIDKEEPER_MIN_AGE_SECONDS": "0"}

VENUE = "simulator-ordnet"
COINS = [400_000] * 6
# The market takes eight writes a minute of a wallet and twenty of us all: one that is over waits for its turn.
SLOW_S = 180.0


@pytest.fixture
def trader(service: Installation) -> Trader:
    service.sim("POST", "/sim/reset", {"seed": 1, "background": False})
    signed_in = Trader(service).sign_in()
    payment = signed_in.ok("GET", "/api/wallet")["payment"]
    service.sim("PUT", f"/sim/coins/{payment}", {"values": COINS})
    return signed_in


def fixed(low: int, high: int, count: int, **more: Any) -> dict[str, Any]:
    return {"bidMode": "fixed", "bidFixedLow": low, "bidFixedHigh": high, "bidCount": count, "loopSeconds": 10, **more}


def orders_of(service: Installation, task: int) -> list[tuple[int, str, str | None]]:
    """Price, state and venue id of the task's orders, as the ledger has them, dearest first."""
    query = "SELECT price_sats, state, venue_id FROM orders WHERE task_id = ? ORDER BY price_sats DESC, id"
    return rows(service.database_url, query, (task,))


def traits_of(service: Installation, *tasks: int) -> dict[str, int]:
    """Returns those of the tasks that have open orders, by the trait that these are on."""
    found = rows(service.database_url, "SELECT trait_value, task_id FROM orders WHERE state != 'closed'")
    return {trait: task for trait, task in found if task in tasks}


def is_live(service: Installation, task: int, prices: list[int]) -> bool:
    orders = [(price, state) for price, state, _ in orders_of(service, task) if state != "closed"]
    return orders == [(price, "live") for price in prices]


def test_an_offer_is_placed_replaced_and_stopped_and_nothing_is_left(service: Installation, trader: Trader) -> None:
    service.put_collection("frogs", [500_000, 600_000])
    task = trader.task(slug="frogs", venue=VENUE, **fixed(200_000, 200_000, 1))
    assert trader.get(task)["venue"] == VENUE
    trader.start(task)
    until(lambda: service.live_prices("frogs") == [200_000], "an offer", SLOW_S)
    until(lambda: is_live(service, task, [200_000]), "the ledger knows it")
    assert orders_of(service, task)[0][2] is not None
    until(lambda: trader.bids(task) == [200_000], "the service shows it")

    trader.ok("PUT", f"/api/tasks/{task}", fixed(250_000, 250_000, 1))
    until(lambda: service.live_prices("frogs") == [250_000], "what the new range asks for", SLOW_S)
    until(lambda: is_live(service, task, [250_000]), "the ledger knows it, too")
    trader.stop(task)
    until(lambda: service.live_prices("frogs") == [], "it is cancelled", SLOW_S)
    until(lambda: is_live(service, task, []), "nothing is left")


def test_a_ladder_has_as_many_offers_as_there_are_coins_and_says_so(service: Installation, trader: Trader) -> None:
    payment = trader.ok("GET", "/api/wallet")["payment"]
    service.sim("PUT", f"/sim/coins/{payment}", {"values": [700_000, 600_000]})
    service.put_collection("newts", [500_000])
    task = trader.task(slug="newts", venue=VENUE, **fixed(100_000, 200_000, 3))
    trader.start(task)
    until(lambda: is_live(service, task, [200_000, 150_000]), "the dearest two", SLOW_S)
    until(lambda: "1 no_coins" in trader.last_action(task), "the third is explained", SLOW_S)
    until(lambda: "that nothing else lies or stands on" in str(trader.get(task)["lastError"]), "its owner is told")
    assert service.history(event="cancelled", slug="newts") == [], "neither took the other's place"
    trader.stop(task)
    until(lambda: service.live_prices("newts") == [], "they are cancelled", SLOW_S)


def test_a_worker_killed_between_submit_and_record_finds_its_offer_again(service: Installation, trader: Trader) -> None:
    service.put_collection("toads", [500_000])
    task = trader.task(slug="toads", venue=VENUE, **fixed(200_000, 200_000, 1))
    # The answer to the submit hangs, and meanwhile the worker dies.
    fault = {"operation": "place", "mode": "accept_then_timeout", "count": 1, "delaySeconds": 30}
    service.sim("PUT", "/sim/faults", [fault])
    trader.start(task)
    [worker] = service.workers(task)
    until(lambda: service.live_prices("toads") == [200_000], "the market took it", SLOW_S)
    os.kill(worker, signal.SIGSTOP)  # so that it records nothing while that is looked at
    assert [state for _, state, _ in orders_of(service, task)] == ["submitted"]
    os.kill(worker, signal.SIGKILL)

    until(lambda: is_live(service, task, [200_000]), "the successor's ledger has adopted it", SLOW_S)
    assert orders_of(service, task)[0][2] is not None
    trader.next_cycle(task, 2)
    assert service.live_prices("toads") == [200_000]
    assert len(service.history(event="accepted", slug="toads", kind="bid")) == 1, "placed once"
    trader.stop(task)
    until(lambda: service.live_prices("toads") == [], "it is cancelled", SLOW_S)


def test_a_trait_is_bid_on_with_the_coins_that_others_stand_on(service: Installation, trader: Trader) -> None:
    payment = trader.ok("GET", "/api/wallet")["payment"]
    service.sim("PUT", f"/sim/coins/{payment}", {"values": [1_500_000]})
    asks = [{"price": 500_000, "traits": {"Hat": "Red"}}, {"price": 500_000}]
    service.sim("PUT", "/sim/collections/caps", {"asks": asks, "bids": []})
    service.put_collection("salamanders", [500_000])
    plain = trader.task(slug="salamanders", venue=VENUE, **fixed(200_000, 200_000, 1))
    red = trader.task(
        slug="caps", venue=VENUE, bidType="trait", traitType="Hat", traitValue="Red", **fixed(300_000, 300_000, 1)
    )
    for task in (plain, red):
        trader.start(task)
    until(lambda: service.live_prices("salamanders") == [200_000], "an offer on the one collection", SLOW_S)
    until(
        lambda: service.live_prices("caps") == [300_000], "an offer on a trait of the other, on the same coin", SLOW_S
    )
    assert traits_of(service, plain, red) == {"": plain, "Red": red}
    for task in (plain, red):
        trader.stop(task)
    until(lambda: not service.live_prices("salamanders") + service.live_prices("caps"), "they are cancelled", SLOW_S)
