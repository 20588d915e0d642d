"""Auto-list tasks at the practice market's ord.net, which sells an item out of an escrow of its owner's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.installation import Installation, installation, until
from tests.e2e.test_listing import Seller

pytestmark = pytest.mark.slow

VENUE = "simulator-ordnet"
SLOW_S = 180.0
FIXED = {"priceMode": "fixed", "priceSats": 123_000}


@pytest.fixture(scope="module")
def service() -> Iterator[Installation]:
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0") as made:
        yield made


def seller_of(service: Installation, name: str, **config: Any) -> Seller:
    return Seller(service, f"escrow-{name}", [100_000], venue=VENUE, **(config or FIXED))


def listed(seller: Seller, price: int, seconds: float = SLOW_S) -> None:
    until(lambda: seller.is_listed_at(price), f"a listing at {price}: {seller.ask('GET')['lastError']}", seconds)


def test_a_whole_life(service: Installation) -> None:
    """List, reprice up, the market forgets it, list again, sold out of the escrow."""
    seller = seller_of(service, "life")
    seller.ask("POST", "/start")
    listed(seller, 123_000)
    seller.ask("PUT", body={"priceSats": 150_000})
    listed(seller, 150_000)
    assert seller.listing["lowestOutstanding"] == 123_000
    service.sim("POST", "/sim/delist", {"inscriptionId": seller.inscription, "venue": "ordnet"})
    until(lambda: seller.events().count(("accepted", 150_000)) == 2, "the listing anew", SLOW_S)
    listed(seller, 150_000)

    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": "ordnet"})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert "sold" in seller.ask("GET")["lastCycle"]["action"]
