"""`venue probe` and `venue check` at every venue of the practice market, over HTTP."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli import venue
from cli.main import main
from cli.probe_masking import Masker
from markets.orders import SignInTexts
from tests.markets.contract.gate import Practice
from tests.simulator.desk import ANN, BOB
from wallet.keystore.keys import sign_message

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SLUG, RUNE = "puppets", "AAA•BBB"
ITEM = "a" * 64 + "i0"
PRICES = [712_345 + 7_919 * number for number in range(8)]
SIGN = venue._sign
VENUES = ("simulator", "simulator-ordnet", "simulator-unisat", "simulator-ordinalswallet", "mempool", "ord")


@pytest.fixture(scope="module")
def practice() -> Iterator[Practice]:
    market = Practice()
    yield market
    market.close()


@pytest.fixture(params=[1, 2], ids=["documented", "as-seen"])
def market(request: pytest.FixtureRequest, practice: Practice) -> Practice:
    """The practice market with a collection and a rune, asks, bids and sales of ANN and of others."""
    practice.sim("POST", "reset", {"seed": request.param, "background": False})
    held = [{"id": ITEM, "collection": SLUG, "name": "Ann's own puppet", "traits": {"Hat": "Red"}}]
    practice.sim("PUT", f"wallets/{ANN.ordinals}", {"inscriptions": held})
    practice.sim("PUT", f"coins/{ANN.payment}", {"values": [1_512_345, 2_012_345]})
    book: dict[str, Any] = {"asks": [{"price": price} for price in PRICES]}
    book["bids"] = [{"price": 512_000 - 3_000 * number} for number in range(8)]
    practice.sim("PUT", f"collections/{SLUG}", book)
    practice.sim("POST", "sell", {"slug": SLUG})
    practice.sim("POST", "sell", {"slug": SLUG})
    lots = [{"tokens": 1000, "unitPrice": 45_671 + 1_013 * number} for number in range(5)]
    practice.sim("PUT", f"runes/{quote(RUNE)}", {"divisibility": 2, "asks": lots, "bids": lots[:2]})
    return practice


@pytest.fixture
def ready(
    market: Practice, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Path]:
    """An installation that uses the practice market; returns the directory of its probe files."""

    def pause() -> None:
        market.clock.ahead_s += 1  # the venues' limits are not what is tried here

    def sign(texts: SignInTexts) -> dict[str, str]:
        kinds = {ANN.payment: "p2wpkh", ANN.ordinals: "p2tr"}
        return {text.id: sign_message(ANN.key, kinds[text.address], text.message) for text in texts.texts}

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIDKEEPER_SIMULATOR_PORT", str(market.port))
    monkeypatch.setattr(venue, "pause", pause)
    monkeypatch.setattr(venue, "_sign", sign)
    monkeypatch.setattr(venue.time, "time_ns", lambda: market.clock.ms() * 1_000_000)
    yield tmp_path


def made(venue: str, directory: Path) -> Path:
    """Probes a venue, as its operator, and returns the file."""
    file = directory / f"{venue}.json"
    more = ["--sign-in", ANN.payment, ANN.ordinals] if venue.endswith("ordnet") else []
    about = ["--collection", SLUG, "--rune", RUNE, "--inscription", ITEM]
    assert main(["venue", "probe", venue, "--save", str(file), *about, *more]) == 0
    return file


@pytest.mark.parametrize("venue", VENUES)
def test_probe_file_of_the_practice_market_is_taken_by_check(
    ready: Path, venue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = made(venue, ready)
    said = capsys.readouterr().out
    assert "NOTE" not in said and "FAIL" not in said and f"saved {file}" in said
    assert main(["venue", "check", str(file)]) == 0
    checked = capsys.readouterr().out
    assert checked.startswith(f"{venue}, asked at ") and "strange" not in checked
    assert set(checked.splitlines()[1:]) <= set(said.splitlines())
    if venue.startswith("simulator"):
        assert re.search(r"ok   listings: understood, [1-9]\d* rows", checked)
        assert re.search(r"ok   sales: understood, 2 rows", checked) or venue.endswith(("unisat", "wallet"))


def test_newcomer_who_follows_going_live_gets_a_file_that_check_takes(
    ready: Path, practice: Practice, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    practice.sim("POST", "reset", {"seed": 3, "background": True})
    monkeypatch.chdir(ready)
    page = (ROOT / "docs" / "going-live.md").read_text().partition("## Before step 3")[2]
    commands = [line.split() for line in page.splitlines() if line.startswith("bidkeeper ") and "practice.json" in line]
    assert [words[1:3] for words in commands] == [["venue", "probe"], ["venue", "check"]]
    for words in commands:
        assert main(words[1:]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert "listings: understood, 10 rows" in said and "19 questions, 19 clear, 0 not" in said


@pytest.mark.parametrize("venue", [each for each in VENUES if each.startswith("simulator")])
def test_odd_rows_of_the_practice_market_are_named_and_the_replacements_change_none(
    ready: Path, practice: Practice, venue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    practice.sim("PUT", "scenes", {"names": "drawn"})
    file, more = ready / "odd.json", ["--sign-in", ANN.payment, ANN.ordinals] if venue.endswith("ordnet") else []
    about = ["--collection", SLUG, "--rune", RUNE, "--inscription", ITEM]
    probed = main(["venue", "probe", venue, "--save", str(file), *about, *more])
    said = capsys.readouterr().out
    checked = main(["venue", "check", str(file)])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert "NOTE" not in said and set(lines) <= set(said.splitlines())
    assert probed == checked == int(any(line.startswith(("odd", "FAIL")) for line in lines))
    assert checked == 0 or any(", row" in line for line in lines)


@pytest.mark.parametrize("venue", VENUES)
def test_nothing_of_the_operator_is_in_the_file(ready: Path, venue: str) -> None:
    text = made(venue, ready).read_text()
    for each in (ANN.payment, ANN.ordinals, ANN.pubkey[2:], BOB.payment, ITEM, "Ann", "own puppet"):
        assert each not in text, each
    for price in (*PRICES, 512_000, 509_000, 1_512_345, 45_671):
        # Not within a word: ids are random, and any digits may stand in them.
        found = re.search(rf"(?<![\w.]){price}(?![\w.])", text)
        assert found is None, text[max(0, found.start() - 80) : found.end() + 40]


def test_floor_of_the_file_is_its_cheapest_listing(ready: Path) -> None:
    saved = json.loads(made("simulator", ready).read_text())
    answers = {each["name"]: each["exchanges"][0]["answer"]["data"] for each in saved["questions"][:2]}
    rows = answers["listings"].get("items") or answers["listings"]["listings"]
    over = ("cancelledAt", "invalidAt", "fillPendingAt", "fillCompletedAt")
    asks = [row | row.get("ask", {}) for row in rows if row.get("orderType", "ask") == "ask"]
    alive = [int(ask["price"]) for ask in asks if not any(map(ask.get, over))]
    floors = answers["floors"] if isinstance(answers["floors"], list) else answers["floors"]["results"]
    assert floors[0]["floor"] == min(alive)


def test_ordnet_without_a_session_says_how_to_open_one(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ready / "report.json"
    assert main(["venue", "probe", "simulator-ordnet", "--save", str(file), "--collection", SLUG]) == 0
    said = capsys.readouterr().out
    assert "listings: not asked, because it needs a session" in said
    assert "add --sign-in PAYMENT ORDINALS" in said
    assert "sign-in texts: understood" in said and "listings without a session: access refused" in said


def test_session_without_signatures_is_not_opened_and_its_token_is_left_out(
    ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden: list[str] = []
    monkeypatch.setattr(venue, "Masker", lambda salt, keys, *more: hidden.extend(keys) or Masker(salt, keys, *more))
    text = made("simulator-ordnet", ready).read_text()
    (token,) = (each for each in hidden if len(each) > 20)
    assert token not in text and '"sessionToken": "' in text
    monkeypatch.setattr(venue, "_sign", SIGN)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    more = ["--collection", SLUG, "--sign-in", ANN.payment, ANN.ordinals]
    assert main(["venue", "probe", "simulator-ordnet", "--save", str(ready / "x"), *more]) == 0
    said = capsys.readouterr().out
    assert f"Sign this text with {ANN.ordinals}" in said and "sign-in: nothing was asked: no signature" in said


def test_name_of_a_dialect_leads_to_its_practice_venue(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ready / "report.json"
    assert main(["venue", "probe", "unisat", "--save", str(file), "--collection", SLUG, "--rune", RUNE]) == 0
    assert json.loads(file.read_text())["venue"] == "simulator-unisat"
    assert main(["venue", "probe", "unisat", "--save", str(ready / "x"), "--sign-in", ANN.payment, ANN.ordinals]) == 1
    assert "leave --sign-in out" in capsys.readouterr().err
    assert not (ready / "x").exists()
