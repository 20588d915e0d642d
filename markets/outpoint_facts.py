"""Facts of the chain and its indexes, from sources independent of the marketplaces.

They cross a socket as JSON objects with the names of these fields, so a reader needs none of our code. In OutpointFacts
None means not known, or doubtful because two sources differ; it never means no.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Whereabouts(Struct, frozen=True, forbid_unknown_fields=True):
    """The place of an inscription by the newest block of the index; `value` in sats of the whole output.

    `outpoint` (txid:vout) is None for one that is on no output (unbound or lost), `address` None for a script without
    an address.
    """

    inscription_id: str
    outpoint: str | None
    address: str | None
    value: int | None
    taken_ms: int


class Confirmation(NamedTuple):
    """The state of a transaction: in a block or not, and in which; None = in none, or not known.

    `block` is the block's hash, `time_s` the time in it (Unix seconds, by its miner).
    """

    is_in_block: bool
    height: int | None = None
    block: str | None = None
    time_s: int | None = None


class TransactionFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """One transaction, whose bytes (hex) without witnesses hash to its id, and the block that it is in.

    `witnesses` has each input's items in hex; one that is very long is left out (empty). `is_confirmed`, the block's
    `height`, `block` (its hash), `time_s` and the chain's `tip_height` are None where they are not known.
    """

    transaction: str
    witnesses: tuple[tuple[str, ...], ...]
    is_confirmed: bool | None
    height: int | None
    block: str | None
    time_s: int | None
    tip_height: int | None


class Spending(NamedTuple):
    """The fate of an output: spent or not, by which transaction, and whether that one is in a block."""

    is_spent: bool
    txid: str | None
    is_in_block: bool = False


class Indexed(Struct, frozen=True):
    """An index's facts of an output; None is a fact it does not give. `height` is the index's last block."""

    value: int | None
    script: str | None
    is_confirmed: bool | None
    is_spent: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    height: int | None
    item_offset: int | None = None


class OutpointFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of one output. `value` in sats, `script` (hex); `spent_by` is the txid of the transaction that spends
    it.

    `inscriptions` are ids, `runes` spaced names, both complete. `tip_height` is the chain's, `index_height` the last
    block that `inscriptions` and `runes` take into account; a spend is seen in the mempool already, where another may
    replace it until it `is_spent_in_block`. `item_offset` is how many of its sats lie before its only inscription's.
    `height` is the block that the output is in.
    """

    outpoint: str
    value: int | None
    script: str | None
    is_unspent: bool | None
    is_confirmed: bool | None
    inscriptions: tuple[str, ...] | None
    runes: tuple[str, ...] | None
    tip_height: int | None
    index_height: int | None
    spent_by: str | None
    is_spent_in_block: bool = False
    item_offset: int | None = None
    height: int | None = None


class Utxo(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One unspent output: `outpoint` as txid:vout, `value` in sats.

    Its assets are not known here: only a coin without inscription and rune may be spent.
    """

    outpoint: str
    value: int
    is_confirmed: bool
