"""Attacks with how transfer and sale are to be signed: sighash, keys, signatures and form."""

from __future__ import annotations

import struct

from tests.wallet.attacks import escrow_changes as ch
from tests.wallet.escrows import OURS
from tests.wallet.listings import PAYOUT_SCRIPT, TIP

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

for name, flag in {
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "SINGLE|ANYONECANPAY": 0x83,
    "256": 256,
}.items():
    attack(f"a transfer with {name}", "sighash-allowed", ch.item_field(ch.SIGHASH, struct.pack("<I", flag)))
for name, flag in {
    "DEFAULT": 0,
    "ALL": 1,
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "0x183": 0x183,
}.items():
    attack(f"a sale with {name}", "sighash-allowed", ch.sale_field(ch.SIGHASH, struct.pack("<I", flag)))
attack("a sale that names no sighash", "sighash-allowed", ch.no_sale_field(ch.SIGHASH))
attack("a transfer that is signed already", "input-signed", ch.item_field(b"\x13", b"\x01" * 64))
attack("a transfer that is final already", "input-signed", ch.item_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack("a transfer signed by a leaf", "input-signed", ch.item_field(b"\x14" + OURS + b"\x07" * 32, b"\x01" * 64))
attack(
    "a transfer by a leaf",
    "key-path",
    lambda case: case.transfer.spends[0].put(ch.LEAF + case.tree.block(0), case.tree.leaves[0] + b"\xc0"),
)
attack("a transfer with a merkle root", "key-path", ch.item_field(ch.ROOT, b"\x07" * 32))
attack("a transfer with a stranger's internal key", "key-path", ch.item_field(ch.INTERNAL, ch.STRANGER_X))
attack("a transfer with a redeem script", "key-path", ch.item_field(b"\x04", PAYOUT_SCRIPT))
attack("a transfer with a witness script", "key-path", ch.item_field(b"\x05", b"\x51"))
attack("a transfer of version 4", "tx-form", lambda case: ch.put(case.transfer, version=4))
attack("a transfer of a coming block", "tx-form", lambda case: ch.put(case.transfer, locktime=TIP + 1))
attack("a transfer that waits", "tx-form", ch.item(sequence=144))
attack("a transfer whose anchor waits", "tx-form", lambda case: ch.put(case.transfer.spends[1], sequence=0), ch.ORDNET)
