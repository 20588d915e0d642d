"""The inputs and the result of an offer's funding PSBT's checks."""

from __future__ import annotations

from dataclasses import dataclass

from wallet.psbt.decode import Psbt
from wallet.psbt.listing import Owner
from wallet.psbt.transaction import Outpoint, TxOutput


@dataclass(frozen=True, slots=True)
class OfferIntent:
    """The decision to bid, written down before the venue was asked: the price in sats, the coins that may pay it.

    `vault_key` (33 bytes) is the untweaked key of the user's vault.
    """

    venue: str
    price_sats: int | None
    coins: frozenset[Outpoint]
    vault_key: bytes


@dataclass(frozen=True, slots=True)
class ApprovedOffer:
    """A PSBT that passed every check, with everything needed to sign it. Made by `check_offer` only.

    `spent` are the outputs its inputs spend, all of them `owner`'s. Escrow, change and network fee are in sats.
    """

    psbt: Psbt
    spent: tuple[TxOutput, ...]
    owner: Owner
    escrow: TxOutput
    change_sats: int
    fee_sats: int
