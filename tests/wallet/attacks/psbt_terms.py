"""Attacks with the sighash, the version, the locktime and the sequences of a listing's PSBT."""

from __future__ import annotations

import struct

from tests.wallet.attacks import psbt_changes as ch
from tests.wallet.listings import TIP

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

# --- sighash ---
attack("no sighash", "sighash-allowed", ch.no_own_field(b"\x03"))
for named in (
    0x00,
    0x01,
    0x02,
    0x03,
    0x80,
    0x82,
    0x84,
    0x40,
    0xC3,
    0xFF,
    0x183,
    0x181,
    0x01000083,
    0x83000000,
    2**32 - 1,
):
    attack(f"sighash {named:#x}", "sighash-allowed", ch.own_field(b"\x03", struct.pack("<I", named)))
attack(
    "sighash ALL|ANYONECANPAY on a plain listing",
    "sighash-allowed",
    ch.own_field(b"\x03", struct.pack("<I", 0x81)),
    forms=("listing", "paired at 2"),
)
attack(
    "sighash SINGLE|ANYONECANPAY on a secure listing",
    "sighash-allowed",
    ch.own_field(b"\x03", struct.pack("<I", 0x83)),
    forms=("secure", "secure with fee"),
)
attack("a sighash of one byte", "psbt-strict", ch.own_field(b"\x03", b"\x83"))
attack("a sighash of eight bytes", "psbt-strict", ch.own_field(b"\x03", struct.pack("<Q", 0x83)))
attack("a sighash under a longer key", "psbt-strict", ch.own_field(b"\x03\x00", struct.pack("<I", 0x83)))
attack("two sighashes", "psbt-strict", lambda case: case.own.fields.append((b"\x03", struct.pack("<I", 0x02))))
attack(
    "the sighash on another input only",
    "sighash-allowed",
    lambda case: (
        case.own.drop(b"\x03"),
        next(s for s in case.draft.spends if s is not case.own).fields.append((b"\x03", struct.pack("<I", 0x83))),
    ),
    forms=("paired at 2", "secure with fee"),
)

# --- the transaction's form ---
for version in (0, 3, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
    attack(f"transaction version {version:#x}", "tx-form", ch.of_draft(version=version))
attack("a locktime a block above the tip", "tx-form", ch.of_draft(locktime=TIP + 1))
attack("the highest locktime that is a height", "tx-form", ch.of_draft(locktime=499_999_999))
attack("the lowest locktime that is a time", "tx-form", ch.of_draft(locktime=500_000_000))
attack("the highest locktime", "tx-form", ch.of_draft(locktime=0xFFFFFFFF))
attack(
    "a tip that is a time, and a locktime below it",
    "tx-form",
    lambda case: (
        ch.of_facts(tip_height=600_000_000, index_height=600_000_000)(case),
        ch.put(case.draft, locktime=550_000_000),
    ),
)
for sequence in (0, 1, 0x0000FFFF, 0x00400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC):
    attack(f"sequence {sequence:#x}", "tx-form", ch.of_own(sequence=sequence))
attack(
    "a placeholder that waits",
    "tx-form",
    lambda case: ch.put(next(s for s in case.draft.spends if s is not case.own), sequence=6),
    forms=("paired at 2", "secure with fee"),
)
