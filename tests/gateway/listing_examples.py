"""A vault's listing as the tests submit it, and a transaction whose output holds what is listed."""

from __future__ import annotations

from markets.orders import ListingOrder, ListingToDraft
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput, compact, sized

INSCRIPTION = "ab" * 32 + "i0"
PSBT = "cHNidP8BAAoCAAAAAAAAAAAAAA=="
VAULT = "bc1pvault"
ASK = ListingToDraft(900_000, INSCRIPTION, VAULT, "bc1qpayout", "cd" * 32, "goosinals")
ORDER = ListingOrder(ASK, PSBT, PSBT, (PSBT,), "bc1qpayout", "02" + "ef" * 32)

SCRIPT = b"\x51\x20" + b"\x11" * 32
MADE = Transaction(
    2,
    (TxInput(Outpoint(b"\x01" * 32, 0), b"", 0xFFFFFFFD),),
    (TxOutput(10_000, b"\x6a\x00"), TxOutput(546, SCRIPT)),
    0,
)
TXID = MADE.txid()[::-1].hex()
OUTPOINT = f"{TXID}:1"


def as_relayed(transaction: Transaction) -> bytes:
    """`transaction` with a witness for each input, as a node sends it."""
    bare = transaction.encode()
    stacks = b"".join(compact(1) + sized(b"\x22" * 64) for _ in transaction.inputs)
    return bare[:4] + b"\x00\x01" + bare[4:-4] + stacks + bare[-4:]
