"""A listing's whole life on the practice market, through the gateway, with facts from the facts process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from msgspec import structs

from core.settings import load
from markets.base import Refused, Unavailable, Unknown, VenueError
from markets.client import MarketClient
from markets.orders import ListingOrder, ListingToDraft, OwnListing
from tests.gateway.conftest import eventually, soon
from tests.ports import free_ports
from wallet.address import parse
from wallet.keystore.keys import UserSecrets, derive_user, sign_message
from wallet.psbt.check_listing import check_listing
from wallet.psbt.common import ListingIntent, Owner
from wallet.psbt.script import own_script, script_of
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import LISTING, SECURE_LISTING, Outpoint
from wallet.signer.reading import ask_facts

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
# The signer's few seconds are no time for a source on a busy machine.
PATIENT = """
from gateway.reads import chain
chain.PATIENCE_S = 30
"""
GATEWAY = f"""{PATIENT}
from core.process import end_with_parent
from core.settings import load
from gateway.app import run

end_with_parent()
run(load(), lambda task: 0)
"""
FACTS = f"""{PATIENT}
import sys
from cli.main import main

sys.exit(main(["facts"]))
"""
PROGRAMS = {
    "simulator": ["-m", "cli.main", "simulator"],
    "gateway": ["-c", GATEWAY],
    "facts": ["-c", FACTS],
}
INSCRIPTION = "ab" * 32 + "i0"


class Town:
    """Practice market, gateway and facts as processes, and a user with a vault."""

    def __init__(self, directory: str) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {**os.environ, "BIDKEEPER_DATA_DIR": directory, "BIDKEEPER_SIMULATOR_PORT": str(port)}
        self.settings = load(self.environment)
        self.processes = {name: self.start(name) for name in PROGRAMS}
        self.market = MarketClient(self.settings.gateway_socket)
        self.user: UserSecrets = derive_user(b"\x07" * 32, 0)
        for socket in (self.settings.gateway_socket, self.settings.facts_socket):
            eventually(lambda socket=socket: _answers(socket))
        eventually(self._market_answers)

    @property
    def vault(self) -> str:
        return self.user.public.vault

    def start(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, *PROGRAMS[name]], env=self.environment, cwd=ROOT)

    def sim(self, method: str, path: str, body: Any) -> Any:
        answer = requests.request(method, f"{self.url}/sim/{path}", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, price: int = 900_000) -> ListingToDraft:
        public = self.user.public
        return ListingToDraft(price, INSCRIPTION, public.vault, public.payment, public.vault_pubkey, "goosinals")

    def signed(self, ask: ListingToDraft) -> ListingOrder:
        """Returns the draft of `ask`, checked against the facts as the signer does it, and signed."""
        draft = self.market.draft_listing(ask)
        outpoint = self.market.whereabouts(INSCRIPTION, 0).outpoint
        assert outpoint is not None
        facts = ask_facts(self.settings.facts_socket, outpoint, timeout_s=60)
        intent = ListingIntent(INSCRIPTION, Outpoint.parse(outpoint), ask.price, 1, ask.receive)
        key = self.user.vault.get_public_key().sec()
        paid = script_of(parse(ask.receive))
        assert paid is not None
        scripts = frozenset({own_script("p2tr", key), paid})
        owner = Owner("p2tr", key, scripts, scripts)

        def sign(psbt: str, sighash: int) -> str:
            approved = check_listing(b64decode(psbt), intent, facts, sighash, owner)
            return b64encode(sign_listing(approved, self.user.vault)).decode()

        secure = tuple(sign(each.psbt, SECURE_LISTING) for each in draft.secure)
        public = self.user.public
        return ListingOrder(ask, sign(draft.psbt, LISTING), draft.psbt, secure, public.payment, public.payment_pubkey)

    def list_item(self, order: ListingOrder) -> None:
        self.market.list_item(order, task=1, token=1, deadline_ms=soon())

    def delist(self, signature: str | None = None) -> bool:
        challenge = self.market.challenge(self.vault)
        signature = signature or sign_message(self.user.vault, "p2tr", challenge)
        return self.market.delist(self.vault, [INSCRIPTION], signature, task=1, token=1, deadline_ms=soon())

    def listed(self) -> list[int]:
        return [listing.price for listing in self.market.own_listings(self.vault, 0).listings]

    def _market_answers(self) -> bool:
        try:
            return bool(self.market.fees(0))
        except VenueError:
            return False

    def close(self) -> None:
        self.market.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(60)


def _answers(socket: Path) -> bool:
    try:
        with MarketClient(socket) as client:
            return bool(client.status())
    except VenueError:
        return False


@pytest.fixture(scope="module")
def running() -> Iterator[Town]:
    with tempfile.TemporaryDirectory(prefix="gw") as directory:
        made = Town(directory)
        yield made
        made.close()


@pytest.fixture
def town(running: Town) -> Town:
    """With nothing listed and nothing wrong; another seed is another chain, and an odd one answers as documented."""
    running.sim("POST", "reset", {"seed": time.time_ns() % 2**31 | 1, "background": False})
    held = [{"id": INSCRIPTION, "collection": "goosinals", "name": "Goose 7", "traits": {}}]
    running.sim("PUT", f"wallets/{running.vault}", {"balance": 0, "inscriptions": held})
    running.listed()  # what was remembered of the vault is of the former chain
    return running


def test_a_listing_is_made_repriced_and_taken_down(town: Town) -> None:
    town.list_item(town.signed(town.ask()))
    expected = OwnListing(INSCRIPTION, INSCRIPTION, "goosinals", 900_000, town.vault)
    assert town.market.own_listings(town.vault, 0).listings == (expected,)
    assert [ask.price for ask in town.market.asks("goosinals", 0).asks] == [900_000]
    town.list_item(town.signed(town.ask(950_000)))
    assert town.listed() == [950_000]
    assert town.delist() is True
    assert town.listed() == []
    assert town.market.asks("goosinals", 0).asks == ()


def test_facts_of_what_may_be_listed(town: Town) -> None:
    where = town.market.whereabouts(INSCRIPTION, 0)
    assert where.address == town.vault and where.outpoint is not None
    with MarketClient(town.settings.facts_socket) as client:
        for asker in (client, town.market):
            facts = asker.outpoint(where.outpoint, 0)
            assert (facts.value, facts.is_unspent, facts.is_confirmed) == (where.value, True, True)
            assert (facts.inscriptions, facts.runes, facts.spent_by) == ((INSCRIPTION,), (), None)
            assert facts.tip_height == facts.index_height and facts.tip_height is not None
            assert facts.script == own_script("p2tr", town.user.vault.get_public_key().sec()).hex()


@pytest.mark.parametrize("confirmed", [True, False])
def test_facts_of_what_was_moved(town: Town, confirmed: bool) -> None:
    outpoint = town.market.whereabouts(INSCRIPTION, 0).outpoint
    assert outpoint is not None
    body = {"inscriptionId": INSCRIPTION, "address": town.user.public.payment, "confirmed": confirmed}
    moved = town.sim("POST", "move", body)
    facts = town.market.outpoint(outpoint, 0)
    assert (facts.is_unspent, facts.spent_by) == (False, moved["txid"])
    assert town.market.whereabouts(INSCRIPTION, 0).outpoint == (moved["outpoint"] if confirmed else outpoint)
    with pytest.raises(VenueError):
        town.market.draft_listing(town.ask())


def test_a_sold_item_is_listed_no_more(town: Town) -> None:
    outpoint = town.market.whereabouts(INSCRIPTION, 0).outpoint
    assert outpoint is not None
    town.list_item(town.signed(town.ask()))
    town.sim("POST", "sell", {"inscriptionId": INSCRIPTION})
    assert town.listed() == []
    assert town.market.outpoint(outpoint, 0).is_unspent is False
    (sale,) = town.market.sales("goosinals", "ordinals", 0, 0).sales
    assert (sale.inscription_id, sale.price) == (INSCRIPTION, 900_000)


@pytest.mark.parametrize(
    ("mode", "error", "listed"),
    [
        ("refuse_400", Refused, []),
        ("accept_then_500", Unknown, [900_000]),
        ("error_500", Unknown, []),
        ("bad_json", Unknown, [900_000]),
    ],
)
def test_what_a_fault_of_the_market_means(town: Town, mode: str, error: type[VenueError], listed: list[int]) -> None:
    order = town.signed(town.ask())
    town.sim("PUT", "faults", [{"operation": "list", "mode": mode, "count": 1}])
    with pytest.raises(VenueError) as raised:
        town.list_item(order)
    assert type(raised.value) is error
    assert town.listed() == listed


def test_a_draft_that_fails_is_unavailable(town: Town) -> None:
    town.sim("PUT", "faults", [{"operation": "draft", "mode": "error_500", "count": 1}])
    with pytest.raises(Unavailable):
        town.market.draft_listing(town.ask())


def test_a_listing_signed_for_another_price_is_refused(town: Town) -> None:
    order = town.signed(town.ask())
    with pytest.raises(Refused):
        town.list_item(structs.replace(order, ask=town.ask(1_000_000)))
    assert town.listed() == []


def test_a_delist_under_a_wrong_signature_is_refused(town: Town) -> None:
    town.list_item(town.signed(town.ask()))
    with pytest.raises(Refused):
        town.delist(sign_message(town.user.vault, "p2tr", "not the challenge"))
    assert town.listed() == [900_000]


def test_a_delist_of_what_is_not_listed_took_nothing_down(town: Town) -> None:
    assert town.delist() is False


def test_a_second_facts_process_does_not_start_and_one_ends_when_told(town: Town) -> None:
    second = subprocess.run(
        [sys.executable, *PROGRAMS["facts"]],
        env=town.environment,
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert second.returncode == 1
    assert b"another facts" in second.stderr
    town.processes["facts"].terminate()
    assert town.processes["facts"].wait(60) == 0
    town.processes["facts"] = town.start("facts")
    eventually(lambda: _answers(town.settings.facts_socket))
    assert town.settings.facts_socket.stat().st_mode & 0o777 == 0o600
