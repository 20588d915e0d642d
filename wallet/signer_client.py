"""The client that asks the signer, for manager, server and workers. Standard library only: workers import it.

SignerError
├── SignerUnavailable  it could not be asked, or its answer was lost: a signature may have been made
├── SignerLocked       it has no keys at hand; the message says why
└── SignerRefused      a rule says no; `tag` names it. Nothing was signed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from core.errors import BidkeeperError, PeerRefused, PeerUnavailable
from core.local import ask
from strategy.plan_inputs import SignedRoom
from wallet.judgement import Judgement, read_judgement
from wallet.protocol import (
    BidMessage,
    ControlState,
    Grant,
    ListingToSign,
    OfferToSign,
    Scope,
    SignedBid,
    SignedListing,
    SignedOffer,
    SignerStatus,
    SigningKey,
    State,
    UserKeys,
)
from wallet.withdrawal.request import WITHDRAWAL_INTENT_DIGITS, SignedWithdrawal, WithdrawalToSign, as_request

_PEER = "signer"
# Codes that leave open whether anything was signed: the request failed half-way or was not understood.
_NO_ANSWER = ("internal", "unreadable")
# Tags that refuse every request under this grant: the signer does not have it, or has a newer one.
_NO_GRANT = ("grant-live", "stale-token")
# The longest that the signer waits for the facts of an output before it judges; it asks for those of four at once.
FACTS_S = 5.0
_LOOKED_UP_AT_ONCE = 4

T = TypeVar("T")


class SignerError(BidkeeperError):
    """Root of the errors of a request to the signer."""


class SignerUnavailable(SignerError):
    """The signer could not be reached, or its answer was lost: the request may or may not have taken effect."""


class SignerLocked(SignerError):
    """The signer has no keys at hand."""


class SignerRefused(SignerError):
    """A rule of the signer refuses; `tag` names the rule. Nothing was signed.

    `highest` is the highest token that it has seen for the task, where a new grant's is not above that.
    """

    def __init__(self, tag: str, message: str, highest: int | None = None) -> None:
        super().__init__(f"signer refused ({tag}): {message}")
        self.tag = tag
        self.message = message
        self.highest = highest


@dataclass(frozen=True, slots=True)
class SignerControls:
    """`states`: every scope that is not on `run`, in any order. `has_halt_file`: the operator's file stops all bids."""

    states: tuple[ControlState, ...]
    has_halt_file: bool


class SignerClient:
    """Asks the signer at `socket_path`; every call raises a leaf of SignerError. `timeout_s` bounds each step.

    `has_lost_grant`: the signer has said that it does not know the grant shown, or has a newer one.
    """

    def __init__(self, socket_path: Path, timeout_s: float = 5.0) -> None:
        self._socket_path = socket_path
        self._timeout_s = timeout_s
        self.has_lost_grant = False

    def status(self) -> SignerStatus:
        return self._ask(lambda answer: SignerStatus(**answer), "status")

    def addresses(self, user_address: str) -> UserKeys:
        """Returns the user's own addresses; a user who is new to the signer gets new ones."""
        return self._ask(lambda answer: UserKeys(**answer), "addresses", user=user_address)

    def grant(self, grant: Grant) -> str:
        """Gives a task its rights and returns their secret (64 hex digits), which the worker must show.

        A token not above every one seen for the task is refused (`stale-token`), also when the same grant is given
        again after a lost answer: raise the token then. The refusal has the `highest` one.
        """
        return self._ask(lambda answer: _text(answer["secret"]), "grant", grant=asdict(grant))

    def revoke_place(self, task: int, token: int) -> None:
        """Takes back the right to sign bids under this and all lower tokens; cancelling stays allowed."""
        self._ask(_nothing, "revoke_place", task=task, token=token)

    def end_rights(self, task: int, token: int) -> None:
        """Ends all rights of this and all lower tokens."""
        self._ask(_nothing, "end_rights", task=task, token=token)

    def end_all_rights(self, tokens: Mapping[int, int]) -> dict[int, int]:
        """Ends the rights of many tasks, each with its token.

        Returns the highest tokens seen of those tasks that had a higher one than theirs: their rights may stand.
        """
        return self._ask(_higher, "end_all_rights", tokens=[list(pair) for pair in tokens.items()])

    def set_control(self, scope: Scope, subject: str | int, state: State) -> None:
        """Sets whether bids are signed: subject "" with `global`, a sign-in address with `user`, an id with `task`.

        The strictest holds; in `reduce` and `halt` only cancels are signed. Works while the signer is locked. Setting a
        state again changes nothing.
        """
        self._ask(_nothing, "control", scope=scope, subject=str(subject), state=state)

    def controls(self) -> SignerControls:
        """Returns everything that keeps bids from being signed."""
        return self._ask(_controls, "controls")

    def rooms(self, task: int, token: int, secret: str) -> tuple[SignedRoom, ...]:
        """Returns how far the ceilings on the task's signed bids are used: its own, its user's, and the host's if set.

        Sats of all that is signed and not expired, cancelled or not.
        """
        return self._ask(_rooms, "rooms", **_right(task, token, secret))

    def rooms_under(self, user_address: str, task: int, task_sats: int, user_sats: int) -> tuple[SignedRoom, ...]:
        """Returns the `rooms` of a grant with these ceilings, for a task that need not run, nor exist (0). Needs no
        key.
        """
        ceilings = {"outstanding_task_sats": task_sats, "outstanding_sats": user_sats}
        return self._ask(_rooms, "rooms_under", task=task, user=user_address, **ceilings)

    def sign_bid(self, task: int, token: int, secret: str, bid: BidMessage) -> SignedBid:
        """Signs a bid; the same intent with the same fields gets the same signature again."""
        return self._ask(_signed_bid, "sign_bid", **_right(task, token, secret), bid=asdict(bid))

    def sign_offer(self, task: int, token: int, secret: str, offer: OfferToSign) -> SignedOffer:
        """Signs the PSBTs that pay for a bid with the user's payment key; the same intent gets the same answer.

        The signer looks the coins up itself, so this may take some seconds longer than `timeout_s`.
        """
        waits_s = self._timeout_s + FACTS_S * -(-len(offer.coins) // _LOOKED_UP_AT_ONCE)
        return self._ask(_signed_offer, "sign_offer", waits_s, **_right(task, token, secret), offer=asdict(offer))

    def sign_listing(self, task: int, token: int, secret: str, listing: ListingToSign) -> SignedListing:
        """Signs a listing's PSBTs with the user's vault; the same intent with the same fields gets the same answer.

        The signer looks the output up itself, so this may take some seconds longer than `timeout_s`.
        """
        fields = _right(task, token, secret) | {"listing": asdict(listing)}
        return self._ask(_signed_listing, "sign_listing", self._timeout_s + FACTS_S, **fields)

    def judge(
        self, user_address: str, venue: str, listing: ListingToSign, min_price_sats: int = 0
    ) -> tuple[Judgement, ...]:
        """Judges a listing's PSBTs, the plain one first, as `sign_listing` would, and signs nothing. Needs no grant.

        The listing's intent does not matter. `min_price_sats` is the task's. Takes as long as `sign_listing`.
        """
        return self._ask(
            lambda answer: tuple(read_judgement(each) for each in answer["judgements"]),
            "judge",
            self._timeout_s + FACTS_S,
            user=user_address,
            venue=venue,
            min_price_sats=min_price_sats,
            listing=asdict(listing),
        )

    def sign_withdrawal(self, withdrawal: WithdrawalToSign) -> SignedWithdrawal:
        """Signs a user's coins to the address that they sign in with; the same intent gets the same answer.

        Needs no grant. The signer looks the coins up itself, as for an offer.
        """
        coins = len(withdrawal.coins) + len(withdrawal.fee_coins)
        waits_s, asked = self._timeout_s + FACTS_S * -(-coins // _LOOKED_UP_AT_ONCE), as_request(withdrawal)
        return self._ask(lambda answer: SignedWithdrawal(**answer), "sign_withdrawal", waits_s, withdrawal=asked)

    def judge_withdrawal(self, withdrawal: WithdrawalToSign) -> tuple[int, int]:
        """Returns the sats that would arrive and the fee, and signs nothing; refuses as `sign_withdrawal` would.

        The intent does not matter, and the limits of a day are not looked at. Takes as long as `sign_withdrawal`.
        """
        asked = as_request(replace(withdrawal, intent="0" * WITHDRAWAL_INTENT_DIGITS))
        coins = len(withdrawal.coins) + len(withdrawal.fee_coins)
        waits_s = self._timeout_s + FACTS_S * -(-coins // _LOOKED_UP_AT_ONCE)
        return self._ask(_amounts, "judge_withdrawal", waits_s, withdrawal=asked)

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str, key: SigningKey = "payment") -> str:
        """Signs a venue's challenge, which cancelling needs; returns base64. Only a grant to list takes the vault."""
        return self._ask(_signature, "sign_challenge", **_right(task, token, secret), challenge=challenge, key=key)

    def sign_brake(self, user_address: str, venue: str, challenge: str) -> str:
        """Signs a venue's challenge with the user's payment key, without a grant; returns base64.

        For the manager, which cancels the bids of a halt itself. Only a user who has keys already gets a signature.
        """
        return self._ask(_signature, "sign_brake", user=user_address, venue=venue, challenge=challenge)

    def sign_sign_in(self, task: int, token: int, secret: str, text: str, key: SigningKey) -> str:
        """Signs the text by which a user signs in at the grant's venue; returns base64. The right to cancel will do."""
        return self._ask(_signature, "sign_sign_in", **_right(task, token, secret), text=text, key=key)

    def sign_delist(self, task: int, token: int, secret: str, outpoint: str, psbt: str) -> str:
        """Signs the PSBT by which a venue takes back the listing of `outpoint`; returns it, not final.

        All that the output holds must come back to the vault. The right to cancel is enough.
        """
        fields = _right(task, token, secret) | {"outpoint": outpoint, "psbt": psbt}
        return self._ask(lambda answer: _text(answer["psbt"]), "sign_delist", **fields)

    def lowest_listing(self, outpoint: str) -> int | None:
        """Returns the lowest price, in sats, that a listing of this output was ever signed for; None when none was.

        It can be bought for that price until the output is spent, whatever the venue has forgotten since.
        """
        return self._ask(lambda answer: _sats_or_none(answer["price"]), "lowest_listing", outpoint=outpoint)

    def was_signed(self, intent: str) -> bool:
        """Tells whether a bid or offer (32 hex digits), listing (64) or withdrawal (40) was signed under this intent.

        False is final only once the right to place it is gone.
        """
        return self._ask(lambda answer: answer["signed"] is True, "was_signed", intent=intent)

    def _ask(self, read: Callable[[dict[str, Any]], T], op: str, timeout_s: float | None = None, **fields: Any) -> T:
        try:
            answer = ask(self._socket_path, _PEER, {"op": op, **fields}, timeout=timeout_s or self._timeout_s)
            return read(answer)
        except PeerUnavailable as error:
            raise SignerUnavailable(str(error)) from error
        except PeerRefused as error:
            if error.code == "locked":
                raise SignerLocked(f"the signer is locked: {error.message}") from error
            if error.code in _NO_ANSWER:
                raise SignerUnavailable(f"the signer failed at {op}: {error.message}") from error
            self.has_lost_grant = self.has_lost_grant or error.code in _NO_GRANT
            raise SignerRefused(error.code, error.message, error.highest) from error
        except (KeyError, TypeError) as error:
            raise SignerUnavailable(f"the signer's answer to {op} is unreadable") from error


def _right(task: int, token: int, secret: str) -> dict[str, Any]:
    return {"task": task, "token": token, "secret": secret}


def _amounts(answer: dict[str, Any]) -> tuple[int, int]:
    return int(answer["sent_sats"]), int(answer["fee_sats"])


def _nothing(answer: dict[str, Any]) -> None:
    return None


def _higher(answer: dict[str, Any]) -> dict[int, int]:
    return {int(task): int(token) for task, token in answer["higher"]}


def _controls(answer: dict[str, Any]) -> SignerControls:
    return SignerControls(tuple(ControlState(**control) for control in answer["controls"]), answer["file"] is True)


def _signed_bid(answer: dict[str, Any]) -> SignedBid:
    return SignedBid(_text(answer["message"]), _text(answer["signature"]))


def _signed_offer(answer: dict[str, Any]) -> SignedOffer:
    return SignedOffer(tuple(_text(psbt) for psbt in answer["psbts"]))


def _signed_listing(answer: dict[str, Any]) -> SignedListing:
    secure = tuple(_text(psbt) for psbt in answer["secure"])
    return SignedListing(_text(answer["psbt"]), secure, _text(answer["transfer"]), _text(answer["recovery"]))


def _signature(answer: dict[str, Any]) -> str:
    return _text(answer["signature"])


def _rooms(answer: dict[str, Any]) -> tuple[SignedRoom, ...]:
    # A signer of a former version dates the first expiry alone.
    expiries = answer.get("expiries") or [{}] * len(answer["rooms"])
    listed = [{name: tuple(values) for name, values in each.items()} for each in expiries]
    return tuple(SignedRoom(**room | each) for room, each in zip(answer["rooms"], listed, strict=True))


def _sats_or_none(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError("not an amount")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
