"""The checklist for real money, and the verbs that lead an operator there."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cli.doctor.check import way_to_keys
from cli.sign_in import WALLETS
from models import schema
from models.database import base
from models.users import Whitelist
from tests.cli.commands import as_program, in_this_process
from tests.cli.conftest import Examine
from tests.clock import START_MS
from tests.e2e.installation import PATIENCE, Installation, Trader, installation
from wallet.keystore.keys import sign_message

REAL = {
    "BIDKEEPER_MARKET": "satflow",
    "BIDKEEPER_SATFLOW_URL": "https://satflow.example/v1",
    "BIDKEEPER_SATFLOW_API_KEY": "a-key-of-a-test",
    "BIDKEEPER_WHITELIST": "",
}


@pytest.fixture
def real(environment: dict[str, str]) -> dict[str, str]:
    """The settings of an installation for real money that was never started."""
    environment |= REAL
    base.connect(f"sqlite:///{environment['BIDKEEPER_DATA_DIR']}/bidkeeper.db")
    schema.migrate()
    base.close()
    return environment


def test_what_is_set_is_told(examine: Examine, real: dict[str, str]) -> None:
    real |= {
        "BIDKEEPER_PUBLIC_NAME": "bids.example",
        "BIDKEEPER_MAX_EXPOSURE_SATS": "200000",
        "BIDKEEPER_MIN_LISTING_SATS": "50000",
        "BIDKEEPER_MAX_WITHDRAWAL_SATS_PER_DAY": "300000",
        "BIDKEEPER_MEMPOOL_URL": "https://mempool.example",
    }
    no_index = examine("live")["live sources"]
    real["BIDKEEPER_ORD_URL"] = "https://ord.example"
    base.connect(f"sqlite:///{real['BIDKEEPER_DATA_DIR']}/bidkeeper.db")
    Whitelist.create(address="bc1qone", is_admin=False, added_ms=START_MS)
    base.close()
    found = examine("live")

    assert no_index.status == "FAIL" and no_index.text.endswith("no withdrawal is signed, so no task is started")
    assert [name for name, check in found.items() if check.status != "ok"] == ["live keys", "live funds"]
    assert found["live keys"].remedy == "bidkeeper keys init, then bidkeeper up, then run the doctor again"
    assert found["live bids"].text == (
        "open bids: at most 200,000 sats; signed bids, which count until they expire: at most 800,000 sats, "
        "and 3,200,000 an hour"
    )


@pytest.mark.parametrize(
    ("reason", "way"),
    [
        (
            "/x is a play keystore: its keys are for the practice marketplace only",
            "move the practice data away",
        ),
        ("there are no keys for satflow yet: bidkeeper keys init makes them", "run bidkeeper keys init"),
        ("run bidkeeper keys unlock", "run bidkeeper keys unlock"),
    ],
)
def test_a_locked_signer_has_a_way_out(reason: str, way: str) -> None:
    assert way_to_keys(reason).startswith(way)


def test_bids_at_ord_net_wait_for_the_keys_that_the_operator_names(examine: Examine, real: dict[str, str]) -> None:
    real["BIDKEEPER_ORDNET_URL"] = "https://ordnet.example/api/v1"
    unset = examine("live")["live ord.net"]
    real["BIDKEEPER_ORDNET_CO_SIGNERS"] = ", ".join(("11" * 32, "12" * 32, "13" * 32))
    named = examine("live")["live ord.net"]

    assert (unset.status, "BIDKEEPER_ORDNET_CO_SIGNERS" in unset.remedy) == ("warn", True)
    assert (named.status, "can take a bid's price" in named.text) == ("ok", True)


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with installation() as made:
        yield made


@pytest.mark.slow
def test_an_operator_signs_in_without_a_front_end_and_sees_where_money_goes(running: Installation) -> None:
    trader = Trader(running)
    never, _, refused = in_this_process(running.environment, "wallet", trader.address)

    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "sign-in", trader.address],
        env=running.environment | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stderr and process.stdout
    said = ""
    while not said.endswith("signature (base64): "):
        read = os.read(process.stderr.fileno(), 4096)
        assert read, said
        said += read.decode()
    text = said.split(WALLETS)[1].split("signature (base64)")[0].strip()
    out, _ = process.communicate(sign_message(trader.key, "p2wpkh", text) + "\n", timeout=PATIENCE)
    assert process.returncode == 0
    trader.session.headers["Authorization"] = "Bearer " + out.strip().removeprefix("export TOKEN=")
    told = trader.ok("GET", "/api/wallet")
    code, shown, _ = as_program(running.environment, "wallet", trader.address)

    assert never == 1 and "has never signed in here" in refused
    assert code == 0
    lines = shown.splitlines()
    assert lines[0].split()[:2] == ["payment", told["payment"]]
    assert f"simulator-ordnet: fund {told['payment']}  {told['paymentSats']:,} sats" in lines
    assert any(line.startswith("simulator: fund ") for line in lines)


@pytest.mark.slow
def test_a_listing_is_judged_before_any_task_is_there(running: Installation) -> None:
    trader = Trader(running).sign_in()
    wallet = trader.ok("GET", "/api/wallet")
    inscription = f"{secrets.token_hex(32)}i0"
    running.put_collection("judged", [100_000])
    item = {"id": inscription, "collection": "judged", "name": "one"}
    running.sim("PUT", f"/sim/wallets/{wallet['vault']}", {"inscriptions": [item]})

    def judged(*more: str) -> tuple[int, str]:
        words = ("judge", trader.address, inscription, "150000", *more)
        code, said, complained = in_this_process(running.environment, *words)
        return code, said + complained

    code, told = judged()
    assert code == 0, told
    plain, _, secure = told.partition("\nsecure listing (")
    assert f"YOURS      {wallet['payment']}" in plain and "every rule holds: it would be signed" in plain
    assert "op-allowed: NO: secure listings are not signed at simulator" in secure
    assert judged("--venue", "simulator-unisat")[0] == 0
    running.sim("PUT", "/sim/poison", {"mode": "low_payout"})
    code, told = judged()
    running.sim("PUT", "/sim/poison", {"mode": None})
    assert code == 1 and "payout: NO: the seller is paid 149999 sats instead of at least 150000" in told
    code, told = judged("--venue", "satflow")
    assert code == 1 and "there is no venue 'satflow' here" in told
    running.sim("POST", "/sim/move", {"inscriptionId": inscription, "address": trader.address})
    code, told = judged()
    assert code == 1 and f"the inscription is at {trader.address}: send it to the vault" in told


@pytest.mark.slow
def test_a_wrong_signature_is_refused_in_words(running: Installation) -> None:
    code, said, complained = in_this_process(running.environment, "sign-in", Trader(running).address, given="AAAA\n")
    assert code == 1 and said == ""
    assert "bidkeeper: POST /api/auth/verify: " in complained


def test_a_server_that_is_not_there_is_told(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "cli.main", "sign-in", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"]
    answer = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert f"the server at http://127.0.0.1:{environment['BIDKEEPER_PORT']} does not answer" in answer.stderr
