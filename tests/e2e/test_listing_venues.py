"""Auto-list tasks at the practice market's other venues, which draft one PSBT and take listings back in ways of their own.

At Ordinals Wallet buyers see a fee on top: what is planned, listed and kept is what the seller is paid.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.installation import Installation, installation, until
from tests.e2e.test_listing import Seller, workers

pytestmark = pytest.mark.slow

ORDINALSWALLET, UNISAT = "simulator-ordinalswallet", "simulator-unisat"
VENUES = [ORDINALSWALLET, UNISAT]
SLOW_S = 180.0
FIXED = {"priceMode": "fixed", "priceSats": 123_456}


@pytest.fixture(scope="module")
def service() -> Iterator[Installation]:
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0") as made:
        yield made


def seller_at(venue: str, service: Installation, name: str, asks: list[int], **config: Any) -> Seller:
    seller = Seller(service, f"{name}-{venue}", asks, venue=venue, **config)
    assert seller.ask("GET")["venue"] == venue
    return seller


def listed(seller: Seller, price: int, seconds: float = SLOW_S) -> None:
    until(lambda: seller.is_listed_at(price), f"a listing at {price}", seconds)


def shown(seller: Seller, venue: str) -> list[int]:
    """What a buyer sees of the inscription at the venue."""
    base = f"http://127.0.0.1:{seller.service.simulator_port}"
    if venue == ORDINALSWALLET:
        rows = seller.trader.session.get(f"{base}/ordinalswallet/collection/{seller.slug}/escrows", timeout=30).json()
        return [row["satoshi_price"] for row in rows if row["inscription_id"] == seller.inscription]
    wanted = {"nftType": "collection", "collectionId": seller.slug, "isEnd": False}
    body = {"filter": wanted, "sort": {"unitPrice": 1}, "start": 0, "limit": 99}
    answer = seller.trader.session.post(f"{base}/unisat/v3/market/collection/auction/list", json=body, timeout=30)
    rows = answer.json()["data"]["list"]
    return [row["price"] for row in rows if row["inscriptionId"] == seller.inscription]


# 1.05 times the floor of others, which at Ordinals Wallet is shown with the fee where a client of it listed.
@pytest.mark.parametrize(("venue", "buyers"), [(ORDINALSWALLET, {"fixed": 126_881}), (UNISAT, {"fixed": 123_456})])
def test_it_is_listed_where_the_task_says_at_what_the_seller_is_paid(
    service: Installation, venue: str, buyers: dict[str, int]
) -> None:
    seller = seller_at(venue, service, "fixed", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    assert shown(seller, venue) == [buyers["fixed"]]
    [accepted] = service.history(kind="ask", slug=seller.slug, maker=seller.vault)
    assert (accepted["event"], accepted["venue"], accepted["price"]) == ("accepted", venue.partition("-")[2], 123_456)
    assert seller.ask("DELETE") == {"success": True, "listingCancelled": True}
    assert shown(seller, venue) == []
    assert seller.events() == [("accepted", 123_456), ("cancelled", 123_456)]


@pytest.mark.parametrize(("venue", "prices"), [(ORDINALSWALLET, (102_165, 116_760)), (UNISAT, (105_000, 120_000))])
def test_a_whole_life(service: Installation, venue: str, prices: tuple[int, int]) -> None:
    """List, reprice up and down, the market forgets it, list again, sold."""
    first, second = prices
    seller = seller_at(venue, service, "life", [100_000], minPriceSats=80_000)
    seller.ask("POST", "/start")
    listed(seller, first)
    seller.ask("PUT", body={"pricePercent": 1.2})
    listed(seller, second)
    assert seller.listing["lowestOutstanding"] == first
    service.sim("POST", "/sim/delist", {"inscriptionId": seller.inscription, "venue": venue.partition("-")[2]})
    until(lambda: seller.events().count(("accepted", second)) == 2, "the listing anew", SLOW_S)
    listed(seller, second)

    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": venue.partition("-")[2]})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert seller.listing["proceeds"] == second
    assert "sold" in seller.ask("GET")["lastCycle"]["action"]


@pytest.mark.parametrize("venue", VENUES)
def test_stop_leaves_the_listing_and_delete_takes_it_away(service: Installation, venue: str) -> None:
    seller = seller_at(venue, service, "stop", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    assert seller.ask("POST", "/stop")["listingCancelled"] is False
    assert seller.events() == [("accepted", 123_456)]
    again = seller.trader.call("POST", "/api/autolist", {"inscriptionId": seller.inscription})
    assert again.status_code == 409, "an inscription has one task, wherever it is listed"
    assert seller.ask("DELETE") == {"success": True, "listingCancelled": True}
    assert shown(seller, venue) == []


@pytest.mark.parametrize("venue", VENUES)
def test_a_cancel_that_fails_is_tried_again(service: Installation, venue: str) -> None:
    seller = seller_at(venue, service, "doubt", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    service.sim("PUT", "/sim/faults", [{"operation": "cancel", "mode": "error_500", "count": 3}])
    assert seller.ask("DELETE")["success"] is True
    until(lambda: ("cancelled", 123_456) in seller.events(), "the cancel", SLOW_S)
    assert shown(seller, venue) == []


@pytest.mark.parametrize("venue", VENUES)
def test_a_worker_killed_between_submit_and_record_finds_its_listing_again(service: Installation, venue: str) -> None:
    seller = seller_at(venue, service, "killed", [100_000], **FIXED)
    # The answer to the submit hangs, and meanwhile the worker dies.
    fault = {"operation": "list", "mode": "accept_then_timeout", "count": 1, "delaySeconds": 5}
    service.sim("PUT", "/sim/faults", [fault])
    seller.ask("POST", "/start")
    until(lambda: seller.events() == [("accepted", 123_456)], "the market took it", SLOW_S)
    assert seller.listing["state"] == "submitted"
    [worker] = workers(service)
    os.kill(worker, signal.SIGKILL)
    listed(seller, 123_456)
    before = seller.ask("GET", "/cycles?limit=1")
    until(lambda: seller.ask("GET", "/cycles?limit=1") != before, "another cycle", SLOW_S)
    assert seller.events() == [("accepted", 123_456)], "listed once"
    seller.ask("DELETE")


@pytest.mark.parametrize("venue", VENUES)
def test_what_a_hostile_market_drafts_is_not_signed(service: Installation, venue: str) -> None:
    seller = seller_at(venue, service, "poisoned", [100_000], **FIXED)
    modes = ("wrong_payout", "low_payout", "other_outpoint", "extra_input", "sighash_none", "extra_output", "two_inputs")
    for mode in modes:
        service.sim("PUT", "/sim/poison", {"mode": mode})
        seller.ask("POST", "/start")
        until(lambda: seller.ask("GET")["lastError"], f"the refusal of {mode}", SLOW_S)
        seller.ask("POST", "/stop")
        assert seller.events() == []
    service.sim("PUT", "/sim/poison", {"mode": None})
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    seller.ask("DELETE")


def test_a_hostile_draft_for_taking_a_listing_back_is_not_signed(service: Installation) -> None:
    seller = seller_at(UNISAT, service, "hostile-end", [100_000], **FIXED)
    seller.ask("POST", "/start")
    listed(seller, 123_456)
    service.sim("PUT", "/sim/poison", {"mode": "wrong_payout"})
    answer = seller.ask("DELETE")
    assert (answer["success"], answer["listingCancelled"]) == (True, False)
    assert seller.events() == [("accepted", 123_456)]
    service.sim("PUT", "/sim/poison", {"mode": None})
    until(lambda: ("cancelled", 123_456) in seller.events(), "the cancel, once the market is honest", SLOW_S)
