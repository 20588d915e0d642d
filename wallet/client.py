"""How manager, server and workers ask the signer. Standard library only: workers import it.

SignerError
├── SignerUnavailable  it could not be asked, or its answer was lost: a signature may have been made
├── SignerLocked       it has no keys at hand; the message says why
└── SignerRefused      a rule says no; `tag` names it. Nothing was signed
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from core.errors import BidkeeperError, PeerRefused, PeerUnavailable
from core.local import ask
from wallet.protocol import BidMessage, ControlState, Grant, Scope, SignedBid, SignerStatus, State, UserKeys

__all__ = [
    "BidMessage",
    "ControlState",
    "Controls",
    "Grant",
    "SignedBid",
    "SignerClient",
    "SignerError",
    "SignerLocked",
    "SignerRefused",
    "SignerStatus",
    "SignerUnavailable",
    "UserKeys",
]

_PEER = "signer"
# Codes that say nothing about what was signed: the request failed half-way or was not understood at all.
_NO_ANSWER = ("internal", "unreadable")

T = TypeVar("T")


class SignerError(BidkeeperError):
    """Root of what can go wrong when the signer is asked."""


class SignerUnavailable(SignerError):
    """The signer could not be asked, or its answer did not come. What was asked may or may not have happened."""


class SignerLocked(SignerError):
    """The signer has no keys at hand."""


class SignerRefused(SignerError):
    """The signer's policy says no; `tag` names the rule. Nothing was signed."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(f"signer refused ({tag}): {message}")
        self.tag = tag
        self.message = message


@dataclass(frozen=True, slots=True)
class Controls:
    """`states`: what is not on run, in any order. `has_halt_file`: the operator's file stops all bids."""

    states: tuple[ControlState, ...]
    has_halt_file: bool


class SignerClient:
    """Asks the signer at `socket_path`; every call raises a leaf of SignerError. `timeout_s` bounds each step."""

    def __init__(self, socket_path: Path, timeout_s: float = 5.0) -> None:
        self._socket_path = socket_path
        self._timeout_s = timeout_s

    def status(self) -> SignerStatus:
        return self._ask(lambda answer: SignerStatus(**answer), "status")

    def addresses(self, user_address: str) -> UserKeys:
        """The user's own addresses; a user the signer has not seen gets new ones."""
        return self._ask(lambda answer: UserKeys(**answer), "addresses", user=user_address)

    def grant(self, grant: Grant) -> str:
        """Gives a task its rights and returns their secret (64 hex digits), which the worker must show.

        A token not above every one seen for the task is refused (`stale-token`), also when the same grant is given
        again after a lost answer: raise the token then.
        """
        return self._ask(lambda answer: _text(answer["secret"]), "grant", grant=asdict(grant))

    def revoke_place(self, task: int, token: int) -> None:
        """Takes back the right to sign bids of this and all lower tokens; cancelling stays allowed."""
        self._ask(_nothing, "revoke_place", task=task, token=token)

    def withdraw(self, task: int, token: int) -> None:
        """Ends all rights of this and all lower tokens."""
        self._ask(_nothing, "withdraw", task=task, token=token)

    def set_control(self, scope: Scope, subject: str | int, state: State) -> None:
        """Says whether bids are signed: subject "" with `global`, a sign-in address with `user`, an id with `task`.

        The strictest holds; in `reduce` and `halt` only cancels are signed. Works while the signer is locked. Setting
        what is set changes nothing.
        """
        self._ask(_nothing, "control", scope=scope, subject=str(subject), state=state)

    def controls(self) -> Controls:
        """Everything that keeps bids from being signed."""
        return self._ask(
            lambda answer: Controls(
                tuple(ControlState(**control) for control in answer["controls"]), answer["file"] is True
            ),
            "controls",
        )

    def sign_bid(self, task: int, token: int, secret: str, bid: BidMessage) -> SignedBid:
        """Signs a bid; the same intent with the same fields gets the same signature again."""
        return self._ask(
            lambda answer: SignedBid(_text(answer["message"]), _text(answer["signature"])),
            "sign_bid",
            task=task,
            token=token,
            secret=secret,
            bid=asdict(bid),
        )

    def sign_challenge(self, task: int, token: int, secret: str, challenge: str) -> str:
        """Signs a venue's challenge, as cancelling needs it; returns base64."""
        return self._ask(
            lambda answer: _text(answer["signature"]),
            "sign_challenge",
            task=task,
            token=token,
            secret=secret,
            challenge=challenge,
        )

    def was_signed(self, intent: str) -> bool:
        """Whether a bid was ever signed under this intent. False is final only once its right to place is gone."""
        return self._ask(lambda answer: answer["signed"] is True, "was_signed", intent=intent)

    def _ask(self, read: Callable[[dict[str, Any]], T], op: str, **fields: Any) -> T:
        try:
            answer = ask(self._socket_path, _PEER, {"op": op, **fields}, timeout=self._timeout_s)
            return read(answer)
        except PeerUnavailable as error:
            raise SignerUnavailable(str(error)) from error
        except PeerRefused as error:
            if error.code == "locked":
                raise SignerLocked(f"the signer is locked: {error.message}") from error
            if error.code in _NO_ANSWER:
                raise SignerUnavailable(f"the signer failed at {op}: {error.message}") from error
            raise SignerRefused(error.code, error.message) from error
        except (KeyError, TypeError) as error:
            raise SignerUnavailable(f"the signer's answer to {op} is unreadable") from error


def _nothing(answer: dict[str, Any]) -> None:
    return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
