"""A data directory of an older version, taken over by this one: bids, a listing and a withdrawal continue.

BIDKEEPER_FORMER names a checkout of the older version that has its packages in .venv (`git worktree add ../former
COMMIT && make -C ../former setup`). Its programs trade, are ended or killed, and this checkout's start in their place.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drills.faults.fleet import BIDS, FLOOR, Fleet
from tests.e2e.installation import Installation, until
from tests.e2e.test_listing import Seller
from tests.e2e.test_withdraw import Owner

FORMER = os.environ.get("BIDKEEPER_FORMER", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(not FORMER, reason="BIDKEEPER_FORMER names no checkout of an older version"),
]
TASKS = 3


@pytest.fixture
def service() -> Iterator[Installation]:
    tree = Path(FORMER).resolve()
    made = Installation(python=str(tree / ".venv/bin/python"), tree=tree)
    yield made
    made.destroy()


def end(service: Installation, *, is_killed: bool) -> None:
    """Ends every program of the installation, as an operator does or as a power cut does."""
    if not is_killed:
        service.down()
    else:
        assert service.process is not None
        market = service.processes("cli.main simulator")  # a marketplace keeps what it has answered
        for pid in service.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM if pid in market else signal.SIGKILL)
        service.process.wait()
    until(lambda: service.processes() == [], "the end of every process")


@pytest.mark.parametrize("is_killed", [False, True], ids=["ended", "killed"])
def test_bids_listing_and_withdrawal_continue_under_the_new_version(service: Installation, is_killed: bool) -> None:
    service.up()
    fleet = Fleet(service, TASKS)
    fleet.start()
    seller = Seller(service, "taken-over", [100_000])
    seller.ask("POST", "/start")
    owner = Owner(service)
    owner.fund(owner.payment, 60_000, 90_000)
    withdrawal = owner.sent(from_="payment", amountSats=30_000, feeRate=2)
    until(lambda: fleet.placed() == TASKS * BIDS, "all bids")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    end(service, is_killed=is_killed)

    service.is_run_by(sys.executable, None)
    service.up()
    until(fleet.all_run, "the return of all tasks")
    for task in fleet.tasks:
        fleet.trader.next_cycle(task, 2)
    assert fleet.placed() == TASKS * BIDS, "a bid was placed anew"
    assert [bid for bid in fleet.taken() if bid.end_ms] == [], "a bid was given up"
    assert fleet.disagreements() == []
    assert seller.events() == [("accepted", 105_000)]
    assert owner.newest()["txid"] == withdrawal["txid"]

    service.put_collection(fleet.slugs[0], [FLOOR * 2])
    until(lambda: len(fleet.taken()) > TASKS * BIDS, "a bid at the new floor")
    seller.ask("PUT", body=seller.config | {"pricePercent": 1.2})
    until(lambda: seller.is_listed_at(120_000), lambda: f"the new price: {seller.events()} {service.last_words()}")
    service.confirm(withdrawal["txid"])
    until(lambda: owner.newest()["state"] == "confirmed", "the withdrawal's block")
    seller.end()
    fleet.stop()
    until(lambda: all(bid.end_ms for bid in fleet.taken()), "the end of every bid")
