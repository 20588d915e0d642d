"""The shapes that checks of PSBTs share, and the checks that are the same for every PSBT that is signed."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from wallet.protocol import PolicyRefused
from wallet.psbt import fields
from wallet.psbt.decode import Map, Psbt, decode, encode, key_type
from wallet.psbt.fields import LOCKTIME_IS_A_TIME
from wallet.psbt.script import OwnKind, redeem_script
from wallet.psbt.transaction import Outpoint, Transaction, TxOutput, WireError, compact, decode_network, decode_output

PPM = 1_000_000
# The maximum postage in sats that may go to the buyer with the item: the most that `ord` puts on an output.
MOST_POSTAGE = 20_000


class Owner(Struct, frozen=True):
    """The owner of the inputs to sign. `public_key` (33 bytes) is their key, of this kind; for P2TR the internal key.

    `scripts` are all scripts of this user's keys, `destinations` the scripts where the user may be paid.
    """

    kind: OwnKind
    public_key: bytes
    scripts: frozenset[bytes]
    destinations: frozenset[bytes]


class ListingIntent(Struct, frozen=True):
    """A listing as recorded before the venue is asked. Prices in sats; `payout_address` is any mainnet address.

    `seller_fee_ppm` is the share of the price that the venue may keep, in millionths, as the operator set it.
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
        MOST_POSTAGE. Example: price 250,000, no fee: 250,000 for an item on 546 sats, 275,000 on 25,000.
        """
        fee = price_sats * self.seller_fee_ppm // PPM
        return price_sats - fee + (postage_sats if postage_sats > MOST_POSTAGE else 0)


class OutpointFacts(Struct, frozen=True):
    """Facts of an output, from a source independent of the venue; None is unknown.

    `inscriptions` and `runes` are complete. Heights are of the chain's tip and of the index. `is_spent_in_block` is
    true only if a block has the spend, because one in the mempool may be replaced. `item_offset` is the position in the
    output, from 0, of the sat with its only inscription. `height` is of the block that has the output.
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


MAX_BYTES = 32 * 1024
MOST_BLOCKS_BEHIND = 1

# Versions that nodes relay. Any other could keep a transaction out of every block.
VERSIONS = frozenset({1, 2, 3})
# Replaceable; final except for a locktime; final. A lower sequence may delay the spend (BIP-68).
SEQUENCES = frozenset({0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF})

# Fields of an input that is signed already, and fields that allow a spend without our key path.
_SIGNATURES = frozenset(
    {
        fields.IN_PARTIAL_SIG,
        fields.IN_FINAL_SCRIPTSIG,
        fields.IN_FINAL_SCRIPTWITNESS,
        fields.IN_TAP_KEY_SIG,
        fields.IN_TAP_SCRIPT_SIG,
        *fields.MUSIG2,
    }
)
_SCRIPT_PATH = frozenset({fields.IN_WITNESS_SCRIPT, fields.IN_TAP_LEAF_SCRIPT, fields.IN_TAP_MERKLE_ROOT})


def psbt_strict(raw: bytes) -> Psbt:
    """Reads a PSBT of version 0 and at most MAX_BYTES. Raises PolicyRefused for other or non-canonical bytes."""
    if len(raw) > MAX_BYTES:
        raise PolicyRefused("psbt-size", f"{len(raw)} bytes are more than {MAX_BYTES}")
    try:
        psbt = decode(raw)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
    if psbt.version != 0:
        raise PolicyRefused("psbt-strict", "only version 0 is signed")
    if encode(psbt) != raw:
        raise RuntimeError("a PSBT that was read is not written back the same: the reader is broken")
    return psbt


def claimed(item: Map, outpoint: Outpoint) -> list[TxOutput]:
    """Returns the spent output as each of the PSBT's two UTXO fields describes it; empty without them."""
    said = []
    former = item.get(compact(fields.IN_NON_WITNESS_UTXO))
    if former is not None:
        txid, transaction = _former(former)
        if txid != outpoint.txid or outpoint.vout >= len(transaction.outputs):
            raise PolicyRefused("amount-proof", "the former transaction is not the one that made the output")
        said.append(transaction.outputs[outpoint.vout])
    bare = item.get(compact(fields.IN_WITNESS_UTXO))
    if bare is not None:
        said.append(decode_output(bare))
    return said


@lru_cache(maxsize=1)  # several rules read the same transaction
def _former(raw: bytes) -> tuple[bytes, Transaction]:
    """Reads a former transaction; returns its txid and the transaction."""
    transaction = decode_network(raw)
    return transaction.txid(), transaction


def named_sighash(own: Map) -> int | None:
    """Returns the sighash that the input asks for; None when it names none."""
    named = own.get(compact(fields.IN_SIGHASH_TYPE))
    return None if named is None else int.from_bytes(named, "little")


def tx_form(
    transaction: Transaction,
    tip: int,
    *,
    index: int | None = None,
    versions: frozenset[int] = VERSIONS,
    sequences: frozenset[int] = SEQUENCES,
) -> None:
    """Refuses a locktime in the future, a sequence that may delay, and versions that nodes do not relay.

    With `index`, only that input's sequence is checked, because the signature covers no other.
    """
    if transaction.version not in versions:
        raise PolicyRefused("tx-form", f"transaction version {transaction.version}")
    if transaction.locktime > min(tip, LOCKTIME_IS_A_TIME - 1):
        raise PolicyRefused("tx-form", f"locktime {transaction.locktime} is a time, or a height above {tip}")
    covered = transaction.inputs if index is None else transaction.inputs[index : index + 1]
    if any(item.sequence not in sequences for item in covered):
        raise PolicyRefused("tx-form", "a sequence may delay the transaction")


def input_unsigned(own: Map) -> None:
    """Refuses our input if it has a signature or is final, or if MuSig2 signing has begun."""
    if {key_type(key) for key in own} & _SIGNATURES:
        raise PolicyRefused("input-signed", "our input has a signature already")


def key_path(own: Map, owner: Owner) -> None:
    """Refuses a script path for our input, and an internal key or redeem script that is not ours."""
    if {key_type(key) for key in own} & _SCRIPT_PATH:
        raise PolicyRefused("key-path", "our input has a script to be spent by")
    internal = own.get(compact(fields.IN_TAP_INTERNAL_KEY))
    if internal is not None and (owner.kind != "p2tr" or internal != owner.public_key[1:]):
        raise PolicyRefused("key-path", "the internal key is not ours")
    redeem = own.get(compact(fields.IN_REDEEM_SCRIPT))
    if redeem is not None and (owner.kind != "p2sh-p2wpkh" or redeem != redeem_script(owner.public_key)):
        raise PolicyRefused("key-path", "the redeem script is not ours")
