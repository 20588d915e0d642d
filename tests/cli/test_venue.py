"""`bidkeeper venue probe`: what it keeps, and what it keeps out."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.doctor import venues as doctor_venues
from cli.main import main
from tests.cli.test_doctor_venues import KEY, SATFLOW
from tests.cli.venue import venue

Probe = Callable[[str, str, Path], int]


@pytest.fixture
def probe(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs the command for a venue, Satflow being at the given URL, and returns its exit code."""
    monkeypatch.setattr(doctor_venues, "PAUSE_S", 0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIDKEEPER_MARKET", "satflow")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY", KEY)

    def run(name: str, url: str, directory: Path) -> int:
        monkeypatch.setenv("BIDKEEPER_SATFLOW_URL", f"{url}/v1")
        return main(["venue", "probe", name, "--save", str(directory), "--collection", "nodemonkes"])

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
    assert "drifted: failed to understand the venue: listing" in line
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
