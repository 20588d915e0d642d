"""The address that backs bids at a venue, and the way out for the sats sent there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from markets.capabilities import Capabilities

Place = Literal["bidding", "payment"]

_WORDS: dict[Place, tuple[str, str]] = {
    "bidding": (
        "bids are backed by the bidding wallet: a script of the marketplace's key and the user's",
        'withdraw from "bidding": the marketplace signs too; the sats arrive at the payment address',
    ),
    "payment": (
        "bids are paid with whole coins of the payment address: one coin for each bid, a little above its price",
        'withdraw from "payment": the user\'s key alone moves them',
    ),
}


@dataclass(frozen=True, slots=True)
class ToFund:
    """The address that lacks money, and the sats to send there; None where the amount is unknown."""

    address: str
    sats: int | None

    @property
    def words(self) -> str:
        """The advice in words, without a full stop."""
        return f"send {'sats' if self.sats is None else f'at least {self.sats:,} sats'} to {self.address}"


def to_fund(address: str | None, missing_sats: int | None) -> ToFund | None:
    """Returns the advice for an address that may be unknown; an amount of 0 or less is unknown, too."""
    if address is None:
        return None
    return ToFund(address, missing_sats if missing_sats is not None and missing_sats > 0 else None)


@dataclass(frozen=True, slots=True)
class Funding:
    """The place whose sats back bids at `venue`; `backs` and `way_out` are words for its user."""

    venue: str
    place: Place
    backs: str
    way_out: str


def funding_of(venue: Capabilities) -> Funding | None:
    """Returns the funding of bids at `venue`; None when it takes no bids."""
    if not venue.kinds:
        return None
    place: Place = "payment" if venue.bids_are_psbt else "bidding"
    return Funding(venue.name, place, *_WORDS[place])
