"""Attacks with the escrow: scripts that agree with each other but not with our key."""

from __future__ import annotations

from tests.shapes import replace
from tests.wallet.attacks.escrow_changes import ORDINALSWALLET, ORDNET, PAYMENT_X, STRANGER_X, Attack, adding_to, whole
from tests.wallet.escrows import NUMS, OURS, THEIRS, after_blocks, tree_of, two_of_two

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)

attack("an escrow of a stranger and the venue", "escrow", whole(lambda case: tree_of(case.form, STRANGER_X)))
attack("an escrow of the venue alone, twice", "escrow", whole(lambda case: tree_of(case.form, THEIRS)))
attack("an escrow of our payment key", "escrow", whole(lambda case: tree_of(case.form, PAYMENT_X)))
attack("an escrow with another co-signer", "escrow", whole(lambda case: tree_of(case.form, theirs=STRANGER_X)))
attack(
    "an escrow with the keys in the other order",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(two_of_two(THEIRS, OURS), *case.tree.leaves[1:]))),
)
attack(
    "an escrow whose sale needs one signature",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0][:-2] + b"\x51\x9c", *case.tree.leaves[1:]))),
)
attack(
    "an escrow whose sale needs the venue alone",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(b"\x20" + THEIRS + b"\xac", *case.tree.leaves[1:]))),
)
attack(
    "an escrow with NUMEQUALVERIFY",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0][:-1] + b"\x9d", *case.tree.leaves[1:]))),
)
attack("an escrow with the venue's key path", "escrow", whole(lambda case: replace(case.tree, internal=THEIRS)))
attack("an escrow with a stranger's key path", "escrow", whole(lambda case: replace(case.tree, internal=STRANGER_X)))
attack(
    "an escrow with our key path and the venue's tree",
    "escrow",
    whole(lambda case: replace(case.tree, internal=OURS)),
    ORDINALSWALLET,
)
attack("an escrow without our key path", "escrow", whole(lambda case: replace(case.tree, internal=NUMS)), ORDNET)
attack(
    "an escrow with a second leaf",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(*case.tree.leaves, b"\x20" + THEIRS + b"\xac"))),
    ORDNET,
)
attack(
    "an escrow without a way back",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=case.tree.leaves[:1])),
    ORDINALSWALLET,
)
attack(
    "an escrow whose way back is the venue's",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0], after_blocks(b"\x90\x00", THEIRS)))),
    ORDINALSWALLET,
)
attack(
    "an escrow whose way back is a day longer",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0], after_blocks(b"\x20\x01", OURS)))),
    ORDINALSWALLET,
)
attack(
    "an escrow whose way back is never",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0], after_blocks(b"\xff\xff\x00", OURS)))),
    ORDINALSWALLET,
)
attack(
    "an escrow whose way back counts seconds",
    "escrow",
    whole(lambda case: replace(case.tree, leaves=(case.tree.leaves[0], after_blocks(b"\x90\x00\x40", OURS)))),
    ORDINALSWALLET,
)
attack(
    "an escrow whose way back waits for a height",
    "escrow",
    whole(
        lambda case: replace(case.tree, leaves=(case.tree.leaves[0], case.tree.leaves[1].replace(b"\xb2", b"\xb1", 1)))
    ),
    ORDINALSWALLET,
)
