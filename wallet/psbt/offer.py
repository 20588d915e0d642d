"""What the funding PSBT of an offer is checked against, and what passing the checks gives."""

from __future__ import annotations

from dataclasses import dataclass

from wallet.psbt.decode import Psbt
from wallet.psbt.listing import Owner
from wallet.psbt.transaction import Outpoint, TxOutput


@dataclass(frozen=True, slots=True)
class OfferIntent:
    """What was decided and written down before the venue was asked: the price in sats, the coins that may pay it.

    `vault_key` (33 bytes) is the untweaked key of the user's vault.
    """

    venue: str
    price_sats: int | None
    coins: frozenset[Outpoint]
    vault_key: bytes


@dataclass(frozen=True, slots=True)
class ApprovedOffer:
    """A PSBT that passed every check, with all that signing it takes. Made by `check_offer` only.

    `spent` is what each input spends, all of them `owner`'s; sats of the escrow, the change and the network.
    """

    psbt: Psbt
    spent: tuple[TxOutput, ...]
    owner: Owner
    escrow: TxOutput
    change_sats: int
    fee_sats: int
