"""Attacks with the PSBTs of a listing in escrow: small changes to honest ones, by the venue or another in its place.

`HARMLESS` are changes that lose nothing, which are signed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.wallet.attacks import escrow_changes as ch
from tests.wallet.attacks import escrow_recovery, escrow_sale, escrow_scripts, escrow_signing, escrow_transfer
from tests.wallet.escrows import FORMS, POSTAGE, of_facts
from tests.wallet.listings import PRICE, STRANGER_SCRIPT, Pay, output
from wallet.terms import EscrowForm

_SUBJECTS = (escrow_transfer, escrow_scripts, escrow_signing, escrow_sale, escrow_recovery)
ATTACKS: list[ch.Attack] = [attack for subject in _SUBJECTS for attack in subject.ATTACKS]
HARMLESS: list[ch.Attack] = []


def harmless(name: str, change: ch.Change, forms: Sequence[EscrowForm] = FORMS) -> None:
    HARMLESS.append(ch.Attack(name, "", change, forms))


harmless("honest", lambda case: None)
harmless("a transfer that names no sighash", lambda case: case.transfer.spends[0].drop(ch.SIGHASH))
harmless("a transfer with ALL", ch.item_field(ch.SIGHASH, struct.pack("<I", 1)))
harmless("a transfer that tells no internal key", lambda case: case.transfer.spends[0].drop(ch.INTERNAL))
harmless("a transfer of version 3", lambda case: ch.put(case.transfer, version=3))
harmless(
    "a fee of 12 sats, and the item on the last sat before",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 13)),
    ch.ORDINALSWALLET,
)
harmless("the smallest escrow", ch.small(330, 330))
harmless("an anchor more", ch.insert_input(1, [(b"\x01", output(600, STRANGER_SCRIPT))]), ch.ORDNET)
harmless("an output more behind the escrow", lambda case: case.transfer.pays.append(Pay(0, b"\x6a")), ch.ORDNET)
harmless(
    "a sale that tells neither key nor root",
    lambda case: (case.sale.spends[0].drop(ch.INTERNAL), case.sale.spends[0].drop(ch.ROOT)),
)
harmless(
    "a sale with a second output, which is not covered", lambda case: case.sale.pays.append(Pay(5_000, STRANGER_SCRIPT))
)
harmless("a sale that pays more", ch.payout(value=PRICE + 1))
harmless(
    "a sale less the declared fee",
    lambda case: (ch.intent(seller_fee_ppm=10_000)(case), ch.put(case.sale.pays[0], value=PRICE - PRICE // 100)),
)
harmless("a recovery that names no sighash", ch.recovered(lambda draft: draft.spends[0].drop(ch.SIGHASH)), ch.ORDNET)
harmless(
    "a recovery with a fee of 1,000 sats",
    ch.recovered(lambda draft: ch.put(draft.pays[0], value=POSTAGE - 1_000)),
    ch.ORDNET,
)
