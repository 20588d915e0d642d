"""A whole installation whose PostgreSQL server is killed while its tasks bid, and whose standby takes over."""

from __future__ import annotations

import pytest

from tests import databases, postgresql
from tests.e2e.installation import Installation, Trader, until
from tests.standbys import pair

pytestmark = [
    pytest.mark.slow,
    postgresql.only,
]

FAIL_OVERS = 2
LIVE = "SELECT price_sats FROM orders WHERE state = 'live' ORDER BY price_sats DESC"


def test_bidding_goes_on_at_the_standby_and_every_bid_has_its_row() -> None:
    with pair(synchronous=True) as servers:
        servers.follow()
        made = Installation(BIDKEEPER_DATABASE_URL=servers.url)
        try:
            made.up()
            made.put_collection("cats", [100_000])
            trader = Trader(made).sign_in()
            task = trader.task(slug="cats", hardcapSats=1_000_000, loopSeconds=5, bidCount=3)
            trader.start(task)
            until(lambda: len(made.live_prices("cats")) == 3, "the ladder")
            for turn in range(FAIL_OVERS):
                tokens = databases.rows(servers.url, "SELECT id, token FROM tasks")
                servers.fail_over()
                servers.follow()
                assert databases.rows(servers.primary.url("storm"), "SELECT id, token FROM tasks") >= tokens
                until(made.ready_again, "everything's answer", 300)
                floor = 200_000 + 100_000 * turn
                made.put_collection("cats", [floor])
                until(lambda: max(made.live_prices("cats"), default=0) == floor * 3 // 4, "bids at the new floor", 300)  # noqa: B023
                until(
                    lambda: made.live_prices("cats") == [price for (price,) in databases.rows(servers.url, LIVE)],
                    "a row for each bid",
                )
            assert trader.get(task)["isRunning"] is True
            assert len(made.workers(task)) == 1
            made.down()
        finally:
            made.destroy()
