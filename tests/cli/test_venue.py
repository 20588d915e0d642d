"""`bidkeeper venue probe`: the file that it saves, and what it keeps out of it."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.doctor import questions
from cli.doctor.questions import ADDRESS, FIRST_INSCRIPTION
from cli.main import main
from cli.probe_questions import DRAFTED_AT
from tests.cli.test_doctor_venues import KEY, SATFLOW
from tests.cli.venue import venue

Probe = Callable[..., int]
HELD = "7" * 64 + "i3"
CLEAR = SATFLOW | {"/v1/activity/bids": {"data": {"items": []}}}


@pytest.mark.parametrize("action", ["learn", "learnt"])
def test_learning_forms_is_no_command_any_more(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["venue", action, "satflow"])
    assert ended.value.code == 2
    assert f"invalid choice: '{action}'" in capsys.readouterr().err


@pytest.fixture
def probe(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs the command for a venue, Satflow being at the given URL, and returns its exit code."""
    monkeypatch.setattr(questions, "PAUSE_S", 0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIDKEEPER_MARKET", "satflow")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY", KEY)

    def run(name: str, url: str, file: Path, *more: str, inscription: str = FIRST_INSCRIPTION) -> int:
        monkeypatch.setenv("BIDKEEPER_SATFLOW_URL", f"{url}/v1")
        about = ["--collection", "nodemonkes", "--inscription", inscription]
        return main(["venue", "probe", name, "--save", str(file), *about, *more])

    return run


def exchanges(file: Path, question: str) -> list[dict[str, Any]]:
    (found,) = (each for each in json.loads(file.read_text())["questions"] if each["name"] == question)
    made: list[dict[str, Any]] = found["exchanges"]
    return made


def test_answers_are_saved_in_one_file_for_its_owner_alone(
    probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    strange = b'{"success": true, "data": {"items": [{"price": "5e5"}]}}'
    with venue(SATFLOW | {"/v1/activity/listings": strange}, {"RateLimit-Remaining": "99000"}) as made:
        assert probe("satflow", made.url, file) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    saved = json.loads(file.read_text())
    assert (saved["format"], saved["version"], saved["venue"]) == ("bidkeeper-probe", 1, "satflow")
    assert saved["bidkeeper"].startswith("0.1.0 (")
    (asked,) = exchanges(file, "listings")
    assert (asked["method"], asked["path"], asked["status"]) == ("GET", "/activity/listings", 200)
    assert asked["params"]["collectionSlug"] == "nodemonkes" and asked["params"]["sortBy"] == "price"
    assert asked["headers"]["RateLimit-Remaining"] == "99000" and "Date" in asked["headers"]
    (row,) = asked["answer"]["data"]["items"]
    assert isinstance(row["price"], str) and row["price"] != "5e5" and "e" in row["price"]
    said = capsys.readouterr().out
    assert "FAIL listings: not understood: failed to understand the venue: " in said and "listings, row 1: " in said
    assert "cancel: not asked" in said


def test_keys_cookies_and_unknown_headers_are_left_out(probe: Probe, tmp_path: Path) -> None:
    echo = f'{{"error": "the key {KEY} is strange"}}'.encode()
    headers = {"Set-Cookie": "session=0123456789", "X-Your-Key": KEY, "Server": f"nginx for {KEY}"}
    with venue(SATFLOW | {"/v1/activity/bids": echo}, headers) as made:
        probe("satflow", made.url, tmp_path / "report.json")
    kept = (tmp_path / "report.json").read_text()
    assert KEY not in kept and "0123456789" not in kept and "X-Your-Key" not in kept
    assert "the key [hidden] is strange" in kept and "nginx for [hidden]" in kept


def test_key_in_the_address_of_a_server_is_left_out(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "provider.key.of.ann"
    with venue({f"/{hidden}/api/blocks/tip/height": f'"no block at /{hidden}/api"'.encode()}) as made:
        monkeypatch.setenv("BIDKEEPER_MEMPOOL_URL", f"{made.url}/{hidden}")
        probe("mempool", made.url, tmp_path / "report.json")
    kept = (tmp_path / "report.json").read_text()
    assert hidden not in kept and "no block at /[hidden]/api" in kept


def test_rune_price_unit_of_the_installation_goes_along(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIDKEEPER_SATFLOW_RUNE_PRICE", "token")
    file = tmp_path / "report.json"
    row = {"_id": "65a000000000000000000009", "price": "0.5", "quantity": "10", "collectionSlug": "DOG•GO•TO•THE•MOON"}
    with venue(SATFLOW) as made:
        made.answers["/v1/activity/bids?sortBy=unitPrice"] = {"data": {"bids": [row]}}
        probe("satflow", made.url, file)
    monkeypatch.delenv("BIDKEEPER_SATFLOW_RUNE_PRICE")
    assert json.loads(file.read_text())["about"]["rune_price"] == "token"
    main(["venue", "check", str(file)])


def test_fault_of_an_adapter_is_a_result_and_no_traceback(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("no such field")

    monkeypatch.setattr("markets.satflow.adapter.Satflow.floors", broken)
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, tmp_path / "report.json") == 1
    said = capsys.readouterr().out
    assert "FAIL floors: not understood: KeyError" in said and "ok   listings: understood, 1 row" in said


def test_key_with_a_byte_order_mark_is_asked_with(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key"
    monkeypatch.delenv("BIDKEEPER_SATFLOW_API_KEY")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY_FILE", str(file))
    file.write_bytes(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n")
    with venue(SATFLOW) as made:
        probe("satflow", made.url, tmp_path / "report.json")
    assert made.asked
    file.write_text(f'"{KEY}"\n')
    assert probe("satflow", made.url, tmp_path / "again.json") == 2
    assert f"{file} (BIDKEEPER_SATFLOW_API_KEY_FILE) has a quote in it" in capsys.readouterr().err


def test_nothing_is_overwritten_and_nothing_asked(
    probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, file) == 1
    assert made.asked == [] and file.read_text() == "mine"
    assert "is there already" in capsys.readouterr().err


def test_venue_that_is_not_set_leaves_no_file(probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in {
        "ord": "BIDKEEPER_ORD_URL is not set",
        "unisat": "BIDKEEPER_UNISAT_URL is not set",
        "simulator": "no venue 'simulator' here",
    }.items():
        assert probe(name, "https://venue.test", tmp_path / "report.json") == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize(("draft", "code"), [({"seller": {"unsignedListingPSBTBase64": 7}}, 1), (400, 0)])
def test_listing_is_drafted_for_its_holder_and_nothing_is_signed(
    probe: Probe, tmp_path: Path, draft: Any, code: int
) -> None:
    answers: dict[str, Any] = {
        "/v1/address/bidding-wallet": {"data": {"multiSig": {"address": "bc1qmulti"}}},
        "/v1/item": {"data": {"id": HELD, "owner": "bc1pholder"}},
        "/v1/intent/sell": draft if isinstance(draft, int) else {"data": draft},
    }
    file = tmp_path / "report.json"
    with venue(CLEAR | answers) as made:
        assert probe("satflow", made.url, file, inscription=HELD) == code
    (asked,) = made.posted
    assert asked == {
        "price": DRAFTED_AT,
        "inscriptionId": HELD,
        "sellerOrdAddress": "bc1pholder",
        "sellerReceiveAddress": ADDRESS,
    }
    (kept,) = exchanges(file, "listing draft")
    assert kept["body"]["price"] == DRAFTED_AT and kept["body"]["sellerReceiveAddress"] == ADDRESS
    assert kept["body"]["sellerOrdAddress"] != "bc1pholder" and HELD not in file.read_text()
    assert exchanges(file, "item")[0]["answer"]["data"]["owner"] == kept["body"]["sellerOrdAddress"]


def test_without_a_holder_nothing_is_drafted(probe: Probe, tmp_path: Path) -> None:
    with venue(CLEAR) as made:
        assert probe("satflow", made.url, tmp_path / "report.json") == 0
    assert made.posted == []
    assert len(made.asked) == 17


def test_bids_of_the_first_bidder_in_the_book_are_asked_for_unless_one_is_named(probe: Probe, tmp_path: Path) -> None:
    for number, more in enumerate([(), ("--bidder", ADDRESS)]):
        with venue(SATFLOW) as made:
            probe("satflow", made.url, tmp_path / f"{number}.json", *more)
        asked = [each for each in made.asked if "/address/bids" in each]
        assert asked[1] == f"/v1/address/bids?address={more[1] if more else 'bc1qb'}"
