"""Forms of drafts that an operator confirmed in a former version: its audit log stays good, its file decides nothing.

The last version with such forms recorded `tests/goldens/learnt_forms`, with the keys of `listing_desk`. Its signer
refused the draft below with the tag `learnt-form`.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wallet.listings import Pay, honest
from tests.worlds.signer import Desk, listing, tag_of, text
from tests.worlds.signer_process import started_in
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import report_former_forms
from wallet.signer.start_checks import LEARNT_FILE, former_forms, require_agreement

RECORDED = Path(__file__).resolve().parents[1] / "goldens" / "learnt_forms"
LINES = 5


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Desk]:
    for name in ("audit.jsonl", LEARNT_FILE):
        shutil.copy(RECORDED / name, tmp_path / name)
    with Desk.opened(tmp_path) as opened:
        yield opened


def test_an_old_log_with_confirmed_forms_verifies_and_goes_on(upgraded: Desk) -> None:
    before = upgraded.audit_path.read_bytes()
    assert before.count(b'"learnt_sha256"') == verify_chain(upgraded.audit_path) == LINES
    assert require_agreement(upgraded.audit_path, upgraded.ledger_path, upgraded.now_ms) == ()
    upgraded.sign(listing())
    upgraded.restart()
    assert verify_chain(upgraded.audit_path) == LINES + 1 and upgraded.audit_path.read_bytes().startswith(before)


def test_a_draft_of_another_form_than_the_confirmed_one_is_signed(upgraded: Desk) -> None:
    case = honest()
    case.draft.pays.append(Pay(5, b"\x6a"))
    asked = listing(psbt=text(case.draft.encode()), secure=[])
    judged = upgraded.ask("judge", user=upgraded.terms.user, venue="simulator", min_price_sats=0, listing=asked)
    assert [each["is_signed"] for each in judged["judgements"]] == [True]
    upgraded.sign(asked)


@pytest.mark.parametrize("name", ["study", "learn", "learnt", "forget", "holder", "judge_delist"])
def test_requests_about_forms_are_denied(upgraded: Desk, name: str) -> None:
    assert tag_of(upgraded.ask, name, venue="") == "default-deny"


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (None, "simulator plain, simulator secure"),
        ('{"forms": [], "hmac": "ab"}', ""),
        ("{", "unknown drafts (learnt.json is damaged)"),
        ("[]", "unknown drafts (learnt.json is damaged)"),
        ("5", "unknown drafts (learnt.json is damaged)"),
        ('{"forms": [{}]}', "unknown drafts (learnt.json is damaged)"),
        ("[" * 100_000, "unknown drafts (learnt.json is damaged)"),
    ],
)
def test_the_confirmed_forms_are_reported_at_the_start(
    upgraded: Desk, caplog: pytest.LogCaptureFixture, stored: str | None, told: str
) -> None:
    if stored is not None:
        (upgraded.directory / LEARNT_FILE).write_text(stored)
    assert former_forms(upgraded.directory) == told
    report_former_forms(upgraded.directory)
    expected = f"the confirmed forms of {told} refuse no listing any more: only the rules decide; see docs/custody.md"
    assert caplog.messages == ([expected] if told else [])


@pytest.mark.slow
def test_a_started_signer_reports_them(tmp_path: Path) -> None:
    (tmp_path / "signer").mkdir(mode=0o700)
    shutil.copy(RECORDED / LEARNT_FILE, tmp_path / "signer")
    for start in started_in(tmp_path):
        _, said = start().end(signal.SIGTERM)
        assert said.count("the confirmed forms of simulator plain, simulator secure refuse no listing any more") == 1


def test_without_the_file_nothing_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert former_forms(tmp_path) == ""
    report_former_forms(tmp_path)
    assert caplog.messages == []


def test_a_file_that_cannot_be_read_does_not_stop_the_signer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / LEARNT_FILE).mkdir()
    report_former_forms(tmp_path)
    assert "the confirmed forms of unknown drafts (" in caplog.text


def test_the_recorded_file_is_the_one_of_the_log() -> None:
    forms = json.loads((RECORDED / LEARNT_FILE).read_text())["forms"]
    lines = [json.loads(line) for line in (RECORDED / "audit.jsonl").read_text().splitlines()]
    assert [each["operation"] for each in lines] == ["learn", "learn", "forget", "learn", "learn"]
    assert [each["drafts"] for each in forms] == [each["drafts_sha256"] for each in lines[-2:]]
