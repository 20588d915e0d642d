"""The inputs and the result of a listing PSBT's checks."""

from __future__ import annotations

from msgspec import Struct

from wallet.psbt.decode import Psbt
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint, TxOutput

PPM = 1_000_000
# Postage up to this many sats may go to the buyer with the item: the most that `ord` itself puts on an output.
MOST_POSTAGE = 20_000


class Owner(Struct, frozen=True):
    """The seller. `public_key` (33 bytes) holds the listed output, as `kind`; for P2TR it is the internal one.

    `scripts` are all scripts of this user's keys, `destinations` those and any other where the user may be paid.
    """

    kind: OwnKind
    public_key: bytes
    scripts: frozenset[bytes]
    destinations: frozenset[bytes]


class ListingIntent(Struct, frozen=True):
    """The decision to list, written down before the venue was asked. Sats; `payout_address` in any mainnet form.

    `seller_fee_ppm` is the part of the price that the venue may keep, in millionths, as the operator declared it.
    """

    inscription_id: str
    outpoint: Outpoint
    price_sats: int | None
    min_price_sats: int | None
    payout_address: str
    seller_fee_ppm: int = 0

    def least_payout(self, price_sats: int, postage_sats: int) -> int:
        """Returns the minimum sats for the seller; a fee with a fraction of a sat is rounded down.

        `postage_sats` is the value of the listed output. It may go to the buyer with the item, unless it is more than
        items are usually sent with. Price 250,000, no fee: 250,000 for an item on 546 sats, 275,000 on 25,000.
        """
        fee = price_sats * self.seller_fee_ppm // PPM
        return price_sats - fee + (postage_sats if postage_sats > MOST_POSTAGE else 0)


class OutpointFacts(Struct, frozen=True):
    """Facts of the listed output, from a source independent of the venue; None is unknown.

    `inscriptions` and `runes` are complete. Heights are of the chain's tip and of the index. `is_spent_in_block` is
    true only where that is known: a spend in the mempool alone may be replaced by another. `item_offset` is how many of
    the output's sats lie before the one that its only inscription is on. `height` is the block that the output is in.
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
    item_offset: int | None = None
    height: int | None = None


class ApprovedListing(Struct, frozen=True):
    """A PSBT that passed every check, with everything needed to sign it. `payout` is the output that pays for it."""

    psbt: Psbt
    index: int
    sighash: int
    spent: tuple[TxOutput | None, ...]
    owner: Owner
    payout: TxOutput
