"""The signer's answers: what it signs, once, for whom, and what takes the right away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shapes import asdict
from tests.worlds.signer import (
    BID,
    GRANT,
    HOUR_MS,
    OTHER_USER,
    START_MS,
    USER,
    Bench,
    intent,
    no_space,
    signer_answer,
    tag_of,
)
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import Keystore
from wallet.protocol import PolicyRefused
from wallet.signer.audit import verify_chain
from wallet.signer.signer import Signer
from wallet.terms import Ceilings


def test_a_signed_bid_verifies_for_the_users_payment_address(bench: Bench) -> None:
    keys = bench.ask("addresses", user=USER)
    signed = bench.sign_bid(bench.grant())
    assert signed["message"] == ":".join(
        [
            keys["payment"],
            keys["payment_pubkey"],
            GRANT.receive,
            "40000",
            "1",
            str(BID.expires_ms),
            BID.slug,
            str(BID.timestamp_ms),
        ]
    )
    assert verify_ownership(keys["payment"], signed["message"], signed["signature"])


def test_a_signed_challenge_verifies_for_the_users_payment_address(bench: Bench) -> None:
    signature = bench.sign_challenge(bench.grant(), "satflow 5f2e")
    assert verify_ownership(bench.ask("addresses", user=USER)["payment"], "satflow 5f2e", signature)


def test_a_brake_signs_as_a_challenge_does_and_needs_no_grant(bench: Bench) -> None:
    keys = bench.ask("addresses", user=USER)
    for state in ("run", "halt"):
        bench.control(state)
        assert verify_ownership(keys["payment"], "satflow 5f2e", bench.sign_brake(USER.upper(), "satflow 5f2e"))
    assert bench.sign_brake(USER) == bench.sign_challenge(bench.grant())


def test_a_brake_for_a_stranger_makes_no_keys(bench: Bench) -> None:
    bench.ask("addresses", user=USER)
    assert tag_of(bench.sign_brake, OTHER_USER) == "dest-allow"
    assert bench.keys.users == (USER,)


def test_a_brake_keeps_play_and_real_money_apart(bench: Bench) -> None:
    bench.ask("addresses", user=USER)
    assert tag_of(bench.sign_brake, USER, venue="satflow") == "market"


def test_addresses_are_the_same_however_the_user_is_written(bench: Bench) -> None:
    assert bench.ask("addresses", user=USER.upper()) == bench.ask("addresses", user=USER)
    assert bench.ask("addresses", user=OTHER_USER) != bench.ask("addresses", user=USER)


def test_the_same_intent_gets_the_same_signature_and_counts_once(bench: Bench) -> None:
    secret = bench.grant(outstanding_sats=40_000)
    first = bench.sign_bid(secret)
    bench.restart()
    bench.now_ms += 10 * HOUR_MS
    assert bench.sign_bid(secret) == first
    assert verify_chain(bench.audit_path) == 1


@pytest.mark.parametrize(
    "change", [{"price": 39_000}, {"quantity": "2"}, {"expires_ms": START_MS + 1}, {"timestamp_ms": 1}]
)
def test_a_signed_intent_with_other_fields_is_refused(change: dict[str, Any], bench: Bench) -> None:
    secret = bench.grant()
    bench.sign_bid(secret)
    assert tag_of(bench.sign_bid, secret, **change) == "intent-conflict"


def test_a_signed_intent_is_not_given_to_another_task(bench: Bench) -> None:
    bench.sign_bid(bench.grant())
    assert tag_of(bench.sign_bid, bench.grant(task=18), task=18) == "intent-conflict"


def test_after_revoke_place_only_cancels_go_on_and_after_withdraw_nothing(bench: Bench) -> None:
    secret = bench.grant()
    signed = bench.sign_bid(secret)
    bench.ask("revoke_place", task=17, token=5)
    bench.restart()
    assert tag_of(bench.sign_bid, secret) == "op-allowed"
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "op-allowed"
    assert bench.sign_challenge(secret)
    bench.ask("end_rights", task=17, token=5)
    bench.restart()
    assert tag_of(bench.sign_bid, secret) == "grant-live"
    assert tag_of(bench.sign_challenge, secret) == "grant-live"
    assert signed["signature"]


def test_many_tasks_grants_are_withdrawn_at_once(bench: Bench) -> None:
    first, second = bench.grant(), bench.grant(task=18)
    assert bench.ask("end_all_rights", tokens=[]) == {"higher": []}
    assert bench.ask("end_all_rights", tokens=[[17, 4], [18, 4]]) == {"higher": [[17, 5], [18, 5]]}
    assert bench.sign_bid(first)
    assert bench.ask("end_all_rights", tokens=[[17, 6], [18, 6]]) == {"higher": []}
    bench.restart()
    assert tag_of(bench.sign_challenge, first) == "grant-live"
    assert tag_of(bench.sign_challenge, second, task=18) == "grant-live"
    assert tag_of(bench.grant, token=6) == "stale-token"
    assert bench.sign_bid(bench.grant(token=7), token=7, intent=intent(2))


def test_a_token_far_above_all_others_ends_its_grant_and_holds_up_no_other_task(bench: Bench) -> None:
    first, second = bench.grant(), bench.grant(task=18)
    assert bench.ask("end_all_rights", tokens=[[18, 2**62], [17, 6]]) == {"higher": []}
    assert tag_of(bench.sign_challenge, first) == "grant-live"
    assert tag_of(bench.sign_challenge, second, task=18) == "grant-live"
    assert tag_of(bench.grant, token=6) == "stale-token"
    assert bench.grant(task=18, token=6), "it was not remembered"


def test_a_grant_gives_its_user_keys_and_a_secret_that_nobody_guesses(bench: Bench) -> None:
    secret = bench.grant(user=OTHER_USER)
    assert len(bytes.fromhex(secret)) == 32
    assert secret != bench.grant(user=OTHER_USER, token=6)
    assert Keystore.open(bench.keystore_path).users == (OTHER_USER,)
    assert bench.ask("revoke_place", task=17, token=5) == bench.ask("end_rights", task=17, token=5) == {}


def test_a_higher_token_replaces_the_grant_for_good(bench: Bench) -> None:
    old = bench.grant(token=5)
    new = bench.grant(token=6)
    bench.restart()
    assert tag_of(bench.sign_bid, old) == "stale-token"
    assert tag_of(bench.sign_challenge, old) == "stale-token"
    assert tag_of(bench.sign_bid, old, token=6) == "grant-live"
    assert tag_of(bench.sign_bid, new, token=7) == "grant-live"
    assert bench.sign_bid(new, token=6)


@pytest.mark.parametrize("token", [5, 4, 1])
def test_a_token_seen_before_gets_no_grant(token: int, bench: Bench) -> None:
    bench.grant(token=5)
    bench.ask("end_rights", task=17, token=5)
    bench.restart()
    assert tag_of(bench.grant, token=token) == "stale-token"


@pytest.mark.parametrize("end", ["revoke_place", "end_rights"])
def test_a_grant_that_arrives_after_its_end_is_refused(end: str, bench: Bench) -> None:
    bench.ask(end, task=17, token=5)
    bench.restart()
    assert tag_of(bench.grant, token=5) == "stale-token"
    assert bench.grant(token=6)


@pytest.mark.parametrize("end", ["revoke_place", "end_rights"])
def test_the_end_of_an_old_token_leaves_the_new_grant_alone(end: str, bench: Bench) -> None:
    secret = bench.grant(token=6)
    bench.ask(end, task=17, token=5)
    assert bench.sign_bid(secret, token=6)


def test_a_grant_ends_by_the_clock(bench: Bench) -> None:
    secret = bench.grant(expires_ms=START_MS + 10)
    bench.now_ms = START_MS + 9
    bench.sign_bid(secret)
    bench.now_ms = START_MS + 10
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "grant-live"


def test_outstanding_bids_count_over_all_tasks_of_a_user_until_they_expire(bench: Bench) -> None:
    first = bench.grant(outstanding_sats=100_000)
    second = bench.grant(task=18, outstanding_sats=100_000)
    stranger = bench.grant(task=19, user=OTHER_USER, outstanding_sats=50_000)
    bench.sign_bid(first, price=50_000, expires_ms=START_MS + 1000)
    bench.restart()
    bench.sign_bid(second, task=18, intent=intent(2), price=49_999)
    assert tag_of(bench.sign_bid, first, intent=intent(3), price=2) == "outstanding-user"
    bench.sign_bid(first, intent=intent(4), price=1)
    bench.sign_bid(stranger, task=19, intent=intent(5), price=50_000)
    bench.now_ms = START_MS + 1000
    bench.sign_bid(first, intent=intent(6), price=50_000)


def test_a_tasks_own_bids_count_over_all_its_grants_until_they_expire(bench: Bench) -> None:
    bench.sign_bid(bench.grant(), price=50_000, expires_ms=START_MS + 1000)
    bench.restart()
    secret, other = bench.grant(token=6, outstanding_task_sats=60_000), bench.grant(task=18, outstanding_task_sats=1)
    assert tag_of(bench.sign_bid, secret, token=6, intent=intent(2), price=10_001) == "outstanding-task"
    assert tag_of(bench.sign_bid, other, task=18, intent=intent(2), price=2) == "outstanding-task"
    bench.sign_bid(secret, token=6, intent=intent(2), price=10_000)
    bench.sign_bid(other, task=18, intent=intent(3), price=1)
    bench.now_ms = START_MS + 1000
    bench.sign_bid(secret, token=6, intent=intent(4), price=50_000)


def test_rooms_are_of_task_user_and_installation(bench: Bench) -> None:
    bench.ceilings = Ceilings(outstanding_user=150_000, outstanding_host=400_000)
    bench.restart()
    secret = bench.grant(outstanding_task_sats=90_000)
    second, stranger = bench.grant(task=18), bench.grant(task=19, user=OTHER_USER)

    def rooms() -> list[Any]:
        return [tuple(room.values())[:4] for room in bench.ask("rooms", task=17, token=5, secret=secret)["rooms"]]

    assert rooms() == [("task", 90_000, 0, None), ("user", 150_000, 0, None), ("installation", 400_000, 0, None)]
    bench.sign_bid(secret, price=40_000, expires_ms=START_MS + 3000)
    bench.sign_bid(second, task=18, intent=intent(2), price=20_000, expires_ms=START_MS + 2000)
    bench.sign_bid(stranger, task=19, intent=intent(3), price=1_000, expires_ms=START_MS + 1000)
    told = [
        ("task", 90_000, 40_000, START_MS + 3000),
        ("user", 150_000, 60_000, START_MS + 2000),
        ("installation", 400_000, 61_000, START_MS + 1000),
    ]
    assert rooms() == told
    bench.ask("revoke_place", task=17, token=5)
    assert rooms() == told
    bench.now_ms = START_MS + 2000
    assert rooms()[1:] == [
        ("user", 150_000, 40_000, START_MS + 3000),
        ("installation", 400_000, 40_000, START_MS + 3000),
    ]
    assert tag_of(bench.ask, "rooms", task=17, token=5, secret="00") == "grant-live"


def test_rooms_can_be_asked_for_without_a_grant_and_by_any_way_of_writing_the_user(bench: Bench) -> None:
    secret = bench.grant()
    bench.sign_bid(secret, price=40_000)
    under = {"user": USER.upper(), "outstanding_task_sats": 7, "outstanding_sats": 9}

    def rooms(**changes: Any) -> list[Any]:
        return [tuple(room.values())[:4] for room in bench.ask("rooms_under", **under | changes)["rooms"]]

    end = START_MS + HOUR_MS
    assert rooms(task=17) == [("task", 7, 40_000, end), ("user", 9, 40_000, end)]
    assert rooms(task=0) == [("task", 7, 0, None), ("user", 9, 40_000, end)]
    bench.ceilings = Ceilings(outstanding_user=8)
    bench.restart()
    assert rooms(task=18, user=OTHER_USER) == [("task", 7, 0, None), ("user", 8, 0, None)]
    for wrong in ({"task": -1}, {"user": "x"}, {"user": 1}, {"outstanding_sats": -1}, {"outstanding_task_sats": "1"}):
        assert tag_of(bench.ask, "rooms_under", **{"task": 17} | under | wrong) == "bad-request"


def test_a_new_grant_does_not_forget_what_is_outstanding(bench: Bench) -> None:
    bench.sign_bid(bench.grant(outstanding_sats=40_000))
    secret = bench.grant(token=6, outstanding_sats=40_000)
    assert tag_of(bench.sign_bid, secret, token=6, intent=intent(2), price=1) == "outstanding-user"


def test_the_installations_ceiling_counts_all_users(bench: Bench) -> None:
    bench.ceilings = Ceilings(outstanding_host=60_000)
    bench.restart()
    first, second = bench.grant(), bench.grant(task=18, user=OTHER_USER)
    bench.sign_bid(first, price=40_000)
    assert tag_of(bench.sign_bid, second, task=18, intent=intent(2), price=20_001) == "outstanding-host"
    bench.sign_bid(second, task=18, intent=intent(2), price=20_000)


@pytest.mark.parametrize(
    ("grant", "bid", "tag"),
    [
        ({}, {"price": 50_001}, "max-bid"),
        ({"hardcap_sats": 0}, {}, "max-bid"),
        ({}, {"expires_ms": START_MS}, "expiry-max"),
        ({}, {"expires_ms": START_MS + HOUR_MS + 1}, "expiry-max"),
        ({}, {"slug": "other"}, "msg-template"),
        ({}, {"quantity": "1e3"}, "msg-template"),
        ({"operations": ("cancel",)}, {}, "op-allowed"),
    ],
)
def test_a_refused_bid_was_never_signed(grant: dict[str, Any], bid: dict[str, Any], tag: str, bench: Bench) -> None:
    secret = bench.grant(**grant)
    assert tag_of(bench.sign_bid, secret, **bid) == tag
    assert bench.ask("was_signed", intent=BID.intent) == {"signed": False}
    assert verify_chain(bench.audit_path) == 0


def test_play_keys_get_no_grant_for_a_real_market(bench: Bench) -> None:
    assert tag_of(bench.grant, venue="satflow") == "market"


def test_a_stored_grant_for_a_real_market_signs_nothing_with_play_keys(bench: Bench) -> None:
    secret = bench.grant()
    bench.ledger._database.execute("UPDATE grants SET terms = replace(terms, 'simulator', 'satflow')")
    assert tag_of(bench.sign_bid, secret) == "market"
    assert tag_of(bench.sign_challenge, secret) == "market"


def test_was_signed_says_yes_after_a_restart(bench: Bench) -> None:
    bench.sign_bid(bench.grant())
    bench.restart()
    assert bench.ask("was_signed", intent=BID.intent) == {"signed": True}
    assert bench.ask("was_signed", intent=intent(2)) == {"signed": False}


@pytest.mark.parametrize("challenge", ["a\tb", "a:b:c:1:2:3", "Sign in to Bidkeeper at x", "Sign in to ord.net", "é"])
def test_a_challenge_that_could_be_more_is_refused(challenge: str, bench: Bench) -> None:
    assert tag_of(bench.sign_challenge, bench.grant(), challenge) == "msg-template"
    assert tag_of(bench.sign_brake, USER, challenge) == "msg-template"
    assert verify_chain(bench.audit_path) == 0


def test_a_bids_text_is_not_signed_as_a_challenge(bench: Bench) -> None:
    secret = bench.grant()
    message = bench.sign_bid(secret)["message"]
    assert tag_of(bench.sign_challenge, secret, message) == "msg-template"
    assert tag_of(bench.sign_brake, USER, message) == "msg-template"


def test_the_audit_log_tells_what_was_signed_and_no_secret(bench: Bench) -> None:
    secret = bench.grant()
    signed = bench.sign_bid(secret)
    challenge = bench.sign_challenge(secret)
    bench.sign_brake(USER)
    assert verify_chain(bench.audit_path) == 3
    written = bench.audit_path.read_text()
    bid, line, brake = (json.loads(text) for text in written.splitlines())
    assert (bid["operation"], bid["intent"], bid["price"], bid["user"]) == ("bid", BID.intent, 40_000, USER)
    assert (line["operation"], line["task"], line["time_ms"]) == ("challenge", 17, START_MS)
    assert (brake["operation"], brake["user"], brake["venue"]) == ("brake", USER, "simulator")
    assert brake["message_sha256"] == line["message_sha256"]
    seed = json.loads(bench.keystore_path.read_text())["seed"]
    for hidden in (secret, signed["signature"], challenge, seed):
        assert hidden not in written


def test_no_file_of_the_signer_holds_a_grants_secret(bench: Bench) -> None:
    secret = bench.grant()
    bench.sign_bid(secret)
    for path in bench.directory.iterdir():
        assert secret.encode() not in path.read_bytes(), path.name


def test_without_an_audit_line_there_is_no_signature(bench: Bench) -> None:
    secret = bench.grant()
    with no_space():
        assert tag_of(bench.sign_bid, secret) == "disk-full"
    assert bench.ask("was_signed", intent=BID.intent) == {"signed": False}
    assert bench.sign_bid(secret)
    assert verify_chain(bench.audit_path) == 1


def test_a_signature_that_does_not_verify_is_not_handed_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = bench.grant()
    with monkeypatch.context() as faulty:
        faulty.setattr("wallet.keystore.keys.sign_message", lambda *arguments: "AA==")
        with pytest.raises(RuntimeError, match="does not verify"):
            bench.sign_bid(secret)
    assert bench.ask("was_signed", intent=BID.intent) == {"signed": False}


def test_a_locked_signer_signs_nothing_but_takes_rights_away(bench: Bench) -> None:
    secret = bench.grant()
    locked = Signer(
        bench.ledger, bench.audit, None, ceilings=Ceilings(), clock=lambda: START_MS, locked_reason="no keys"
    )
    assert signer_answer(locked, {"op": "status"}) == {"state": "locked", "play": False, "reason": "no keys"}
    assert bench.ask("status") == {"state": "ready", "play": True, "reason": ""}
    terms = asdict(GRANT) | {"operations": ["bid"], "token": 9}
    for request in (
        {"op": "sign_bid", "task": 17, "token": 5, "secret": secret, "bid": asdict(BID)},
        {"op": "sign_challenge", "task": 17, "token": 5, "secret": secret, "challenge": "x"},
        {"op": "sign_brake", "user": USER, "venue": "simulator", "challenge": "x"},
        {"op": "addresses", "user": USER},
        {"op": "grant", "grant": terms},
    ):
        assert tag_of(signer_answer, locked, request) == "locked"
    assert signer_answer(locked, {"op": "was_signed", "intent": BID.intent}) == {"signed": False}
    signer_answer(locked, {"op": "end_rights", "task": 17, "token": 5})
    assert tag_of(bench.sign_bid, secret) == "grant-live"


def test_grants_take_addresses_in_any_case_and_keep_them_in_one(bench: Bench) -> None:
    secret = bench.grant(user=USER.upper(), receive=GRANT.receive.upper())
    assert GRANT.receive in bench.sign_bid(secret)["message"]
    assert bench.ledger.signed.unexpired(17, USER, START_MS)["user"].sats == 40_000


@pytest.mark.parametrize(
    "change",
    [{"user": "nobody"}, {"user": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"}, {"receive": "tb1q"}, {"slug": "a:b"}],
)
def test_a_grant_for_no_address_or_slug_of_ours_is_refused(change: dict[str, Any], bench: Bench) -> None:
    assert tag_of(bench.grant, **change) == "bad-request"


def test_a_failed_transaction_leaves_the_ledger_usable(tmp_path: Path, bench: Bench) -> None:
    with pytest.raises(PolicyRefused), bench.ledger.transaction():
        bench.ledger.see_token(17, 99)
        raise PolicyRefused("test", "stop here")
    assert bench.ledger.highest_token(17) == 0
    assert bench.grant()


def test_two_users_bids_are_signed_by_their_own_keys(bench: Bench) -> None:
    signed = bench.sign_bid(bench.grant(user=OTHER_USER))
    own = Keystore.open(bench.keystore_path).secrets_of(OTHER_USER).public.payment
    assert verify_ownership(own, signed["message"], signed["signature"])
    assert not verify_ownership(bench.ask("addresses", user=USER)["payment"], signed["message"], signed["signature"])
