"""A worker's death at each point of a listing out of an escrow leaves one listing."""

from __future__ import annotations

import pytest

from tests.e2e.installation import Installation, installation, until
from tests.e2e.test_listing_escrow import SLOW_S, listed, seller_of

pytestmark = pytest.mark.slow


def crashed(service: Installation, point: str) -> None:
    """Waits for the death of a worker there, and begins again as after a power cut, without that fault."""

    def is_dead() -> bool:
        logs = (service.data_dir / "logs").glob("*.log*")
        return any(f"dies at crash point {point}" in log.read_text(errors="replace") for log in logs)

    until(is_dead, f"a death at {point}", SLOW_S)
    service.down()
    del service.environment["BIDKEEPER_CRASHPOINT"]
    service.up()


@pytest.mark.parametrize("point", ["listing-signed", "listing-submitted"])
def test_a_listing_whose_worker_died_is_there_once(point: str) -> None:
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0", BIDKEEPER_CRASHPOINT=point) as service:
        seller = seller_of(service, point)
        seller.trader.call("POST", f"/api/autolist/{seller.task}/start")
        crashed(service, point)
        listed(seller)
        assert seller.events() == [("accepted", 123_000)]
        assert seller.ask("DELETE")["success"] is True
        until(lambda: ("cancelled", 123_000) in seller.events(), "the end", SLOW_S)
