"""The rules' own tests must fail when a rule lets one sat, signature or millisecond too many through, or lets all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.shapes import replace
from tests.wallet import test_policy as tests
from wallet import policy
from wallet.policy import RecentSignatures
from wallet.protocol import PolicyRefused
from wallet.terms import Ceilings, Rate

RIGHT = {name: getattr(policy, name) for name in dir(policy) if not name.startswith("_")}


def nothing(*arguments: Any, **named: Any) -> None:
    """A rule that refuses nothing."""


def lax(name: str, change: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Returns the rule asked about something a little less than what it is asked about."""
    return lambda *arguments, **named: RIGHT[name](*change(*arguments), **named)


def missing_is_fine(name: str) -> Callable[..., Any]:
    """Returns a rule that lets through whatever it does not know."""

    def rule(*arguments: Any, **named: Any) -> Any:
        return None if None in arguments else RIGHT[name](*arguments, **named)

    return rule


def live(held: Any, token: int, secret: str, now_ms: int) -> Any:
    return RIGHT["grant_live"](held, token, secret, now_ms - 1)


def any_secret(held: Any, token: int, secret: str, now_ms: int) -> Any:
    return RIGHT["grant_live"](held and replace(held, secret_hash=policy.secret_hash(secret)), token, secret, now_ms)


def less(signed: RecentSignatures | None) -> RecentSignatures | None:
    return signed and RecentSignatures(signed.in_a_minute - 1, signed.in_an_hour - 1, signed.sats_in_an_hour - 1)


def reduce_may(states: Any) -> None:
    RIGHT["control_state"](states and [(scope, "run" if state == "reduce" else state) for scope, state in states])


def any_slug(grant: Any, bid: Any, keys: Any) -> str:
    return str(RIGHT["msg_template"](replace(grant, slug=bid.slug), bid, keys))


PLANTED: dict[str, tuple[str, Callable[..., Any], Callable[[], None]]] = {
    "stale token": ("stale_token", lax("stale_token", lambda high, token: (high, token + 1)), tests.test_stale_token),
    "a token too far": (
        "token_jump",
        lax("token_jump", lambda highest, token, most: (highest + 1, token, most)),
        tests.test_token_jump,
    ),
    "grant a ms too long": ("grant_live", live, tests.test_grant_live_until_the_last_millisecond),
    "no operations": ("op_allowed", nothing, tests.test_op_allowed),
    "any inscription": ("own_inscription", nothing, tests.test_own_inscription),
    "vault for all": ("key_allowed", nothing, tests.test_key_allowed),
    "reduce bids": ("control_state", reduce_may, tests.test_control_state_lets_bids_through_only_while_everything_runs),
    "any market": ("market", nothing, tests.test_market_keeps_play_keys_and_real_venues_apart),
    "a sat above the cap": ("max_bid", lax("max_bid", lambda g, p: (g, p and p - 1)), tests.test_max_bid),
    "unknown price": ("max_bid", missing_is_fine("max_bid"), tests.test_max_bid),
    "grant above ceiling": (
        "most_outstanding",
        lambda granted, ceilings: granted,
        tests.test_most_outstanding_is_the_grants_and_never_above_the_installations,
    ),
    "a sat outstanding": (
        "outstanding_user",
        lax("outstanding_user", lambda most, sum_, price: (most, sum_, price - 1)),
        tests.test_outstanding_user,
    ),
    "a sat of the task's": (
        "outstanding_task",
        lax("outstanding_task", lambda most, sum_, price: (most, sum_, price - 1)),
        tests.test_outstanding_task,
    ),
    "unknown of the task's": ("outstanding_task", missing_is_fine("outstanding_task"), tests.test_outstanding_task),
    "unknown outstanding": ("outstanding_user", missing_is_fine("outstanding_user"), tests.test_outstanding_user),
    "a sat of all users": (
        "outstanding_host",
        lax("outstanding_host", lambda most, sum_, price: (most, sum_, price - 1)),
        tests.test_outstanding_host,
    ),
    "unknown of all users": ("outstanding_host", missing_is_fine("outstanding_host"), tests.test_outstanding_host),
    "a signature too many": (
        "velocity_count",
        lax("velocity_count", lambda whose, rate, signed: (whose, rate, less(signed))),
        tests.test_velocity_count,
    ),
    "only the hour counts": (
        "velocity_count",
        lax("velocity_count", lambda whose, rate, signed: (whose, Rate(10**9, rate.an_hour), signed)),
        tests.test_velocity_count,
    ),
    "unknown count": ("velocity_count", missing_is_fine("velocity_count"), tests.test_velocity_count),
    "a sat an hour": (
        "velocity_sats",
        lax("velocity_sats", lambda whose, most, signed, price: (whose, most, signed, price - 1)),
        tests.test_velocity_sats,
    ),
    "unknown sats": ("velocity_sats", missing_is_fine("velocity_sats"), tests.test_velocity_sats),
    "a challenge too many": (
        "velocity_minute",
        lax("velocity_minute", lambda whose, most, signed, what: (whose, most + 1, signed, what)),
        tests.test_velocity_minute,
    ),
    "unknown challenges": ("velocity_minute", missing_is_fine("velocity_minute"), tests.test_velocity_minute),
    "unknown room": ("disk_room", missing_is_fine("disk_room"), tests.test_disk_room),
    "a user too many": (
        "users_max",
        lax("users_max", lambda ceiling, users: (ceiling + 1, users)),
        tests.test_users_max,
    ),
    "a ms of life": (
        "expiry_max",
        lax("expiry_max", lambda grant, most, expires, now: (grant, most, expires, now + 1)),
        tests.test_expiry_max,
    ),
    "the grant's life alone": (
        "expiry_max",
        lax("expiry_max", lambda grant, most, expires, now: (grant, Ceilings(), expires, now)),
        tests.test_expiry_max_is_the_installations_where_the_grant_says_more,
    ),
    "unknown life": ("expiry_max", missing_is_fine("expiry_max"), tests.test_expiry_max),
    "a sat lower": (
        "list_lower",
        lax("list_lower", lambda price, highest: (price + 1, highest)),
        lambda: tests.test_list_lower_lets_a_price_fall_by_a_tenth_rounded_up(100_000, 90_000),
    ),
    "a tenth rounded down": (
        "list_lower",
        lambda price, highest: None if price >= highest * 9 // 10 else RIGHT["list_lower"](price, highest),
        lambda: tests.test_list_lower_lets_a_price_fall_by_a_tenth_rounded_up(11, 10),
    ),
    "unknown listing": ("list_lower", missing_is_fine("list_lower"), tests.test_list_lower_refuses_what_is_not_known),
    "any slug": ("msg_template", any_slug, tests.test_msg_template),
    "any offer": ("offer_terms", nothing, tests.test_offer_terms),
    "any slug of an offer": (
        "offer_terms",
        lambda grant, offer: RIGHT["offer_terms"](replace(grant, slug=offer.slug), offer),
        tests.test_offer_terms,
    ),
    "any sign-in": ("sign_in_template", nothing, tests.test_sign_in_template),
    "the first dialect alone is practice": (
        "market",
        lambda venue, *, play: RIGHT["market"](venue.partition("-")[0], play=play),
        tests.test_the_practice_market_is_one_in_all_its_dialects,
    ),
    "any challenge": ("challenge_template", nothing, tests.test_challenge_template),
    "any intent": ("intent_conflict", nothing, tests.test_intent_conflict),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_bug_is_caught(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, slip, test = PLANTED[planted]
    test()
    monkeypatch.setattr(policy, name, slip)
    with pytest.raises((AssertionError, pytest.fail.Exception, PolicyRefused, TypeError)):
        test()


def test_any_secret_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "grant_live", any_secret)
    with pytest.raises(pytest.fail.Exception):
        tests.test_grant_live_refuses_all_but_the_very_grant(tests.HELD, 5, "ac" * 32, "grant-live")


def test_every_rule_has_a_planted_bug() -> None:
    """Rules are the functions that can refuse; a new one is listed here before it is let in."""
    rules = {
        name for name, rule in RIGHT.items() if callable(rule) and getattr(rule, "__module__", "") == policy.__name__
    }
    helpers = {"HeldGrant", "PolicyRefused", "RecentSignatures", "UnexpiredBids", "secret_hash", "hourly_user"}
    assert rules - helpers == {name for name, _, _ in PLANTED.values()}
