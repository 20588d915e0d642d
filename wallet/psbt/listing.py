"""What a listing PSBT is checked against, and what passing the checks gives."""

from __future__ import annotations

from dataclasses import dataclass

from wallet.psbt.decode import Psbt
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint, TxOutput

PPM = 1_000_000
# Sats that an output may hold whose holder does not get them back from a sale: what `ord` takes for postage at most.
MOST_POSTAGE = 20_000


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
    """What was decided and written down before the venue was asked. Sats; `payout_address` in any mainnet form.

    `seller_fee_ppm` is what the venue may keep of the price, in millionths of it, by the operator's own word.
    """

    inscription_id: str
    outpoint: Outpoint
    price_sats: int | None
    min_price_sats: int | None
    payout_address: str
    seller_fee_ppm: int = 0

    def least_payout(self, price_sats: int, postage_sats: int) -> int:
        """Sats that the seller must get at least; a fee that is no whole number of sats is rounded down.

        `postage_sats` is what the listed output holds. It may go to the buyer, as the item does, unless it is more
        than an item is usually sent with: 250,000 for an item on 546 sats, 275,000 for one on 25,000.
        """
        fee = price_sats * self.seller_fee_ppm // PPM
        return price_sats - fee + (postage_sats if postage_sats > MOST_POSTAGE else 0)


@dataclass(frozen=True, slots=True)
class OutpointFacts:
    """What a source that the venue has no hand in says of the listed output; None is unknown.

    `inscriptions` and `runes` are all that it holds. Heights are of the chain's tip and of the index.
    `is_spent_in_block` is true only where that is known; another spend may be in the mempool alone, and be replaced.
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
    is_spent_in_block: bool = False


@dataclass(frozen=True, slots=True)
class Approved:
    """A PSBT that passed every check, with all that signing it takes. `payout` is the output that pays for it."""

    psbt: Psbt
    index: int
    sighash: int
    spent: tuple[TxOutput | None, ...]
    owner: Owner
    payout: TxOutput
