"""The forms of the venues' listing PSBTs, known before a venue sends one; nothing else is signed.

A venue without a template here cannot be listed at. A template is written from PSBTs that were captured from the venue,
never from its description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wallet.policy import PLAY_VENUE
from wallet.psbt.sighash import ANYONECANPAY, LISTING, SECURE_LISTING, SINGLE

PPM = 1_000_000

# The most sats that `ord` uses for postage; an output's holder may lose this much in a sale.
MOST_POSTAGE = 20_000

# Opted in to replacement, opted out, or neither but with a locktime. Lower numbers may delay the spend (BIP-68).
SEQUENCES = frozenset({0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF})


@dataclass(frozen=True, slots=True)
class Payout:
    """The output that pays the seller."""


@dataclass(frozen=True, slots=True)
class VenueFee:
    """An output that pays the venue at most `max_ppm` millionths of the price, to the venue's own `script`."""

    script: bytes
    max_ppm: int


Slot = Payout | VenueFee


@dataclass(frozen=True, slots=True)
class ListingTemplate:
    """One form of one venue's listing. `index` is our input's, `other_inputs` the number of the others.

    `outputs` is all of them in their order. The seller is paid the price less at most `seller_fee_ppm` millionths, and
    with `returns_postage` also the listed output's sats, which else go to the buyer.
    """

    venue: str
    sighash: int
    index: int = 0
    other_inputs: int = 0
    outputs: tuple[Slot, ...] = (Payout(),)
    seller_fee_ppm: int = 0
    returns_postage: bool = True
    versions: frozenset[int] = frozenset({1, 2})
    sequences: frozenset[int] = SEQUENCES

    def __post_init__(self) -> None:
        if self.sighash not in (LISTING, SECURE_LISTING):
            raise ValueError("a listing is signed SINGLE|ANYONECANPAY or ALL|ANYONECANPAY")
        if self.outputs.count(Payout()) != 1:
            raise ValueError("a listing pays its seller in one output")
        if self.sighash & ~ANYONECANPAY == SINGLE and self.outputs.index(Payout()) != self.index:
            raise ValueError("what SINGLE covers must be the payout")
        if not 0 <= self.index <= self.other_inputs:
            raise ValueError("our input must be one of the inputs")
        if not 0 <= self.seller_fee_ppm < PPM:
            raise ValueError("a fee must be a share of the price")

    def least_payout(self, price_sats: int, postage_sats: int) -> int:
        """Returns the fewest sats that the seller must get; a fee that is no whole number of sats is rounded down."""
        fee = price_sats * self.seller_fee_ppm // PPM
        return price_sats - fee + (postage_sats if self.returns_postage else 0)


Form = Literal["listing", "secure"]


def _price_alone(venue: str) -> ListingTemplate:
    """Makes a template with one input and one output, which pays the price alone."""
    return ListingTemplate(
        venue, LISTING, returns_postage=False, versions=frozenset({2}), sequences=frozenset({0xFFFFFFFD})
    )


TEMPLATES: dict[tuple[str, Form], ListingTemplate] = {
    (PLAY_VENUE, "listing"): ListingTemplate(PLAY_VENUE, LISTING),
    (PLAY_VENUE, "secure"): ListingTemplate(PLAY_VENUE, SECURE_LISTING),
    ("simulator-ordinalswallet", "listing"): _price_alone("simulator-ordinalswallet"),
    ("simulator-unisat", "listing"): _price_alone("simulator-unisat"),
}


@dataclass(frozen=True, slots=True)
class DelistTemplate:
    """The form of a PSBT that takes a listing back by a signature on a transaction that is never sent.

    One input, the listed output, and one output, which returns all its sats to the same script.
    """

    venue: str
    versions: frozenset[int] = frozenset({2})
    sequences: frozenset[int] = frozenset({0xFFFFFFFD})


DELIST_TEMPLATES: dict[str, DelistTemplate] = {"simulator-unisat": DelistTemplate("simulator-unisat")}
