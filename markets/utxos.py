"""The unspent outputs of an address, from a mempool server."""

from __future__ import annotations

from msgspec import Struct


class Utxo(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One unspent output: `outpoint` as txid:vout, `value` in sats.

    Its assets are not known here: only a coin without inscription and rune may be spent.
    """

    outpoint: str
    value: int
    is_confirmed: bool
