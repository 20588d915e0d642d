"""A user's own ceilings and stolen tokens, from HTTP to the marketplace and back, with real processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.installation import Installation, Trader, until
from wallet.keystore.keys import sign_message

pytestmark = pytest.mark.slow

LADDER: dict[str, Any] = {"bidMode": "fixed", "bidFixedLow": 45_000, "bidFixedHigh": 75_000, "bidCount": 3}
FULL = [75_000, 60_000, 45_000]


def raised(trader: Trader, **change: int | None) -> Any:
    """Changes the ceilings with the sign-in address's consent."""
    asked = trader.ok("POST", "/api/auth/approval", change)
    signature = sign_message(trader.key, "p2wpkh", asked["message"])
    consent = {"approvalId": asked["challengeId"], "approvalSignature": signature}
    return trader.ok("PUT", "/api/ceilings", change | consent)


def at_once(service: Installation, slug: str) -> int:
    """Returns the most sats of bids that were ever live at one time there."""
    live: dict[str, int] = {}
    most = 0
    for event in service.history(slug=slug, kind="bid"):
        if event["event"] == "accepted":
            live[event["orderId"]] = event["price"]
        else:
            live.pop(event["orderId"], None)
        most = max(most, sum(live.values()))
    return most


def test_a_running_task_obeys_a_lowered_ceiling_and_uses_a_raised_one(service: Installation, trader: Trader) -> None:
    service.put_collection("ceiling-cats", [1_000_000])
    # The ceilings change before the second cycle. Otherwise the old worker may cancel the bid and be stopped before it
    # records the reason.
    task = trader.task(slug="ceiling-cats", loopSeconds=30, **LADDER)
    trader.start(task)
    until(lambda: service.live_prices("ceiling-cats") == FULL, "the ladder")

    trader.ok("PUT", "/api/ceilings", {"maxHardcap": 60_000, "maxExposure": 110_000})
    until(lambda: 0 < sum(service.live_prices("ceiling-cats")) <= 110_000, "bids within the ceilings")
    assert max(service.live_prices("ceiling-cats")) <= 60_000
    until(lambda: "(hardcap" in trader.said(task), "the reason in a cycle")
    until(lambda: "skipped 1 exposure_limit" in trader.said(task), "the reason of what is not placed")

    assert trader.call("PUT", "/api/ceilings", {"maxHardcap": None, "maxExposure": None}).status_code == 400
    assert raised(trader, maxHardcap=None, maxExposure=None)["maxExposure"] is None
    until(lambda: 75_000 in service.live_prices("ceiling-cats"), "the highest bid again")
    trader.stop_and_drain(task)


def test_a_thief_with_the_token_bids_within_the_ceilings_until_thrown_out(
    service: Installation, trader: Trader
) -> None:
    trader.ok("PUT", "/api/ceilings", {"maxHardcap": 50_000, "maxExposure": 90_000})
    thief = Trader(service)
    thief.session.headers["Authorization"] = str(trader.session.headers["Authorization"])
    service.put_collection("junk", [1_000_000_000])
    task = thief.task(
        slug="junk", loopSeconds=5, bidMode="fixed", bidFixedLow=1_000, bidFixedHigh=9_000_000, bidCount=5
    )
    thief.start(task)
    until(lambda: service.live_prices("junk"), "the thief's bids")
    trader.next_cycle(task, 2)
    assert thief.call("PUT", "/api/ceilings", {"maxExposure": 50_000_000}).status_code == 400

    again = Trader(service)
    again.key, again.address = trader.key, trader.address
    again.sign_in()
    (stolen,) = [row["id"] for row in again.ok("GET", "/api/sessions") if not row["isCurrent"]]
    again.ok("DELETE", f"/api/sessions/{stolen}")

    assert thief.call("GET", "/api/tasks").status_code == 401
    again.stop_and_drain(task)
    assert 0 < at_once(service, "junk") <= 90_000
    assert max(event["price"] for event in service.history(event="accepted", slug="junk")) <= 50_000
