"""The inputs and the result of a listing PSBT's checks."""

from __future__ import annotations

from dataclasses import dataclass

from wallet.psbt.decode import Psbt
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint, TxOutput


@dataclass(frozen=True, slots=True)
class Owner:
    """The seller. `public_key` (33 bytes) holds the listed output, as `kind`; for P2TR it is the internal one.

    `scripts` are all scripts of this user's keys, `destinations` those and any other where the user may be paid.
    """

    kind: OwnKind
    public_key: bytes
    scripts: frozenset[bytes]
    destinations: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListingIntent:
    """The decision to list, written down before the venue was asked. Sats; `payout_address` in any mainnet form."""

    venue: str
    inscription_id: str
    outpoint: Outpoint
    price_sats: int | None
    min_price_sats: int | None
    payout_address: str


@dataclass(frozen=True, slots=True)
class OutpointFacts:
    """Facts of the listed output, from a source independent of the venue; None is unknown.

    `inscriptions` and `runes` are complete. Heights are of the chain's tip and of the index.
    """

    outpoint: Outpoint
    value_sats: int | None
    script: bytes | None
    is_unspent: bool | None
    is_confirmed: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    tip_height: int | None
    index_height: int | None


@dataclass(frozen=True, slots=True)
class ApprovedListing:
    """A PSBT that passed every check, with everything needed to sign it. Made by `check_listing` only."""

    psbt: Psbt
    index: int
    sighash: int
    spent: tuple[TxOutput | None, ...]
    owner: Owner
    payout_sats: int
