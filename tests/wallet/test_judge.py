"""Judgements: every rule's finding on a draft, what a signature would cover, and that nothing is signed.

The last version with such forms recorded `tests/goldens/learnt_forms`, with the keys of `listing_desk`. Its signer
refused the draft below with the tag `learnt-form`.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from core.errors import PeerRefused
from tests.shapes import replace
from tests.wallet.attacks.listing_attacks import ATTACKS
from tests.wallet.attacks.listing_changes import is_harmless
from tests.wallet.listings import PAYOUT_SCRIPT, PRICE, STRANGER_SCRIPT, VAULT, Case, Pay, honest, script_by
from tests.worlds.signer import (
    FACTS,
    LIST_GRANT,
    OTHER_USER,
    USER,
    Desk,
    RealDesk,
    desk,
    listing,
    outpoints_to_look_up,
    tag_of,
    text,
)
from tests.worlds.signer_process import facts_server, house, ok, started_in, wire
from wallet.address import p2wpkh
from wallet.protocol import Judgement, ListingToSign, Side, in_words, to_judge, verdict
from wallet.psbt.check_listing import RULES, judge_listing
from wallet.psbt.transaction import TxOutput
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import LEARNT_FILE, former_forms, report_former_forms, require_agreement
from wallet.terms import Ceilings

OF_THE_SIGNER = ["market", "op-allowed"], ["list-lower", "outputs-unique"]
OF_A_DRAFT = ["psbt-size", "psbt-strict", "inputs-reserved", *RULES]
ALL = [*OF_THE_SIGNER[0], *OF_A_DRAFT, *OF_THE_SIGNER[1]]
AT_400K = TxOutput(410_000, PAYOUT_SCRIPT)  # price and postage
OUTPOINT = str(honest().intent.outpoint)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path) as found:
        yield found


def judged(opened: Desk, asked: dict[str, Any] | None = None, **changes: Any) -> list[Judgement]:
    request = {"user": USER, "venue": "simulator", "min_price_sats": 0, "listing": asked or listing()} | changes
    return [convert(each, Judgement) for each in opened.ask("judge", **request)["judgements"]]


def wrong(judgement: Judgement) -> dict[str, bool | None]:
    return {finding.rule: finding.holds for finding in judgement.findings if finding.holds is not True}


def test_an_honest_listing_holds_by_every_rule_in_both_forms_and_nothing_is_signed(opened: Desk) -> None:
    plain, secure = judged(opened)
    assert [finding.rule for finding in plain.findings] == ALL
    assert (plain.form, secure.form) == ("plain", "secure")
    for each in (plain, secure):
        assert (wrong(each), each.is_signed) == ({}, True)
        assert (each.payout_sats, each.least_sats) == (PRICE + 10_000, PRICE)
    assert opened.audit_path.read_bytes() == b""
    assert opened.ask("was_signed", intent=listing()["intent"]) == {"signed": False}


def test_it_tells_what_is_covered_and_whose_it_is(opened: Desk) -> None:
    case = honest("p2tr", "OKX")
    (plain,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    for sides in (plain.inputs, plain.outputs):
        assert [side.is_covered for side in sides] == [False, False, True]
    assert [side.is_ours for side in plain.outputs] == [False, False, True]
    held = script_by("p2tr", VAULT).hex()
    assert plain.inputs[2] == Side(10_000, held, plain.inputs[2].address, True, True, OUTPOINT)
    assert plain.inputs[2].address.startswith("bc1p")
    assert plain.outputs[2].address == p2wpkh(PAYOUT_SCRIPT[2:])
    case.draft.pays.append(Pay(5, b"\x6a"))
    case.draft.spends[0].fields.clear()
    (plain,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    assert (plain.inputs[0].sats, plain.inputs[0].script, plain.outputs[3].address) == (None, "", "")
    secure = judged(opened)[1]
    assert [side.is_covered for side in (*secure.inputs, *secure.outputs)] == [True, True]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_rule_that_refuses_an_attack_is_told(attack: Any) -> None:
    for case in attack.cases():
        found = of_case(case)
        if is_harmless(attack.name, case):
            assert wrong(found) == {} and found.is_signed
        else:
            assert wrong(found)[attack.tag] is False and not found.is_signed


def of_case(case: Case) -> Judgement:
    form: Any = "secure" if case.form.startswith("secure") else "plain"
    judgement, payout = judge_listing(case.draft.encode(), form, case.intent, case.facts, case.owner)
    assert [finding.rule for finding in judgement.findings] == OF_A_DRAFT
    assert (payout is None) == (judgement.payout_sats is None)
    return judgement


def test_all_that_is_wrong_is_told_at_once(opened: Desk) -> None:
    case = honest()
    case.draft.version, case.payout.value = 7, PRICE - 1
    opened.facts = replace(FACTS, runes=("DOG•GO",))
    (plain,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    assert wrong(plain) == {"inputs-cardinal": False, "payout": False, "tx-form": None}
    assert [finding.why for finding in plain.findings if finding.rule == "tx-form"] == ["it waits for inputs-cardinal"]


@pytest.mark.parametrize(
    ("psbt", "rule"), [("AAAA", "psbt-strict"), ("not base64", "psbt-strict"), ("A" * 43_692, "psbt-size")]
)
def test_what_cannot_be_read_leaves_nothing_to_look_at(opened: Desk, psbt: str, rule: str) -> None:
    (plain,) = judged(opened, listing(psbt=psbt, secure=[]))
    assert wrong(plain)[rule] is False and wrong(plain)["payout"] is None
    assert (plain.inputs, plain.outputs, plain.payout_sats, plain.least_sats) == ((), (), None, None)


def test_a_draft_of_another_output_still_shows_its_sides(opened: Desk) -> None:
    case = honest()
    case.own.vout = 7
    (plain,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    assert wrong(plain)["inputs-reserved"] is False
    assert (len(plain.inputs), len(plain.outputs)) == (1, 1)
    assert not any(side.is_covered for side in (*plain.inputs, *plain.outputs))
    assert not any("would cover" in line for line in in_words(plain))


def test_too_large_a_draft(opened: Desk) -> None:
    case = honest()
    case.own.put(b"\xf0", b"\0" * 33_000)
    judgement, _ = judge_listing(case.draft.encode(), "plain", case.intent, case.facts, case.owner)
    assert [finding.holds for finding in judgement.findings[:3]] == [False, None, None]


def test_the_least_price_is_the_tasks_and_the_installations(tmp_path: Path, opened: Desk) -> None:
    assert wrong(judged(opened, min_price_sats=PRICE)[0]) == {}
    assert wrong(judged(opened, min_price_sats=PRICE + 1)[0]) == {"list-min": False, "payout": None}
    (tmp_path / "other").mkdir()
    with desk(tmp_path / "other", Ceilings(least_listing=PRICE + 1)) as other:
        assert wrong(judged(other)[0]) == {"list-min": False, "payout": None}


def test_the_signers_own_memory_counts(opened: Desk) -> None:
    opened.sign(listing(1, 400_000))
    assert wrong(judged(opened)[0]) == {"list-lower": False}
    opened.ledger.payouts.put("ab" * 32 + ":0", AT_400K, 0x83, "ab" * 32 + ":0")
    plain, secure = judged(opened, listing(2, 400_000))
    assert (wrong(plain), wrong(secure)) == ({}, {"outputs-unique": False})


@pytest.mark.parametrize(("venue", "rules"), [("satflow", {}), ("simulator", {"market": False})])
def test_at_a_real_venue_the_secure_form_is_told_to_be_off(tmp_path: Path, venue: str, rules: dict[str, bool]) -> None:
    with RealDesk.opened(tmp_path) as real:
        plain, secure = judged(real, venue=venue)
        assert (wrong(plain), wrong(secure)) == (rules, rules | {"op-allowed": False})


def test_nobody_gets_keys_by_asking(opened: Desk) -> None:
    assert tag_of(judged, opened, user=OTHER_USER) == "dest-allow"
    assert opened.keys.users == (USER,)


@pytest.mark.parametrize(
    "changes",
    [{"user": ""}, {"user": "x"}, {"venue": ""}, {"min_price_sats": -1}, {"min_price_sats": None}, {"listing": None}],
)
def test_a_misshapen_question_is_refused(opened: Desk, changes: dict[str, Any]) -> None:
    with pytest.raises(PeerRefused, match=r"must be|not an address"):
        opened.ask("judge", **{"user": USER, "venue": "simulator", "min_price_sats": 0, "listing": listing()} | changes)


def test_it_looks_up_the_output_and_those_with_the_same_payout(opened: Desk) -> None:
    request = {"op": "judge", "user": USER, "venue": "simulator", "min_price_sats": 0, "listing": listing()}
    assert outpoints_to_look_up(opened.signer, request) == (OUTPOINT,)
    opened.ledger.payouts.put("ab" * 32 + ":0", AT_400K, 0x81, "ab" * 32 + ":0")
    request["listing"] = listing(1, 400_000)
    assert outpoints_to_look_up(opened.signer, request) == (OUTPOINT, "ab" * 32 + ":0")
    paid_else = honest("p2tr", "OKX")
    paid_else.payout.value = AT_400K.value
    request["listing"] = listing(1, 400_000, psbt=text(paid_else.draft.encode()), secure=[])
    assert outpoints_to_look_up(opened.signer, request) == (OUTPOINT, "ab" * 32 + ":0")
    request["listing"] = listing(psbt="AAAA")
    assert outpoints_to_look_up(opened.signer, request) == (OUTPOINT,)


def test_over_the_socket(tmp_path: Path) -> None:
    with house(tmp_path) as running, facts_server(running.facts_socket, lambda request: ok(wire())) as came:
        running.client.grant(LIST_GRANT)
        running.client.addresses(USER)
        asked = listing()
        to_judge = ListingToSign(**asked | {"secure": tuple(asked["secure"])})
        plain, secure = running.client.judge(USER, "simulator", to_judge)
        assert (wrong(plain), wrong(secure)) == ({}, {"op-allowed": False})
        assert [request["args"]["outpoint"] for request in came] == [OUTPOINT]
        assert not running.client.was_signed(to_judge.intent)


def test_in_words_for_a_human(opened: Desk) -> None:
    case = honest("p2tr", "paired at 2")
    case.payout.value = PRICE - 1
    (plain,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    told = in_words(plain)
    assert told[0] == "plain listing (SINGLE|ANYONECANPAY 0x83)"
    assert f"  input 2   yours      {plain.inputs[2].address}  10,000 sats   {OUTPOINT}" in told
    assert f"  output 2  YOURS      {p2wpkh(PAYOUT_SCRIPT[2:])}  249,999 sats   <- covered" in told
    assert (
        "  a signature would cover input 2 and output 2. Anybody can add inputs and outputs. It is good until" in told
    )
    assert "  you get 249,999 sats, and must get 250,000 sats at least" in told
    assert "  payout: NO: the seller is paid 249999 sats instead of at least 250000" in told
    assert told[-1] == "  it would NOT be signed"
    case.draft.spends[0].fields.clear()
    case.payout.script = STRANGER_SCRIPT
    opened.facts = None
    (lost,) = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    assert any("somebody's an unknown script  unknown sats" in line for line in in_words(lost))
    assert "  payout: not judged: it waits for outputs-known" in in_words(lost)
    secure = in_words(judged_honest(opened)[1])
    assert secure[-1] == "  every rule holds: it would be signed"
    assert "  a signature would cover input 0 and all outputs. Anybody can add inputs. It is good until" in secure


def judged_honest(opened: Desk) -> list[Judgement]:
    opened.facts = FACTS
    return judged(opened)


def test_without_facts_no_least_is_told(opened: Desk) -> None:
    opened.facts = None
    plain = judged(opened)[0]
    assert (plain.payout_sats, plain.least_sats, wrong(plain)["inputs-confirmed"]) == (PRICE + 10_000, None, False)
    assert all("must get" not in line for line in in_words(plain))


def test_a_verdict_is_the_plain_forms_in_a_line(opened: Desk) -> None:
    plain, secure = judged(opened)
    assert verdict([plain, secure]) == "the signer would sign it"
    case = honest()
    case.payout.value = PRICE - 1
    low = judged(opened, listing(psbt=text(case.draft.encode()), secure=[]))
    assert (
        verdict(low) == "the signer would refuse it (payout: the seller is paid 249999 sats instead of at least 250000)"
    )
    unknown = replace(plain, is_signed=False, findings=(replace(plain.findings[0], holds=None),))
    assert verdict([unknown, secure]) == "the signer cannot judge it"


def test_a_draft_to_be_judged_uses_no_intent_up() -> None:
    made = to_judge("a", "b:0", 5, "psbt", (each for each in ("one", "two")))
    assert made == ListingToSign("0" * 64, "a", "b:0", 5, "psbt", ("one", "two"))


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
