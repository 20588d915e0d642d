"""docs/going-live.md, word by word, at a marketplace that stands apart and has keys of its own.

It speaks Satflow's documented dialect; the installation has a sealed keystore and is told nothing of practice.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.installation import PATIENCE, Installation, Trader, in_path, until
from tests.e2e.test_listing import Seller
from wallet.keystore.keys import sign_message

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # cli/test_going_live.py and wallet/test_locked_service.py

PAGE = Path(__file__).resolve().parents[2] / "docs" / "going-live.md"
PASSPHRASE = "a passphrase that nobody guesses"
SLUG = "live-frogs"
# Another marketplace than the one of the practice market: its keys are not those that the project knows, and its least
# bid is the one that Satflow is said to have.
VENUE = """
import hashlib
from embit.ec import PrivateKey
from simulator import wallets
def key(payment, ordinals, *, spare=False):
    return PrivateKey(hashlib.sha256(f"another marketplace {spare} {payment} {ordinals}".encode()).digest())
wallets.market_key = key
import simulator.engine as rules
rules.MIN_BID["ordinals"] = 1_000
from cli.main import main
main(["simulator"])
"""


@dataclass
class Operator:
    """Does what the page says, in a shell whose `bidkeeper` is this checkout's."""

    service: Installation
    settings: dict[str, str]
    trader: Trader
    known: dict[str, str] = field(default_factory=dict)

    def commands(self, heading: str) -> list[str]:
        """Returns the commands of a section of the page, in order, as they stand there."""
        section = re.search(rf"^## \d\. {heading}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
        assert section, heading
        blocks = re.findall(r"^```sh$(.*?)^```$", section[1], re.M | re.S)
        return [line for block in blocks for line in block.strip().splitlines()]

    @property
    def environment(self) -> dict[str, str]:
        shims = f"{self.service.data_dir}/bin:{os.environ['PATH']}"
        return self.service.environment | self.settings | {"PATH": shims, "ADDRESS": self.trader.address} | self.known

    def does(self, command: str, given: str = "", code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def asks(self, command: str) -> Any:
        """Calls the API; the page's variables H and U are ours."""
        return json.loads(self.does(command) or "null")


@pytest.fixture(scope="module")
def live() -> Iterator[Operator]:
    made = Installation()
    origin = f"http://127.0.0.1:{made.simulator_port}"
    venue = subprocess.Popen(
        [sys.executable, "-c", VENUE],
        env={**made.environment, "BIDKEEPER_DATA_DIR": f"{made.data_dir}/venue"},
        stderr=subprocess.DEVNULL,
    )
    key = made.data_dir / "satflow.key"
    key.touch(mode=0o600)
    key.write_text("a-key\n")
    shim = made.data_dir / "bin" / "bidkeeper"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli.main "$@"\n')
    shim.chmod(0o755)
    settings = {
        "BIDKEEPER_MARKET": "satflow",
        "BIDKEEPER_SATFLOW_URL": f"{origin}/satflow/v1",
        "BIDKEEPER_SATFLOW_API_KEY_FILE": str(key),
        "BIDKEEPER_MEMPOOL_URL": f"{origin}/mempool",
        "BIDKEEPER_ORD_URL": f"{origin}/ord",
        "BIDKEEPER_PUBLIC_NAME": "bids.example",
        "BIDKEEPER_MAX_EXPOSURE_SATS": "1000000",
        "BIDKEEPER_MIN_LISTING_SATS": "50000",
        "BIDKEEPER_MAX_WITHDRAWAL_SATS_PER_DAY": "1000000",
        # Beyond the page: runes.
        "BIDKEEPER_UNISAT_URL": f"{origin}/unisat",
        "BIDKEEPER_UNISAT_API_KEY_FILE": str(key),
        "BIDKEEPER_SATFLOW_RUNE_PRICE": "order",
        "BIDKEEPER_WHITELIST": "",
    }
    made.environment |= settings
    try:
        until(lambda: _answers(origin), "the marketplace")
        yield Operator(made, settings, Trader(made), {"SLUG": SLUG, "U": made.url})
    finally:
        made.destroy()
        venue.kill()
        venue.wait()


def _answers(origin: str) -> bool:
    with contextlib.suppress(requests.RequestException):
        return requests.get(f"{origin}/sim/history", timeout=5).ok
    return False


def test_the_settings_of_the_page_are_all_it_takes(live: Operator) -> None:
    named = {command.split("=")[0].removeprefix("export ") for command in live.commands("Settings")}
    assert named == set(live.settings) - {
        "BIDKEEPER_UNISAT_URL",
        "BIDKEEPER_UNISAT_API_KEY_FILE",
        "BIDKEEPER_SATFLOW_RUNE_PRICE",
        "BIDKEEPER_WHITELIST",
    }


def test_keys_are_made_and_the_service_waits_for_them(live: Operator) -> None:
    (init, unlock) = live.commands("Keys")
    shown = live.does(init, f"{PASSPHRASE}\n{PASSPHRASE}\n")
    assert len(re.findall(r"^ *\d+ [a-z]+$", shown, re.M)) == 24
    with (live.service.data_dir / "up.out").open("w") as out:
        live.service.process = subprocess.Popen(
            ["bash", "-c", "exec bidkeeper up"],
            env=live.environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    until(lambda: "bidkeeper keys unlock" in _readiness(live), "a locked signer that says what to do")
    live.does(unlock, f"{PASSPHRASE}\n")
    until(live.service._ready, "the ready line")


def _readiness(live: Operator) -> str:
    with contextlib.suppress(requests.RequestException):
        return requests.get(f"{live.service.url}/readyz", timeout=10).text
    return ""


def test_a_session_is_opened_with_a_signature_of_a_wallet(live: Operator) -> None:
    (allow, sign_in) = live.commands("Sign in")
    live.does(allow)
    process = subprocess.Popen(
        ["bash", "-c", sign_in],
        env=live.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stderr
    said = ""
    while not said.endswith("signature (base64): "):
        read = os.read(process.stderr.fileno(), 4096)
        assert read, said
        said += read.decode()
    text = said.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert "bids.example" in text
    out, _ = process.communicate(sign_message(live.trader.key, "p2wpkh", text) + "\n", timeout=PATIENCE)
    token = out.strip().removeprefix("export TOKEN=")
    live.known["TOKEN"] = token
    live.known["H"] = f"Authorization: Bearer {token}"
    live.trader.session.headers["Authorization"] = f"Bearer {token}"


def test_the_address_that_backs_bids_is_named_and_funded(live: Operator) -> None:
    (wallet, doctor) = live.commands("Funding")
    shown = live.does(wallet)
    told = live.trader.ok("GET", "/api/wallet")
    (row,) = told["funding"]
    backing = re.search(r"^satflow: fund (\S+)", shown, re.M)
    assert backing and backing[1] == row["address"] == told["biddingWallet"]["address"]
    assert backing[1] not in (told["payment"], told["vault"])
    live.service.sim("PUT", f"/sim/coins/{backing[1]}", {"values": [200_000, 150_000]})
    live.service.sim("PUT", f"/sim/coins/{told['payment']}", {"values": [30_000]})
    checklist = json.loads(live.does(f"{doctor.partition('#')[0]} --only live --json"))
    assert [check for check in checklist["checks"] if check["status"] != "ok"] == []
    assert any("350,000 sats" in check["text"] for check in checklist["checks"])


def test_a_first_bid_is_placed_and_taken_back(live: Operator) -> None:
    live.service.put_collection(SLUG, [200_000, 210_000])
    (_, preview, create, start, bids, stop) = live.commands("A first bid")
    assert [rung["price"] for rung in live.asks(preview)["rungs"]] == [1000]
    live.known["TASK"] = str(live.asks(create)["id"])
    live.asks(start)
    until(lambda: [bid["price"] for bid in live.asks(bids)] == [1000], "the bid")
    until(lambda: live.asks(stop)["openBids"] == 0, "the end of the bid")
    until(lambda: live.asks(bids) == [], "the marketplace without it")


def test_runes_are_bid_on_too(live: Operator) -> None:
    ticker = "LIVE•RUNE"
    asks = [{"tokens": 400_000, "unitPrice": "1.00"}]
    live.service.sim("PUT", f"/sim/runes/{in_path(ticker)}", {"divisibility": 0, "asks": asks, "bids": []})
    config = {"quantityMode": "sats", "satsPerOrder": 20_000, "bidCount": 1, "hardcapSats": 20_000}
    task = live.trader.task(slug=ticker, type="rune", bidPercentLow=0.8, bidPercentHigh=0.9, **config)
    live.trader.start(task)
    until(lambda: live.service.live_prices(ticker), "an order")
    live.trader.stop_and_drain(task)


def test_a_first_listing_is_made_and_taken_back(live: Operator) -> None:
    (judge, create, start, look, remove) = live.commands("A first listing")
    inscription = "ab" * 32 + "i0"
    vault = live.trader.ok("GET", "/api/wallet")["vault"]
    item = {"id": inscription, "collection": SLUG, "name": "one"}
    live.service.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": [item]})
    live.known["INSCRIPTION"] = inscription
    judged = live.does(judge)
    assert "must get 150,000 sats" in judged and "every rule holds: it would be signed" in judged
    live.known["LISTING"] = str(live.asks(create)["id"])
    live.asks(start)
    until(lambda: (live.asks(look)["listing"] or {}).get("state") == "live", "the listing")
    assert live.asks(look)["listing"]["price"] == 150_000
    live.asks(remove)

    def events() -> list[str]:
        return [event["event"] for event in live.service.history(kind="ask", slug=SLUG, maker=vault)]

    until(lambda: events() == ["accepted", "cancelled"], "the end of the listing")


def test_a_listing_is_repriced_and_sold(live: Operator) -> None:
    seller = Seller.__new__(Seller)
    seller.service, seller.slug, seller.trader = live.service, "live-toads", live.trader
    seller.vault, seller.inscription = live.trader.ok("GET", "/api/wallet")["vault"], "cd" * 32 + "i0"
    live.service.put_collection(seller.slug, [100_000])
    seller.put_into(seller.vault)
    body = {"inscriptionId": seller.inscription, "collectionId": seller.slug, "loopSeconds": 5, "minPriceSats": 80_000}
    seller.task = live.trader.ok("POST", "/api/autolist", body)["id"]
    seller.ask("POST", "/start")
    until(lambda: seller.is_listed_at(105_000), "the listing")
    seller.ask("PUT", body={"pricePercent": 1.2})
    until(lambda: seller.is_listed_at(120_000), "the new price")
    live.service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription})
    until(lambda: not seller.ask("GET")["isRunning"], "the end of the task")
    assert (seller.listing["state"], seller.listing["closeReason"]) == ("closed", "sold")
    assert seller.listing["proceeds"] >= 120_000


def test_the_sats_come_home(live: Operator) -> None:
    (quote, withdraw, home) = live.commands("The way out")
    payment = live.trader.ok("GET", "/api/wallet")["payment"]
    # From the chain: what the service shows is up to ten seconds old, and may be of the time before the funding.
    utxos = requests.get(f"{live.settings['BIDKEEPER_MEMPOOL_URL']}/api/address/{payment}/utxo", timeout=PATIENCE)
    before = sum(coin["value"] for coin in utxos.json())
    assert live.asks(quote)["destination"] == payment
    made = live.asks(withdraw)
    wanted = before + made["sentSats"]

    def are_home() -> bool:
        # On a busy machine it was answered before it was sent, and has a transaction later.
        live.service.sim("POST", "/sim/confirm", {})
        return bool(live.trader.ok("GET", "/api/wallet")["paymentSats"] == wanted)

    until(are_home, lambda: f"{wanted} sats, sent {made}; there is {live.trader.ok('GET', '/api/wallet')}")
    assert made["sentSats"] > 340_000
    assert live.asks(home)["destination"] == live.trader.address
