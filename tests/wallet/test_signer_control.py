"""The effect of run, reduce and halt on the signer's answers: bids stop, cancels go on, and nothing is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.worlds.signer import BID, OTHER_USER, USER, Bench, intent, no_space, signer_answer, tag_of
from wallet.signer.audit import verify_chain
from wallet.signer.ledger import HOUR_MS, MINUTE_MS
from wallet.signer.signer import Signer
from wallet.terms import Ceilings, Rate

EVERY_SCOPE = [("global", ""), ("user", USER), ("task", "17")]


@pytest.mark.parametrize("state", ["reduce", "halt"])
@pytest.mark.parametrize(("scope", "subject"), EVERY_SCOPE)
def test_no_bid_is_signed_until_it_runs_again_and_cancels_always_are(
    scope: str, subject: str, state: str, bench: Bench
) -> None:
    secret = bench.grant()
    bench.sign_bid(secret)
    bench.control(state, scope, subject)
    bench.restart()
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "control-state"
    assert tag_of(bench.sign_bid, secret) == "control-state"
    assert bench.ask("was_signed", intent=intent(2)) == {"signed": False}
    assert bench.sign_challenge(secret)
    bench.control("run", scope, subject)
    bench.restart()
    assert bench.sign_bid(secret, intent=intent(2))


def test_the_strictest_holds_whatever_is_set_to_run(bench: Bench) -> None:
    secret = bench.grant()
    for scope, subject in EVERY_SCOPE:
        for other, whom in EVERY_SCOPE:
            bench.control("halt" if other == scope else "run", other, whom)
        assert tag_of(bench.sign_bid, secret) == "control-state"
        bench.control("run", scope, subject)
    assert bench.sign_bid(secret)


def test_others_are_not_touched(bench: Bench) -> None:
    bench.control("halt", "user", OTHER_USER)
    bench.control("halt", "task", "18")
    bench.control("halt", "task", "1")
    assert bench.sign_bid(bench.grant())


def test_a_user_is_halted_however_the_address_is_written(bench: Bench) -> None:
    bench.control("halt", "user", USER.upper())
    assert tag_of(bench.sign_bid, bench.grant()) == "control-state"
    bench.control("run", "user", USER)
    assert bench.ask("controls")["controls"] == []


def test_a_new_grant_does_not_lift_a_halt(bench: Bench) -> None:
    bench.control("halt", "task", "17")
    assert tag_of(bench.sign_bid, bench.grant(token=6), token=6) == "control-state"


def test_a_state_that_the_signer_does_not_know_signs_nothing(bench: Bench) -> None:
    secret = bench.grant()
    bench.ledger._database.execute("INSERT INTO controls VALUES ('task', '17', 'Run')")
    assert tag_of(bench.sign_bid, secret) == "control-state"


def test_a_locked_signer_takes_control_states_and_tells_them(bench: Bench) -> None:
    secret = bench.grant()
    locked = Signer(bench.ledger, bench.audit, None, ceilings=Ceilings(), clock=lambda: bench.now_ms)
    signer_answer(locked, {"op": "control", "scope": "global", "subject": "", "state": "halt"})
    assert signer_answer(locked, {"op": "controls"}) == {
        "controls": [{"scope": "global", "subject": "", "state": "halt"}],
        "file": False,
    }
    bench.restart()
    assert tag_of(bench.sign_bid, secret) == "control-state"


def test_the_log_tells_each_change_once(bench: Bench) -> None:
    bench.control("run")
    for state in ("reduce", "reduce", "halt", "halt", "run", "run"):
        bench.control(state, "task", "17")
    assert verify_chain(bench.audit_path) == 3
    lines = [json.loads(line) for line in bench.audit_path.read_text().splitlines()]
    assert {(line["operation"], line["scope"], line["subject"]) for line in lines} == {("control", "task", "17")}
    assert [(line["former"], line["state"]) for line in lines] == [
        ("run", "reduce"),
        ("reduce", "halt"),
        ("halt", "run"),
    ]


def test_no_looser_state_holds_that_the_log_could_not_take(bench: Bench) -> None:
    bench.control("halt")
    with no_space():
        assert tag_of(bench.control, "run") == "disk-full"
    assert tag_of(bench.sign_bid, bench.grant()) == "control-state"
    assert verify_chain(bench.audit_path) == 1


def test_the_halt_file_stops_bids_and_no_request_lifts_it(bench: Bench) -> None:
    secret = bench.grant()
    bench.has_halt_file = True
    for scope, subject in EVERY_SCOPE:
        bench.control("run", scope, subject)
    assert tag_of(bench.sign_bid, secret) == "control-state"
    assert bench.sign_challenge(secret)
    assert bench.ask("controls") == {"controls": [], "file": True}
    bench.has_halt_file = False
    assert bench.sign_bid(secret)["message"].count(str(BID.price)) == 1


@pytest.mark.parametrize(("rate", "wait_ms"), [(Rate(2, 9), MINUTE_MS), (Rate(9, 2), HOUR_MS)])
def test_so_many_states_may_be_loosened_and_tightening_never_waits(bench: Bench, rate: Rate, wait_ms: int) -> None:
    bench.ceilings = Ceilings(loosened=rate)
    bench.restart()
    for state in ("halt", "reduce", "halt", "run"):
        bench.control(state, "task", "17")
    for task in range(20, 30):
        bench.control("reduce", "task", str(task))
        bench.control("halt", "task", str(task))
    written = bench.audit_path.read_bytes()
    for scope, subject, state in (("task", "20", "run"), ("task", "21", "reduce")):
        assert tag_of(bench.control, state, scope, subject) == "velocity"
    assert bench.audit_path.read_bytes() == written
    assert {each["state"] for each in bench.ask("controls")["controls"]} == {"halt"}
    bench.control("run", "task", "17")
    assert bench.audit_path.read_bytes() == written, "it was on run already"
    bench.restart()
    bench.control("halt")
    bench.now_ms += wait_ms - 1
    assert tag_of(bench.control, "run") == "velocity"
    bench.now_ms += 1
    bench.control("run")
    assert tag_of(bench.sign_bid, bench.grant(task=20), task=20) == "control-state"
    assert bench.sign_bid(bench.grant(), expires_ms=bench.now_ms + MINUTE_MS)


def unreadable() -> bool:
    raise OSError("no answer")


@pytest.mark.parametrize("is_short", [lambda: True, unreadable])
def test_a_disk_that_is_short_or_unknown_signs_cancels_alone(is_short: Any, bench: Bench) -> None:
    secret = bench.grant()
    bench.sign_bid(secret)
    bench.is_short = is_short
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "disk-full"
    assert bench.sign_challenge(secret) and bench.sign_brake(USER)
    bench.control("halt")
    written = bench.audit_path.read_bytes()
    assert tag_of(bench.control, "run") == "disk-full"
    assert bench.audit_path.read_bytes() == written, "the room for lines is for cancels"
    bench.is_short = lambda: False
    bench.control("run")
    assert bench.sign_bid(secret, intent=intent(2))
