"""The terms that no grant can widen: the installation's ceilings, and the pinned keys and escrows.

The manager makes grants from the database, so an intruder in either can ask for any grant. These terms still hold.

The marketplace's keys that together may spend a bid's escrow are pinned, because our signatures do not bind them. A
wrong key of a listing's escrow loses nothing, because our own key alone takes the item back; the item could only not be
sold. It is pinned so that a change is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from core.settings import PLAY_MARKET, VENUES, Settings, dialect_of
from wallet.protocol import (
    TOKEN_JUMP,
)

SETTING = "BIDKEEPER_ORDNET_CO_SIGNERS"


class CoSigners(NamedTuple):
    """The x-only keys that must all sign: the market's own, its gate's, its enclave's."""

    market: bytes
    gate: bytes
    enclave: bytes


# Of the practice market only.
PRACTICE_CO_SIGNERS: Mapping[str, CoSigners] = MappingProxyType(
    {
        f"{PLAY_MARKET}-ordnet": CoSigners(
            bytes.fromhex("28e4d123544dcb211954cfac57d0d4d89c26e59d3e69d38a132dc52e26ed1258"),
            bytes.fromhex("a03699e15bce47a25133d5633e161b589e51c45d0cc3a968d194261360404c3e"),
            bytes.fromhex("18b916a21b7c7574b5da61b952a7dde278470d243bea389e53a0f3a7ae402131"),
        )
    }
)


def co_signers_of(settings: Settings) -> Mapping[str, CoSigners]:
    """Returns the pinned keys by venue: the practice market's, and ord.net's if the operator has set them."""
    if settings.ordnet_co_signers is None:
        return PRACTICE_CO_SIGNERS
    return {**PRACTICE_CO_SIGNERS, "ordnet": CoSigners(*map(bytes.fromhex, settings.ordnet_co_signers))}


EscrowForm = Literal["ordnet", "ordinalswallet"]
# Blocks after an item's arrival in an escrow until our key alone may take it out, by form.
LOCK_BLOCKS: Mapping[EscrowForm, int] = MappingProxyType({"ordnet": 0, "ordinalswallet": 144})


class EscrowTerms(Struct, frozen=True):
    """A venue's form of escrow. `cosigner` is the venue's x-only key, `least_sats` the minimum value of the escrow."""

    form: EscrowForm
    cosigner: bytes
    least_sats: int

    @property
    def lock_blocks(self) -> int:
        """The number of blocks that an item must stay in the escrow; 0 = our key takes it out immediately."""
        return LOCK_BLOCKS[self.form]


# The keys that the venues publish (ord.net's documents, Ordinals Wallet's client), and those of the practice market in
# both dialects.
ESCROW_TERMS: Mapping[str, EscrowTerms] = MappingProxyType(
    {
        "ordnet": EscrowTerms(
            "ordnet", bytes.fromhex("d2dc3222298e2a5f4e1c7d702fae2bcf7821cc0a095a478b95c62195b0df7398"), 330
        ),
        "ordinalswallet": EscrowTerms(
            "ordinalswallet", bytes.fromhex("1d08b7c71f6f1e97a0a4cf005db7a977c85e34652a0c9365842aee25997c7dee"), 330
        ),
        f"{PLAY_MARKET}-ordnet": EscrowTerms(
            "ordnet", bytes.fromhex("28e4d123544dcb211954cfac57d0d4d89c26e59d3e69d38a132dc52e26ed1258"), 330
        ),
        f"{PLAY_MARKET}-ordinalswallet": EscrowTerms(
            "ordinalswallet", bytes.fromhex("9ccefba06ac2281b7c0b05d5412b1bb48a6cddccd6892c886cb1c9353000ecb5"), 330
        ),
    }
)


def escrow_terms_of(settings: Settings) -> Mapping[str, EscrowTerms]:
    """Returns the terms of the venues where listings in escrow are signed, with the operator's key if set."""
    found = {
        venue: terms
        for venue, terms in ESCROW_TERMS.items()
        if dialect_of(venue) != "ordinalswallet" or settings.ordinalswallet_protected_listings
    }
    if settings.ordnet_listing_key is not None:
        found["ordnet"] = replace(found["ordnet"], cosigner=bytes.fromhex(settings.ordnet_listing_key))
    return found


def all_terms(signed: Mapping[str, EscrowTerms]) -> Sequence[tuple[str, EscrowTerms]]:
    """Returns all terms that an item's escrow may have, with their venues: `signed`, and other published ones.

    Published terms that are not signed now may have been signed before a change of the settings.
    """
    published = [(venue, terms) for venue, terms in ESCROW_TERMS.items() if signed.get(venue) != terms]
    return [*signed.items(), *published]


DAY_MS = 24 * 3_600_000
# Every signature counts until its signed expiry, even if the bid was cancelled or replaced.
OUTSTANDING_FACTOR = 4
# A bid's lifetime is at least 15 minutes, so a user within the limit for outstanding bids signs at most four times that
# in an hour. Only signatures that expire sooner can exceed it.
HOURLY_FACTOR = 4


class Rate(Struct, frozen=True):
    """The maximum number of signatures in a minute and in an hour."""

    a_minute: int
    an_hour: int


class Ceilings(Struct, frozen=True):
    """Limits in sats; 0 means none. `*_hour` limits all that is signed in an hour, expired or not.

    `least_listing` is the minimum price of a listing, `withdrawn_a_day` the maximum of one user's withdrawals in a day.

    `users` is the maximum number of users who need their keys at one time, because each new user is a write to the
    signer's disk. A user with keys older than a week and no signature that counts frees a place, and keeps the keys.

    `seller_fee_ppm` is the share of a listing's price that a venue may keep, in millionths; `secure_listings` are the
    venues whose secure forms of listings are signed, too. `co_signers` are the keys that may spend the escrow of a bid
    at a venue; no such bid is signed at others. `escrow_terms` has the venues whose listings in escrow are signed.

    The rates lie well above a venue's own limit (5 requests a second). Challenges and delists have separate
    rates, for each task and for all, and so have sign-ins, so that cancels wait for neither bids nor sign-ins. `brakes`
    are challenges without a grant, in a minute for all users and for one. `loosened` limits changes of control states
    towards `run`; tightening has no limit. `token_jump` is the maximum step of a task's token.
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
