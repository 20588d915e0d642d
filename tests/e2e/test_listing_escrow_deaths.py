"""A worker's death at points of a listing out of an escrow, and of the way home, leaves one listing and one way."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from cli.database import migrate
from core.settings import load
from tests.e2e.hosts import Host
from tests.e2e.installation import Installation, installation, until
from tests.e2e.test_listing import Seller
from tests.e2e.test_listing_escrow import SLOW_S, at_home_again, give_sats, listed, seller_of, started, stranded

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

POINTS = ("listing-signed", "listing-submitted", "homecoming-stored")


class Apart(Installation):
    """Its programs are started one by one, so that a manager can be told of another crash point than the one before."""

    def __init__(self) -> None:
        super().__init__(BIDKEEPER_MIN_AGE_SECONDS="0")
        self.host = Host(self.data_dir, self.environment)

    def up(self, verb: str = "up") -> None:
        migrate(load(environment=self.environment))
        for program in ("simulator", "signer", "facts", "gateway", "server", "hooks"):
            self.host.start(program)

    def begin_again(self, *programs: str, **settings: str) -> None:
        """Kills what runs of these programs, with their children, and starts them."""
        for program in programs:
            if program in self.host.processes:
                self.host.end(program, signal.SIGKILL)
        for program in programs:
            self.host.start(program, **settings)
        until(self.ready_again, f"everything answers, {programs} anew")

    def destroy(self) -> None:
        for program in reversed(list(self.host.processes)):
            self.host.end(program, signal.SIGKILL)
        super().destroy()


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = Apart()
    try:
        made.up()
        yield made
    finally:
        made.destroy()


def wait_for_death(service: Installation, point: str) -> None:
    def is_dead() -> bool:
        logs = (service.data_dir / "logs").glob("*.log*")
        return any(f"dies at crash point {point}" in log.read_text(errors="replace") for log in logs)

    until(is_dead, f"a death at {point}", SLOW_S)


def homes(seller: Seller) -> int:
    """Counts the item's ways home that were signed."""
    return len([row for row in seller.trader.ok("GET", "/api/wallet")["withdrawals"] if row["from"] == "escrow"])


def test_three_deaths_leave_one_listing_and_one_way_home(apart: Apart) -> None:
    """Each worker dies at its point again and again, until all of its manager's programs are killed."""
    signed, submitted, stored = ({"BIDKEEPER_CRASHPOINT": point} for point in POINTS)
    apart.begin_again("manager", **signed)
    seller = seller_of(apart, "deaths")
    seller.trader.call("POST", f"/api/autolist/{seller.task}/start")
    wait_for_death(apart, POINTS[0])
    assert seller.events() == []
    apart.begin_again("manager", **submitted)
    wait_for_death(apart, POINTS[1])
    apart.begin_again("manager", **stored)
    listed(seller)
    assert seller.events() == [("accepted", 123_000)]

    give_sats(seller)
    escrow = stranded(seller)
    seller.trader.call("PUT", f"/api/autolist/{seller.task}", {"priceSats": 150_000})
    wait_for_death(apart, POINTS[2])
    apart.begin_again("signer", "gateway", "server", "manager")
    at_home_again(seller, escrow, 420)
    assert homes(seller) == 1, "signed once"
    listed(seller, 150_000)
    assert seller.ask("DELETE")["success"] is True
    until(lambda: ("cancelled", 150_000) in seller.events(), "the end", SLOW_S)


def crashed(service: Installation, point: str) -> None:
    """Waits for the death of a worker there, and begins again as after a power cut, without that fault."""
    wait_for_death(service, point)
    service.down()
    del service.environment["BIDKEEPER_CRASHPOINT"]
    service.up()


@pytest.mark.faults
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


# What the caretaker does after its three minutes is in tests/workers/listing and tests/server/withdrawals, too, on a
# clock of their own.
@pytest.mark.faults
@pytest.mark.parametrize("point", ["homecoming-signed", "homecoming-stored"])
def test_an_item_whose_worker_died_on_the_way_comes_home(point: str) -> None:
    """Of a row that was left reserved the server's caretaker asks the signer, after three minutes."""
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0", BIDKEEPER_CRASHPOINT=point) as service:
        seller = started(service, point)
        give_sats(seller)
        escrow = stranded(seller)
        seller.trader.call("PUT", f"/api/autolist/{seller.task}", {"priceSats": 150_000})
        crashed(service, point)
        at_home_again(seller, escrow, 420)
        assert homes(seller) == 1, "signed once"
        listed(seller, 150_000)
