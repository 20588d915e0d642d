"""The venues that move a listing's item into an escrow before its sale: the form of it, and the venue's pinned key.

A wrong key loses nothing, since our own key takes the item back alone; it would only keep the item from being sold. It
is pinned so that a change is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from core.settings import PLAY_MARKET, Settings, dialect_of

EscrowForm = Literal["ordnet", "ordinalswallet"]
# Blocks between an item's arrival in an escrow and the first that our key alone may take it out in, by form.
LOCK_BLOCKS: Mapping[EscrowForm, int] = MappingProxyType({"ordnet": 0, "ordinalswallet": 144})


@dataclass(frozen=True, slots=True)
class EscrowTerms:
    """A venue's form of escrow. `cosigner` is the venue's x-only key; `least_sats` the fewest that it takes there."""

    form: EscrowForm
    cosigner: bytes
    least_sats: int

    @property
    def lock_blocks(self) -> int:
        """Blocks for which an item that came into the escrow stays there; 0 = our key takes it out at once."""
        return LOCK_BLOCKS[self.form]


# The venues' keys as they publish them (ord.net's documents, Ordinals Wallet's client), and those of the practice
# market in their dialects, which nobody else has.
ESCROW_TERMS: Mapping[str, EscrowTerms] = MappingProxyType(
    {
        "ordnet": EscrowTerms(
            "ordnet", bytes.fromhex("d2dc3222298e2a5f4e1c7d702fae2bcf7821cc0a095a478b95c62195b0df7398"), 330
        ),
        "ordinalswallet": EscrowTerms(
            "ordinalswallet", bytes.fromhex("1d08b7c71f6f1e97a0a4cf005db7a977c85e34652a0c9365842aee25997c7dee"), 330
        ),
        f"{PLAY_MARKET}-ordnet": EscrowTerms(
            "ordnet", bytes.fromhex("28e4d123544dcb211954cfac57d0d4d89c26e59d3e69d38a132dc52e26ed1258"), 330
        ),
        f"{PLAY_MARKET}-ordinalswallet": EscrowTerms(
            "ordinalswallet", bytes.fromhex("9ccefba06ac2281b7c0b05d5412b1bb48a6cddccd6892c886cb1c9353000ecb5"), 330
        ),
    }
)


def escrow_terms_of(settings: Settings) -> Mapping[str, EscrowTerms]:
    """Returns the terms of the venues where listings in escrow are signed, with the key that the operator names."""
    found = {
        venue: terms
        for venue, terms in ESCROW_TERMS.items()
        if dialect_of(venue) != "ordinalswallet" or settings.ordinalswallet_protected_listings
    }
    if settings.ordnet_listing_key is not None:
        found["ordnet"] = replace(found["ordnet"], cosigner=bytes.fromhex(settings.ordnet_listing_key))
    return found


def all_terms(signed: Mapping[str, EscrowTerms]) -> Sequence[tuple[str, EscrowTerms]]:
    """Returns the terms that an item of ours may lie under, each with its venue: those of `signed`, and the published
    ones.

    Where nothing is signed now something may have been: settings change, and escrows stay.
    """
    published = [(venue, terms) for venue, terms in ESCROW_TERMS.items() if signed.get(venue) != terms]
    return [*signed.items(), *published]
