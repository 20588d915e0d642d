"""The installation's own bounds hold whatever a grant says; run, reduce and halt hold whatever is granted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.settings import Settings
from core.subscription_plans import SubscriptionPlan
from tests.shapes import replace
from tests.worlds.signer import BID, GRANT, OTHER_USER, START_MS, USER, Bench, intent, no_space, signer_answer, tag_of
from wallet.keystore.keys import UserSecrets, derive_user
from wallet.psbt.transaction import TxOutput
from wallet.signer.audit import verify_chain
from wallet.signer.ledger import HOUR_MS, MINUTE_MS, ListingSignature
from wallet.signer.signer import Signer
from wallet.terms import Ceilings, Rate, ceilings_of


def plan(most: int) -> SubscriptionPlan:
    return replace(next(iter(Settings().plans.values())), max_exposure=most)


def test_ceilings_come_from_the_largest_plan_and_the_installations_limits() -> None:
    plans = {"small": plan(1_000), "large": plan(5_000)}
    found = ceilings_of(Settings(plans=plans, max_exposure_sats=7_000))
    assert (found.outstanding_user, found.outstanding_host, found.sats_hour_host) == (20_000, 28_000, 112_000)
    assert ceilings_of(Settings(plans=plans, max_exposure_sats=7_000, max_sats_per_hour=5)).sats_hour_host == 5


def test_without_limits_set_only_the_plans_bound() -> None:
    found = ceilings_of(Settings())
    assert (found.outstanding_user, found.outstanding_host, found.sats_hour_host) == (200_000_000, 0, 0)
    assert ceilings_of(Settings(plans={})).outstanding_user == 0
    assert (found.least_listing, ceilings_of(Settings(min_listing_sats=7)).least_listing) == (0, 7)
    assert (found.seller_fee_ppm, found.secure_listings) == ({"simulator-ordnet": 10_000}, frozenset())


def test_what_a_venue_may_keep_and_where_secure_listings_are_signed_is_set_for_each() -> None:
    found = ceilings_of(
        Settings(
            satflow_seller_fee_ppm=1,
            unisat_seller_fee_ppm=2,
            ordinalswallet_seller_fee_ppm=3,
            ordnet_seller_fee_ppm=4,
            satflow_secure_listings=True,
        )
    )
    kept = {"satflow": 1, "unisat": 2, "ordinalswallet": 3, "ordnet": 4, "simulator-ordnet": 10_000}
    assert found.seller_fee_ppm == kept
    assert found.secure_listings == {"satflow", "simulator"}


def test_what_holds_without_any_setting() -> None:
    """Above what 5 requests a second can place; whoever changes one of these means it."""
    assert Ceilings() == Ceilings(
        outstanding_user=0,
        outstanding_host=0,
        sats_hour_host=0,
        least_listing=0,
        max_expiry_ms=691_200_000,
        task=Rate(a_minute=300, an_hour=6_000),
        user=Rate(a_minute=600, an_hour=12_000),
        host=Rate(a_minute=3_000, an_hour=36_000),
        challenges_a_minute=240,
        challenges=Rate(a_minute=3_000, an_hour=36_000),
        sign_ins_a_minute=60,
        sign_ins=Rate(a_minute=3_000, an_hour=36_000),
        brakes_of_user=60,
        brakes=1_200,
        loosened=Rate(a_minute=600, an_hour=12_000),
        token_jump=1_000_000,
        users=10_000,
    )


def keys_of(number: int) -> UserSecrets:
    return derive_user(bytes(32), number)


def opened(bench: Bench, **ceilings: Any) -> str:
    bench.ceilings = Ceilings(**ceilings)
    bench.restart()
    return bench.grant(outstanding_sats=2**50, hardcap_sats=2**50, max_expiry_ms=2**52)


def test_a_grant_above_the_users_ceiling_gets_no_more_than_that(bench: Bench) -> None:
    secret = opened(bench, outstanding_user=100_000)
    bench.sign_bid(secret, price=100_000)
    assert tag_of(bench.sign_bid, secret, intent=intent(2), price=1) == "outstanding-user"


def test_a_grant_above_the_longest_life_gets_no_more_than_that(bench: Bench) -> None:
    secret = opened(bench, max_expiry_ms=HOUR_MS)
    assert tag_of(bench.sign_bid, secret, expires_ms=START_MS + HOUR_MS + 1) == "expiry-max"
    assert bench.sign_bid(secret, expires_ms=START_MS + HOUR_MS)


def short_bid(bench: Bench, secret: str, number: int, price: int = 50_000, task: int = 17) -> None:
    """One that has expired a millisecond later, so that nothing but the rate bounds it."""
    bench.sign_bid(secret, task=task, intent=intent(number), price=price, expires_ms=bench.now_ms + 1)
    bench.now_ms += 1


def test_bids_that_expire_at_once_come_to_four_times_the_users_ceiling_an_hour(bench: Bench) -> None:
    secret = opened(bench, outstanding_user=50_000)
    for number in range(4):
        short_bid(bench, secret, number)
    assert tag_of(short_bid, bench, secret, 5, price=1) == "velocity"
    bench.now_ms = START_MS + HOUR_MS - 1
    assert tag_of(short_bid, bench, secret, 5, price=1) == "velocity"
    bench.now_ms = START_MS + HOUR_MS
    bench.sign_bid(secret, intent=intent(6), price=49_999, expires_ms=bench.now_ms + 1)
    assert tag_of(bench.sign_bid, secret, intent=intent(7), price=2, expires_ms=bench.now_ms + 1) == "outstanding-user"
    bench.now_ms += 1
    short_bid(bench, secret, 8, price=50_000)


def test_the_installation_bounds_what_all_sign_in_an_hour(bench: Bench) -> None:
    secret = opened(bench, sats_hour_host=100_000)
    other = bench.grant(task=18, user=OTHER_USER)
    short_bid(bench, secret, 1)
    short_bid(bench, other, 2, price=49_999, task=18)
    assert tag_of(short_bid, bench, secret, 3, price=2) == "velocity"
    short_bid(bench, secret, 4, price=1)


def test_a_clock_that_is_set_back_refills_nothing(bench: Bench) -> None:
    secret = opened(bench, sats_hour_host=100_000)
    short_bid(bench, secret, 1)
    short_bid(bench, secret, 2)
    for back in (1, MINUTE_MS, HOUR_MS, 24 * HOUR_MS):
        bench.now_ms = START_MS - back
        assert tag_of(short_bid, bench, secret, 3, price=1) == "velocity"
    bench.now_ms = START_MS + HOUR_MS + 2
    short_bid(bench, secret, 4)


def test_a_restart_refills_nothing(bench: Bench) -> None:
    secret = opened(bench, task=Rate(2, 10))
    short_bid(bench, secret, 1)
    short_bid(bench, secret, 2)
    bench.restart()
    assert tag_of(short_bid, bench, secret, 3) == "velocity"


@pytest.mark.parametrize(
    ("whose", "others"),
    [("task", {"task": 18}), ("user", {"task": 18, "user": OTHER_USER}), ("host", None)],
)
def test_signatures_are_counted_for_task_user_and_installation(
    whose: str, others: dict[str, Any] | None, bench: Bench
) -> None:
    secret = opened(bench, **{whose: Rate(2, 3)})
    same_user = bench.grant(task=20)
    short_bid(bench, secret, 1)
    if whose == "task":
        short_bid(bench, secret, 2)
    else:
        short_bid(bench, same_user, 2, task=20)
    assert tag_of(short_bid, bench, secret, 3) == "velocity"
    bench.now_ms += MINUTE_MS
    short_bid(bench, secret, 3)
    bench.now_ms += MINUTE_MS
    assert tag_of(short_bid, bench, secret, 4) == "velocity", "three in the hour"
    if others:
        short_bid(bench, bench.grant(**others), 5, task=18)
    bench.now_ms = START_MS + HOUR_MS
    short_bid(bench, secret, 6)


def test_no_more_users_have_keys_than_the_ceiling_says(bench: Bench) -> None:
    """Each new one is written to the keystore for ever, whoever asks and whether or not somebody has signed in."""
    secret = opened(bench, users=2)
    others = [keys_of(number).public.payment for number in range(3)]
    assert bench.ask("addresses", user=others[0])["payment"]
    written = bench.keystore_path.read_bytes()
    for _ in range(2):
        for other in others[1:]:
            assert tag_of(bench.ask, "addresses", user=other) == "users-max"
            assert tag_of(bench.grant, task=18, user=other) == "users-max"
        assert bench.ask("addresses", user=others[0])["payment"]
        assert bench.sign_bid(secret)
        assert bench.keystore_path.read_bytes() == written
        bench.restart()
    bench.ceilings = Ceilings(users=3)
    bench.restart()
    assert bench.ask("addresses", user=others[1])["payment"]
    assert tag_of(bench.ask, "addresses", user=others[2]) == "users-max"


WEEK_MS = 7 * 24 * HOUR_MS


def test_a_user_without_a_signature_that_counts_leaves_the_place_after_a_week_and_keeps_the_keys(bench: Bench) -> None:
    """Else whoever may sign in under any number of addresses could keep everybody else out for ever."""
    secret = opened(bench, users=2, max_expiry_ms=2 * WEEK_MS)
    idle, second, third, fourth = (keys_of(number).public.payment for number in range(4))
    theirs = bench.ask("addresses", user=idle)
    bench.sign_bid(secret, expires_ms=START_MS + WEEK_MS + 5)
    bench.now_ms = START_MS + WEEK_MS - 1
    assert tag_of(bench.ask, "addresses", user=second) == "users-max"
    bench.now_ms += 1
    bench.restart()
    assert bench.ask("addresses", user=second), "in place of the idle one; the first has a bid that can be filled"
    assert tag_of(bench.ask, "addresses", user=third) == "users-max"
    assert bench.ask("addresses", user=idle) == theirs, "who has keys is never refused, and they are the same"
    bench.now_ms = START_MS + 2 * WEEK_MS
    assert bench.ask("addresses", user=third), "the second's week is over"
    assert tag_of(bench.ask, "addresses", user=fourth) == "users-max", "a bid counts for a week after its end"
    bench.now_ms += 5
    assert bench.ask("addresses", user=fourth)
    assert list(bench.keys.users) == [GRANT.user, idle, second, third, fourth]


def test_a_listing_that_can_be_bought_keeps_its_users_place(bench: Bench) -> None:
    bench.ledger.signed.put_listing(
        ListingSignature("1" * 64, 17, 5, "a", "i0", "ff:0", 5, START_MS, "hash", ("psbt",))
    )
    bench.ledger.payouts.put("ff:0", TxOutput(5, b"script"), 0x83, "ff:0")
    assert bench.ledger.users_in_need(START_MS + 100 * WEEK_MS) == 1
    bench.ledger.payouts.delete("ff:0")
    assert bench.ledger.users_in_need(START_MS + 100 * WEEK_MS) == 0


def test_the_same_intent_again_is_no_second_signature(bench: Bench) -> None:
    secret = opened(bench, host=Rate(1, 1))
    first = bench.sign_bid(secret)
    assert bench.sign_bid(secret) == first


@pytest.mark.parametrize(("rate", "wait_ms"), [(Rate(2, 9), MINUTE_MS), (Rate(9, 2), HOUR_MS)])
def test_challenges_of_all_tasks_together_are_bounded(bench: Bench, rate: Rate, wait_ms: int) -> None:
    """Each is a line in the audit log, and numbers of tasks cost an intruder nothing."""
    opened(bench, challenges=rate)
    secrets = {task: bench.grant(task=task) for task in (21, 22, 23)}
    bench.sign_challenge(secrets[21], task=21)
    bench.sign_challenge(secrets[22], task=22)
    written = bench.audit_path.read_bytes()
    assert tag_of(bench.sign_challenge, secrets[23], task=23) == "velocity"
    assert bench.audit_path.read_bytes() == written
    bench.restart()
    bench.pass_time(wait_ms - 1)
    assert tag_of(bench.sign_challenge, secrets[23], task=23) == "velocity"
    bench.pass_time(1)
    assert bench.sign_challenge(secrets[23], task=23)


def test_a_marketplace_that_keeps_what_was_cancelled_holds_no_more_than_the_tasks_own_sum(bench: Bench) -> None:
    """A cancel takes nothing back: under whatever token, every signature counts until it expires."""
    terms = {"outstanding_sats": 2**50, "outstanding_task_sats": 120_000, "max_expiry_ms": HOUR_MS}
    for number in range(3):
        secret = bench.grant(token=5 + number, **terms)
        bench.sign_bid(secret, token=5 + number, intent=intent(number), expires_ms=START_MS + MINUTE_MS + number)
    assert tag_of(bench.sign_bid, secret, token=7, intent=intent(4), price=1) == "outstanding-task"
    assert bench.sign_bid(bench.grant(task=18, **terms), task=18, intent=intent(5))
    bench.now_ms += MINUTE_MS
    assert bench.sign_bid(secret, token=7, intent=intent(6))
    assert tag_of(bench.sign_bid, secret, token=7, intent=intent(7), price=1) == "outstanding-task"


@pytest.mark.parametrize("operation", ["grant", "end_rights", "revoke_place"])
def test_no_token_far_above_the_others_ends_a_tasks_grants_for_ever(bench: Bench, operation: str) -> None:
    secret = bench.grant(token=5)

    def ask(token: int) -> Any:
        return bench.grant(token=token) if operation == "grant" else bench.ask(operation, task=17, token=token)

    for token in (5 + 1_000_001, 2**62, 2**63 - 1):
        assert tag_of(ask, token) == "token-jump"
    assert bench.sign_bid(secret)
    ask(5 + 1_000_000)
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) in ("stale-token", "grant-live", "op-allowed")
    assert bench.sign_challenge(bench.grant(token=7 + 1_000_000), token=7 + 1_000_000), "the next one is above it"


def test_challenges_are_counted_for_each_task_and_not_among_bids(bench: Bench) -> None:
    secret = opened(bench, challenges_a_minute=2, task=Rate(1, 1))
    bench.sign_bid(secret)
    for _ in range(2):
        assert bench.sign_challenge(secret)
    for moved_ms in (-10 * MINUTE_MS, 20 * MINUTE_MS, -10 * MINUTE_MS):
        bench.now_ms += moved_ms
        assert tag_of(bench.sign_challenge, secret) == "velocity"
    bench.restart()
    assert tag_of(bench.sign_challenge, secret) == "velocity"
    other = bench.grant(task=18)
    assert bench.sign_challenge(other, task=18)
    bench.pass_time(MINUTE_MS)
    assert bench.sign_challenge(secret)


def test_a_clock_that_was_far_ahead_holds_up_no_cancel(bench: Bench) -> None:
    secret = opened(bench, challenges_a_minute=1)
    bench.now_ms += 10 * HOUR_MS
    assert bench.sign_challenge(secret)
    bench.now_ms -= 10 * HOUR_MS
    bench.pass_time(MINUTE_MS)
    assert bench.sign_challenge(secret)
    bench.restart()
    bench.pass_time(MINUTE_MS)
    assert bench.sign_challenge(secret)


def test_sign_ins_use_up_no_room_of_cancels(bench: Bench) -> None:
    opened(bench, sign_ins_a_minute=2, challenges_a_minute=1)
    secret = bench.grant(token=6, venue="simulator-ordnet")
    text = "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 1)"
    asked = {"task": 17, "token": 6, "secret": secret, "text": text, "key": "payment"}
    for _ in range(2):
        assert bench.ask("sign_sign_in", **asked)
    assert tag_of(bench.ask, "sign_sign_in", **asked) == "velocity"
    assert bench.sign_challenge(secret, token=6)
    assert tag_of(bench.sign_challenge, secret, token=6) == "velocity"
    bench.restart()
    assert tag_of(bench.ask, "sign_sign_in", **asked) == "velocity"
    bench.pass_time(MINUTE_MS)
    assert bench.ask("sign_sign_in", **asked)


def test_brakes_are_counted_for_each_user_and_all_and_not_among_challenges(bench: Bench) -> None:
    secret = opened(bench, brakes_of_user=2, brakes=3, challenges_a_minute=2)
    bench.grant(task=18, user=OTHER_USER)
    for _ in range(2):
        assert bench.sign_challenge(secret) and bench.sign_brake(USER)
    assert tag_of(bench.sign_brake, USER) == "velocity"
    assert bench.sign_brake(OTHER_USER)
    assert tag_of(bench.sign_brake, OTHER_USER) == "velocity"
    bench.restart()
    bench.pass_time(MINUTE_MS - 1)
    assert tag_of(bench.sign_brake, USER) == "velocity"
    bench.pass_time(1)
    assert bench.sign_brake(USER)


def test_a_changed_clock_neither_frees_nor_holds_up_a_brake(bench: Bench) -> None:
    opened(bench, brakes_of_user=1)
    bench.now_ms += 100 * HOUR_MS
    assert bench.sign_brake(USER)
    bench.now_ms -= 200 * HOUR_MS
    assert tag_of(bench.sign_brake, USER) == "velocity"
    bench.steady_ms += MINUTE_MS
    assert bench.sign_brake(USER)


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
