"""The installation's ceilings: limits that no grant can widen, from its settings alone.

A grant comes from the manager, and the manager's knowledge from the database; an intruder in either can ask for any
grant. These hold all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.settings import PLAY_MARKET, VENUES, Settings
from wallet.co_signers import PRACTICE_CO_SIGNERS, CoSigners, co_signers_of
from wallet.escrow_terms import EscrowTerms, escrow_terms_of
from wallet.protocol import TOKEN_JUMP

DAY_MS = 24 * 3_600_000
# Every signature counts until its signed expiry, also of bids that were cancelled or replaced since.
OUTSTANDING_FACTOR = 4
# A bid lives for a quarter of an hour at least, so a user within the limit for outstanding bids stays within four times
# that in an hour. Only signatures that expire at once can come to more.
HOURLY_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Rate:
    """The most signatures of bids and listings in a minute and in an hour."""

    a_minute: int
    an_hour: int


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Limits in sats; 0 means none. `*_hour` limits all that is signed in an hour, expired or not.

    `least_listing` is the lowest price of a listing, `withdrawn_a_day` the most that leaves for one user in a day.

    `users` is how many may need their keys at one time: a new user's addresses are a write to the signer's disk. One
    who got them a week ago and has no signature that counts leaves room for another, and keeps the keys.

    `seller_fee_ppm` is the part of a listing's price that a venue may keep, in millionths; `secure_listings` are the
    venues whose secure forms of listings are signed beside the plain ones. `co_signers` are the keys that may spend the
    escrow of a bid at a venue; at others no such bid is signed. `escrow_terms` are those of the venues
    whose listings in escrow are signed.

    The rates lie well above a venue's own limit (5 requests a second). Challenges and ends of listings have rates of
    their own, for each task and for all, and sign-ins have others: cancelling waits for neither bids nor sign-ins.
    `brakes` are challenges that need no grant, in a minute for all users and for one. `loosened` bounds changes of
    control states towards `run`; tightening is bounded by nothing. `token_jump` is how far a task's token may rise in
    one step.
    """

    outstanding_user: int = 0
    outstanding_host: int = 0
    sats_hour_host: int = 0
    least_listing: int = 0
    withdrawn_a_day: int = 0
    max_expiry_ms: int = 8 * DAY_MS
    task: Rate = Rate(300, 6_000)
    user: Rate = Rate(600, 12_000)
    host: Rate = Rate(3_000, 36_000)
    challenges_a_minute: int = 240
    challenges: Rate = Rate(3_000, 36_000)
    sign_ins_a_minute: int = 60
    sign_ins: Rate = Rate(3_000, 36_000)
    brakes_of_user: int = 60
    brakes: int = 1_200
    loosened: Rate = Rate(600, 12_000)
    token_jump: int = TOKEN_JUMP
    users: int = 10_000
    seller_fee_ppm: Mapping[str, int] = field(default_factory=dict)
    secure_listings: frozenset[str] = frozenset()
    co_signers: Mapping[str, CoSigners] = field(default_factory=lambda: PRACTICE_CO_SIGNERS)
    escrow_terms: Mapping[str, EscrowTerms] = field(default_factory=lambda: escrow_terms_of(Settings()))


def ceilings_of(settings: Settings) -> Ceilings:
    """Makes the ceilings: the largest plan for a user, `max_exposure_sats` for all, `max_sats_per_hour`."""
    largest = max((plan.max_exposure for plan in settings.plans.values()), default=0)
    host = OUTSTANDING_FACTOR * settings.max_exposure_sats
    return Ceilings(
        outstanding_user=OUTSTANDING_FACTOR * largest,
        outstanding_host=host,
        sats_hour_host=settings.max_sats_per_hour or HOURLY_FACTOR * host,
        least_listing=settings.min_listing_sats,
        withdrawn_a_day=settings.max_withdrawal_sats_per_day,
        seller_fee_ppm={venue: fee for venue in VENUES if (fee := settings.seller_fee_ppm(venue))},
        secure_listings=frozenset({"satflow", PLAY_MARKET} if settings.satflow_secure_listings else ()),
        co_signers=co_signers_of(settings),
        escrow_terms=escrow_terms_of(settings),
    )
