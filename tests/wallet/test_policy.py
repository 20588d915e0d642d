"""Each rule accepts at its limit, refuses one past it, and refuses when a fact is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.wallet.conftest import BID, GRANT, START_MS
from wallet import policy
from wallet.policy import HeldGrant, Refused
from wallet.protocol import SCOPES, UserKeys

SECRET = "ab" * 32
HELD = HeldGrant(GRANT, policy.secret_hash(SECRET), can_place=True, withdrawn=False)
KEYS = UserKeys("bc1qpayment", "02" * 33, "bc1pvault", "03" * 32)


def test_stale_token() -> None:
    policy.stale_token(4, 5)
    for token in (5, 4):
        with pytest.raises(Refused, match="stale-token"):
            policy.stale_token(5, token)


def test_grant_live_until_the_last_millisecond() -> None:
    assert policy.grant_live(HELD, 5, SECRET, GRANT.expires_ms - 1) is HELD
    with pytest.raises(Refused, match="grant-live"):
        policy.grant_live(HELD, 5, SECRET, GRANT.expires_ms)


@pytest.mark.parametrize(
    ("held", "token", "secret", "tag"),
    [
        (None, 5, SECRET, "grant-live"),
        (replace(HELD, withdrawn=True), 5, SECRET, "grant-live"),
        (HELD, 4, SECRET, "stale-token"),
        (HELD, 6, SECRET, "grant-live"),
        (HELD, 5, "ac" * 32, "grant-live"),
        (HELD, 5, "", "grant-live"),
        (HELD, 5, HELD.secret_hash, "grant-live"),
    ],
)
def test_grant_live_refuses_all_but_the_very_grant(held: HeldGrant | None, token: int, secret: str, tag: str) -> None:
    with pytest.raises(Refused) as refused:
        policy.grant_live(held, token, secret, START_MS)
    assert refused.value.tag == tag


def test_op_allowed() -> None:
    reduced = replace(HELD, can_place=False)
    policy.op_allowed(HELD, "bid")
    policy.op_allowed(HELD, "cancel")
    policy.op_allowed(reduced, "cancel")
    for held, operation in (
        (reduced, "bid"),
        (replace(HELD, grant=replace(GRANT, operations=("cancel",))), "bid"),
        (replace(HELD, grant=replace(GRANT, operations=("bid",))), "cancel"),
    ):
        with pytest.raises(Refused, match="op-allowed"):
            policy.op_allowed(held, operation)  # type: ignore[arg-type]


def test_control_state_lets_bids_through_only_while_everything_runs() -> None:
    policy.control_state([])
    policy.control_state([("global", "run"), ("user", "run"), ("task", "run")])
    for scope in SCOPES:
        for state in ("reduce", "halt", "", "Run"):
            states: list[Any] = [(other, "run") for other in SCOPES if other != scope]
            with pytest.raises(Refused, match="control-state"):
                policy.control_state([*states, (scope, state)])
    with pytest.raises(Refused, match="control-state"):
        policy.control_state(None)


def test_market_keeps_play_keys_and_real_venues_apart() -> None:
    policy.market(GRANT, play=True)
    policy.market(replace(GRANT, venue="satflow"), play=False)
    for venue, play in (("satflow", True), ("Simulator", True), ("", True), ("simulator", False)):
        with pytest.raises(Refused, match="market"):
            policy.market(replace(GRANT, venue=venue), play=play)


def test_max_bid() -> None:
    policy.max_bid(GRANT, 50_000)
    policy.max_bid(GRANT, 1)
    for price in (50_001, 0, -1, None):
        with pytest.raises(Refused, match="max-bid"):
            policy.max_bid(GRANT, price)
    with pytest.raises(Refused, match="no hard cap"):
        policy.max_bid(replace(GRANT, hardcap_sats=0), 1)


def test_outstanding_user() -> None:
    policy.outstanding_user(GRANT, 160_000, 40_000)
    for outstanding in (160_001, None):
        with pytest.raises(Refused, match="outstanding-user"):
            policy.outstanding_user(GRANT, outstanding, 40_000)
    with pytest.raises(Refused, match="outstanding-user"):
        policy.outstanding_user(replace(GRANT, outstanding_sats=0), 0, 1)


def test_outstanding_host() -> None:
    policy.outstanding_host(100_000, 60_000, 40_000)
    policy.outstanding_host(0, None, 40_000)
    for ceiling, outstanding in ((100_000, 60_001), (100_000, None), (None, 0)):
        with pytest.raises(Refused, match="outstanding-host"):
            policy.outstanding_host(ceiling, outstanding, 40_000)


def test_expiry_max() -> None:
    policy.expiry_max(GRANT, START_MS + 1, START_MS)
    policy.expiry_max(GRANT, START_MS + GRANT.max_expiry_ms, START_MS)
    for expires_ms in (START_MS, START_MS - 1, START_MS + GRANT.max_expiry_ms + 1, None):
        with pytest.raises(Refused, match="expiry-max"):
            policy.expiry_max(GRANT, expires_ms, START_MS)


def test_msg_template() -> None:
    assert policy.msg_template(GRANT, BID, KEYS).count(":") == 7
    for bid in (replace(BID, slug="other"), replace(BID, slug="Bitcoin-Frogs"), replace(BID, quantity="1.0")):
        with pytest.raises(Refused, match="msg-template"):
            policy.msg_template(GRANT, bid, KEYS)


def test_challenge_template() -> None:
    policy.challenge_template("one line")
    with pytest.raises(Refused, match="msg-template"):
        policy.challenge_template("Sign in to Bidkeeper at example.org")


def test_intent_conflict() -> None:
    policy.intent_conflict((17, "user", "text"), (17, "user", "text"))
    for asked in ((18, "user", "text"), (17, "other", "text"), (17, "user", "text2")):
        with pytest.raises(Refused, match="intent-conflict"):
            policy.intent_conflict(asked, (17, "user", "text"))
