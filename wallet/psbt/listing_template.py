"""What a venue's listing PSBT looks like: known before the venue sends one, and the only thing that is signed.

A venue without a template here cannot be listed at. A template is written from PSBTs that were captured from the
venue, never from its description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wallet.policy import PLAY_VENUE
from wallet.psbt.sighash import ANYONECANPAY, LISTING, SECURE_LISTING, SINGLE

PPM = 1_000_000

# Sats that an output may hold whose holder does not get them back from a sale: what `ord` takes for postage at most.
MOST_POSTAGE = 20_000

# Opt in to replacement, opt out of it, or neither but with a locktime. Anything lower may delay the spend (BIP-68).
SEQUENCES = frozenset({0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF})


@dataclass(frozen=True, slots=True)
class Payout:
    """The output that pays the seller."""


@dataclass(frozen=True, slots=True)
class VenueFee:
    """An output that pays the venue at most `max_ppm` millionths of the price. `script` is the venue's own."""

    script: bytes
    max_ppm: int


Slot = Payout | VenueFee


@dataclass(frozen=True, slots=True)
class ListingTemplate:
    """One form of one venue's listing. `index` is our input's, `other_inputs` how many more there must be.

    `outputs` is all of them in their order. The seller is paid the price less at most `seller_fee_ppm` millionths,
    and with `returns_postage` also what the listed output holds; without, that goes to the buyer.
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
        """Sats that the seller must get at least; a fee that is no whole number of sats is rounded down."""
        fee = price_sats * self.seller_fee_ppm // PPM
        return price_sats - fee + (postage_sats if self.returns_postage else 0)


Form = Literal["listing", "secure"]


def _price_alone(venue: str) -> ListingTemplate:
    """One input, and one output that pays the price alone."""
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
    """What is signed where a listing is taken back by a signature on a transaction that nobody sends.

    One input, the listed output, and one output, which gives all that it holds back to where it is.
    """

    venue: str
    versions: frozenset[int] = frozenset({2})
    sequences: frozenset[int] = frozenset({0xFFFFFFFD})


DELIST_TEMPLATES: dict[str, DelistTemplate] = {"simulator-unisat": DelistTemplate("simulator-unisat")}
