"""The inputs and the result of an offer's funding PSBT's checks."""

from __future__ import annotations

from msgspec import Struct

from wallet.psbt.decode import Psbt
from wallet.psbt.listing import Owner
from wallet.psbt.transaction import Outpoint, TxOutput
from wallet.terms import CoSigners


class OfferIntent(Struct, frozen=True):
    """The decision to bid, written down before the venue was asked: the price in sats, the coins that may pay it.

    The goods go to `receive_script`. `internal_keys` (x-only) are the user's, any of which may own the escrow.
    """

    price_sats: int | None
    expires_ms: int
    coins: frozenset[Outpoint]
    receive_script: bytes
    internal_keys: frozenset[bytes]
    co_signers: CoSigners


class ApprovedOffer(Struct, frozen=True):
    """A PSBT that passed every check, with everything needed to sign it. Made by `check_offer` only.

    `spent` are the outputs its inputs spend, all of them `owner`'s. Escrow and change are in sats.
    """

    psbt: Psbt
    spent: tuple[TxOutput, ...]
    owner: Owner
    escrow: TxOutput
    change_sats: int
