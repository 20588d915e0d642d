"""Attacks with the PSBTs of a listing in escrow: small changes to honest ones, by the venue or another in its place.

An attack names itself, the tag it must be refused with, and the forms of escrow that it is tried on. `HARMLESS` are
changes that lose nothing, which are signed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.wallet.escrows import (
    FORMS,
    NUMS,
    OURS,
    POSTAGE,
    THEIRS,
    VAULT_SCRIPT,
    Case,
    Tree,
    after_blocks,
    honest,
    of_facts,
    tap_leaf,
    tree_of,
    two_of_two,
)
from tests.wallet.listings import (
    PAYMENT,
    PAYOUT_SCRIPT,
    PRICE,
    STRANGER,
    STRANGER_SCRIPT,
    TIP,
    VENUE_SCRIPT,
    Draft,
    Pay,
    Spend,
    former,
    output,
    txid_of,
)
from wallet.escrow_terms import EscrowForm
from wallet.psbt.transaction import Outpoint

Change = Callable[[Case], object]

ORDNET: tuple[EscrowForm, ...] = ("ordnet",)
ORDINALSWALLET: tuple[EscrowForm, ...] = ("ordinalswallet",)
STRANGER_X, PAYMENT_X = (key.get_public_key().xonly() for key in (STRANGER, PAYMENT))
SIGHASH, LEAF, INTERNAL, ROOT = b"\x03", b"\x15", b"\x17", b"\x18"


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    forms: Sequence[EscrowForm] = FORMS

    def cases(self) -> list[Case]:
        made = [honest(form) for form in self.forms]
        for case in made:
            self.change(case)
        return made


ATTACKS: list[Attack] = []
HARMLESS: list[Attack] = []


def attack(name: str, tag: str, change: Change, forms: Sequence[EscrowForm] = FORMS) -> None:
    ATTACKS.append(Attack(name, tag, change, forms))


def harmless(name: str, change: Change, forms: Sequence[EscrowForm] = FORMS) -> None:
    HARMLESS.append(Attack(name, "", change, forms))


def put(part: object, **values: Any) -> None:
    for name, value in values.items():
        setattr(part, name, value)


def intent(**values: Any) -> Change:
    return lambda case: put(case, intent=replace(case.intent, **values))


def facts(**values: Any) -> Change:
    return lambda case: of_facts(case, **values)


def item(**values: Any) -> Change:
    return lambda case: put(case.transfer.spends[0], **values)


def item_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.transfer.spends[0].put(key, value)


def sale_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.sale.spends[0].put(key, value)


def no_sale_field(key: bytes) -> Change:
    return lambda case: case.sale.spends[0].drop(key)


def sale_input(**values: Any) -> Change:
    return lambda case: put(case.sale.spends[0], **values)


def payout(**values: Any) -> Change:
    return lambda case: put(case.sale.pays[0], **values)


def escrow(script: bytes) -> Change:
    """The transfer pays this, and nothing else says so."""
    return lambda case: put(case.transfer.pays[0], script=script)


def whole(tree: Callable[[Case], Tree]) -> Change:
    """All three PSBTs are of another escrow than ours, and agree on it."""

    def change(case: Case) -> None:
        other = tree(case)
        case.transfer.pays[0].script = other.script
        for each in (case.sale, case.recovery):
            if each is not None:
                spend = each.spends[0]
                spend.put(b"\x01", output(POSTAGE, other.script))
                spend.put(INTERNAL, other.internal)
                spend.put(ROOT, other.root)
        sold = case.sale.spends[0]
        sold.fields = [pair for pair in sold.fields if pair[0][:1] != LEAF]
        sold.fields.append((LEAF + other.block(0), other.leaves[0] + b"\xc0"))

    return change


def recovered(change: Callable[[Draft], object]) -> Change:
    def changed(case: Case) -> None:
        assert case.recovery is not None
        change(case.recovery)

    return changed


def other_leaf(block: Callable[[Tree], bytes], script: Callable[[Tree], bytes]) -> Change:
    def change(case: Case) -> None:
        sold = case.sale.spends[0]
        sold.fields = [pair for pair in sold.fields if pair[0][:1] != LEAF]
        sold.fields.append((LEAF + block(case.tree), script(case.tree)))

    return change


def more_leaves(case: Case) -> None:
    tree = case.tree
    case.sale.spends[0].fields.append(
        (LEAF + bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:], tree.leaves[0] + b"\xc0")
    )


def insert_input(at: int, fields: list[tuple[bytes, bytes]]) -> Change:
    return lambda case: case.transfer.spends.insert(at, Spend(b"\x5a" * 32, 3, fields=list(fields)))


# --- bytes, price, payout address, item: as of any listing ---
attack("no transfer at all", "psbt-strict", lambda case: put(case.transfer, raw=b""))
attack("a byte behind the transfer", "psbt-strict", lambda case: put(case.transfer, tail=b"\0"))
attack("no sale at all", "psbt-strict", lambda case: put(case.sale, raw=b""))
attack("a byte behind the sale", "psbt-strict", lambda case: put(case.sale, tail=b"\0"))
attack("a sale of 33 KB", "psbt-size", sale_field(b"\xf0", b"\0" * 33_000))
attack("a byte behind the recovery", "psbt-strict", recovered(lambda draft: put(draft, tail=b"\0")), ORDNET)
attack("no price", "list-min", intent(price_sats=None))
attack("a price below the least", "list-min", intent(min_price_sats=PRICE + 1))
attack("a stranger's payout address", "dest-allow", intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"))
attack("no facts", "inputs-confirmed", lambda case: put(case, facts=None))
attack("the item's output is spent", "inputs-confirmed", facts(is_unspent=False))
attack("the item's output is not in a block", "inputs-confirmed", facts(is_confirmed=False))
attack("an output of unknown value", "amount-proof", facts(value_sats=None))
attack("an output of another key", "amount-proof", facts(script=STRANGER_SCRIPT))
attack("an output of our payment key", "amount-proof", facts(script=PAYOUT_SCRIPT))
attack("an output of other sats than the facts say", "amount-proof", facts(value_sats=POSTAGE + 1))
attack("an output that holds two inscriptions", "inputs-cardinal", facts(inscriptions=("a", "b")))
attack("an output that holds runes", "inputs-cardinal", facts(runes=("DOG",)))
attack("an output of which it is not known what it holds", "inputs-cardinal", facts(inscriptions=None))
attack("an index that is behind", "inputs-cardinal", facts(index_height=TIP - 2))

# --- the transfer: inputs ---
attack("another output of ours than the listed one", "inputs-reserved", item(vout=0))
attack("an intent for another output", "inputs-reserved", intent(outpoint=Outpoint(b"\x5b" * 32, 1)))
attack(
    "a coin of our payment address beside the item",
    "inputs-reserved",
    insert_input(1, [(b"\x01", output(50_000, PAYOUT_SCRIPT))]),
)
attack("a second item of the vault", "inputs-reserved", insert_input(1, [(b"\x01", output(POSTAGE, VAULT_SCRIPT))]))
attack(
    "an item that is in the escrow already",
    "inputs-reserved",
    lambda case: insert_input(1, [(b"\x01", output(POSTAGE, case.tree.script))])(case),
)
attack(
    "a second item in a whole former transaction",
    "inputs-reserved",
    lambda case: case.transfer.spends.append(
        Spend(txid_of(former(VAULT_SCRIPT, 600, 2)), 2, fields=[(b"\x00", former(VAULT_SCRIPT, 600, 2))])
    ),
)
attack("the item twice", "inputs-reserved", lambda case: case.transfer.spends.append(case.transfer.spends[0]))
attack("an input of unknown value", "amount-proof", insert_input(1, []), ORDNET)
attack("an input that says two values", "amount-proof", lambda case: case.transfer.spends.append(_two_words()), ORDNET)
attack(
    "an input whose former transaction is another",
    "inputs-reserved",
    insert_input(1, [(b"\x00", former(STRANGER_SCRIPT))]),
)
attack(
    "a witness utxo with more sats than there are",
    "amount-proof",
    item_field(b"\x01", output(POSTAGE + 1, VAULT_SCRIPT)),
)
attack("a witness utxo of a stranger", "amount-proof", item_field(b"\x01", output(POSTAGE, STRANGER_SCRIPT)))
attack(
    "the venue's coin first, so that its sats come to the escrow and the item to its change",
    "item-flow",
    lambda case: case.transfer.spends.reverse(),
    ORDNET,
)
attack("a stranger's coin before the item", "item-flow", insert_input(0, [(b"\x01", output(POSTAGE, STRANGER_SCRIPT))]))
attack("a coin of nothing before the item", "item-flow", insert_input(0, [(b"\x01", output(0, STRANGER_SCRIPT))]))
attack(
    "a stranger's coin behind the item",
    "outputs-known",
    insert_input(1, [(b"\x01", output(600, STRANGER_SCRIPT))]),
    ORDINALSWALLET,
)


def _two_words() -> Spend:
    made_by = former(STRANGER_SCRIPT, 600)
    return Spend(txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", output(601, STRANGER_SCRIPT))])


# --- the transfer: outputs ---
attack("no output", "escrow", lambda case: case.transfer.pays.clear())
attack("an escrow of a stranger", "escrow", escrow(STRANGER_SCRIPT))
attack("the venue's address instead of an escrow", "escrow", escrow(VENUE_SCRIPT))
attack("no escrow but the vault", "escrow", escrow(VAULT_SCRIPT))
attack("an OP_RETURN", "escrow", escrow(b"\x6a"))
attack(
    "the escrow as the second output",
    "escrow",
    lambda case: case.transfer.pays.insert(0, Pay(POSTAGE, STRANGER_SCRIPT)),
)
attack("an output of nothing before the escrow", "escrow", lambda case: case.transfer.pays.insert(0, Pay(0, b"\x6a")))
attack(
    "the other venue's escrow",
    "escrow",
    lambda case: whole(lambda _: tree_of("ordnet" if case.form == "ordinalswallet" else "ordinalswallet"))(case),
)
attack(
    "an output more", "outputs-known", lambda case: case.transfer.pays.append(Pay(330, STRANGER_SCRIPT)), ORDINALSWALLET
)
attack("the escrow with a sat less", "postage", lambda case: case.hold(POSTAGE - 1))
attack("the escrow with a sat more", "postage", lambda case: case.hold(POSTAGE + 1))
attack("a fee of 11 sats", "postage", lambda case: case.hold(POSTAGE - 11))
attack("a fee of 13 sats", "postage", lambda case: case.hold(POSTAGE - 13))
attack("a fee of 12 sats", "postage", lambda case: case.hold(POSTAGE - 12), ORDNET)
attack("half of the sats", "postage", lambda case: case.hold(POSTAGE // 2))
attack("an escrow of 2^64 - 1 sats", "postage", lambda case: put(case.transfer.pays[0], value=2**64 - 1))
attack(
    "an item on one of the sats that are the fee",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 12)),
    ORDINALSWALLET,
)
attack(
    "an item on the very last sat",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 1)),
    ORDINALSWALLET,
)
attack(
    "a fee though it is not known where the item lies",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=None)),
    ORDINALSWALLET,
)


def small(postage: int, held: int) -> Change:
    """Of an item on so few sats."""

    def change(case: Case) -> None:
        case.hold(held)
        case.transfer.spends[0].put(b"\x01", output(postage, VAULT_SCRIPT))
        of_facts(case, value_sats=postage)

    return change


attack("an escrow that the network does not carry", "postage", small(329, 329))
attack("an escrow that a fee makes too small to be carried", "postage", small(341, 329), ORDINALSWALLET)

# --- the escrow: scripts that agree with each other but not with our key ---
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

# --- the transfer: how it is signed ---
for name, flag in {
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "SINGLE|ANYONECANPAY": 0x83,
    "256": 256,
}.items():
    attack(f"a transfer with {name}", "sighash-allowed", item_field(SIGHASH, struct.pack("<I", flag)))
for name, flag in {
    "DEFAULT": 0,
    "ALL": 1,
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "0x183": 0x183,
}.items():
    attack(f"a sale with {name}", "sighash-allowed", sale_field(SIGHASH, struct.pack("<I", flag)))
attack("a sale that names no sighash", "sighash-allowed", no_sale_field(SIGHASH))
attack("a transfer that is signed already", "input-signed", item_field(b"\x13", b"\x01" * 64))
attack("a transfer that is final already", "input-signed", item_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack("a transfer signed by a leaf", "input-signed", item_field(b"\x14" + OURS + b"\x07" * 32, b"\x01" * 64))
attack(
    "a transfer by a leaf",
    "key-path",
    lambda case: case.transfer.spends[0].put(LEAF + case.tree.block(0), case.tree.leaves[0] + b"\xc0"),
)
attack("a transfer with a merkle root", "key-path", item_field(ROOT, b"\x07" * 32))
attack("a transfer with a stranger's internal key", "key-path", item_field(INTERNAL, STRANGER_X))
attack("a transfer with a redeem script", "key-path", item_field(b"\x04", PAYOUT_SCRIPT))
attack("a transfer with a witness script", "key-path", item_field(b"\x05", b"\x51"))
attack("a transfer of version 4", "tx-form", lambda case: put(case.transfer, version=4))
attack("a transfer of a coming block", "tx-form", lambda case: put(case.transfer, locktime=TIP + 1))
attack("a transfer that waits", "tx-form", item(sequence=144))
attack("a transfer whose anchor waits", "tx-form", lambda case: put(case.transfer.spends[1], sequence=0), ORDNET)

# --- the sale ---
attack("a sale of nothing", "sale-input", lambda case: case.sale.spends.clear())
attack(
    "a sale of another transfer",
    "sale-input",
    lambda case: (case.drafts(), put(case, is_linked=False), put(case.sale.spends[0], txid=b"\x01" * 32)),
)
attack("a sale of the transfer's second output", "sale-input", sale_input(vout=1))
attack(
    "a sale straight out of the vault",
    "sale-input",
    lambda case: (
        case.drafts(),
        put(case, is_linked=False),
        put(case.sale.spends[0], txid=case.transfer.spends[0].txid, vout=1),
    ),
)
attack(
    "a sale with a stranger's coin before",
    "sale-input",
    lambda case: case.sale.spends.insert(0, Spend(b"\x01" * 32, 0)),
)
attack(
    "a sale with a stranger's coin behind", "sale-input", lambda case: case.sale.spends.append(Spend(b"\x01" * 32, 0))
)
attack("a sale of a coin that says nothing", "amount-proof", no_sale_field(b"\x01"))
attack("a sale of more sats than are held", "amount-proof", sale_field(b"\x01", output(POSTAGE + 1, VAULT_SCRIPT)))
attack("a sale of the vault's output", "amount-proof", sale_field(b"\x01", output(POSTAGE, VAULT_SCRIPT)))
attack(
    "a sale with a former transaction that is another",
    "amount-proof",
    lambda case: case.sale.spends[0].put(b"\x00", former(case.tree.script)),
)
attack(
    "a sale without a leaf",
    "sale-leaf",
    lambda case: put(case.sale.spends[0], fields=[pair for pair in case.sale.spends[0].fields if pair[0][:1] != LEAF]),
)
attack(
    "a sale by the way back",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(1), lambda tree: tree.leaves[1] + b"\xc0"),
    ORDINALSWALLET,
)
attack(
    "a sale by the way back under the sale's control block",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0), lambda tree: tree.leaves[1] + b"\xc0"),
    ORDINALSWALLET,
)
attack(
    "a control block of the wrong parity",
    "sale-leaf",
    other_leaf(lambda tree: bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:], lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a control block of another version",
    "sale-leaf",
    other_leaf(lambda tree: bytes([tree.block(0)[0] ^ 2]) + tree.block(0)[1:], lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a control block with a stranger's key",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0)[:1] + STRANGER_X + tree.block(0)[33:], lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a control block with another leaf beside",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0)[:33] + tap_leaf(b"\x51"), lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a control block one step deeper",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0) + b"\x07" * 32, lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a leaf of another version",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0), lambda tree: tree.leaves[0] + b"\xc2"),
)
attack("a leaf that anybody may spend", "sale-leaf", other_leaf(lambda tree: tree.block(0), lambda tree: b"\x51\xc0"))
attack(
    "a leaf with another co-signer",
    "sale-leaf",
    other_leaf(lambda tree: tree.block(0), lambda tree: two_of_two(OURS, STRANGER_X) + b"\xc0"),
)
attack("a second leaf beside the sale's", "sale-leaf", more_leaves)
attack("a sale with our key as internal key", "escrow", sale_field(INTERNAL, OURS), ORDINALSWALLET)
attack("a sale with NUMS as internal key", "escrow", sale_field(INTERNAL, NUMS), ORDNET)
attack("a sale with a stranger's internal key", "escrow", sale_field(INTERNAL, STRANGER_X))
attack("a sale with another merkle root", "escrow", sale_field(ROOT, b"\x07" * 32))
attack("a sale with a redeem script", "escrow", sale_field(b"\x04", b"\x51"))
attack("a sale with a witness script", "escrow", sale_field(b"\x05", b"\x51"))
attack("a sale without an output", "single-pair", lambda case: case.sale.pays.clear())
attack("a sale that pays a stranger", "outputs-known", payout(script=STRANGER_SCRIPT))
attack("a sale that pays the venue", "outputs-known", payout(script=VENUE_SCRIPT))
attack("a sale that pays the vault", "outputs-known", payout(script=VAULT_SCRIPT))
attack("a sale that pays the escrow", "outputs-known", lambda case: put(case.sale.pays[0], script=case.tree.script))
attack(
    "a sale that pays us in the second output",
    "outputs-known",
    lambda case: case.sale.pays.insert(0, Pay(330, STRANGER_SCRIPT)),
)
attack("a sale a sat too cheap", "payout", payout(value=PRICE - 1))
attack("a sale for nothing", "payout", payout(value=0))
attack("a sale for the postage", "payout", payout(value=POSTAGE))
attack("a sale for more than there are bitcoin", "outputs-known", payout(value=21 * 10**14 + 1))
attack("a sale less a fee that was not declared", "payout", payout(value=PRICE - PRICE // 100))
attack(
    "a sale less more than the declared fee",
    "payout",
    lambda case: (intent(seller_fee_ppm=10_000)(case), put(case.sale.pays[0], value=PRICE - PRICE // 100 - 1)),
)
attack("a sale of version 4", "tx-form", lambda case: put(case.sale, version=4))
attack("a sale of a coming block", "tx-form", lambda case: put(case.sale, locktime=TIP + 1))
attack("a sale that waits", "tx-form", sale_input(sequence=144))
attack(
    "a sale signed by us already",
    "input-signed",
    lambda case: case.sale.spends[0].put(b"\x14" + OURS + tap_leaf(case.tree.leaves[0]), b"\x01" * 64),
)
attack("a sale with a key path signature", "input-signed", sale_field(b"\x13", b"\x01" * 64))
attack("a sale that is final already", "input-signed", sale_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack("a sale of much postage that keeps it", "payout", small(25_000, 25_000))

# --- the recovery ---
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

# --- what loses nothing ---
harmless("honest", lambda case: None)
harmless("a transfer that names no sighash", lambda case: case.transfer.spends[0].drop(SIGHASH))
harmless("a transfer with ALL", item_field(SIGHASH, struct.pack("<I", 1)))
harmless("a transfer that tells no internal key", lambda case: case.transfer.spends[0].drop(INTERNAL))
harmless("a transfer of version 3", lambda case: put(case.transfer, version=3))
harmless(
    "a fee of 12 sats, and the item on the last sat before",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 13)),
    ORDINALSWALLET,
)
harmless("the smallest escrow", small(330, 330))
harmless("an anchor more", insert_input(1, [(b"\x01", output(600, STRANGER_SCRIPT))]), ORDNET)
harmless("an output more behind the escrow", lambda case: case.transfer.pays.append(Pay(0, b"\x6a")), ORDNET)
harmless(
    "a sale that tells neither key nor root",
    lambda case: (case.sale.spends[0].drop(INTERNAL), case.sale.spends[0].drop(ROOT)),
)
harmless(
    "a sale with a second output, which is not covered", lambda case: case.sale.pays.append(Pay(5_000, STRANGER_SCRIPT))
)
harmless("a sale that pays more", payout(value=PRICE + 1))
harmless(
    "a sale less the declared fee",
    lambda case: (intent(seller_fee_ppm=10_000)(case), put(case.sale.pays[0], value=PRICE - PRICE // 100)),
)
harmless("a recovery that names no sighash", recovered(lambda draft: draft.spends[0].drop(SIGHASH)), ORDNET)
harmless(
    "a recovery with a fee of 1,000 sats", recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1_000)), ORDNET
)
