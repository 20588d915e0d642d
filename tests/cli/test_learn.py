"""`bidkeeper venue learn` and `learnt` against the practice market, through the real gateway and the real signer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cli.doctor import form_check
from cli.doctor.check import Check
from cli.main import main
from core.local import ask
from core.settings import load
from tests.cli.commands import Way, as_program, in_this_process
from tests.e2e.installation import Installation, Trader, installation, until
from tests.wallet.processes import DEADLINE_S


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    with installation() as made:
        yield made


@pytest.fixture
def item(running: Installation) -> tuple[Trader, str]:
    """A trader with an inscription in the vault."""
    trader = Trader(running).sign_in()
    inscription = f"{secrets.token_hex(32)}i0"
    running.put_collection("learnt", [100_000])
    held = {"id": inscription, "collection": "learnt", "name": "one"}
    running.sim("PUT", f"/sim/wallets/{trader.ok('GET', '/api/wallet')['vault']}", {"inscriptions": [held]})
    return trader, inscription


def venue(running: Installation, *words: str, given: str = "", way: Way = in_this_process) -> tuple[int, str]:
    code, said, complained = way(running.environment, "venue", *words, given=given)
    return code, said + complained


def judged(running: Installation, trader: Trader, inscription: str) -> str:
    words = ("judge", trader.address, inscription, "150000", "--venue", "simulator")
    return in_this_process(running.environment, *words)[1]


@pytest.mark.slow
def test_a_form_is_shown_confirmed_kept_and_an_alarm(running: Installation, item: tuple[Trader, str]) -> None:
    trader, inscription = item
    learn = ("learn", "simulator", "--listing", inscription)

    day_before = today()
    code, told = venue(running, *learn, given="no\nsimulator\n", way=as_program)
    assert code == 1 and told.count("not stored") == 1, told
    assert "from 3 drafts at 1,000,000, 1,001,000, 2,000,000 sats" in told
    assert "output 0  YOUR PAYMENT ADDRESS  price + postage, or price + " in told
    # Midnight may fall between the two commands.
    told_forms = [f"simulator secure  learnt {day}\n" for day in (day_before, today())]
    code, told = venue(running, "learnt", "list")
    assert code == 0 and told in told_forms, told

    code, told = venue(running, *learn, given="simulator\nsimulator\n")
    assert code == 0 and "the same as the form learnt " in told and told.count("stored: drafts of another form") == 2
    code, told = venue(running, "learnt", "show", "simulator")
    assert code == 0 and "simulator, plain listing (SINGLE|ANYONECANPAY 0x83)  learnt " in told
    assert judged(running, trader, inscription).count("every rule holds: it would be signed") == 1
    told_by_doctor = {check.name: check.text for check in doctor(running)}
    assert told_by_doctor["live simulator plain listings"].startswith("meaning, and learnt 20")
    assert told_by_doctor["live simulator-unisat plain listings"] == told_by_doctor["live simulator withdrawals"]
    assert told_by_doctor["live simulator withdrawals"] == told_by_doctor["live simulator-ordnet bids"] == "meaning"
    assert told_by_doctor["live simulator secure listings"].startswith("not signed: ")
    assert told_by_doctor["live simulator-ordnet listings"].startswith("meaning: transfer, sale and recovery")

    running.sim("PUT", "/sim/poison", {"mode": "extra_output"})
    told = judged(running, trader, inscription)
    _, other = venue(running, *learn, given="no\nno\n")
    assert other.count("in place of the form learnt ") == 2 and other.count("not stored") == 2
    running.sim("PUT", "/sim/poison", {"mode": None})
    shown = "another form than was learnt, see bidkeeper venue learn simulator: outputs: 2, not 1"
    assert f"learnt-form: NO: plain draft: {shown}" in told

    fixed = {"inscriptionId": inscription, "priceMode": "fixed", "priceSats": 90_000, "loopSeconds": 5}
    task = trader.ok("POST", "/api/autolist", fixed)["id"]
    running.sim("PUT", "/sim/poison", {"mode": "extra_output"})
    trader.ok("POST", f"/api/autolist/{task}/start")
    until(lambda: shown in (trader.ok("GET", f"/api/autolist/{task}")["lastError"] or ""), "the alarm")
    running.sim("PUT", "/sim/poison", {"mode": None})
    until(lambda: (trader.ok("GET", f"/api/autolist/{task}")["listing"] or {}).get("state") == "live", "a listing")
    trader.ok("DELETE", f"/api/autolist/{task}")
    code, told = venue(running, "learnt", "refused")
    assert code == 0 and f"simulator plain, secure, task {task}, 90,000 sats  learnt-form: " in told, told
    code, told = venue(running, "learnt", "refused", "1", way=as_program)
    assert code == 0 and "as the signer judges it now:" in told and "\ndraft PSBT:\n" in told, told

    assert venue(running, "learnt", "forget", "simulator") == (0, "2 forms deleted: only the rules decide there now\n")
    assert venue(running, "learnt", "forget", "simulator")[0] == 1
    assert venue(running, "learnt", "show", "simulator") == (1, "no form is learnt: only the rules decide\n")
    entries = [json.loads(line) for line in (running.data_dir / "signer/audit.jsonl").read_text().splitlines()]
    assert [each["operation"] for each in entries if "learnt_sha256" in each] == ["learn", "learn", "learn", "forget"]


def doctor(running: Installation) -> list[Check]:
    return list(form_check.examine(load(environment=running.environment)))


def today() -> str:
    return datetime.now(UTC).date().isoformat()


@pytest.mark.slow
def test_where_a_draft_is_an_order_only_one_is_asked_for(running: Installation, item: tuple[Trader, str]) -> None:
    _, inscription = item
    code, told = venue(running, "learn", "simulator-unisat", "--listing", inscription, given="simulator-unisat\n")
    assert code == 0, told
    assert "each draft is an order there, never confirmed; so only one is asked for." in told.splitlines()[0]
    assert "from 1 draft at 1,000,000 sats" in told and "any sats   <- covered" in told
    assert venue(running, "learnt", "forget", "--all")[0] == 0


@pytest.mark.slow
def test_withdrawals_and_ends_of_listings_are_judged_and_never_stored(
    running: Installation, item: tuple[Trader, str]
) -> None:
    trader, inscription = item
    wallet = trader.ok("GET", "/api/wallet")
    running.sim("PUT", f"/sim/wallets/{wallet['biddingWallet']['address']}", {"balance": 90_000})
    draw = ("learn", "simulator", "--withdraw", "50000", "--user", trader.address)
    code, told = venue(running, *draw)
    assert code == 0 and f"sats arrive at {wallet['payment']}, the fee is " in told, told
    assert "signed by meaning: there is no form to store" in told
    running.sim("PUT", "/sim/poison", {"mode": "wrong_payout"})
    code, told = venue(running, *draw)
    running.sim("PUT", "/sim/poison", {"mode": None})
    assert code == 1 and "dest-allow: NO: an output goes neither" in told and told.endswith("it would NOT be signed\n")
    code, told = venue(running, "learn", "simulator-unisat", "--withdraw", "50000")
    assert code == 1 and "has no bidding wallet: there is no withdrawal to draft" in told

    body = {"inscriptionId": inscription, "priceMode": "fixed", "priceSats": 90_000, "venue": "simulator-unisat"}
    task = trader.ok("POST", "/api/autolist", body | {"loopSeconds": 5})["id"]
    trader.ok("POST", f"/api/autolist/{task}/start")
    until(lambda: (trader.ok("GET", f"/api/autolist/{task}")["listing"] or {}).get("state") == "live", "a listing")
    code, told = venue(running, "learn", "simulator-unisat", "--delist", inscription)
    assert code == 0 and f"sats come back to the vault, {wallet['vault']}: it would be signed" in told, told
    code, told = venue(running, "learn", "simulator", "--delist", inscription)
    assert code == 1 and "drafts no PSBT for that: a signature under a challenge takes a listing back there" in told
    trader.ok("DELETE", f"/api/autolist/{task}")
    assert venue(running, "learnt", "list") == (0, "no form is learnt: only the rules decide\n")


@pytest.mark.slow
def test_what_cannot_be_drafted_is_said(running: Installation, item: tuple[Trader, str]) -> None:
    trader, inscription = item
    code, told = venue(running, "learn", "simulator-ordnet", "--listing", inscription)
    assert code == 1 and "go through an escrow that the signer rebuilds: there is no form to learn" in told
    code, told = venue(running, "learn", "satflow", "--listing", inscription)
    assert code == 1 and "there is no venue 'satflow' here" in told
    running.sim("POST", "/sim/move", {"inscriptionId": inscription, "address": trader.address})
    code, told = venue(running, "learn", "simulator", "--listing", inscription)
    assert code == 1 and f"{inscription} is at {trader.address}: send it to the vault, bc1p" in told


@pytest.mark.slow
def test_only_the_operators_socket_takes_a_form(running: Installation) -> None:
    signer, operators = running.data_dir / "run/signer.sock", running.data_dir / "signer/ops.sock"
    assert operators.stat().st_mode & 0o077 == 0
    for op in ("study", "learn", "forget", "holder"):
        with pytest.raises(Exception, match="only the signer's own user and root may ask this"):
            ask(signer, "signer", {"op": op, "venue": ""}, timeout=DEADLINE_S)
    assert ask(signer, "signer", {"op": "learnt"}, timeout=DEADLINE_S) == {"forms": [], "problem": ""}
    assert ask(operators, "signer", {"op": "forget", "venue": ""}, timeout=DEADLINE_S) == {"forgotten": 0}


def test_without_a_signer_it_says_who_may_ask(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["venue", "learnt", "list"]) == 1
    assert "only the signer's own user and root may ask there, while it runs" in capsys.readouterr().err


@pytest.mark.parametrize("price", ["0", "x", "1.5", "2100000000000000", "99999"])
def test_a_price_is_sats(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["venue", "learn", "simulator", "--listing", f"{'a' * 64}i0", "--price", price])
    assert "a price to learn from is a whole number of sats, 100,000 at least" in capsys.readouterr().err
