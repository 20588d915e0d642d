"""The forms of the venues' funding PSBTs, known before a venue sends one; nothing else is signed.

A funding transaction is not broadcast when it is signed. It moves coins of the payment address to a script that the
venue composes anew for each offer, from which the venue pays the seller. A venue without a template here gets no such
signature. A template is written from PSBTs that were captured from the venue, never from its description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wallet.psbt.common import SEQUENCES
from wallet.psbt.listing import PPM

EscrowKind = Literal["p2tr", "p2wsh"]


@dataclass(frozen=True, slots=True)
class OfferTemplate:
    """A venue's form: at most `max_inputs` coins pay one escrow, and their rest comes back as the last output.

    The escrow holds the price, and for the venue at most `buyer_fee_ppm` millionths of it more. `is_announced`: it is
    a taproot output whose internal key is our vault's, and an OP_RETURN behind it tells that key and the merkle root,
    so that the vault's key alone can take the money back whatever becomes of the venue. The network gets at most
    `max_fee_rate` sat/vB, `max_fee_sats` in all and `max_fee_ppm` millionths of the price.
    """

    venue: str
    escrow_kinds: frozenset[EscrowKind]
    max_inputs: int
    is_announced: bool = False
    buyer_fee_ppm: int = 0
    max_fee_rate: int = 0
    max_fee_sats: int = 0
    max_fee_ppm: int = 0
    versions: frozenset[int] = frozenset({1, 2})
    sequences: frozenset[int] = SEQUENCES

    def __post_init__(self) -> None:
        if not self.escrow_kinds or self.max_inputs < 1:
            raise ValueError("an offer has a coin to pay and a script to pay to")
        if self.is_announced and self.escrow_kinds != {"p2tr"}:
            raise ValueError("what is announced is a taproot output")
        if not (0 <= self.buyer_fee_ppm < PPM and 0 <= self.max_fee_ppm < PPM):
            raise ValueError("a fee must be a share of the price")

    def most_escrowed(self, price_sats: int) -> int:
        """Returns the most sats that an offer of this price commits to; a fraction of a sat of the fee is dropped."""
        return price_sats + price_sats * self.buyer_fee_ppm // PPM


# The practice market's own: version 3 and no network fee, since such a transaction is only ever broadcast together with
# one that pays for both.
OFFER_TEMPLATES: dict[str, OfferTemplate] = {
    "simulator-ordnet": OfferTemplate(
        "simulator-ordnet", frozenset({"p2tr"}), max_inputs=20, is_announced=True, versions=frozenset({3})
    ),
}
