"""The unspent outputs of an address, from a mempool server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Utxo:
    """One unspent output: `outpoint` as txid:vout, `value` in sats.

    Its assets are not known here: only a coin without inscription and rune may be spent.
    """

    outpoint: str
    value: int
    is_confirmed: bool
