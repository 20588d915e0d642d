"""The signer's client, for manager, server and workers.

Workers import this module, so it must stay light.

SignerError
├── SignerUnavailable  unreachable, or its answer was lost: a signature may have been made
├── SignerLocked       it is locked; the message says why
└── SignerRefused      a rule refuses; `tag` names it. Nothing was signed
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from core.call import Request, call
from core.errors import BidkeeperError, PeerRefused, PeerUnavailable
from strategy.decision import SignedRoom
from wallet import protocol
from wallet.protocol import (
    WITHDRAWAL_INTENT_DIGITS,
    BidMessage,
    Grant,
    Judgement,
    ListingToSign,
    OfferToSign,
    Scope,
    SignedBid,
    SignedListing,
    SignedOffer,
    SignedWithdrawal,
    SignerControls,
    SignerStatus,
    SigningKey,
    State,
    UserKeys,
    WithdrawalToSign,
)

_PEER = "signer"
# Codes after which a signature may exist: the request failed half-way, or its answer is unreadable.
_NO_ANSWER = ("internal", "unreadable")
# Tags that refuse every request under this grant: the signer does not have it, or has a newer one.
_NO_GRANT = ("grant-live", "stale-token")
# The signer's maximum wait for the facts of an output before it judges; it asks for four at a time.
FACTS_S = 5.0
_LOOKED_UP_AT_ONCE = 4

T = TypeVar("T")


class SignerError(BidkeeperError):
    """Root of the errors of a request to the signer."""


class SignerUnavailable(SignerError):
    """The signer could not be reached, or its answer was lost: the request may or may not have taken effect."""


class SignerLocked(SignerError):
    """The signer is locked."""


class SignerRefused(SignerError):
    """A rule of the signer refuses; `tag` names the rule. Nothing was signed.

    `highest` is the task's highest token, if a new grant's token is not above it.
    """

    def __init__(self, tag: str, message: str, highest: int | None = None) -> None:
        super().__init__(f"signer refused ({tag}): {message}")
        self.tag = tag
        self.message = message
        self.highest = highest


class SignerClient:
    """Asks the signer at `socket_path`; every call raises a leaf of SignerError. `timeout_s` limits each step.

    `has_lost_grant`: the signer has refused a request because it lacks the grant, or has a newer one.
    """

    def __init__(self, socket_path: Path, timeout_s: float = 5.0) -> None:
        self._socket_path = socket_path
        self._timeout_s = timeout_s
        self.has_lost_grant = False

    def status(self) -> SignerStatus:
        return self._ask(protocol.AskStatus())

    def addresses(self, user_address: str) -> UserKeys:
        """Returns the user's own addresses; a new user gets new ones."""
        return self._ask(protocol.AskAddresses(user_address))

    def grant(self, grant: Grant) -> str:
        """Gives a task its rights and returns their secret (64 hex digits), which the worker must present.

        A token not above the task's highest is refused (`stale-token`, with `highest`), also if the same grant is given
        again after a lost answer: raise the token then.
        """
        return self._ask(protocol.GiveGrant(grant)).secret

    def revoke_place(self, task: int, token: int) -> None:
        """Revokes the right to place under this and all lower tokens; cancelling stays allowed."""
        self._ask(protocol.RevokePlace(task, token))

    def end_rights(self, task: int, token: int) -> None:
        """Ends all rights of this and all lower tokens."""
        self._ask(protocol.EndRights(task, token))

    def end_all_rights(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Ends the rights of many tasks, each with its token.

        Returns the tasks whose highest token is above the given one, with it: their rights may still be live.
        """
        return dict(self._ask(protocol.EndAllRights(tuple(tokens.items()))).higher)

    def set_control(self, scope: Scope, subject: str | int, state: State) -> None:
        """Sets whether bids and listings are signed. The subject of `global` is "", of `user` a sign-in address, of
        `task` its id.

        The strictest state applies; in `reduce` and `halt` only cancels are signed. Works while the signer is locked.
        Setting the same state again is a no-op.
        """
        self._ask(protocol.SetControl(scope, str(subject), state))

    def controls(self) -> SignerControls:
        """Returns all control states and the halt file, which stop bids."""
        return self._ask(protocol.AskControls())

    def rooms(self, task: int, token: int, secret: str) -> tuple[SignedRoom, ...]:
        """Returns the use of the ceilings on the task's signed bids: task's, user's, and the installation's if set.

        In sats of all signed, unexpired bids, also of cancelled ones.
        """
        return self._ask(protocol.AskRooms(task, token, secret)).rooms

    def rooms_under(self, user_address: str, task: int, task_sats: int, user_sats: int) -> tuple[SignedRoom, ...]:
        """Returns the `rooms` of a grant with these ceilings, for a task that may not run, or not exist (0). Needs no
        key.
        """
        return self._ask(protocol.AskRoomsUnder(task, user_address, task_sats, user_sats)).rooms

    def sign_bid(self, task: int, token: int, secret: str, bid: BidMessage) -> SignedBid:
        """Signs a bid; a repeated intent with the same fields gets the same signature."""
        return self._ask(protocol.SignBid(task, token, secret, bid))

    def sign_offer(self, task: int, token: int, secret: str, offer: OfferToSign) -> SignedOffer:
        """Signs the PSBTs that pay for a bid with the user's payment key; a repeated intent gets the same answer.

        The signer reads the coins' facts first, so this may take some seconds longer than `timeout_s`.
        """
        return self._ask(protocol.SignOffer(task, token, secret, offer), len(offer.coins))

    def sign_listing(self, task: int, token: int, secret: str, listing: ListingToSign) -> SignedListing:
        """Signs a listing's PSBTs with the user's vault; a repeated intent with the same fields gets the same answer.

        The signer reads the output's facts first, so this may take some seconds longer than `timeout_s`.
        """
        return self._ask(protocol.SignListing(task, token, secret, listing), looked_up=1)

    def judge(
        self, user_address: str, venue: str, listing: ListingToSign, min_price_sats: int = 0
    ) -> tuple[Judgement, ...]:
        """Judges a listing's PSBTs, the plain one first, as `sign_listing` would, and signs nothing. Needs no grant.

        The listing's intent does not matter. `min_price_sats` is the task's. Takes as long as `sign_listing`.
        """
        asked = protocol.JudgeListing(user_address, venue, min_price_sats, listing)
        return self._ask(asked, looked_up=1).judgements

    def sign_withdrawal(self, withdrawal: WithdrawalToSign) -> SignedWithdrawal:
        """Signs a withdrawal to the user's sign-in address; a repeated intent gets the same answer.

        Needs no grant. The signer reads the coins' facts first, as for an offer.
        """
        coins = len(withdrawal.coins) + len(withdrawal.fee_coins)
        return self._ask(protocol.SignWithdrawal(withdrawal), coins)

    def judge_withdrawal(self, withdrawal: WithdrawalToSign) -> tuple[int, int]:
        """Returns the sats that would arrive and the fee, and signs nothing; refuses as `sign_withdrawal` would.

        The intent and the limits of a day do not matter. Takes as long as `sign_withdrawal`.
        """
        coins = len(withdrawal.coins) + len(withdrawal.fee_coins)
        asked = replace(withdrawal, intent="0" * WITHDRAWAL_INTENT_DIGITS)
        found = self._ask(protocol.JudgeWithdrawal(asked), coins)
        return found.sent_sats, found.fee_sats

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str, key: SigningKey = "payment") -> str:
        """Signs a venue's challenge, which a cancel needs; returns base64. Key `vault` needs a grant to list."""
        return self._ask(protocol.SignChallenge(task, token, secret, challenge, key)).signature

    def sign_brake(self, user_address: str, venue: str, challenge: str) -> str:
        """Signs a venue's challenge with the user's payment key, without a grant; returns base64.

        The manager needs it to cancel all bids at a halt. Refused for a user without keys.
        """
        return self._ask(protocol.SignBrake(user_address, venue, challenge)).signature

    def sign_sign_in(self, task: int, token: int, secret: str, text: str, key: SigningKey) -> str:
        """Signs a user's sign-in text for the grant's venue; returns base64. Needs only the right to cancel."""
        return self._ask(protocol.SignSignIn(task, token, secret, text, key)).signature

    def sign_delist(self, task: int, token: int, secret: str, outpoint: str, psbt: str) -> str:
        """Signs the PSBT by which a venue takes back the listing of `outpoint`; returns it, not final.

        The vault must get back everything that the output holds. Needs only the right to cancel.
        """
        return self._ask(protocol.SignDelist(task, token, secret, outpoint, psbt)).psbt

    def lowest_listing(self, outpoint: str) -> int | None:
        """Returns the lowest price, in sats, of all signed listings of this output; None without one.

        The item can be bought for that price until the output is spent, even if the venue shows another.
        """
        return self._ask(protocol.AskLowestListing(outpoint)).price

    def was_signed(self, intent: str) -> bool:
        """Tells whether a bid or offer (32 hex digits), listing (64) or withdrawal (40) was signed under this intent.

        False is final only after the right to place it was revoked.
        """
        return self._ask(protocol.AskWasSigned(intent)).signed

    def _ask(self, request: Request[T], looked_up: int = 0) -> T:
        """Sends a request; `looked_up` is the number of outputs whose facts the signer reads first."""
        waits_s = self._timeout_s + FACTS_S * -(-looked_up // _LOOKED_UP_AT_ONCE)
        op = request.__struct_config__.tag
        try:
            return call(self._socket_path, _PEER, request, timeout=waits_s)
        except PeerUnavailable as error:
            raise SignerUnavailable(str(error)) from error
        except UnicodeEncodeError as error:
            raise SignerRefused("bad-request", f"{op} cannot be sent: {error}") from error
        except PeerRefused as error:
            if error.code == "locked":
                raise SignerLocked(f"the signer is locked: {error.message}") from error
            if error.code in _NO_ANSWER:
                raise SignerUnavailable(f"the signer failed at {op}: {error.message}") from error
            self.has_lost_grant = self.has_lost_grant or error.code in _NO_GRANT
            raise SignerRefused(error.code, error.message, error.highest) from error
