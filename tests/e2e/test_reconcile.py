"""`bidkeeper reconcile` after a restored backup: bids and a purchase since the copy, which no order knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.commands import in_this_process
from tests.e2e.installation import Installation, Trader, installation, until
from tests.e2e.test_gone_back import copied

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # cli/test_reconcile.py

CONFIG = {"hardcapSats": 100_000, "loopSeconds": 5, "bidCount": 3, "maxFills": 3, "pauseAfterFillSeconds": 0}
ALL_KNOWN = "every bid, every listing and every purchase of the last 8 days has its order"


@pytest.fixture
def made() -> Iterator[Installation]:
    with installation(BIDKEEPER_MIN_AGE_SECONDS="0") as service:
        yield service


def reconcile(made: Installation, *options: str) -> tuple[int, str]:
    code, said, complained = in_this_process(made.environment, "reconcile", *options)
    return code, said + complained


def shows_nothing(made: Installation) -> bool:
    code, said = reconcile(made)
    assert code == 0, said
    *unread, last = said.splitlines()
    assert all(line.startswith("not read: simulator-") for line in unread)
    return last == ALL_KNOWN


def found(made: Installation, *options: str) -> dict[str, Any]:
    code, said = reconcile(made, "--json", *options)
    assert code == 0, said
    answer: dict[str, Any] = json.loads(said)
    return answer


def test_reconcile_cancels_exactly_the_bids_without_an_order_and_counts_the_purchase(made: Installation) -> None:
    """Given a copy, then three bids, of which one fills; when the copy is restored, all that follows from them."""
    made.put_collection("dogs", [100_000])
    made.put_collection("cats", [100_000])
    trader, other = Trader(made).sign_in(), Trader(made).sign_in()
    known = [each.task(slug="dogs", **CONFIG) for each in (trader, other)]
    for each, task in zip((trader, other), known, strict=True):
        each.start(task)
    since_the_copy = trader.task(slug="cats", **CONFIG)
    until(lambda: len(made.live_prices("dogs")) == 6, "the bids of before the copy")
    assert shows_nothing(made)
    made.down()
    copy = copied(made.database_url)

    made.up()
    trader.start(since_the_copy)
    until(lambda: len(made.live_prices("cats")) == 3, "the bids of after the copy")
    made.sim("POST", "/sim/sell", {"slug": "cats"})
    until(lambda: trader.get(since_the_copy)["fills"]["count"] == 1, "the fill")
    made.down()
    made.environment["BIDKEEPER_DATABASE_URL"] = copy
    code, said = reconcile(made)
    assert code == 1 and "start Bidkeeper first" in said

    made.up()
    assert trader.get(since_the_copy)["fills"]["count"] == 0, "the restored database knows nothing of it"
    lost, dogs = made.live_prices("cats"), made.live_prices("dogs")
    assert len(lost) == 2
    [at_venue] = found(made)["found"]
    assert (at_venue["user"], at_venue["unknown"]) == (trader.address, [])
    assert sorted((bid["sats"] for bid in at_venue["bids"]), reverse=True) == lost
    [purchase] = at_venue["purchases"]
    assert (purchase["sats"], purchase["tasks"], purchase["isProven"]) == (75_000, [since_the_copy], False)
    assert found(made, "--user", other.address)["found"] == []
    trader.next_cycle(known[0])
    assert "bids without an order" in in_this_process(made.environment, "doctor", "--only", "data")[1]
    assert made.live_prices("cats") == lost, "without --cancel nothing is changed"
    code, said = reconcile(made, "--cancel")
    assert code == 1 and "add --yes" in said and made.live_prices("cats") == lost

    code, said = reconcile(made, "--cancel", "--yes")
    assert code == 0 and said.count(": cancelled") == 2, said
    assert (made.live_prices("cats"), made.live_prices("dogs")) == ([], dogs)
    journal = [json.loads(line) for line in (made.data_dir / "reconcile.jsonl").read_text().splitlines()]
    assert [entry["state"] for entry in journal] == ["cancelling", "cancelled"]

    code, said = reconcile(made, "--count-for", str(known[0]), "--sale", purchase["sale"], "--yes")
    assert code == 1 and "cannot have made them" in said
    code, said = reconcile(made, "--count-for", str(since_the_copy), "--yes")
    assert code == 0 and "counted" in said, said
    assert trader.get(since_the_copy)["fills"]["count"] == 1
    assert shows_nothing(made), "a second run shows nothing"

    trader.start(since_the_copy)
    until(lambda: len(made.live_prices("cats")) == 2, "as many bids as may still fill")
    trader.next_cycle(since_the_copy, 2)
    assert len(made.live_prices("cats")) == 2, "maxFills is 3, and one is counted"
    assert shows_nothing(made)
    made.down()
