"""What the signer refuses: one small function a rule, named by its tag. What no rule lets through is not signed.

Each raises Refused with its tag; a missing fact (None) is a refusal. Nothing here reads a clock, a file or a key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from core.errors import BidkeeperError
from wallet.messages import MessageError, check_challenge, compose_bid
from wallet.protocol import BidMessage, Grant, Operation, Scope, State, UserKeys

PLAY_VENUE = "simulator"
_SAID_BY = {"global": "the installation", "user": "the user", "task": "the task"}


class Refused(BidkeeperError):
    """A rule says no; `tag` names the rule."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(f"{tag}: {message}")
        self.tag = tag
        self.message = message


@dataclass(frozen=True, slots=True)
class HeldGrant:
    """A grant as the signer keeps it, with what became of it since; the secret only as its hash."""

    grant: Grant
    secret_hash: str
    can_place: bool
    withdrawn: bool


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def stale_token(highest: int, token: int) -> None:
    """A new grant's token is above every token seen for its task (0: none was seen)."""
    if token <= highest:
        raise Refused("stale-token", f"token {token} is not above {highest}, the highest seen for this task")


def grant_live(held: HeldGrant | None, token: int, secret: str, now_ms: int) -> HeldGrant:
    """The task has a grant under exactly this token and secret, and it has not ended."""
    if held is not None and token < held.grant.token:
        raise Refused("stale-token", f"token {token} is below {held.grant.token}, that of the task's grant")
    if held is None or held.withdrawn or held.grant.token != token:
        raise Refused("grant-live", "there is no grant for this task and token")
    if not hmac.compare_digest(held.secret_hash, secret_hash(secret)):
        raise Refused("grant-live", "the secret is not this grant's")
    if now_ms >= held.grant.expires_ms:
        raise Refused("grant-live", "the grant has ended")
    return held


def op_allowed(held: HeldGrant, operation: Operation) -> None:
    if operation not in held.grant.operations:
        raise Refused("op-allowed", f"the grant does not allow to {operation}")
    if operation == "bid" and not held.can_place:
        raise Refused("op-allowed", "the right to place was taken back")


def control_state(states: Iterable[tuple[Scope, State]] | None) -> None:
    """Bids are signed only while everything said of them (for all, their user, their task) is run."""
    if states is None:
        raise Refused("control-state", "it is not known whether bids may be placed")
    for scope, state in states:
        if state != "run":
            raise Refused("control-state", f"{_SAID_BY.get(scope, scope)} is on {state}: no bid is signed")


def market(grant: Grant, *, play: bool) -> None:
    """Play keys sign for the practice market only, and nothing else signs there."""
    if play != (grant.venue == PLAY_VENUE):
        raise Refused("market", f"{'play' if play else 'real'} keys do not sign for {grant.venue}")


def max_bid(grant: Grant, price: int | None) -> None:
    if grant.hardcap_sats <= 0:
        raise Refused("max-bid", "the grant has no hard cap")
    if price is None or not 0 < price <= grant.hardcap_sats:
        raise Refused("max-bid", f"price {price} is not within the hard cap of {grant.hardcap_sats} sats")


def outstanding_user(grant: Grant, outstanding: int | None, price: int) -> None:
    """`outstanding`: sats of this user's signed bids whose signed expiry has not passed, this one not counted."""
    if outstanding is None or outstanding + price > grant.outstanding_sats:
        raise Refused(
            "outstanding-user",
            f"{outstanding} sats signed and not expired, with {price} more above {grant.outstanding_sats}",
        )


def outstanding_host(ceiling: int | None, outstanding: int | None, price: int) -> None:
    """As outstanding_user, over all users and against the installation's ceiling (0: none)."""
    if ceiling == 0:
        return
    if ceiling is None or outstanding is None or outstanding + price > ceiling:
        raise Refused(
            "outstanding-host",
            f"{outstanding} sats signed and not expired by all users, with {price} more above {ceiling}",
        )


def expiry_max(grant: Grant, expires_ms: int | None, now_ms: int) -> None:
    if expires_ms is None or expires_ms <= now_ms:
        raise Refused("expiry-max", "the bid would have expired already")
    if expires_ms - now_ms > grant.max_expiry_ms:
        raise Refused("expiry-max", f"the bid would live longer than {grant.max_expiry_ms} ms")


def msg_template(grant: Grant, bid: BidMessage, keys: UserKeys) -> str:
    """The bid's text, of the grant's slug and receiving address and in the venue's grammar."""
    if bid.slug != grant.slug:
        raise Refused("msg-template", "the slug is not the grant's")
    try:
        return compose_bid(bid, keys, grant.receive)
    except MessageError as error:
        raise Refused("msg-template", str(error)) from None


def challenge_template(challenge: str) -> None:
    try:
        check_challenge(challenge)
    except MessageError as error:
        raise Refused("msg-template", str(error)) from None


def intent_conflict(asked: tuple[int, str, str], signed: tuple[int, str, str]) -> None:
    """An intent is asked for again as (task, user, message) it was signed with."""
    if asked != signed:
        raise Refused("intent-conflict", "this intent was signed with other fields")
