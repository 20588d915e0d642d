"""The values of a planned withdrawal."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import BidkeeperError
from server.withdrawals.coins import LeftOut
from wallet.address import parse
from wallet.protocol import WithdrawalToSign
from wallet.psbt.script import script_of

NOTHING = "Nothing can be withdrawn"
UNCOVERED = "Open bids would not be covered"


class CannotWithdraw(BidkeeperError):
    """A refusal: it is impossible at present. `reason` says why in a few words, `what_to_do` is the remedy."""

    def __init__(self, reason: str, what_to_do: str) -> None:
        super().__init__(f"{reason}: {what_to_do}")
        self.reason = reason
        self.what_to_do = what_to_do


class InvalidWithdrawal(BidkeeperError):
    """A refusal: the request can never be met. `fault` reads `field: what is wrong`, `reason` is a heading."""

    def __init__(self, fault: str, reason: str = "Validation failed") -> None:
        super().__init__(fault)
        self.fault = fault
        self.reason = reason


@dataclass(frozen=True, slots=True)
class WithdrawalPlan:
    """All that is to be signed but its intent, and the amounts; sats arrive at `destination`."""

    asked: WithdrawalToSign
    destination: str
    sent_sats: int
    fee_sats: int
    left_out: tuple[LeftOut, ...] = ()

    @property
    def coins(self) -> tuple[str, ...]:
        return (*self.asked.coins, *self.asked.fee_coins)


def script_at(address: str) -> bytes:
    """Returns the script of a user's own address, or of one that the signer derived for a user."""
    script = script_of(parse(address))
    assert script is not None
    return script
