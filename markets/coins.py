"""The unspent outputs of an address, as a mempool server tells them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Utxo:
    """One unspent output: `outpoint` as txid:vout, `value` in sats.

    Nobody here has looked at what lies on it: a coin that may be spent is one that holds no inscription and no rune.
    """

    outpoint: str
    value: int
    is_confirmed: bool
