"""Which address backs bids at a venue, and how the sats sent there come back out."""

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
class Funding:
    """The place whose sats back bids at `venue`, how they do, and how they come out again."""

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
