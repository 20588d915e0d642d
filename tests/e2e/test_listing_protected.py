"""Auto-list tasks at Ordinals Wallet (of the practice market) with protected listings, in a lock of 144 blocks.

One installation, in which all stories go on at the same time: nearly all of their time is waiting.
"""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from cli import wallet
from cli.doctor import settings_check
from core.settings import load
from simulator.venue_scripts import LOCK_BLOCKS
from tests.e2e.installation import Installation, until
from tests.e2e.test_listing import Seller
from tests.e2e.test_listing_escrow import FIXED, SETTINGS, SLOW_S, at_home_again, listed, place

pytestmark = pytest.mark.slow

VENUE = "simulator-ordinalswallet"
# Why each evil draft is refused. Under `recovery_theirs` the sale asks for the leaf that takes the item back.
EVIL = {
    "low_payout": "payout",
    "escrow_theirs": "escrow",
    "escrow_short": "postage",
    "extra_output": "outputs-known",
    "recovery_theirs": "sale-leaf",
}
KEPT = "its escrow keeps it until block"
STRANDED = ("running", "stopped", "deleted", "dying")


@dataclass
class Town:
    """The installation, the sellers by their stories, and the escrows of those whose items were stranded."""

    service: Installation
    sellers: dict[str, Seller]
    escrows: dict[str, str] = field(default_factory=dict)

    def strand(self, name: str) -> None:
        """Lets the venue send the transfer without a sale."""
        found = self.service.sim("POST", "/sim/escrow", {"inscriptionId": self.sellers[name].inscription})
        assert found["address"] != self.sellers[name].vault
        self.escrows[name] = str(found["outpoint"])


def seller_of(service: Installation, name: str) -> Seller:
    return Seller(service, f"protected-{name}", [100_000], venue=VENUE, **FIXED)


def kill(service: Installation, kind: str, seller: Seller) -> None:
    """Kills the task's worker, once there is one."""

    def worker() -> int:
        found = service.processes(f"bidkeeper: {kind} task {seller.task} ")
        return found[0] if len(found) == 1 else 0

    os.kill(until(worker, f"one {kind} of task {seller.task}", SLOW_S), signal.SIGKILL)


@pytest.fixture(scope="module")
def town(service: Installation) -> Town:
    """Sellers with a protected listing each; all but three of their items are stranded then."""
    assert service.environment.items() >= SETTINGS.items()
    names = ("life", "leaving", *STRANDED)
    made = Town(service, {name: seller_of(service, name) for name in names})
    for seller in made.sellers.values():
        seller.ask("POST", "/start")
        payment = seller.trader.ok("GET", "/api/wallet")["payment"]
        service.sim("PUT", f"/sim/coins/{payment}", {"values": [2_000_000]})
    for seller in made.sellers.values():
        listed(seller)
    made.sellers["stopped"].ask("POST", "/stop")
    for name in STRANDED:
        made.strand(name)
    return made


def test_a_listing_is_protected_repriced_and_taken_away(town: Town) -> None:
    seller = town.sellers["life"]
    base = f"http://127.0.0.1:{town.service.simulator_port}/ordinalswallet/market/escrow/{seller.inscription}"
    assert requests.get(base, timeout=30).json()["protected"] is True
    seller.ask("PUT", body={"priceSats": 150_000})
    listed(seller, 150_000)
    assert seller.listing["lowestOutstanding"] == 123_000
    town.service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription, "venue": "ordinalswallet"})
    leaving = town.sellers["leaving"]
    assert leaving.ask("POST", "/stop")["listingCancelled"] is False
    leaving.end()
    assert leaving.events() == [("accepted", 123_000), ("cancelled", 123_000)]
    assert place(leaving)[0] == leaving.vault, "nothing has moved"


def test_what_a_hostile_market_drafts_is_not_signed(town: Town) -> None:
    seller = seller_of(town.service, "poisoned")
    for mode, rule in EVIL.items():
        town.service.sim("PUT", "/sim/poison", {"mode": mode})
        preview = seller.trader.ok("POST", "/api/autolist/preview", {"taskId": seller.task})
        broken = {each["rule"] for each in preview["draft"]["forms"][0]["findings"] if each["holds"] is False}
        assert broken == {rule}, mode
        assert not any(form["isSigned"] for form in preview["draft"]["forms"])
    assert seller.events() == []
    town.service.sim("PUT", "/sim/poison", {"mode": None})


def test_the_doctor_and_the_judge_know_the_kind(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    settings, seller = load(environment=town.service.environment), seller_of(town.service, "judged")
    [line] = [each for each in settings_check.drafts(settings) if each.name == f"live {VENUE} listings"]
    assert line.text == (
        "signed after the signer has checked what each draft moves: "
        "transfer and sale, by an escrow that your own key opens 144 blocks after an item came there"
    )
    asked = argparse.Namespace(
        address=seller.trader.address, inscription=seller.inscription, price=123_000, venue=VENUE, collection=None
    )
    assert wallet._judge(settings, asked) == 0
    told = capsys.readouterr().out
    assert "sale" in told and "transfer" in told


def test_a_stranded_item_stays_until_its_block_and_its_owner_is_told(town: Town) -> None:
    running, deleted = town.sellers["running"], town.sellers["deleted"]
    until(lambda: KEPT in str(running.ask("GET")["lastError"]), "its owner is told until when", SLOW_S)
    assert "not free yet to come home" in running.ask("GET")["lastCycle"]["action"]
    assert running.trader.ok("GET", "/api/wallet")["withdrawals"] == []
    wanted = {"from": "escrow", "inscriptionId": town.sellers["stopped"].inscription, "force": True}
    early = town.sellers["stopped"].trader.call("POST", "/api/wallet/withdraw", wanted)
    assert (early.status_code, KEPT in early.text) == (409, True), early.text
    assert deleted.ask("DELETE")["success"] is True
    assert place(deleted)[1] == town.escrows["deleted"]
    # What comes of it is looked at below.
    town.service.sim("POST", "/sim/blocks", {"count": LOCK_BLOCKS})


@pytest.mark.thorough
def test_workers_killed_at_each_step_leave_one_listing_or_none(town: Town) -> None:
    """The market holds each step up, so that the kill falls into it: the draft, the listing, the cancel."""
    service = town.service
    sellers = {step: seller_of(service, f"killed-{step}") for step in ("cancel", "draft", "list")}
    sellers["cancel"].ask("POST", "/start")
    listed(sellers["cancel"])
    sellers["cancel"].ask("POST", "/stop")
    for step, seller in sellers.items():
        mode = "slow" if step == "draft" else "accept_then_timeout"
        # The drain is looked for only after its client has given up, so the cancel is held up for longer: until the
        # gateway gives up.
        delay_s = 30 if step == "cancel" else 2
        service.sim("PUT", "/sim/faults", [{"operation": step, "mode": mode, "count": 1, "delaySeconds": delay_s}])
        if step == "cancel":
            with pytest.raises(requests.RequestException):
                seller.trader.session.delete(f"{seller.trader.base_url}/api/autolist/{seller.task}", timeout=1.5)
            kill(service, "drain", seller)
            continue
        seller.ask("POST", "/start")
        if step == "list":
            until(lambda of=seller: of.events() == [("accepted", 123_000)], "it was taken", SLOW_S)  # type: ignore[misc]
        kill(service, "lister", seller)
    for step in ("draft", "list"):
        listed(sellers[step])
        assert sellers[step].events() == [("accepted", 123_000)], "listed once"
        assert sellers[step].ask("DELETE")["success"] is True
    once = [("accepted", 123_000), ("cancelled", 123_000)]
    until(lambda: all(seller.events() == once for seller in sellers.values()), "their ends", SLOW_S)


def taken_out(seller: Seller, source: str) -> Any:
    """Has it taken out of the escrow, as soon as index and chain agree on the new blocks."""
    wanted = {"from": source, "inscriptionId": seller.inscription, "force": True}

    def sent() -> Any:
        answer = seller.trader.call("POST", "/api/wallet/withdraw", wanted)
        is_early = KEPT in answer.text or "index is behind" in answer.text
        assert answer.status_code < 300 or is_early, answer.text
        return None if is_early else answer.json()

    return until(sent, "the way out", SLOW_S)


def test_when_the_lock_opens_it_comes_home_and_is_listed_from_there(town: Town) -> None:
    """By its task, which lists it anew; by a task whose worker is killed meanwhile; by its owner, to both places."""
    service, sellers = town.service, town.sellers
    for name, source in (("stopped", "escrow"), ("deleted", "vault")):
        seller = sellers[name]
        sent = taken_out(seller, source)
        assert town.escrows[name] in sent["coins"]
        service.confirm(sent["txid"])
        assert sent["destination"] == (seller.vault if source == "escrow" else seller.trader.address)
        assert place(seller) == (sent["destination"], f"{sent['txid']}:0")
    kill(service, "lister", sellers["dying"])
    for name in ("running", "dying"):
        home = at_home_again(sellers[name], town.escrows[name])
        homes = [row for row in sellers[name].trader.ok("GET", "/api/wallet")["withdrawals"] if row["from"] == "escrow"]
        assert len(homes) == 1, "signed once"
        assert place(sellers[name])[1] == home
    for name in ("running", "dying"):
        listed(sellers[name])
        assert sellers[name].events()[-1] == ("accepted", 123_000)


def test_the_sale_out_of_the_escrow_is_known_and_paid(town: Town) -> None:
    seller = town.sellers["life"]
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task", SLOW_S)
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    until(lambda: seller.trader.ok("GET", "/api/wallet")["paymentSats"] == 2_150_000, "the proceeds", SLOW_S)
