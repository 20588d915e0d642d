"""`bidkeeper venue probe`: what it keeps, and what it keeps out."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.doctor import venue_check
from cli.doctor.questions import ADDRESS, FIRST_INSCRIPTION
from cli.main import main
from tests.cli.test_doctor_venues import KEY, SATFLOW
from tests.cli.venue import venue

Probe = Callable[..., int]


@pytest.fixture
def probe(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs the command for a venue, Satflow being at the given URL, and returns its exit code."""
    monkeypatch.setattr(venue_check, "PAUSE_S", 0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIDKEEPER_MARKET", "satflow")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY", KEY)

    def run(name: str, url: str, directory: Path, inscription: str = FIRST_INSCRIPTION) -> int:
        monkeypatch.setenv("BIDKEEPER_SATFLOW_URL", f"{url}/v1")
        about = ["--collection", "nodemonkes", "--inscription", inscription]
        return main(["venue", "probe", name, "--save", str(directory), *about])

    return run


def test_raw_answers_are_kept_for_their_owner_alone(probe: Probe, tmp_path: Path) -> None:
    directory = tmp_path / "report"
    strange = b'{"success": true, "data": {"items": [{"price": "5e5"}]}}'
    with venue(SATFLOW | {"/v1/activity/listings": strange}) as made:
        assert probe("satflow", made.url, directory) == 1
    assert (directory / "02-listings.body").read_bytes() == strange
    assert "status 200" in (directory / "02-listings.head").read_text()
    readme = (directory / "README").read_text()
    [line] = [line for line in readme.splitlines() if line.startswith("02-listings")]
    assert "GET /activity/listings?collectionSlug=nodemonkes" in line
    assert "drifted: failed to understand the venue: 1 of 1 rows are not understood: listing 1" in line
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_keys_and_cookies_are_masked(probe: Probe, tmp_path: Path) -> None:
    echo = f'{{"error": "the key {KEY} is strange"}}'.encode()
    answers = SATFLOW | {"/v1/activity/bids": echo}
    with venue(answers, {"Set-Cookie": "session=0123456789", "X-Your-Key": KEY}) as made:
        probe("satflow", made.url, tmp_path / "report")
    kept = b"".join(file.read_bytes() for file in (tmp_path / "report").iterdir())
    assert KEY.encode() not in kept
    assert b"0123456789" not in kept
    assert b"the key [masked] is strange" in kept
    assert b"X-Your-Key: [masked]" in kept


def test_fault_of_an_adapter_is_a_line_of_the_record_and_no_traceback(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError(f"no such field, by {KEY}")

    monkeypatch.setattr("markets.satflow.adapter.Satflow.floors", broken)
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, tmp_path / "report") == 1
    told = (tmp_path / "report" / "README").read_text()
    assert "01-floors  nothing was sent; drifted: KeyError" in told and KEY not in told
    assert "02-listings  GET /activity/listings" in told


def test_key_with_a_byte_order_mark_is_asked_with(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key"
    monkeypatch.delenv("BIDKEEPER_SATFLOW_API_KEY")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY_FILE", str(file))
    file.write_bytes(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n")
    with venue(SATFLOW) as made:
        probe("satflow", made.url, tmp_path / "report")
    assert made.asked
    file.write_text(f'"{KEY}"\n')
    assert probe("satflow", made.url, tmp_path / "again") == 2
    assert f"{file} (BIDKEEPER_SATFLOW_API_KEY_FILE) has a quote in it" in capsys.readouterr().err


def test_nothing_is_overwritten_and_nothing_asked(
    probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, tmp_path) == 1
    assert made.asked == []
    assert "is there already" in capsys.readouterr().err


def test_a_venue_that_is_not_set(probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe("ord", "https://venue.test", tmp_path / "report") == 1
    assert "BIDKEEPER_ORD_URL is not set" in capsys.readouterr().err
    assert not (tmp_path / "report").exists()


HELD = "7" * 64 + "i3"
CLEAR = SATFLOW | {"/v1/activity/bids": {"data": {"items": []}}}


@pytest.mark.parametrize(("draft", "code"), [({"seller": {"unsignedListingPSBTBase64": 7}}, 1), (400, 0)])
def test_a_listing_is_drafted_for_its_holder_and_nothing_is_signed(
    probe: Probe, tmp_path: Path, draft: Any, code: int
) -> None:
    answers: dict[str, Any] = {
        "/v1/address/bidding-wallet": {"data": {"multiSig": {"address": "bc1qmulti"}}},
        "/v1/item": {"data": {"id": HELD, "owner": "bc1pholder"}},
        "/v1/intent/sell": draft if isinstance(draft, int) else {"data": draft},
    }
    with venue(CLEAR | answers) as made:
        assert probe("satflow", made.url, tmp_path / "report", HELD) == code
    (asked,) = made.posted
    assert asked == {
        "price": 100_000_000,
        "inscriptionId": HELD,
        "sellerOrdAddress": "bc1pholder",
        "sellerReceiveAddress": ADDRESS,
    }
    told = (tmp_path / "report" / "README").read_text()
    assert "item  GET /item?inscriptionId=7" in told and "listing-draft  POST /intent/sell" in told
    assert "bidding-wallet  GET /address/bidding-wallet" in told and "challenge  GET /challenge" in told


def test_without_a_holder_nothing_is_drafted(probe: Probe, tmp_path: Path) -> None:
    with venue(CLEAR) as made:
        assert probe("satflow", made.url, tmp_path / "report") == 0
    assert made.posted == []
    assert len(made.asked) == 14
