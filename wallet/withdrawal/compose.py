"""Transactions that take a user's coins to the user's sign-in address, written from facts alone.

Sats that leave the payment address or the vault go to that one address; the change returns to where the coins lay. An
inscription's coin is the first input and its value the first output, so that the inscription's sat keeps its place:
ordinals go first in, first out. Its fee is paid by coins of the payment address, which get their change back; they also
fill the output up where the destination needs more than lay in the vault (P2SH: 540, P2TR: 330).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from wallet.protocol import VIRTUAL_KB, PolicyRefused
from wallet.psbt.script import RECOVERY_BLOCKS, Escrow
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput
from wallet.withdrawal.rules import dust, dust_limit, fee_abs, fee_share

# "recovery": an escrow that only its recovery leaf opens; other escrows are "p2tr", opened by key path.
CoinKind = Literal["p2wpkh", "p2tr", "recovery"]

_VERSION = 2
_REPLACEABLE = 0xFFFFFFFD
# Weight units: version, two counts and locktime; the two bytes that mark a witness; outpoint, empty script, sequence.
_FRAME, _MARK, _INPUT = 4 * 10, 2, 4 * 41
# A count and lengths; the longest signature that is made and the key, or the one signature of a taproot key path, or
# that of a leaf with the leaf and its control block.
WITNESS: dict[CoinKind, int] = {
    "p2wpkh": 1 + 1 + 72 + 1 + 33,
    "p2tr": 1 + 1 + 64,
    "recovery": 1 + 1 + 64 + 1 + 39 + 1 + 65,
}
# Virtual bytes of one more input, rounded up.
INPUT_VSIZE: dict[CoinKind, int] = {kind: -(-(_INPUT + witness) // 4) for kind, witness in WITNESS.items()}


class Coin(Struct, frozen=True):
    """An output of the user's to be spent. `escrow` is set for one that a listed item passes through."""

    outpoint: Outpoint
    spent: TxOutput
    kind: CoinKind
    escrow: Escrow | None = None


class Composed(Struct, frozen=True):
    """An unsigned transaction, the coins of its inputs in their order, and its sats by destination."""

    transaction: Transaction
    coins: tuple[Coin, ...]
    sent_sats: int
    fee_sats: int


def vsize(kinds: Sequence[CoinKind], scripts: Sequence[bytes]) -> int:
    """Counts a transaction's virtual bytes, rounded up, for inputs of these kinds and outputs to these scripts."""
    weight = _FRAME + _MARK + sum(_INPUT + WITNESS[kind] for kind in kinds)
    return -(-(weight + 4 * sum(8 + 1 + len(script) for script in scripts)) // 4)


def send_sats(coins: Sequence[Coin], amount_sats: int | None, destination: bytes, fee_per_kvb: int) -> Composed:
    """Composes a transaction that spends all `coins` and sends `amount_sats` (None: all) to `destination`.

    The change goes back to the coins' script.

    Two coins of 60,000, 50,000 sent at 10 sat/vB: 70,000 come back, less the fee. Change that the network would not
    carry goes to the fee. Raises PolicyRefused.
    """
    whole = sum(coin.spent.value for coin in coins)
    kinds, back = [coin.kind for coin in coins], coins[0].spent.script
    least_fee = _fee(vsize(kinds, [destination]), fee_per_kvb)
    if amount_sats is None:
        return _composed(coins, [TxOutput(_positive(whole - least_fee), destination)])
    change = whole - amount_sats - _fee(vsize(kinds, [destination, back]), fee_per_kvb)
    if change >= dust_limit(back):
        return _composed(coins, [TxOutput(amount_sats, destination), TxOutput(change, back)])
    _positive(whole - amount_sats - least_fee + 1)
    return _composed(coins, [TxOutput(amount_sats, destination)])


def send_inscription(item: Coin, fee_coins: Sequence[Coin], destination: bytes, fee_per_kvb: int) -> Composed:
    """Composes a transaction that sends an inscription's coin to `destination`; `fee_coins` pay the fee.

    Raises PolicyRefused.
    """
    coins = [item, *fee_coins]
    moved = TxOutput(max(item.spent.value, dust_limit(destination)), destination)
    funds = sum(coin.spent.value for coin in coins) - moved.value
    kinds, back = [coin.kind for coin in coins], fee_coins[0].spent.script
    change = funds - _fee(vsize(kinds, [destination, back]), fee_per_kvb)
    if change >= dust_limit(back):
        return _composed(coins, [moved, TxOutput(change, back)], is_item=True)
    _positive(funds - _fee(vsize(kinds, [destination]), fee_per_kvb) + 1)
    return _composed(coins, [moved], is_item=True)


def _fee(size: int, fee_per_kvb: int) -> int:
    return -(-size * fee_per_kvb // VIRTUAL_KB)


def _positive(sats: int) -> int:
    if sats <= 0:
        raise PolicyRefused(
            "funds", f"the coins do not pay for this and its fee: at least {1 - sats:,} sats are missing"
        )
    return sats


def _sequence(coin: Coin) -> int:
    """Returns an input's sequence; a recovery leaf needs its number of blocks (BIP-68) and is replaceable."""
    return RECOVERY_BLOCKS if coin.kind == "recovery" else _REPLACEABLE


def _composed(coins: Sequence[Coin], outputs: Sequence[TxOutput], *, is_item: bool = False) -> Composed:
    inputs = tuple(TxInput(coin.outpoint, b"", _sequence(coin)) for coin in coins)
    sent = outputs[0].value
    fee = sum(coin.spent.value for coin in coins) - sum(output.value for output in outputs)
    for output in outputs:
        dust(output)
    fee_abs(fee)
    if not is_item:
        fee_share(fee, sent)
    return Composed(Transaction(_VERSION, inputs, tuple(outputs), 0), tuple(coins), sent, fee)
