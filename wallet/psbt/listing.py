"""What a listing PSBT is checked against, and what passing the checks gives."""

from __future__ import annotations

from dataclasses import dataclass

from wallet.psbt.decode import Psbt
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint, TxOutput


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose listing it is. `public_key` (33 bytes) holds what is listed, as `kind`; for P2TR it is the internal one.

    `scripts` are all that this user's keys are paid at, `destinations` those and what else the user may be paid at.
    """

    kind: OwnKind
    public_key: bytes
    scripts: frozenset[bytes]
    destinations: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ListingIntent:
    """What was decided and written down before the venue was asked. Sats; `payout_address` in any mainnet form."""

    venue: str
    inscription_id: str
    outpoint: Outpoint
    price_sats: int | None
    min_price_sats: int | None
    payout_address: str


@dataclass(frozen=True, slots=True)
class OutpointFacts:
    """What a source that the venue has no hand in says of the listed output; None is unknown.

    `inscriptions` and `runes` are all that it holds. Heights are of the chain's tip and of the index.
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
class Approved:
    """A PSBT that passed every check, with all that signing it takes. Made by `check_listing` only."""

    psbt: Psbt
    index: int
    sighash: int
    spent: tuple[TxOutput | None, ...]
    owner: Owner
    payout_sats: int
