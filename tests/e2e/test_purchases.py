"""What a marketplace says that a bid bought, against what the chain shows: the whole service on the practice market."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest

from tests.e2e.installation import Installation, Refused, Trader, until

pytestmark = pytest.mark.slow

RULE = {"autolist": {"pricePercent": 1.05, "minMargin": 0.1, "loopSeconds": 5}, "start": True}
NOT_SHOWN = "the chain does not show that this bid bought it"


class Buyer:
    """A trader whose task buys a cheap item into the vault, where a costly one lies."""

    def __init__(self, service: Installation, **config: Any) -> None:
        self.service = service
        self.trader = Trader(service).sign_in()
        self.vault = self.trader.ok("GET", "/api/wallet")["vault"]
        self.slug, self.costlys = f"cheap-{secrets.token_hex(4)}", f"costly-{secrets.token_hex(4)}"
        self.costly = f"{secrets.token_hex(32)}i0"
        service.put_collection(self.costlys, [10_000_000])
        item = {"id": self.costly, "collection": self.costlys, "name": "costly"}
        service.sim("PUT", f"/sim/wallets/{self.vault}", {"inscriptions": [item]})
        service.put_collection(self.slug, [100_000])
        body = {"slug": self.slug, "hardcapSats": 100_000, "bidCount": 1, "bidPercentLow": 0.5, "loopSeconds": 5}
        self.task = self.trader.task(**body, deliverTo="vault", **config)
        self.trader.start(self.task)
        until(lambda: service.live_prices(self.slug) == [75_000], "the bid")

    def sold_into(self) -> dict[str, Any]:
        """Sells into the bid; returns the sale as it really was."""
        return dict(self.service.sim("POST", "/sim/sell", {"slug": self.slug}))

    def fill(self) -> dict[str, Any]:
        found = self.trader.ok("GET", f"/api/fills?taskId={self.task}")["fills"]
        return found[0] if found else {}

    def autolist(self, state: str) -> dict[str, Any]:
        """The way of the fill to its auto-list task, once it is this far."""
        return until(lambda: (self.fill().get("autolist") or {}).get("state") == state and self.fill(), state)[
            "autolist"
        ]

    def asks(self) -> list[int]:
        """Prices at which the vault's items were ever offered."""
        return [event["price"] for event in self.service.history(kind="ask", maker=self.vault)]

    def end(self) -> None:
        self.service.sim("PUT", "/sim/scenes/sale_names_other_item", {"inscriptionId": None})
        self.trader.stop(self.task)


def test_a_sale_that_names_a_costly_item_of_the_vault_lists_nothing(service: Installation) -> None:
    buyer = Buyer(service, onFill=RULE)
    service.sim("PUT", "/sim/scenes/sale_names_other_item", {"inscriptionId": buyer.costly})
    assert buyer.sold_into()["inscriptionId"] != buyer.costly
    until(lambda: buyer.fill().get("inscriptionId") == buyer.costly, "the lie")
    began = time.monotonic()
    while time.monotonic() - began < 40 and (buyer.fill()["autolist"] or {}).get("state") != "dropped":
        assert buyer.trader.ok("GET", "/api/autolist") == [], "the costly item has an auto-list task"
        time.sleep(0.5)
    reason = buyer.autolist("dropped")["reason"]
    assert reason.startswith(NOT_SHOWN)
    assert buyer.trader.ok("GET", "/api/autolist") == [] and buyer.asks() == []
    buyer.end()


def test_its_owner_lists_it_by_hand_and_no_cheap_price_guards_it(service: Installation) -> None:
    buyer = Buyer(service)
    service.sim("PUT", "/sim/scenes/sale_names_other_item", {"inscriptionId": buyer.costly})
    buyer.sold_into()
    until(lambda: buyer.fill().get("inscriptionId") == buyer.costly, "the lie")
    body = {"inscriptionId": buyer.costly, "collectionId": buyer.costlys, "reference": "purchase", "loopSeconds": 5}
    made = buyer.trader.ok("POST", "/api/autolist", body)
    assert (made["config"]["costSats"], made["costSource"]) == (None, "claimed")
    with pytest.raises(Refused, match="no purchase of it is proved"):
        buyer.trader.ok("POST", f"/api/autolist/{made['id']}/start")
    buyer.trader.ok("PUT", f"/api/autolist/{made['id']}", {"costSats": 9_000_000})
    buyer.trader.ok("POST", f"/api/autolist/{made['id']}/start")
    until(lambda: buyer.asks(), "the listing")
    assert min(buyer.asks()) >= 9_000_000
    buyer.trader.ok("DELETE", f"/api/autolist/{made['id']}")
    buyer.end()


def test_a_sale_out_of_an_escrow_at_ord_net_is_proved(service: Installation) -> None:
    trader = Trader(service).sign_in()
    keys, slug = trader.ok("GET", "/api/wallet"), f"frogs-{secrets.token_hex(4)}"
    service.sim("PUT", f"/sim/coins/{keys['payment']}", {"values": [400_000] * 6})
    service.put_collection(slug, [500_000])
    fixed = {"bidMode": "fixed", "bidFixedLow": 200_000, "bidFixedHigh": 200_000, "bidCount": 1, "loopSeconds": 10}
    rule = RULE | {"start": False}
    task = trader.task(
        slug=slug, venue="simulator-ordnet", deliverTo="vault", hardcapSats=300_000, onFill=rule, **fixed
    )
    trader.start(task)
    until(lambda: service.live_prices(slug) == [200_000], "the offer")
    item = service.sim("POST", "/sim/sell", {"slug": slug})["inscriptionId"]
    made = until(lambda: trader.ok("GET", "/api/autolist"), "the auto-list task")[0]
    assert (made["inscriptionId"], made["config"]["costSats"], made["costSource"]) == (item, 200_000, "fill")
    trader.stop(task)


@pytest.mark.thorough
def test_a_reorganisation_stops_the_listing_of_what_was_bought_until_it_is_proved_again(service: Installation) -> None:
    buyer = Buyer(service, onFill=RULE)
    sale, began = buyer.sold_into(), time.monotonic()
    made = buyer.autolist("listed")["taskId"]
    print(f"an honest fill has its auto-list task after {time.monotonic() - began:.1f} s")

    def task() -> dict[str, Any]:
        return dict(buyer.trader.ok("GET", f"/api/autolist/{made}"))

    assert (task()["inscriptionId"], task()["costSource"]) == (sale["inscriptionId"], "fill")
    assert task()["config"]["costSats"] == 75_000
    until(lambda: buyer.asks() == [105_000], "the listing")

    service.sim("POST", "/sim/reorganise", {"txid": sale["txids"][0]})
    until(lambda: not task()["isRunning"], "the end of the auto-list task")
    assert "the chain does not show its purchase any more" in task()["lastError"] and task()["costSource"] == "claimed"
    assert buyer.fill()["autolist"]["state"] == "waiting"

    service.sim("POST", "/sim/confirm", {})
    until(lambda: task()["isRunning"], "the second start of the auto-list task")
    assert (task()["costSource"], buyer.fill()["autolist"]["taskId"]) == ("fill", made)
    buyer.trader.ok("DELETE", f"/api/autolist/{made}")
    buyer.end()
