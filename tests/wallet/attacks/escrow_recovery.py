"""Attacks with the recovery, which brings the item back."""

from __future__ import annotations

import struct

from tests.wallet.attacks.escrow_changes import (
    INTERNAL,
    LEAF,
    ORDINALSWALLET,
    ORDNET,
    ROOT,
    SIGHASH,
    STRANGER_X,
    Attack,
    adding_to,
    put,
    recovered,
)
from tests.wallet.escrows import POSTAGE, VAULT_SCRIPT, honest, of_facts
from tests.wallet.listings import PAYOUT_SCRIPT, STRANGER_SCRIPT, TIP, Pay, Spend, output

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)

attack("no recovery", "recovery", lambda case: put(case, recovery=None), ORDNET)
attack(
    "a recovery that nobody needs",
    "recovery",
    lambda case: put(case, recovery=honest("ordnet").recovery),
    ORDINALSWALLET,
)
attack(
    "a recovery to a stranger", "recovery", recovered(lambda draft: put(draft.pays[0], script=STRANGER_SCRIPT)), ORDNET
)
attack(
    "a recovery to the payment address, where items are spent as coins",
    "recovery",
    recovered(lambda draft: put(draft.pays[0], script=PAYOUT_SCRIPT)),
    ORDNET,
)
attack(
    "a recovery into another escrow",
    "recovery",
    lambda case: recovered(lambda draft: put(draft.pays[0], script=case.tree.script))(case),
    ORDNET,
)
attack("a recovery to nobody", "recovery", recovered(lambda draft: draft.pays.clear()), ORDNET)
attack(
    "a recovery with an output more",
    "recovery",
    recovered(lambda draft: draft.pays.append(Pay(330, STRANGER_SCRIPT))),
    ORDNET,
)
attack(
    "a recovery with a fee of 1,001 sats",
    "recovery",
    recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1_001)),
    ORDNET,
)
attack(
    "a recovery of more than is held",
    "recovery",
    recovered(lambda draft: put(draft.pays[0], value=POSTAGE + 1)),
    ORDNET,
)
attack(
    "a recovery whose fee is the item",
    "item-flow",
    lambda case: (
        of_facts(case, item_offset=POSTAGE - 1),
        recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1))(case),
    ),
    ORDNET,
)
attack(
    "a recovery with a fee though it is not known where the item lies",
    "item-flow",
    lambda case: (
        of_facts(case, item_offset=None),
        recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1))(case),
    ),
    ORDNET,
)
attack("a recovery of another coin", "recovery", recovered(lambda draft: put(draft.spends[0], vout=1)), ORDNET)
attack(
    "a recovery with a coin of the vault more",
    "recovery",
    recovered(lambda draft: draft.spends.append(Spend(b"\1" * 32, 0, fields=[(b"\x01", output(600, VAULT_SCRIPT))]))),
    ORDNET,
)
attack("a recovery without its sats", "amount-proof", recovered(lambda draft: draft.spends[0].drop(b"\x01")), ORDNET)
attack(
    "a recovery with SINGLE|ANYONECANPAY",
    "sighash-allowed",
    recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 0x83))),
    ORDNET,
)
attack(
    "a recovery with ALL|ANYONECANPAY",
    "sighash-allowed",
    recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 0x81))),
    ORDNET,
)
attack(
    "a recovery with NONE",
    "sighash-allowed",
    recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 2))),
    ORDNET,
)
attack(
    "a recovery by the sale's leaf",
    "key-path",
    lambda case: recovered(lambda draft: draft.spends[0].put(LEAF + case.tree.block(0), case.tree.leaves[0] + b"\xc0"))(
        case
    ),
    ORDNET,
)
attack(
    "a recovery with another merkle root",
    "escrow",
    recovered(lambda draft: draft.spends[0].put(ROOT, b"\x07" * 32)),
    ORDNET,
)
attack(
    "a recovery with a stranger's internal key",
    "escrow",
    recovered(lambda draft: draft.spends[0].put(INTERNAL, STRANGER_X)),
    ORDNET,
)
attack(
    "a recovery that is signed already",
    "input-signed",
    recovered(lambda draft: draft.spends[0].put(b"\x13", b"\x01" * 64)),
    ORDNET,
)
attack("a recovery that waits", "tx-form", recovered(lambda draft: put(draft.spends[0], sequence=144)), ORDNET)
attack("a recovery of a coming block", "tx-form", recovered(lambda draft: put(draft, locktime=TIP + 1)), ORDNET)
