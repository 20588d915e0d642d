"""The signer's rules, one small function each, named by its tag. Only what passes every rule is signed.

Each raises PolicyRefused with its tag; a missing fact (None) is a refusal. Nothing here reads a clock, a file or a key.
The rules about listing PSBTs are in `wallet/psbt`, the ceilings in `wallet/policy.py`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from core.files import FLOOR_BYTES
from core.settings import PLAY_MARKET, PLAY_VENUES, VENUES, Settings, dialect_of
from wallet.messages import MessageError, check_challenge, check_quantity, check_sign_in, check_slug, compose_bid
from wallet.protocol import (
    DISK_FULL,
    TOKEN_JUMP,
    BidMessage,
    Grant,
    OfferToSign,
    Operation,
    PolicyRefused,
    Scope,
    SigningKey,
    State,
    UserKeys,
)

SETTING = "BIDKEEPER_ORDNET_CO_SIGNERS"


class CoSigners(NamedTuple):
    """The x-only keys that all must sign with: the market's own, its gate's, its enclave's."""

    market: bytes
    gate: bytes
    enclave: bytes


# The practice market's own, which nobody else has.
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
    """Returns the pinned keys by venue. Without the operator's own there are the practice market's only."""
    if settings.ordnet_co_signers is None:
        return PRACTICE_CO_SIGNERS
    return {**PRACTICE_CO_SIGNERS, "ordnet": CoSigners(*map(bytes.fromhex, settings.ordnet_co_signers))}


EscrowForm = Literal["ordnet", "ordinalswallet"]
# Blocks between an item's arrival in an escrow and the first that our key alone may take it out in, by form.
LOCK_BLOCKS: Mapping[EscrowForm, int] = MappingProxyType({"ordnet": 0, "ordinalswallet": 144})


@dataclass(frozen=True, slots=True)
class EscrowTerms:
    """A venue's form of escrow. `cosigner` is the venue's x-only key; `least_sats` the fewest that it takes there."""

    form: EscrowForm
    cosigner: bytes
    least_sats: int

    @property
    def lock_blocks(self) -> int:
        """Blocks for which an item that came into the escrow stays there; 0 = our key takes it out at once."""
        return LOCK_BLOCKS[self.form]


# The venues' keys as they publish them (ord.net's documents, Ordinals Wallet's client), and those of the practice
# market in their dialects, which nobody else has.
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
    """Returns the terms of the venues where listings in escrow are signed, with the key that the operator names."""
    found = {
        venue: terms
        for venue, terms in ESCROW_TERMS.items()
        if dialect_of(venue) != "ordinalswallet" or settings.ordinalswallet_protected_listings
    }
    if settings.ordnet_listing_key is not None:
        found["ordnet"] = replace(found["ordnet"], cosigner=bytes.fromhex(settings.ordnet_listing_key))
    return found


def all_terms(signed: Mapping[str, EscrowTerms]) -> Sequence[tuple[str, EscrowTerms]]:
    """Returns the terms that an item of ours may lie under, each with its venue: those of `signed`, and the published
    ones.

    Where nothing is signed now something may have been: settings change, and escrows stay.
    """
    published = [(venue, terms) for venue, terms in ESCROW_TERMS.items() if signed.get(venue) != terms]
    return [*signed.items(), *published]


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


PLAY_VENUE = PLAY_MARKET
_SAID_BY = {"global": "the installation", "user": "the user", "task": "the task"}


@dataclass(frozen=True, slots=True)
class HeldGrant:
    """A grant as the signer keeps it, with its later restrictions; only the hash of its secret."""

    grant: Grant
    secret_hash: str
    can_place: bool
    withdrawn: bool


@dataclass(frozen=True, slots=True)
class RecentSignatures:
    """Recent signatures for a task, a user or all: bids and listings counted, bids also in sats.

    Challenges, and control states that were loosened, are counted apart from these, in the same way.
    """

    in_a_minute: int
    in_an_hour: int
    sats_in_an_hour: int


@dataclass(frozen=True, slots=True)
class UnexpiredBids:
    """Signed bids of a task, a user or all that can still be filled: their sats, and the next expiry."""

    sats: int
    frees_ms: int | None


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def stale_token(highest: int, token: int) -> None:
    """Refuses a new grant unless its token is above every token seen for its task (0: none was seen)."""
    if token <= highest:
        text = f"token {token} is not above {highest}, the highest seen for this task"
        raise PolicyRefused("stale-token", text, highest)


def token_jump(highest: int, token: int, ceilings: Ceilings) -> None:
    """Refuses a token far above every token seen for its task: the task would never get a grant again.

    Tokens rise by one with each start, so an honest one is never far ahead.
    """
    if token > highest + ceilings.token_jump:
        raise PolicyRefused("token-jump", f"token {token} is more than {ceilings.token_jump} above {highest}")


def grant_live(held: HeldGrant | None, token: int, secret: str, now_ms: int) -> HeldGrant:
    """Returns the task's grant. Refuses when it has none under exactly this token and secret, or when it has ended."""
    if held is not None and token < held.grant.token:
        raise PolicyRefused("stale-token", f"token {token} is below {held.grant.token}, that of the task's grant")
    if held is None or held.withdrawn or held.grant.token != token:
        raise PolicyRefused("grant-live", "there is no grant for this task and token")
    if not hmac.compare_digest(held.secret_hash, secret_hash(secret)):
        raise PolicyRefused("grant-live", "the secret is not this grant's")
    if now_ms >= held.grant.expires_ms:
        raise PolicyRefused("grant-live", "the grant has ended")
    return held


def op_allowed(held: HeldGrant, operation: Operation) -> None:
    if operation not in held.grant.operations:
        raise PolicyRefused("op-allowed", f"the grant does not allow to {operation}")
    if operation != "cancel" and not held.can_place:
        raise PolicyRefused("op-allowed", "the right to place was taken back")


def own_inscription(grant: Grant, inscription_id: str | None) -> None:
    """Refuses a listing of any inscription but the grant's; a grant without one lists nothing."""
    if not grant.inscription_id or inscription_id != grant.inscription_id:
        raise PolicyRefused("op-allowed", "the grant does not allow to list this inscription")


def key_allowed(grant: Grant, key: SigningKey) -> None:
    """Refuses the vault's key for challenges under a grant that may not list."""
    if key == "vault" and not grant.inscription_id:
        raise PolicyRefused("op-allowed", "the grant does not allow to sign with the vault")


def control_state(states: Iterable[tuple[Scope, State]] | None) -> None:
    """Refuses bids and listings unless every state set for them (for all, their user, their task) is `run`."""
    if states is None:
        raise PolicyRefused("control-state", "it is not known whether bids and listings may be placed")
    for scope, state in states:
        if state != "run":
            raise PolicyRefused(
                "control-state", f"{_SAID_BY.get(scope, scope)} is on {state}: no bid or listing is signed"
            )


def market(venue: str, *, play: bool) -> None:
    """Refuses to mix play and real money: play keys sign for the practice market only, and no other keys sign there."""
    if play != (venue in PLAY_VENUES):
        raise PolicyRefused("market", f"{'play' if play else 'real'} keys do not sign for {venue}")


def max_bid(grant: Grant, price: int | None) -> None:
    if grant.hardcap_sats <= 0:
        raise PolicyRefused("max-bid", "the grant has no hard cap")
    if price is None or not 0 < price <= grant.hardcap_sats:
        raise PolicyRefused("max-bid", f"price {price} is not within the hard cap of {grant.hardcap_sats} sats")


def most_outstanding(granted: int, ceilings: Ceilings) -> int:
    """Returns the most sats of a user's signed bids: the grant's, never above the installation's own ceiling."""
    return min(granted, ceilings.outstanding_user or granted)


def outstanding_task(most: int | None, outstanding: int | None, price: int) -> None:
    """Refuses a bid beyond the task's own ceiling; as `outstanding_user`, for the bids of the grant's task alone."""
    if most is None or outstanding is None or outstanding + price > most:
        raise PolicyRefused(
            "outstanding-task",
            f"{outstanding} sats signed for this task and not expired, with {price} more above {most}",
        )


def outstanding_user(most: int | None, outstanding: int | None, price: int) -> None:
    """Refuses a bid beyond the user's ceiling. `outstanding`: sats of the user's other signed, unexpired bids."""
    if most is None or outstanding is None or outstanding + price > most:
        raise PolicyRefused(
            "outstanding-user", f"{outstanding} sats signed and not expired, with {price} more above {most}"
        )


def outstanding_host(ceiling: int | None, outstanding: int | None, price: int) -> None:
    """Refuses a bid beyond the installation's ceiling (0: none); as `outstanding_user`, over all users."""
    if ceiling == 0:
        return
    if ceiling is None or outstanding is None or outstanding + price > ceiling:
        raise PolicyRefused(
            "outstanding-host",
            f"{outstanding} sats signed and not expired by all users, with {price} more above {ceiling}",
        )


def velocity_count(whose: str, rate: Rate, signed: RecentSignatures | None, what: str = "signatures") -> None:
    """Refuses one more signature for this task, user or installation beyond its limit for a minute or an hour.

    `what` is counted, if not signatures of bids and listings.
    """
    if signed is None:
        raise PolicyRefused("velocity", f"it is not known how many {what} there were for {whose}")
    if signed.in_a_minute >= rate.a_minute:
        raise PolicyRefused("velocity", f"{signed.in_a_minute} {what} in a minute for {whose}")
    if signed.in_an_hour >= rate.an_hour:
        raise PolicyRefused("velocity", f"{signed.in_an_hour} {what} in an hour for {whose}")


def velocity_sats(whose: str, most: int | None, signed: RecentSignatures | None, price: int) -> None:
    """Refuses a bid of `price` that takes the sats signed in an hour above `most` (0: no limit), expired or not."""
    if most == 0:
        return
    if most is None or signed is None or signed.sats_in_an_hour + price > most:
        raise PolicyRefused("velocity", f"with {price} sats more than {most} are signed in an hour for {whose}")


def users_max(ceiling: int, users: int) -> None:
    """Refuses keys for a new user once as many users have need of theirs as the ceiling allows."""
    if users >= ceiling:
        raise PolicyRefused("users-max", f"{users} users have new keys or signatures that count; no more are given any")


def velocity_minute(whose: str, a_minute: int, signed: int | None, what: str) -> None:
    """Refuses one more signature of this kind (`what`); `signed` is the last minute's number for this task, user or
    all.
    """
    if signed is None or signed >= a_minute:
        raise PolicyRefused("velocity", f"{signed} {what} in a minute for {whose}")


def disk_room(is_short: bool | None) -> None:
    """Refuses what places or spends while the signer's disk is short of room: only what makes safer has its room."""
    if is_short is None:
        raise PolicyRefused(DISK_FULL, "it is not known how much room the signer's disk has")
    if is_short:
        least = FLOOR_BYTES >> 20
        raise PolicyRefused(DISK_FULL, f"the disk of the signer's directory has less than {least} MiB free: make room")


def hourly_user(most_outstanding: int) -> int:
    """Returns the most sats of a user's bids in an hour. `outstanding_user` already refuses at 0 outstanding."""
    return HOURLY_FACTOR * most_outstanding


def expiry_max(grant: Grant, ceilings: Ceilings, expires_ms: int | None, now_ms: int) -> None:
    most = min(grant.max_expiry_ms, ceilings.max_expiry_ms)
    if expires_ms is None or expires_ms <= now_ms:
        raise PolicyRefused("expiry-max", "the bid would have expired already")
    if expires_ms - now_ms > most:
        raise PolicyRefused("expiry-max", f"the bid would live longer than {most} ms")


def list_lower(price: int | None, highest: int | None) -> None:
    """Refuses a listing more than a tenth below `highest`, the dearest of this output in the last hour (0: none).

    A listing's signature cannot be taken back, so a price falls by a tenth an hour at most: 100,000 may be followed by
    90,000, not by 89,999.
    """
    if price is None or highest is None:
        raise PolicyRefused("list-lower", "it is not known what the output was listed for")
    least = -(-highest * 9 // 10)
    if price < least:
        raise PolicyRefused("list-lower", f"{price} is more than a tenth below {highest}, signed within the hour")


def msg_template(grant: Grant, bid: BidMessage, keys: UserKeys) -> str:
    """Returns the bid's text in the venue's grammar. Refuses another slug or receiving address than the grant's.

    A grant to deliver to the vault names no address: which one that is, the signer's own keys say.
    """
    if bid.slug != grant.slug:
        raise PolicyRefused("msg-template", "the slug is not the grant's")
    if bid.receive != (keys.vault if grant.to_vault else grant.receive):
        raise PolicyRefused("msg-template", "the receiving address is not the grant's")
    try:
        return compose_bid(bid, keys, bid.receive)
    except MessageError as error:
        raise PolicyRefused("msg-template", str(error)) from None


def offer_terms(grant: Grant, offer: OfferToSign) -> None:
    """Refuses an offer for another slug than the grant's, or with a bad quantity: no PSBT says what it pays for."""
    if offer.slug != grant.slug:
        raise PolicyRefused("msg-template", "the slug is not the grant's")
    try:
        check_slug(offer.slug)
        check_quantity(offer.quantity)
    except MessageError as error:
        raise PolicyRefused("msg-template", str(error)) from None


def sign_in_template(grant: Grant, text: str, address: str) -> None:
    """Refuses a text that is not a sign-in at the grant's venue by the user's own `address`."""
    try:
        check_sign_in(text, grant.venue, address)
    except MessageError as error:
        raise PolicyRefused("msg-template", str(error)) from None


def challenge_template(challenge: str) -> None:
    try:
        check_challenge(challenge)
    except MessageError as error:
        raise PolicyRefused("msg-template", str(error)) from None


def intent_conflict(asked: tuple[object, ...], signed: tuple[object, ...]) -> None:
    """Refuses a known intent that comes with other fields than it was signed with."""
    if asked != signed:
        raise PolicyRefused("intent-conflict", "this intent was signed with other fields")
