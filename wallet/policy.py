"""The signer's rules, one small function each, named by its tag. A request must pass every rule to be signed.

Each raises PolicyRefused with its tag; a missing fact (None) is a refusal. Nothing here reads a clock, a file or a key.
The rules about listing PSBTs are in `wallet/psbt`, the ceilings in `wallet/terms.py`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from msgspec import Struct

from core.files import FLOOR_BYTES
from core.settings import PLAY_MARKET, PLAY_VENUES
from wallet.messages import MessageError, check_challenge, check_quantity, check_sign_in, check_slug, compose_bid
from wallet.protocol import (
    DISK_FULL,
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
from wallet.terms import HOURLY_FACTOR, Ceilings, Rate

PLAY_VENUE = PLAY_MARKET
_SAID_BY = {"global": "the installation", "user": "the user", "task": "the task"}


class HeldGrant(Struct, frozen=True):
    """A grant as the signer stores it, with later restrictions and the hash of its secret."""

    grant: Grant
    secret_hash: str
    can_place: bool
    withdrawn: bool


class RecentSignatures(Struct, frozen=True):
    """The number of recent bids and listings signed for a task, a user or all, and the bids' sats.

    Challenges and loosened control states are counted in the same way, separately.
    """

    in_a_minute: int
    in_an_hour: int
    sats_in_an_hour: int


class UnexpiredBids(Struct, frozen=True):
    """Signed, unexpired bids of a task, a user or all: their sats, and the next expiry."""

    sats: int
    frees_ms: int | None


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def stale_token(highest: int, token: int) -> None:
    """Refuses a new grant unless its token is above the task's highest (0: no token yet)."""
    if token <= highest:
        text = f"token {token} is not above {highest}, the highest seen for this task"
        raise PolicyRefused("stale-token", text, highest)


def token_jump(highest: int, token: int, ceilings: Ceilings) -> None:
    """Refuses a token far above the task's highest, because the task might never get a grant again.

    Each start raises the token by one, so an honest token is never far ahead.
    """
    if token > highest + ceilings.token_jump:
        raise PolicyRefused("token-jump", f"token {token} is more than {ceilings.token_jump} above {highest}")


def grant_live(held: HeldGrant | None, token: int, secret: str, now_ms: int) -> HeldGrant:
    """Returns the task's grant. Refuses if it has none under this token and secret, or if the grant has ended."""
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
    """Refuses a listing of any inscription except the grant's, and all listings if the grant has none."""
    if not grant.inscription_id or inscription_id != grant.inscription_id:
        raise PolicyRefused("op-allowed", "the grant does not allow to list this inscription")


def key_allowed(grant: Grant, key: SigningKey) -> None:
    """Refuses the vault's key for challenges under a grant that may not list."""
    if key == "vault" and not grant.inscription_id:
        raise PolicyRefused("op-allowed", "the grant does not allow to sign with the vault")


def control_state(states: Iterable[tuple[Scope, State]] | None) -> None:
    """Refuses bids and listings unless the states of all, of the user and of the task are `run`."""
    if states is None:
        raise PolicyRefused("control-state", "it is not known whether bids and listings may be placed")
    for scope, state in states:
        if state != "run":
            raise PolicyRefused(
                "control-state", f"{_SAID_BY.get(scope, scope)} is on {state}: no bid or listing is signed"
            )


def market(venue: str, *, play: bool) -> None:
    """Refuses to mix play and real money: only play keys sign for the practice market, and nowhere else."""
    if play != (venue in PLAY_VENUES):
        raise PolicyRefused("market", f"{'play' if play else 'real'} keys do not sign for {venue}")


def max_bid(grant: Grant, price: int | None) -> None:
    if grant.hardcap_sats <= 0:
        raise PolicyRefused("max-bid", "the grant has no hard cap")
    if price is None or not 0 < price <= grant.hardcap_sats:
        raise PolicyRefused("max-bid", f"price {price} is not within the hard cap of {grant.hardcap_sats} sats")


def most_outstanding(granted: int, ceilings: Ceilings) -> int:
    """Returns the maximum sats of a user's signed bids: the grant's, or the installation's ceiling if lower."""
    return min(granted, ceilings.outstanding_user or granted)


def outstanding_task(most: int | None, outstanding: int | None, price: int) -> None:
    """Refuses a bid beyond the task's ceiling, as `outstanding_user`, for bids of the grant's task alone."""
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
    """Refuses a bid beyond the installation's ceiling (0: none); as `outstanding_user`, over the sum of all users."""
    if ceiling == 0:
        return
    if ceiling is None or outstanding is None or outstanding + price > ceiling:
        raise PolicyRefused(
            "outstanding-host",
            f"{outstanding} sats signed and not expired by all users, with {price} more above {ceiling}",
        )


def velocity_count(whose: str, rate: Rate, signed: RecentSignatures | None, what: str = "signatures") -> None:
    """Refuses one more signature for this task, user or installation beyond its limit for a minute or an hour.

    `what` names the counted kind, by default signatures of bids and listings.
    """
    if signed is None:
        raise PolicyRefused("velocity", f"it is not known how many {what} there were for {whose}")
    if signed.in_a_minute >= rate.a_minute:
        raise PolicyRefused("velocity", f"{signed.in_a_minute} {what} in a minute for {whose}")
    if signed.in_an_hour >= rate.an_hour:
        raise PolicyRefused("velocity", f"{signed.in_an_hour} {what} in an hour for {whose}")


def velocity_sats(whose: str, most: int | None, signed: RecentSignatures | None, price: int) -> None:
    """Refuses a bid of `price` if the sats signed in an hour, expired or not, exceed `most` (0: no limit)."""
    if most == 0:
        return
    if most is None or signed is None or signed.sats_in_an_hour + price > most:
        raise PolicyRefused("velocity", f"with {price} sats more than {most} are signed in an hour for {whose}")


def users_max(ceiling: int, users: int) -> None:
    """Refuses keys for a new user if as many users as the ceiling need theirs."""
    if users >= ceiling:
        raise PolicyRefused("users-max", f"{users} users have new keys or signatures that count; no more are given any")


def velocity_minute(whose: str, a_minute: int, signed: int | None, what: str) -> None:
    """Refuses one more signature of this kind (`what`); `signed` is their number in the last minute for this
    task, user or all.
    """
    if signed is None or signed >= a_minute:
        raise PolicyRefused("velocity", f"{signed} {what} in a minute for {whose}")


def disk_room(is_short: bool | None) -> None:
    """Refuses to place or spend while the signer's disk is short of room, which is kept for cancels and halts."""
    if is_short is None:
        raise PolicyRefused(DISK_FULL, "it is not known how much room the signer's disk has")
    if is_short:
        least = FLOOR_BYTES >> 20
        raise PolicyRefused(DISK_FULL, f"the disk of the signer's directory has less than {least} MiB free: make room")


def hourly_user(most_outstanding: int) -> int:
    """Returns the maximum sats of a user's bids in an hour. If it is 0, `outstanding_user` refuses first."""
    return HOURLY_FACTOR * most_outstanding


def expiry_max(grant: Grant, ceilings: Ceilings, expires_ms: int | None, now_ms: int) -> None:
    most = min(grant.max_expiry_ms, ceilings.max_expiry_ms)
    if expires_ms is None or expires_ms <= now_ms:
        raise PolicyRefused("expiry-max", "the bid would have expired already")
    if expires_ms - now_ms > most:
        raise PolicyRefused("expiry-max", f"the bid would live longer than {most} ms")


def list_lower(price: int | None, highest: int | None) -> None:
    """Refuses a listing more than a tenth below `highest`, this output's highest of the last hour (0: none).

    A listing's signature cannot be revoked, so a price falls by at most a tenth in an hour: 100,000 may be followed by
    90,000, not by 89,999.
    """
    if price is None or highest is None:
        raise PolicyRefused("list-lower", "it is not known what the output was listed for")
    least = -(-highest * 9 // 10)
    if price < least:
        raise PolicyRefused("list-lower", f"{price} is more than a tenth below {highest}, signed within the hour")


def msg_template(grant: Grant, bid: BidMessage, keys: UserKeys) -> str:
    """Returns the bid's text in the venue's grammar. Refuses another slug or receiving address than the grant's.

    For a grant that delivers to the vault, the address comes from the signer's own keys.
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
    """Refuses an offer for another slug than the grant's, or with a bad quantity, which no PSBT shows."""
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
    """Refuses a signed intent that is asked again with other fields."""
    if asked != signed:
        raise PolicyRefused("intent-conflict", "this intent was signed with other fields")
