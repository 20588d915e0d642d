"""What the signer never passes whatever a grant says: the installation's own bounds, from its settings alone.

A grant comes from the manager, and what the manager knows from the database; whoever has taken those over can ask for
any grant. These hold all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.settings import PLAY_MARKET, Settings

DAY_MS = 24 * 3_600_000
# Every signature counts until its signed expiry, also of bids that were cancelled or replaced since.
OUTSTANDING_FACTOR = 4
# A bid lives for a quarter of an hour at least, so that whoever stays below what may be outstanding at once stays
# below four times that in an hour. Only signatures that expire at once can come to more.
HOURLY_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Rate:
    """Most signatures of bids and listings that are made in a minute, and in an hour."""

    a_minute: int
    an_hour: int


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Sats; 0 where there is no such bound. `*_hour` is what may be signed in an hour, expired or not.

    `least_listing` is what no listing may be below, `withdrawn_a_day` what leaves here for one user in a day.

    `users` is how many may have keys: whoever asks for the addresses of a new one makes the signer write them down.

    `seller_fee_ppm` is what a venue may keep of a listing's price, in millionths; `secure_listings` are the venues
    that get the secure forms of listings signed beside the plain ones.

    The rates lie well above what a venue's own limit (5 requests a second) lets anybody place. Challenges have one of
    their own, for each task: cancelling must not wait for what others do.
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
    users: int = 10_000
    seller_fee_ppm: Mapping[str, int] = field(default_factory=dict)
    secure_listings: frozenset[str] = frozenset()


def ceilings_of(settings: Settings) -> Ceilings:
    """The largest plan bounds each user, `max_exposure_sats` all of them, `max_sats_per_hour` what is signed at all."""
    largest = max((plan.max_exposure for plan in settings.plans.values()), default=0)
    host = OUTSTANDING_FACTOR * settings.max_exposure_sats
    return Ceilings(
        outstanding_user=OUTSTANDING_FACTOR * largest,
        outstanding_host=host,
        sats_hour_host=settings.max_sats_per_hour or HOURLY_FACTOR * host,
        least_listing=settings.min_listing_sats,
        withdrawn_a_day=settings.max_withdrawal_sats_per_day,
        seller_fee_ppm={
            "satflow": settings.satflow_seller_fee_ppm,
            "unisat": settings.unisat_seller_fee_ppm,
            "ordinalswallet": settings.ordinalswallet_seller_fee_ppm,
        },
        secure_listings=frozenset({"satflow", PLAY_MARKET} if settings.satflow_secure_listings else ()),
    )
