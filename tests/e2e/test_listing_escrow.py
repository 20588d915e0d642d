"""Auto-list tasks at the practice market's ord.net, which sells an item out of an escrow of its owner's."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import requests

from tests.e2e.installation import Installation, until
from tests.e2e.test_listing import Seller
from tests.examples import some_of

pytestmark = pytest.mark.slow

# The second is for test_listing_protected.py, which has the same installation.
SETTINGS = {"BIDKEEPER_MIN_AGE_SECONDS": "0", "BIDKEEPER_ORDINALSWALLET_PROTECTED_LISTINGS": "true"}

VENUE = "simulator-ordnet"
SLOW_S = 180.0
FIXED = {"priceMode": "fixed", "priceSats": 123_000}
# Why each evil draft is refused.
REFUSED = {
    "wrong_payout": "(outputs-known)",
    "low_payout": "(payout)",
    "other_outpoint": "(inputs-reserved)",
    "sighash_none": "(sighash-allowed)",
    "escrow_theirs": "(escrow)",
    "escrow_short": "(postage)",
    "sale_by_key": "(sale-leaf)",
    "recovery_theirs": "(recovery)",
}


def seller_of(service: Installation, name: str, **config: Any) -> Seller:
    return Seller(service, f"escrow-{name}", [100_000], venue=VENUE, **(config or FIXED))


def listed(seller: Seller, price: int = 123_000) -> None:
    until(lambda: seller.is_listed_at(price), f"a listing at {price}", SLOW_S)


def started(service: Installation, name: str, **config: Any) -> Seller:
    seller = seller_of(service, name, **config)
    seller.ask("POST", "/start")
    listed(seller)
    return seller


def place(seller: Seller) -> tuple[str, str]:
    """Returns address and output that the index finds the inscription at."""
    base = f"http://127.0.0.1:{seller.service.simulator_port}/ord/inscription/{seller.inscription}"
    found = requests.get(base, headers={"Accept": "application/json"}, timeout=30).json()
    return str(found["address"]), str(found["satpoint"].rpartition(":")[0])


def stranded(seller: Seller) -> str:
    """Lets the venue send the transfer without a sale; returns the escrow's output."""
    found = seller.service.sim("POST", "/sim/escrow", {"inscriptionId": seller.inscription})
    assert found["address"] != seller.vault
    return str(found["outpoint"])


def give_sats(seller: Seller, sats: int = 2_000_000) -> None:
    # More than the 0.01 BTC that ord.net asks of whoever signs in, as after a restart.
    payment = seller.trader.ok("GET", "/api/wallet")["payment"]
    seller.service.sim("PUT", f"/sim/coins/{payment}", {"values": [sats]})
    until(lambda: seller.trader.ok("GET", "/api/wallet")["paymentSats"] == sats, "the sats to be seen")


def at_home_again(seller: Seller, escrow: str, seconds: float = SLOW_S) -> str:
    """Waits for the way home, and puts it into a block; returns the vault's new output."""

    def on_its_way() -> str | None:
        found = seller.trader.ok("GET", "/api/wallet")["withdrawals"]
        home = [row for row in found if row["from"] == "escrow" and escrow in row["coins"]]
        return str(home[0]["txid"]) if home and home[0]["state"] in ("submitted", "confirmed") else None

    txid = until(on_its_way, "the way home", seconds)
    seller.service.confirm(txid)
    assert place(seller) == (seller.vault, f"{txid}:0")
    return f"{txid}:0"


def test_a_whole_life(service: Installation) -> None:
    """List, reprice up, the market forgets it, list again, sold out of the escrow."""
    seller = started(service, "life")
    seller.ask("PUT", body={"priceSats": 150_000})
    listed(seller, 150_000)
    assert seller.listing["lowestOutstanding"] == 123_000
    service.sim("POST", "/sim/delist", {"inscriptionId": seller.inscription, "venue": "ordnet"})
    until(lambda: seller.events().count(("accepted", 150_000)) == 2, "the listing anew", SLOW_S)
    listed(seller, 150_000)

    give_sats(seller, 100_000)
    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": "ordnet"})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert "sold" in seller.ask("GET")["lastCycle"]["action"]
    paid = 100_000 + 150_000 - 1_500  # less the venue's hundredth
    until(lambda: seller.trader.ok("GET", "/api/wallet")["paymentSats"] == paid, "the proceeds", SLOW_S)


@pytest.mark.thorough
def test_an_item_in_its_escrow_is_still_for_sale_and_comes_home_for_another_price(service: Installation) -> None:
    """Stranded, and kept; at another price brought home and listed from there; stranded again, and sold."""
    seller = started(service, "kept")
    give_sats(seller)
    escrow = stranded(seller)
    before = seller.ask("GET", "/cycles?limit=1")
    until(lambda: seller.ask("GET", "/cycles?limit=1") != before, "a cycle", SLOW_S)
    until(lambda: seller.ask("GET")["lastError"] is None, "a cycle without a fault")
    assert (seller.ask("GET")["isRunning"], seller.listing["state"]) == (True, "live")
    assert place(seller)[1] == escrow

    seller.ask("PUT", body={"priceSats": 150_000})
    home = at_home_again(seller, escrow)
    listed(seller, 150_000)
    assert seller.listing["lowestOutstanding"] == 150_000, "nothing was signed for the output that it is on now"
    assert place(seller)[1] == home

    assert stranded(seller) != escrow
    service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": "ordnet"})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["closeReason"], seller.listing["proceeds"]) == ("sold", 150_000)


# To the sign-in address it goes out of Ordinals Wallet's escrow in test_listing_protected.py, too.
@pytest.mark.parametrize("source", ["escrow", pytest.param("vault", marks=pytest.mark.faults)])
def test_its_owner_gets_it_out_of_the_escrow_and_the_end_of_its_task_does(service: Installation, source: str) -> None:
    """Back to the vault, or to the address that they sign in with."""
    seller = started(service, f"out-{source}")
    seller.ask("POST", "/stop")
    give_sats(seller, 600)
    from_escrow = {"from": "escrow", "inscriptionId": seller.inscription, "force": True}
    answer = seller.trader.call("POST", "/api/wallet/withdraw", from_escrow)
    assert (answer.status_code, "not in an escrow of yours" in answer.text) == (409, True)
    escrow = stranded(seller)
    wanted = {"from": source, "inscriptionId": seller.inscription, "force": True}
    poor = seller.trader.call("POST", "/api/wallet/withdraw", wanted)
    assert (poor.status_code, "Nothing can be withdrawn" in poor.text) == (409, True), poor.text
    give_sats(seller)
    sent = seller.trader.ok("POST", "/api/wallet/withdraw", wanted)
    assert (sent["from"], escrow in sent["coins"]) == (source, True)
    assert sent["destination"] == (seller.vault if source == "escrow" else seller.trader.address)
    service.confirm(sent["txid"])
    assert place(seller) == (sent["destination"], f"{sent['txid']}:0")
    if source == "vault":
        return

    # From the vault it is listed again, and a task that is deleted brings it home by itself.
    seller.ask("POST", "/start")
    until(lambda: seller.events().count(("accepted", 123_000)) == 2, "the listing anew", SLOW_S)
    listed(seller)
    ended = seller.events().count(("cancelled", 123_000))
    escrow = stranded(seller)
    give_sats(seller)
    assert seller.ask("DELETE")["success"] is True
    at_home_again(seller, escrow)
    until(lambda: seller.events().count(("cancelled", 123_000)) > ended, "the end of the listing", SLOW_S)


@pytest.mark.sampled
def test_an_evil_draft_is_not_signed_a_killed_worker_lists_once_and_the_end_takes_it_away(
    service: Installation,
) -> None:
    """Evil drafts take ten seconds each; tests/wallet has every attack on the signer itself."""
    seller = seller_of(service, "poisoned")
    for mode, words in some_of(REFUSED.items(), __name__, dear=True):
        service.sim("PUT", "/sim/poison", {"mode": mode})
        seller.ask("POST", "/start")
        until(lambda w=words: w in str(seller.ask("GET")["lastError"]), f"{mode}: {words}", SLOW_S)  # type: ignore[misc]
        seller.ask("POST", "/stop")
        assert seller.events() == []
    service.sim("PUT", "/sim/poison", {"mode": None})

    # Killed between submit and record, it finds its listing again.
    fault = {"operation": "list", "mode": "accept_then_timeout", "count": 1, "delaySeconds": 5}
    service.sim("PUT", "/sim/faults", [fault])
    seller.ask("POST", "/start")
    until(lambda: seller.events() == [("accepted", 123_000)], "the market, once it is honest, took it", SLOW_S)
    [worker] = seller.workers()
    os.kill(worker, signal.SIGKILL)
    listed(seller)
    assert seller.events() == [("accepted", 123_000)], "listed once"

    assert seller.ask("POST", "/stop")["listingCancelled"] is False
    assert seller.events() == [("accepted", 123_000)]
    seller.end()
    assert seller.events()[-1] == ("cancelled", 123_000)
    assert place(seller)[0] == seller.vault, "nothing has moved"
