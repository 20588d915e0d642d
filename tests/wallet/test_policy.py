"""Each rule accepts at its limit, refuses one past it, and refuses when a fact is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shapes import replace
from tests.worlds.signer import BID, GRANT, START_MS
from wallet import policy
from wallet.policy import HeldGrant, RecentSignatures
from wallet.protocol import SCOPES, OfferToSign, PolicyRefused, UserKeys
from wallet.terms import Ceilings, Rate

SECRET = "ab" * 32
HELD = HeldGrant(GRANT, policy.secret_hash(SECRET), can_place=True, withdrawn=False)
KEYS = UserKeys("bc1qpayment", "02" * 33, "bc1pvault", "03" * 32)


def test_a_refusal_says_its_tag_and_why() -> None:
    refused = PolicyRefused("max-bid", "too much")
    assert (str(refused), refused.tag, refused.message) == ("max-bid: too much", "max-bid", "too much")


def test_stale_token() -> None:
    policy.stale_token(4, 5)
    for token in (5, 4):
        with pytest.raises(PolicyRefused, match="stale-token") as refused:
            policy.stale_token(5, token)
        assert refused.value.highest == 5


def test_grant_live_until_the_last_millisecond() -> None:
    assert policy.grant_live(HELD, 5, SECRET, GRANT.expires_ms - 1) is HELD
    with pytest.raises(PolicyRefused, match="grant-live"):
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
    with pytest.raises(PolicyRefused) as refused:
        policy.grant_live(held, token, secret, START_MS)
    assert refused.value.tag == tag


def test_op_allowed() -> None:
    lister = replace(HELD, grant=replace(GRANT, operations=("list", "cancel")))
    reduced = replace(HELD, can_place=False)
    policy.op_allowed(HELD, "bid")
    policy.op_allowed(HELD, "cancel")
    policy.op_allowed(lister, "list")
    policy.op_allowed(reduced, "cancel")
    for held, operation in (
        (reduced, "bid"),
        (replace(lister, can_place=False), "list"),
        (lister, "bid"),
        (HELD, "list"),
        (replace(HELD, grant=replace(GRANT, operations=("cancel",))), "bid"),
        (replace(HELD, grant=replace(GRANT, operations=("bid",))), "cancel"),
    ):
        with pytest.raises(PolicyRefused, match="op-allowed"):
            policy.op_allowed(held, operation)  # type: ignore[arg-type]


def test_control_state_lets_bids_through_only_while_everything_runs() -> None:
    policy.control_state([])
    policy.control_state([("global", "run"), ("user", "run"), ("task", "run")])
    for scope in SCOPES:
        for state in ("reduce", "halt", "", "Run"):
            states: list[Any] = [(other, "run") for other in SCOPES if other != scope]
            with pytest.raises(PolicyRefused, match="control-state"):
                policy.control_state([*states, (scope, state)])
    with pytest.raises(PolicyRefused, match="control-state"):
        policy.control_state(None)


def test_market_keeps_play_keys_and_real_venues_apart() -> None:
    policy.market(GRANT.venue, play=True)
    policy.market("satflow", play=False)
    for venue, play in (("satflow", True), ("Simulator", True), ("", True), ("simulator", False)):
        with pytest.raises(PolicyRefused, match="market"):
            policy.market(venue, play=play)


def test_the_practice_market_is_one_in_all_its_dialects() -> None:
    for venue in ("simulator", "simulator-ordnet", "simulator-unisat", "simulator-ordinalswallet"):
        policy.market(venue, play=True)
        with pytest.raises(PolicyRefused, match="market"):
            policy.market(venue, play=False)
    for venue in ("ordnet", "unisat", "ordinalswallet", "simulator-satflow", "simulator-"):
        policy.market(venue, play=False)
        with pytest.raises(PolicyRefused, match="market"):
            policy.market(venue, play=True)


def test_max_bid() -> None:
    policy.max_bid(GRANT, 50_000)
    policy.max_bid(GRANT, 1)
    for price in (50_001, 0, -1, None):
        with pytest.raises(PolicyRefused, match="max-bid"):
            policy.max_bid(GRANT, price)
    policy.max_bid(replace(GRANT, hardcap_sats=1), 1)
    with pytest.raises(PolicyRefused, match="no hard cap"):
        policy.max_bid(replace(GRANT, hardcap_sats=0), 1)


def test_most_outstanding_is_the_grants_and_never_above_the_installations() -> None:
    for ceiling, most in ((0, 200_000), (200_001, 200_000), (199_999, 199_999), (1, 1)):
        assert policy.most_outstanding(GRANT.outstanding_sats, Ceilings(outstanding_user=ceiling)) == most


def test_outstanding_user() -> None:
    policy.outstanding_user(200_000, 160_000, 40_000)
    for most, outstanding in ((200_000, 160_001), (200_000, None), (None, 0), (0, 0)):
        with pytest.raises(PolicyRefused, match="outstanding-user"):
            policy.outstanding_user(most, outstanding, 40_000)


def test_outstanding_task() -> None:
    policy.outstanding_task(200_000, 160_000, 40_000)
    for most, outstanding in ((200_000, 160_001), (200_000, None), (None, 0), (0, 0)):
        with pytest.raises(PolicyRefused, match="outstanding-task"):
            policy.outstanding_task(most, outstanding, 40_000)


def test_outstanding_host() -> None:
    policy.outstanding_host(100_000, 60_000, 40_000)
    policy.outstanding_host(0, None, 40_000)
    for ceiling, outstanding in ((100_000, 60_001), (100_000, None), (None, 0)):
        with pytest.raises(PolicyRefused, match="outstanding-host"):
            policy.outstanding_host(ceiling, outstanding, 40_000)


def test_expiry_max() -> None:
    policy.expiry_max(GRANT, Ceilings(), START_MS + 1, START_MS)
    policy.expiry_max(GRANT, Ceilings(), START_MS + GRANT.max_expiry_ms, START_MS)
    for expires_ms in (START_MS, START_MS - 1, START_MS + GRANT.max_expiry_ms + 1, None):
        with pytest.raises(PolicyRefused, match="expiry-max"):
            policy.expiry_max(GRANT, Ceilings(), expires_ms, START_MS)


def test_expiry_max_is_the_installations_where_the_grant_says_more() -> None:
    policy.expiry_max(GRANT, Ceilings(max_expiry_ms=1000), START_MS + 1000, START_MS)
    with pytest.raises(PolicyRefused, match="expiry-max"):
        policy.expiry_max(GRANT, Ceilings(max_expiry_ms=1000), START_MS + 1001, START_MS)


RATE = Rate(a_minute=3, an_hour=10)


def test_velocity_count() -> None:
    policy.velocity_count("the task", RATE, RecentSignatures(2, 9, 0))
    for signed in (RecentSignatures(3, 9, 0), RecentSignatures(2, 10, 0), RecentSignatures(4, 11, 0), None):
        with pytest.raises(PolicyRefused, match="velocity"):
            policy.velocity_count("the task", RATE, signed)


def test_velocity_sats() -> None:
    policy.velocity_sats("the user", 100_000, RecentSignatures(0, 0, 60_000), 40_000)
    policy.velocity_sats("the user", 0, None, 40_000)
    for most, signed in ((100_000, RecentSignatures(0, 0, 60_001)), (100_000, None), (None, RecentSignatures(0, 0, 0))):
        with pytest.raises(PolicyRefused, match="velocity"):
            policy.velocity_sats("the user", most, signed, 40_000)


def test_velocity_minute() -> None:
    policy.velocity_minute("the task", 3, 2, "challenges")
    for signed in (3, 4, None):
        with pytest.raises(PolicyRefused, match="velocity"):
            policy.velocity_minute("the task", 3, signed, "challenges")


def test_disk_room() -> None:
    policy.disk_room(False)
    for is_short in (True, None):
        with pytest.raises(PolicyRefused, match="disk-full"):
            policy.disk_room(is_short)


def test_token_jump() -> None:
    policy.token_jump(0, 1_000_000, Ceilings())
    policy.token_jump(5, 3, Ceilings())
    for highest, token in ((0, 1_000_001), (5, 1_000_006), (0, 2**63 - 1)):
        with pytest.raises(PolicyRefused, match="token-jump"):
            policy.token_jump(highest, token, Ceilings())


def test_users_max() -> None:
    policy.users_max(2, 1)
    for users in (2, 3):
        with pytest.raises(PolicyRefused, match="users-max"):
            policy.users_max(2, users)


def test_hourly_user_is_what_bids_of_a_quarter_of_an_hour_can_come_to() -> None:
    assert policy.hourly_user(50_000) == 200_000


@pytest.mark.parametrize(
    ("highest", "least"), [(100_000, 90_000), (0, 0), (1, 1), (10, 9), (11, 10), (100_001, 90_001), (19, 18)]
)
def test_list_lower_lets_a_price_fall_by_a_tenth_rounded_up(highest: int, least: int) -> None:
    policy.list_lower(least, highest)
    policy.list_lower(highest + 1, highest)
    with pytest.raises(PolicyRefused, match="list-lower"):
        policy.list_lower(least - 1, highest)


def test_list_lower_refuses_what_is_not_known() -> None:
    for price, highest in ((None, 0), (1, None), (None, None)):
        with pytest.raises(PolicyRefused, match="list-lower"):
            policy.list_lower(price, highest)


def test_own_inscription() -> None:
    grant = replace(GRANT, inscription_id="a")
    policy.own_inscription(grant, "a")
    for held, asked in ((grant, "b"), (grant, ""), (grant, None), (GRANT, ""), (GRANT, "a"), (GRANT, None)):
        with pytest.raises(PolicyRefused, match="op-allowed"):
            policy.own_inscription(held, asked)


def test_key_allowed() -> None:
    policy.key_allowed(GRANT, "payment")
    policy.key_allowed(replace(GRANT, inscription_id="a"), "payment")
    policy.key_allowed(replace(GRANT, inscription_id="a"), "vault")
    with pytest.raises(PolicyRefused, match="op-allowed"):
        policy.key_allowed(GRANT, "vault")


def test_msg_template() -> None:
    assert policy.msg_template(GRANT, BID, KEYS).count(":") == 7
    for bid in (replace(BID, slug="other"), replace(BID, slug="Bitcoin-Frogs"), replace(BID, quantity="1.0")):
        with pytest.raises(PolicyRefused, match="msg-template"):
            policy.msg_template(GRANT, bid, KEYS)


def test_a_bid_delivers_where_the_grant_says_and_nowhere_else() -> None:
    to_vault, at_vault = replace(GRANT, to_vault=True), replace(BID, receive=KEYS.vault)
    assert policy.msg_template(GRANT, BID, KEYS).split(":")[2] == GRANT.receive
    assert policy.msg_template(to_vault, at_vault, KEYS).split(":")[2] == KEYS.vault
    nowhere = replace(BID, receive="bc1pstranger")
    for grant, bid in ((GRANT, at_vault), (to_vault, BID), (GRANT, nowhere), (to_vault, nowhere)):
        with pytest.raises(PolicyRefused, match="msg-template: the receiving address"):
            policy.msg_template(grant, bid, KEYS)


def test_offer_terms() -> None:
    offer = OfferToSign("0" * 32, 1, "1", 1, GRANT.slug, ("psbt",), "ab", ("coin",))
    policy.offer_terms(GRANT, offer)
    for wrong in ({"slug": "other-frogs"}, {"slug": GRANT.slug.upper()}, {"quantity": "0"}, {"quantity": "1.0"}):
        with pytest.raises(PolicyRefused, match="msg-template"):
            policy.offer_terms(GRANT, replace(offer, **wrong))
    with pytest.raises(PolicyRefused, match="msg-template"):
        policy.offer_terms(replace(GRANT, slug="a b"), replace(offer, slug="a b"))


def test_sign_in_template() -> None:
    at_ordnet = replace(GRANT, venue="simulator-ordnet")
    policy.sign_in_template(at_ordnet, "Sign in to ord.net at noon", KEYS.payment)
    for grant, text in ((GRANT, "Sign in to ord.net at noon"), (at_ordnet, "Sign in to ord.ne at noon")):
        with pytest.raises(PolicyRefused, match="msg-template"):
            policy.sign_in_template(grant, text, KEYS.payment)


def test_challenge_template() -> None:
    policy.challenge_template("one line")
    with pytest.raises(PolicyRefused, match="msg-template"):
        policy.challenge_template("Sign in to Bidkeeper at example.org")


def test_intent_conflict() -> None:
    policy.intent_conflict((17, "user", "text"), (17, "user", "text"))
    for asked in ((18, "user", "text"), (17, "other", "text"), (17, "user", "text2")):
        with pytest.raises(PolicyRefused, match="intent-conflict"):
            policy.intent_conflict(asked, (17, "user", "text"))
