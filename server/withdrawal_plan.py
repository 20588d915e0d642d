"""What a planned withdrawal is."""

from __future__ import annotations

from dataclasses import dataclass

from server.withdrawal_coins import LeftOut
from wallet.address import parse
from wallet.psbt_script import script_of
from wallet.withdrawal import WithdrawalToSign

NOTHING = "Nothing can be withdrawn"
UNCOVERED = "Open bids would not be covered"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be signed, all but its intent, and what that comes to; sats arrive at `destination`."""

    asked: WithdrawalToSign
    destination: str
    sent_sats: int
    fee_sats: int
    left_out: tuple[LeftOut, ...] = ()

    @property
    def coins(self) -> tuple[str, ...]:
        return (*self.asked.coins, *self.asked.fee_coins)


def script_at(address: str) -> bytes:
    """The script of a user's own address, or of one that the signer derived for a user."""
    script = script_of(parse(address))
    assert script is not None
    return script
