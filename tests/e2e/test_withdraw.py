"""A user's money and inscriptions get out again: the whole service, the practice market and its chain."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.e2e.installation import PATIENCE, Installation, Trader, until

pytestmark = pytest.mark.slow


class Owner:
    """A trader whose addresses hold nothing but what a test puts there."""

    def __init__(self, service: Installation) -> None:
        self.service = service
        self.trader = Trader(service).sign_in()
        self.wallet = self.trader.ok("GET", "/api/wallet")
        self.payment, self.vault = self.wallet["payment"], self.wallet["vault"]
        for address in (self.trader.address, self.vault, self.payment):
            self.fund(address)

    def fund(self, address: str, *values: int) -> list[str]:
        made = self.service.sim("PUT", f"/sim/coins/{address}", {"values": list(values)})
        return [row["outpoint"] for row in made]

    def coins(self, address: str) -> dict[str, int]:
        rows = requests.get(
            f"http://127.0.0.1:{self.service.simulator_port}/mempool/api/address/{address}/utxo", timeout=PATIENCE
        ).json()
        return {f"{row['txid']}:{row['vout']}": row["value"] for row in rows}

    def withdraw(self, **body: Any) -> requests.Response:
        named = {"from" if name == "from_" else name: value for name, value in body.items()}
        return self.trader.call("POST", "/api/wallet/withdraw", named)

    def sent(self, **body: Any) -> dict[str, Any]:
        answer = self.withdraw(**body)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def newest(self) -> dict[str, Any]:
        found: dict[str, Any] = self.trader.ok("GET", "/api/wallet")["withdrawals"][0]
        return found

    def confirm(self, txid: str) -> None:
        assert self.service.sim("POST", "/sim/confirm", {"txid": txid})["confirmed"] == [txid]

    def listing(self, task: int) -> dict[str, Any]:
        found: dict[str, Any] | None = self.trader.ok("GET", f"/api/autolist/{task}")["listing"]
        return found or {}

    def put_into_vault(self) -> str:
        inscription = f"{secrets.token_hex(32)}i0"
        item = {"id": inscription, "collection": "frogs", "name": "one"}
        self.service.sim("PUT", f"/sim/wallets/{self.vault}", {"inscriptions": [item]})
        return inscription


@pytest.fixture
def owner(service: Installation) -> Iterator[Owner]:
    service.sim("PUT", "/sim/faults", [])
    yield Owner(service)
    service.sim("PUT", "/sim/faults", [])


def test_a_new_traders_sats_are_counted_once(service: Installation) -> None:
    wallet = Trader(service).sign_in().ok("GET", "/api/wallet")
    assert wallet["biddingWallet"]["balanceSats"] + wallet["paymentSats"] == wallet["worstLoss"]


def test_all_of_the_payment_address_goes_to_the_sign_in_address(owner: Owner) -> None:
    coins = owner.fund(owner.payment, 60_000, 40_000, 25_000)
    quoted = owner.withdraw(from_="payment", dryRun=True)
    assert quoted.status_code == 200
    until(lambda: owner.trader.ok("GET", "/api/wallet")["paymentSats"] == 125_000, "that nothing has gone")

    found = owner.sent(from_="payment")

    assert (found["state"], found["destination"]) == ("submitted", owner.trader.address)
    assert set(found["coins"]) == set(coins)
    assert found["sentSats"] + found["feeSats"] == 125_000
    assert (quoted.json()["sentSats"], quoted.json()["feeSats"]) == (found["sentSats"], found["feeSats"])
    assert owner.coins(owner.trader.address) == {f"{found['txid']}:0": found["sentSats"]}
    assert owner.coins(owner.payment) == {}
    owner.confirm(found["txid"])
    until(lambda: owner.newest()["state"] == "confirmed", "the withdrawal in a block")


def test_a_part_of_it_leaves_the_change_at_the_payment_address(owner: Owner) -> None:
    owner.fund(owner.payment, 60_000, 40_000)

    found = owner.sent(from_="payment", amountSats=30_000, feeRate=2.5)

    assert found["sentSats"] == 30_000
    assert owner.coins(owner.trader.address) == {f"{found['txid']}:0": 30_000}
    change = owner.coins(owner.payment)
    assert change[f"{found['txid']}:1"] == 30_000 - found["feeSats"]
    assert 300 < found["feeSats"] < 400


def test_coins_that_hold_something_stay_where_they_are(owner: Owner) -> None:
    plain, precious = owner.fund(owner.payment, 60_000, 50_000)
    owner.service.sim("PUT", f"/sim/outputs/{precious}", {"runes": {"DOG•GO": {"amount": 5}}})
    owner.service.sim("PUT", f"/sim/wallets/{owner.payment}", {"balance": 60_000})  # what holds a rune is no money

    found = owner.sent(from_="payment")

    assert found["coins"] == [plain]
    assert [(each["outpoint"], "runes" in each["reason"]) for each in found["leftOut"]] == [(precious, True)]
    assert list(owner.coins(owner.payment)) == [precious]
    assert owner.withdraw(from_="payment").status_code == 409


def test_an_inscription_comes_back_at_its_full_value(owner: Owner) -> None:
    inscription = owner.put_into_vault()
    ((coin, value),) = owner.coins(owner.vault).items()
    refused = owner.withdraw(from_="vault", inscriptionId=inscription)
    assert refused.status_code == 409, "nothing is there to pay the fee"
    assert owner.payment in refused.json()["message"]
    (fee_coin,) = owner.fund(owner.payment, 50_000)

    found = owner.sent(from_="vault", inscriptionId=inscription)

    assert found["coins"] == [coin, fee_coin]
    assert owner.coins(owner.trader.address) == {f"{found['txid']}:0": value}
    assert owner.coins(owner.payment) == {f"{found['txid']}:1": 50_000 - found["feeSats"]}
    owner.confirm(found["txid"])
    where = requests.get(
        f"http://127.0.0.1:{owner.service.simulator_port}/ord/inscription/{inscription}",
        headers={"Accept": "application/json"},
        timeout=PATIENCE,
    ).json()
    assert (where["satpoint"], where["address"]) == (f"{found['txid']}:0:0", owner.trader.address)


def test_what_is_listed_is_not_moved_under_its_task(owner: Owner) -> None:
    inscription = owner.put_into_vault()
    owner.fund(owner.payment, 50_000)
    owner.service.put_collection("frogs", [100_000])
    task = owner.trader.ok("POST", "/api/autolist", {"inscriptionId": inscription, "collectionId": "frogs"})["id"]
    owner.trader.ok("POST", f"/api/autolist/{task}/start")
    until(lambda: owner.listing(task).get("state") == "live", "a listing")

    running = owner.withdraw(from_="vault", inscriptionId=inscription, force=True)
    owner.trader.ok("POST", f"/api/autolist/{task}/stop")
    listed = owner.withdraw(from_="vault", inscriptionId=inscription)

    assert (running.status_code, "Stop auto-list task" in running.json()["message"]) == (409, True)
    assert (listed.status_code, "is listed" in listed.json()["error"]) == (409, True)
    # The hard cancel: whoever kept the listing's signature has nothing in hand any more.
    owner.sent(from_="vault", inscriptionId=inscription, force=True)
    ended = {"event": "cancelled", "kind": "ask", "maker": owner.vault}
    until(lambda: owner.service.history(**ended), "the end of the listing at the venue")


@pytest.mark.thorough_cases("2of3-bc1q")
@pytest.mark.parametrize(("kind", "begin"), [("2of2", "bc1q"), ("2of3", "bc1q"), ("leaf", "bc1p")])
def test_money_comes_out_of_the_bidding_wallet_and_then_home(service: Installation, kind: str, begin: str) -> None:
    service.sim("PUT", "/sim/bidding-wallets", {"kind": kind})
    owner = Owner(service)
    service.sim("PUT", "/sim/bidding-wallets", {"kind": "2of2"})
    bidding = owner.wallet["biddingWallet"]["address"]
    assert bidding.startswith(begin)
    owner.service.sim("PUT", f"/sim/wallets/{bidding}", {"balance": 0})
    assert owner.withdraw(from_="bidding").status_code == 409, "nothing is in it"
    owner.service.sim("PUT", f"/sim/wallets/{bidding}", {"balance": 90_000})

    found = owner.sent(from_="bidding")

    assert (found["state"], found["destination"], found["venue"]) == ("submitted", owner.payment, "simulator")
    owner.confirm(found["txid"])
    until(lambda: _held(owner) == (found["sentSats"], 0), "sats at the payment address, none in the bidding wallet")
    home = owner.sent(from_="payment")
    assert home["coins"] == [f"{found['txid']}:0"]
    assert owner.coins(owner.trader.address) == {f"{home['txid']}:0": home["sentSats"]}


def _held(owner: Owner) -> tuple[int | None, int | None]:
    """Returns sats at the payment address and in the bidding wallet, as the service shows them; None if not read."""
    wallet = owner.trader.ok("GET", "/api/wallet")
    return wallet["paymentSats"], (wallet["biddingWallet"] or {"balanceSats": None})["balanceSats"]


def test_bids_keep_their_cover_unless_forced(owner: Owner) -> None:
    bidding = owner.wallet["biddingWallet"]["address"]
    owner.service.sim("PUT", f"/sim/wallets/{bidding}", {"balance": 90_000})
    owner.service.put_collection("toads", [100_000])
    prices = {"bidMode": "fixed", "bidFixedLow": 50_000, "bidFixedHigh": 50_000, "hardcapSats": 60_000}
    task = owner.trader.task(slug="toads", bidCount=1, **prices)
    owner.trader.start(task)
    until(lambda: owner.trader.bids(task), "a bid")

    refused = owner.withdraw(from_="bidding", amountSats=60_000)
    covered = owner.sent(from_="bidding", amountSats=20_000)
    owner.confirm(covered["txid"])  # the change comes back as a coin that can be spent
    still_refused = owner.withdraw(from_="bidding", amountSats=60_000)
    forced = owner.sent(from_="bidding", amountSats=60_000, force=True)

    for each in (refused, still_refused):
        assert (each.status_code, each.json()["error"]) == (409, "Open bids would not be covered")
    assert (covered["sentSats"], forced["sentSats"]) == (20_000, 60_000)
    owner.trader.stop(task)


def test_a_poisoned_draft_is_not_signed(owner: Owner) -> None:
    bidding = owner.wallet["biddingWallet"]["address"]
    owner.service.sim("PUT", f"/sim/wallets/{bidding}", {"balance": 90_000})
    owner.service.sim("PUT", "/sim/poison", {"mode": "wrong_payout"})
    try:
        refused = owner.withdraw(from_="bidding", amountSats=50_000)
    finally:
        owner.service.sim("PUT", "/sim/poison", {"mode": None})

    assert (refused.status_code, "dest-allow" in refused.json()["message"]) == (409, True)
    assert owner.newest()["state"] == "refused"
    assert owner.sent(from_="bidding", amountSats=50_000)["state"] == "submitted"


def test_a_server_killed_before_it_knows_loses_nothing_and_moves_nothing_twice(owner: Owner) -> None:
    """Of two owners: the network never had the one's (`timeout`); it has the other's, and nobody was told."""
    service, owners = owner.service, (owner, Owner(owner.service))
    for each in owners:
        each.fund(each.payment, 70_000)
    modes = ("timeout", "accept_then_timeout")
    rules = [{"operation": "broadcast", "mode": mode, "delaySeconds": 30, "count": 1} for mode in modes]
    service.sim("PUT", "/sim/faults", rules)
    asking = [threading.Thread(target=_asked_in_vain, args=(each,)) for each in owners]
    for thread in asking:
        thread.start()
    until(lambda: all(rule["count"] == 0 for rule in service.sim("GET", "/sim/faults")), "both broadcasts")
    for pid in service.processes("cli.main", "server"):
        os.kill(pid, signal.SIGKILL)
    for thread in asking:
        thread.join(60)
    until(service.ready_again, "the service is back")
    service.sim("PUT", "/sim/faults", [])

    for each in owners:
        found = until(lambda of=each: _submitted(of), "the withdrawal at the network")  # type: ignore[misc]
        assert each.coins(each.trader.address) == {f"{found['txid']}:0": found["sentSats"]}
        assert each.coins(each.payment) == {}
        assert each.withdraw(from_="payment").status_code == 409, "there is nothing left to send"
        each.confirm(found["txid"])
        until(lambda of=each: of.newest()["state"] == "confirmed", "the withdrawal in a block")  # type: ignore[misc]
        assert len(each.trader.ok("GET", "/api/wallet")["withdrawals"]) == 1


def _asked_in_vain(owner: Owner) -> None:
    try:
        owner.withdraw(from_="payment")
    except requests.RequestException:
        return


def _submitted(owner: Owner) -> dict[str, Any] | None:
    try:
        found = owner.newest()
    except (requests.RequestException, AssertionError):
        return None
    return found if found["state"] == "submitted" else None


def _refusal(owner: Owner, task: int) -> list[requests.Response]:
    """Returns the refusal of a start, if it is one: a draft that is not judged within five seconds keeps nobody."""
    answer = owner.trader.call("POST", f"/api/tasks/{task}/start")
    if answer.status_code != 200:
        return [answer]
    owner.trader.stop_and_drain(task)
    return []


def test_what_would_not_come_out_again_is_not_bid_with(owner: Owner) -> None:
    bidding = owner.wallet["biddingWallet"]["address"]
    owner.service.sim("PUT", f"/sim/wallets/{bidding}", {"balance": 90_000})
    owner.service.put_collection("newts", [100_000])
    task = owner.trader.task(slug="newts", bidCount=1, hardcapSats=60_000)
    owner.service.sim("PUT", "/sim/poison", {"mode": "wrong_payout"})
    try:
        quoted = owner.withdraw(from_="bidding", dryRun=True)
        [refused] = until(lambda: _refusal(owner, task), "a refusal")
    finally:
        owner.service.sim("PUT", "/sim/poison", {"mode": None})

    assert (quoted.status_code, "dest-allow" in quoted.json()["message"]) == (409, True)
    assert refused.status_code == 400
    why = "venue: the signer would not sign a withdrawal from its bidding wallet: dest-allow"
    assert refused.json()["details"][0].startswith(why)
    assert owner.trader.ok("GET", f"/api/tasks/{task}")["lastError"].startswith(why)
    owner.trader.start(task)
    until(lambda: owner.trader.bids(task), "a bid, now that the draft is honest")
    owner.trader.stop(task)
