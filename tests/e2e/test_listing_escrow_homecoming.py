"""A worker's death at each point of an item's way home from its escrow: it comes home once, and is listed there."""

from __future__ import annotations

import pytest

from tests.e2e.installation import installation
from tests.e2e.test_listing_escrow import at_home_again, give_sats, listed, started, stranded
from tests.e2e.test_listing_escrow_deaths import crashed

pytestmark = pytest.mark.slow


# The caretaker's three minutes are for `make faults`: tests/workers/listing and tests/server/withdrawals have that
# death, and what the caretaker does then, on a clock of their own.
@pytest.mark.parametrize("point", [pytest.param("homecoming-signed", marks=pytest.mark.faults), "homecoming-stored"])
def test_an_item_whose_worker_died_on_the_way_comes_home(point: str) -> None:
    """Of a row that was left reserved the server's caretaker asks the signer, after three minutes."""
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0", BIDKEEPER_CRASHPOINT=point) as service:
        seller = started(service, point)
        give_sats(seller)
        escrow = stranded(seller)
        seller.trader.call("PUT", f"/api/autolist/{seller.task}", {"priceSats": 150_000})
        crashed(service, point)
        at_home_again(seller, escrow, 420)
        homes = [row for row in seller.trader.ok("GET", "/api/wallet")["withdrawals"] if row["from"] == "escrow"]
        assert len(homes) == 1, "signed once"
        listed(seller, 150_000)
