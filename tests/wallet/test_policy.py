"""Each rule accepts at its limit, refuses one past it, and refuses when a fact is missing.

The same tables must fail for a rule that lets one sat, signature or millisecond too many through, or lets all through.
"""

from __future__ import annotations

from collections.abc import Callable
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
REDUCED = replace(HELD, can_place=False)
LISTER = replace(HELD, grant=replace(GRANT, operations=("list", "cancel")))
OF_ITEM = replace(GRANT, inscription_id="a")
TO_VAULT = replace(GRANT, to_vault=True)
KEYS = UserKeys("bc1qpayment", "02" * 33, "bc1pvault", "03" * 32)
AT_VAULT, NOWHERE = replace(BID, receive=KEYS.vault), replace(BID, receive="bc1pstranger")
RATE = Rate(a_minute=3, an_hour=10)
NONE_YET = RecentSignatures(0, 0, 0)
OFFER = OfferToSign("0" * 32, 1, "1", 1, GRANT.slug, ("psbt",), "ab", ("coin",))
AT_ORDNET = replace(GRANT, venue="simulator-ordnet")
LIFE_MS, A_SECOND = GRANT.max_expiry_ms, Ceilings(max_expiry_ms=1000)
REAL, PLAY = {"play": False}, {"play": True}


def doing(*operations: str) -> HeldGrant:
    return replace(HELD, grant=replace(GRANT, operations=operations))


def all_run_but(scope: str, state: str) -> list[tuple[str, str]]:
    return [*((other, "run") for other in SCOPES if other != scope), (scope, state)]


Calls = list[tuple[Any, ...]]
# By rule (behind a colon, the part of it that is meant): its tag, what it lets through, and what it refuses. A dict at
# the end of a call has its named arguments.
TABLE: dict[str, tuple[str, Calls, Calls]] = {
    "stale_token": ("stale-token", [(4, 5)], [(5, 5), (5, 4)]),
    "grant_live": (
        "grant-live",
        [(HELD, 5, SECRET, GRANT.expires_ms - 1)],
        [
            (HELD, 5, SECRET, GRANT.expires_ms),
            (None, 5, SECRET, START_MS),
            (replace(HELD, withdrawn=True), 5, SECRET, START_MS),
            (HELD, 6, SECRET, START_MS),
            (HELD, 5, "ac" * 32, START_MS),
            (HELD, 5, "", START_MS),
            (HELD, 5, HELD.secret_hash, START_MS),
        ],
    ),
    "grant_live: token": ("stale-token", [], [(HELD, 4, SECRET, START_MS)]),
    "op_allowed": (
        "op-allowed",
        [(HELD, "bid"), (HELD, "cancel"), (LISTER, "list"), (REDUCED, "cancel")],
        [
            (REDUCED, "bid"),
            (replace(LISTER, can_place=False), "list"),
            (LISTER, "bid"),
            (HELD, "list"),
            (doing("cancel"), "bid"),
            (doing("bid"), "cancel"),
        ],
    ),
    "control_state": (
        "control-state",
        [([],), ([("global", "run"), ("user", "run"), ("task", "run")],)],
        [(None,), *((all_run_but(scope, state),) for scope in SCOPES for state in ("reduce", "halt", "", "Run"))],
    ),
    "market": (
        "market",
        [(GRANT.venue, PLAY), ("satflow", REAL)],
        [("satflow", PLAY), ("Simulator", PLAY), ("", PLAY), ("simulator", REAL)],
    ),
    "market: dialects of the practice market": (
        "market",
        [(f"simulator{name}", PLAY) for name in ("", "-ordnet", "-unisat", "-ordinalswallet")]
        + [(name, REAL) for name in ("ordnet", "unisat", "ordinalswallet", "simulator-satflow", "simulator-")],
        [(f"simulator{name}", REAL) for name in ("", "-ordnet", "-unisat", "-ordinalswallet")]
        + [(name, PLAY) for name in ("ordnet", "unisat", "ordinalswallet", "simulator-satflow", "simulator-")],
    ),
    "max_bid": (
        "max-bid",
        [(GRANT, 50_000), (GRANT, 1), (replace(GRANT, hardcap_sats=1), 1)],
        [(GRANT, 50_001), (GRANT, 0), (GRANT, -1), (GRANT, None), (replace(GRANT, hardcap_sats=0), 1)],
    ),
    **{
        f"outstanding_{whose}": (
            f"outstanding-{whose}",
            [(200_000, 160_000, 40_000)],
            [(200_000, 160_001, 40_000), (200_000, None, 40_000), (None, 0, 40_000), (0, 0, 40_000)],
        )
        for whose in ("user", "task")
    },
    "outstanding_host": (
        "outstanding-host",
        [(100_000, 60_000, 40_000), (0, None, 40_000)],
        [(100_000, 60_001, 40_000), (100_000, None, 40_000), (None, 0, 40_000)],
    ),
    "expiry_max": (
        "expiry-max",
        [(GRANT, Ceilings(), START_MS + 1, START_MS), (GRANT, Ceilings(), START_MS + LIFE_MS, START_MS)],
        [
            (GRANT, Ceilings(), expires_ms, START_MS)
            for expires_ms in (START_MS, START_MS - 1, START_MS + LIFE_MS + 1, None)
        ],
    ),
    "expiry_max: of the installation": (
        "expiry-max",
        [(GRANT, A_SECOND, START_MS + 1000, START_MS)],
        [(GRANT, A_SECOND, START_MS + 1001, START_MS)],
    ),
    "velocity_count": (
        "velocity",
        [("the task", RATE, RecentSignatures(2, 9, 0))],
        [
            ("the task", RATE, signed)
            for signed in (RecentSignatures(3, 9, 0), RecentSignatures(2, 10, 0), RecentSignatures(4, 11, 0), None)
        ],
    ),
    "velocity_sats": (
        "velocity",
        [("the user", 100_000, RecentSignatures(0, 0, 60_000), 40_000), ("the user", 0, None, 40_000)],
        [
            ("the user", 100_000, RecentSignatures(0, 0, 60_001), 40_000),
            ("the user", 100_000, None, 40_000),
            ("the user", None, NONE_YET, 40_000),
        ],
    ),
    "velocity_minute": (
        "velocity",
        [("the task", 3, 2, "challenges")],
        [("the task", 3, signed, "challenges") for signed in (3, 4, None)],
    ),
    "disk_room": ("disk-full", [(False,)], [(True,), (None,)]),
    "token_jump": (
        "token-jump",
        [(0, 1_000_000, Ceilings()), (5, 3, Ceilings())],
        [(0, 1_000_001, Ceilings()), (5, 1_000_006, Ceilings()), (0, 2**63 - 1, Ceilings())],
    ),
    "users_max": ("users-max", [(2, 1)], [(2, 2), (2, 3)]),
    # A price falls by a tenth, rounded up: the highest of late and the least that is taken.
    "list_lower": (
        "list-lower",
        [
            (price, highest)
            for highest, least in ((100_000, 90_000), (0, 0), (1, 1), (10, 9), (11, 10), (100_001, 90_001), (19, 18))
            for price in (least, highest + 1)
        ],
        [
            *((89_999, 100_000), (-1, 0), (0, 1), (8, 10), (9, 11), (90_000, 100_001), (17, 19)),
            *((None, 0), (1, None), (None, None)),
        ],
    ),
    "own_inscription": (
        "op-allowed",
        [(OF_ITEM, "a")],
        [(OF_ITEM, "b"), (OF_ITEM, ""), (OF_ITEM, None), (GRANT, ""), (GRANT, "a"), (GRANT, None)],
    ),
    "key_allowed": (
        "op-allowed",
        [(GRANT, "payment"), (OF_ITEM, "payment"), (OF_ITEM, "vault")],
        [(GRANT, "vault")],
    ),
    "msg_template": (
        "msg-template",
        [(GRANT, BID, KEYS), (TO_VAULT, AT_VAULT, KEYS)],
        [(GRANT, replace(BID, **{name: text}), KEYS) for name, text in (("slug", "other"), ("quantity", "1.0"))]
        + [(GRANT, replace(BID, slug="Bitcoin-Frogs"), KEYS)],
    ),
    "offer_terms": (
        "msg-template",
        [(GRANT, OFFER)],
        [
            *((GRANT, replace(OFFER, slug=slug)) for slug in ("other-frogs", GRANT.slug.upper())),
            *((GRANT, replace(OFFER, quantity=quantity)) for quantity in ("0", "1.0")),
            (replace(GRANT, slug="a b"), replace(OFFER, slug="a b")),
        ],
    ),
    "sign_in_template": (
        "msg-template",
        [(AT_ORDNET, "Sign in to ord.net at noon", KEYS.payment)],
        [
            (GRANT, "Sign in to ord.net at noon", KEYS.payment),
            (AT_ORDNET, "Sign in to ord.ne at noon", KEYS.payment),
        ],
    ),
    "challenge_template": ("msg-template", [("one line",)], [("Sign in to Bidkeeper at example.org",)]),
    "intent_conflict": (
        "intent-conflict",
        [((17, "user", "text"), (17, "user", "text"))],
        [(asked, (17, "user", "text")) for asked in ((18, "user", "text"), (17, "other", "text"), (17, "user", "2"))],
    ),
}


def ask(rule: str, *call: Any) -> Any:
    *arguments, last = call
    named = last if isinstance(last, dict) else {}
    return getattr(policy, rule.partition(":")[0])(*(arguments if named else call), **named)


@pytest.mark.parametrize("rule", TABLE)
def test_a_rule_takes_its_limit_and_nothing_past_it(rule: str) -> None:
    tag, right, wrong = TABLE[rule]
    for call in right:
        ask(rule, *call)
    for call in wrong:
        with pytest.raises(PolicyRefused) as refused:
            ask(rule, *call)
        assert refused.value.tag == tag, call


def test_a_refusal_says_its_tag_and_why() -> None:
    refused = PolicyRefused("max-bid", "too much")
    assert (str(refused), refused.tag, refused.message) == ("max-bid: too much", "max-bid", "too much")
    with pytest.raises(PolicyRefused) as stale:
        policy.stale_token(5, 4)
    assert stale.value.highest == 5
    with pytest.raises(PolicyRefused, match="no hard cap"):
        policy.max_bid(replace(GRANT, hardcap_sats=0), 1)
    assert policy.grant_live(HELD, 5, SECRET, START_MS) is HELD


def test_most_outstanding_is_the_grants_and_never_above_the_installations() -> None:
    for ceiling, most in ((0, 200_000), (200_001, 200_000), (199_999, 199_999), (1, 1)):
        assert policy.most_outstanding(GRANT.outstanding_sats, Ceilings(outstanding_user=ceiling)) == most


def test_hourly_user_is_what_bids_of_a_quarter_of_an_hour_can_come_to() -> None:
    assert policy.hourly_user(50_000) == 200_000


def test_a_bid_delivers_where_the_grant_says_and_nowhere_else() -> None:
    assert policy.msg_template(GRANT, BID, KEYS).count(":") == 7
    assert policy.msg_template(GRANT, BID, KEYS).split(":")[2] == GRANT.receive
    assert policy.msg_template(TO_VAULT, AT_VAULT, KEYS).split(":")[2] == KEYS.vault
    for grant, bid in ((GRANT, AT_VAULT), (TO_VAULT, BID), (GRANT, NOWHERE), (TO_VAULT, NOWHERE)):
        with pytest.raises(PolicyRefused, match="msg-template: the receiving address"):
            policy.msg_template(grant, bid, KEYS)


RIGHT = {name: getattr(policy, name) for name in dir(policy) if not name.startswith("_")}


def lax(name: str, change: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Returns the rule asked about something a little less than what it is asked about."""
    return lambda *arguments, **named: RIGHT[name](*change(*arguments), **named)


def nothing(*arguments: Any, **named: Any) -> None:
    """A rule that refuses nothing."""


def reduce_may(states: Any) -> None:
    RIGHT["control_state"](states and [(scope, "run" if state == "reduce" else state) for scope, state in states])


def any_secret(held: Any, token: int, secret: str, now_ms: int) -> Any:
    return RIGHT["grant_live"](held and replace(held, secret_hash=policy.secret_hash(secret)), token, secret, now_ms)


def less(signed: RecentSignatures | None) -> RecentSignatures | None:
    return signed and RecentSignatures(signed.in_a_minute - 1, signed.in_an_hour - 1, signed.sats_in_an_hour - 1)


# A fault, the rule (and part of the table) that it is planted in, and the rule as it is then.
PLANTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "stale token": ("stale_token", lax("stale_token", lambda high, token: (high, token + 1))),
    "a token too far": ("token_jump", lax("token_jump", lambda highest, token, most: (highest + 1, token, most))),
    "grant a ms too long": ("grant_live", lax("grant_live", lambda *given: (*given[:-1], given[-1] - 1))),
    "any secret": ("grant_live", any_secret),
    "no operations": ("op_allowed", nothing),
    "any inscription": ("own_inscription", nothing),
    "vault for all": ("key_allowed", nothing),
    "reduce bids": ("control_state", reduce_may),
    "any market": ("market", nothing),
    "the first dialect alone is practice": (
        "market: dialects of the practice market",
        lambda venue, *, play: RIGHT["market"](venue.partition("-")[0], play=play),
    ),
    "a sat above the cap": ("max_bid", lax("max_bid", lambda grant, price: (grant, price and price - 1))),
    **{
        f"a sat too many: {name}": (name, lax(name, lambda most, sats, price: (most, sats, price - 1)))
        for name in ("outstanding_user", "outstanding_task", "outstanding_host")
    },
    "a signature too many": (
        "velocity_count",
        lax("velocity_count", lambda whose, rate, signed: (whose, rate, less(signed))),
    ),
    "only the hour counts": (
        "velocity_count",
        lax("velocity_count", lambda whose, rate, signed: (whose, Rate(10**9, rate.an_hour), signed)),
    ),
    "a sat an hour": ("velocity_sats", lax("velocity_sats", lambda *given: (*given[:-1], given[-1] - 1))),
    "a challenge too many": (
        "velocity_minute",
        lax("velocity_minute", lambda whose, most, signed, what: (whose, most + 1, signed, what)),
    ),
    "a user too many": ("users_max", lax("users_max", lambda ceiling, users: (ceiling + 1, users))),
    "a ms of life": ("expiry_max", lax("expiry_max", lambda *given: (*given[:-1], given[-1] + 1))),
    "the grant's life alone": (
        "expiry_max: of the installation",
        lax("expiry_max", lambda grant, most, expires, now: (grant, Ceilings(), expires, now)),
    ),
    "a sat lower": ("list_lower", lax("list_lower", lambda price, highest: (price and price + 1, highest))),
    "a tenth rounded down": (
        "list_lower",
        lambda price, highest: (
            None if price and highest and price >= highest * 9 // 10 else RIGHT["list_lower"](price, highest)
        ),
    ),
    "any slug": (
        "msg_template",
        lax("msg_template", lambda grant, bid, keys: (replace(grant, slug=bid.slug), bid, keys)),
    ),
    "any offer": ("offer_terms", nothing),
    "any slug of an offer": (
        "offer_terms",
        lax("offer_terms", lambda grant, offer: (replace(grant, slug=offer.slug), offer)),
    ),
    "any sign-in": ("sign_in_template", nothing),
    "any challenge": ("challenge_template", nothing),
    "any intent": ("intent_conflict", nothing),
    **{
        f"what is not known, of {name}": (
            name,
            lambda *given, rule=RIGHT[name], **named: None if None in given else rule(*given, **named),
        )
        for name in (
            *("max_bid", "outstanding_user", "outstanding_task", "outstanding_host", "expiry_max", "list_lower"),
            *("velocity_count", "velocity_sats", "velocity_minute", "disk_room"),
        )
    },
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_bug_is_caught(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, slip = PLANTED[planted]
    monkeypatch.setattr(policy, rule.partition(":")[0], slip)
    with pytest.raises((AssertionError, pytest.fail.Exception, PolicyRefused, TypeError)):
        test_a_rule_takes_its_limit_and_nothing_past_it(rule)


def test_a_planted_ceiling_that_is_passed_over_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "most_outstanding", lambda granted, ceilings: granted)
    with pytest.raises(AssertionError):
        test_most_outstanding_is_the_grants_and_never_above_the_installations()


def test_every_rule_has_a_planted_bug() -> None:
    """Rules are the functions that can refuse; a new one is listed here before it is let in."""
    rules = {
        name for name, rule in RIGHT.items() if callable(rule) and getattr(rule, "__module__", "") == policy.__name__
    }
    helpers = {"HeldGrant", "PolicyRefused", "RecentSignatures", "UnexpiredBids", "secret_hash", "hourly_user"}
    planted = {rule.partition(":")[0] for rule, _ in PLANTED.values()} | {"most_outstanding"}
    assert rules - helpers == planted
