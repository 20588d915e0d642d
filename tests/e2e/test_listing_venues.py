"""Auto-list tasks at the practice market's other venues, whose listings are one PSBT and are taken back in own ways.

At Ordinals Wallet buyers see a fee on top: what is planned, listed and kept is what the seller is paid.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from drills.faults.fleet import strike
from tests.databases import another
from tests.e2e.installation import Installation, until
from tests.e2e.test_listing import Seller
from tests.examples import some_of

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # e2e/test_listing.py, and tests/markets/contract for each venue

SETTINGS = {"BIDKEEPER_MIN_AGE_SECONDS": "0"}

ORDINALSWALLET, UNISAT = "simulator-ordinalswallet", "simulator-unisat"
VENUES = [ORDINALSWALLET, UNISAT]
SLOW_S = 180.0
# Why each evil draft is refused, at Ordinals Wallet and at UniSat, whose adapter sees which inputs are to be signed.
REFUSED = {
    "wrong_payout": ("(outputs-known)",) * 2,
    "low_payout": ("(payout)",) * 2,
    "other_outpoint": ("(inputs-reserved)",) * 2,
    "sighash_none": ("(sighash-allowed)",) * 2,
    "two_inputs": ("(inputs-reserved)", "more inputs signed"),
}
FIXED = {"priceMode": "fixed", "priceSats": 123_456}


def seller_at(venue: str, service: Installation, name: str, asks: list[int], **config: Any) -> Seller:
    seller = Seller(service, f"{name}-{venue}", asks, venue=venue, **config)
    assert seller.ask("GET")["venue"] == venue
    return seller


def listed(seller: Seller, price: int, seconds: float = SLOW_S) -> None:
    until(lambda: seller.is_listed_at(price), f"a listing at {price}", seconds)


def shown(seller: Seller, venue: str) -> list[int]:
    """Returns the prices that a buyer sees for the inscription at the venue."""
    base = f"http://127.0.0.1:{seller.service.simulator_port}"
    if venue == ORDINALSWALLET:
        rows = seller.trader.session.get(f"{base}/ordinalswallet/collection/{seller.slug}/escrows", timeout=30).json()
        return [row["satoshi_price"] for row in rows if row["inscription_id"] == seller.inscription]
    wanted = {"nftType": "collection", "collectionId": seller.slug, "isEnd": False}
    body = {"filter": wanted, "sort": {"unitPrice": 1}, "start": 0, "limit": 99}
    answer = seller.trader.session.post(f"{base}/unisat/v3/market/collection/auction/list", json=body, timeout=30)
    rows = answer.json()["data"]["list"]
    return [row["price"] for row in rows if row["inscriptionId"] == seller.inscription]


@pytest.mark.parametrize(("venue", "paid_by_buyers"), [(ORDINALSWALLET, 126_881), (UNISAT, 123_456)])
def test_it_is_listed_where_the_task_says_stays_at_a_stop_and_goes_with_its_task(
    service: Installation, venue: str, paid_by_buyers: int
) -> None:
    seller = seller_at(venue, service, "fixed", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    assert shown(seller, venue) == [paid_by_buyers]
    [accepted] = service.history(kind="ask", slug=seller.slug, maker=seller.vault)
    assert (accepted["event"], accepted["venue"], accepted["price"]) == ("accepted", venue.partition("-")[2], 123_456)
    assert seller.ask("POST", "/stop")["listingCancelled"] is False
    assert seller.events() == [("accepted", 123_456)]
    again = seller.trader.call("POST", "/api/autolist", {"inscriptionId": seller.inscription})
    assert again.status_code == 409, "an inscription has one task, wherever it is listed"
    seller.end()
    assert shown(seller, venue) == []
    assert seller.events() == [("accepted", 123_456), ("cancelled", 123_456)]


# 1.05, 1.2 and 1.1 times the floor of others, of whose 100,000 at Ordinals Wallet the seller gets 97,300.
@pytest.mark.parametrize(
    ("venue", "prices"),
    [(ORDINALSWALLET, (102_165, 116_760, 107_030)), (UNISAT, (105_000, 120_000, 110_000))],
)
def test_a_whole_life(service: Installation, venue: str, prices: tuple[int, int, int]) -> None:
    """List, reprice up and down, the market forgets it, list again, sold."""
    first, second, third = prices
    seller = seller_at(venue, service, "life", [100_000], minPriceSats=80_000)
    seller.ask("POST", "/start")
    listed(seller, first)
    seller.ask("PUT", body={"pricePercent": 1.2})
    listed(seller, second)
    assert seller.listing["lowestOutstanding"] == first
    # Prices are not lowered before a listing is five minutes old. The worker, which writes its rows whole, is away.
    seller.ask("POST", "/stop")
    with another(service.database_url) as database:
        database.execute("UPDATE listings SET listed_ms = listed_ms - 300000")
    seller.ask("PUT", body={"pricePercent": 1.1})
    seller.ask("POST", "/start")
    listed(seller, third)
    service.sim("POST", "/sim/delist", {"inscriptionId": seller.inscription, "venue": venue.partition("-")[2]})
    until(lambda: seller.events().count(("accepted", third)) == 2, "the listing anew", SLOW_S)
    listed(seller, third)

    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": venue.partition("-")[2]})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert seller.listing["proceeds"] == third
    assert "sold" in seller.ask("GET")["lastCycle"]["action"]


@pytest.mark.parametrize("venue", VENUES)
def test_a_worker_killed_between_submit_and_record_lists_once_and_a_cancel_that_fails_is_tried_again(
    service: Installation, venue: str
) -> None:
    seller = seller_at(venue, service, "killed", [100_000], **FIXED)
    # The answer to the submit hangs, and meanwhile the worker dies.
    fault = {"operation": "list", "mode": "accept_then_timeout", "count": 1, "delaySeconds": 30}
    service.sim("PUT", "/sim/faults", [fault])
    seller.ask("POST", "/start")
    [worker] = seller.workers()
    until(lambda: seller.events() == [("accepted", 123_456)], "the market took it", SLOW_S)
    os.kill(worker, signal.SIGSTOP)  # so that it records nothing while that is looked at
    assert seller.listing["state"] == "submitted"
    os.kill(worker, signal.SIGKILL)
    listed(seller, 123_456)
    before = seller.ask("GET", "/cycles?limit=1")
    until(lambda: seller.ask("GET", "/cycles?limit=1") != before, "another cycle", SLOW_S)
    assert seller.events() == [("accepted", 123_456)], "listed once"

    service.sim("PUT", "/sim/faults", [{"operation": "cancel", "mode": "error_500", "count": 3}])
    assert seller.ask("DELETE")["success"] is True
    until(lambda: ("cancelled", 123_456) in seller.events(), "the cancel", SLOW_S)
    assert shown(seller, venue) == []


def test_a_gateway_that_died_knows_the_order_again(service: Installation) -> None:
    """UniSat has orders, of which the gateway keeps in mind which inscription is whose."""
    seller = seller_at(UNISAT, service, "forgotten", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    strike(service.processes("cli.main gateway"), "kill")
    until(service.ready_again, "every program")
    seller.ask("PUT", body={"priceSats": 150_000})
    listed(seller, 150_000)
    history = service.history(kind="ask", slug=seller.slug, event="accepted")
    assert [event["price"] for event in history] == [123_456, 150_000]
    assert len({event["orderId"] for event in history}) == 1, "the same order at another price"
    strike(service.processes("cli.main gateway"), "kill")
    until(service.ready_again, "every program again")
    seller.ask("DELETE")
    until(lambda: ("cancelled", 150_000) in seller.events(), "the cancel", SLOW_S)


@pytest.mark.sampled
@pytest.mark.parametrize("venue", VENUES)
def test_what_a_hostile_market_drafts_is_not_signed(service: Installation, venue: str) -> None:
    """Neither one for a listing nor UniSat's for its end; tests/wallet has every attack on the signer itself."""
    seller = seller_at(venue, service, "poisoned", [100_000], **FIXED)
    for mode, words in some_of(REFUSED.items(), f"{__name__} {venue}", dear=True):
        service.sim("PUT", "/sim/poison", {"mode": mode})
        seller.ask("POST", "/start")
        until(lambda w=words: w[venue == UNISAT] in str(seller.ask("GET")["lastError"]), mode, SLOW_S)  # type: ignore[misc]
        seller.ask("POST", "/stop")
        assert seller.events() == []
    service.sim("PUT", "/sim/poison", {"mode": None})
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    if venue == ORDINALSWALLET:  # whose end needs no PSBT
        seller.ask("DELETE")
        return
    service.sim("PUT", "/sim/poison", {"mode": "wrong_payout"})
    answer = seller.ask("DELETE")
    assert (answer["success"], answer["listingCancelled"]) == (True, False)
    assert seller.events() == [("accepted", 123_456)]
    service.sim("PUT", "/sim/poison", {"mode": None})
    until(lambda: ("cancelled", 123_456) in seller.events(), "the cancel, once the market is honest", SLOW_S)
