"""Attacks with the PSBTs of a listing in escrow: each is one change of honest ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.shapes import replace
from tests.wallet.attacks.attack import Attack, Change, adding_to, put
from tests.wallet.escrows import (
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
from wallet.psbt.transaction import Outpoint

ORDNET = [partial(honest, "ordnet")]
ORDINALSWALLET = [partial(honest, "ordinalswallet")]
EVERY = [*ORDNET, *ORDINALSWALLET]
STRANGER_X, PAYMENT_X = (key.get_public_key().xonly() for key in (STRANGER, PAYMENT))
SIGHASH, LEAF, INTERNAL, ROOT = b"\x03", b"\x15", b"\x17", b"\x18"


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


def leaves(of: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]) -> Change:
    return whole(lambda case: replace(case.tree, leaves=of(case.tree.leaves)))


def way_back(script: bytes) -> Change:
    return leaves(lambda own: (own[0], script))


def recovered(change: Callable[[Draft], object]) -> Change:
    def changed(case: Case) -> None:
        assert case.recovery is not None
        change(case.recovery)

    return changed


def sold_by(script: Callable[[Tree], bytes], block: Callable[[Tree], bytes] = lambda tree: tree.block(0)) -> Change:
    """The sale's only leaf is this script, with its version, under this control block."""

    def change(case: Case) -> None:
        sold = case.sale.spends[0]
        sold.fields = [pair for pair in sold.fields if pair[0][:1] != LEAF]
        sold.fields.append((LEAF + block(case.tree), script(case.tree)))

    return change


def control_block(block: Callable[[Tree], bytes]) -> Change:
    return sold_by(lambda tree: tree.leaves[0] + b"\xc0", block)


def more_leaves(case: Case) -> None:
    tree = case.tree
    case.sale.spends[0].fields.append(
        (LEAF + bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:], tree.leaves[0] + b"\xc0")
    )


def insert_input(at: int, fields: list[tuple[bytes, bytes]]) -> Change:
    return lambda case: case.transfer.spends.insert(at, Spend(b"\x5a" * 32, 3, fields=list(fields)))


def small(postage: int, held: int) -> Change:
    """Of an item on so few sats."""

    def change(case: Case) -> None:
        case.hold(held)
        case.transfer.spends[0].put(b"\x01", output(postage, VAULT_SCRIPT))
        of_facts(case, value_sats=postage)

    return change


ATTACKS: list[Attack] = []
refused = adding_to(ATTACKS, EVERY)


# Bytes, price, payout address, item: as of any listing
attack = refused("psbt-strict")
attack("no transfer at all", lambda case: put(case.transfer, raw=b""))
attack("a byte behind the transfer", lambda case: put(case.transfer, tail=b"\0"))
attack("no sale at all", lambda case: put(case.sale, raw=b""))
attack("a byte behind the sale", lambda case: put(case.sale, tail=b"\0"))
attack = refused("psbt-size")
attack("a sale of 33 KB", sale_field(b"\xf0", b"\0" * 33_000))
attack = refused("psbt-strict", ORDNET)
attack("a byte behind the recovery", recovered(lambda draft: put(draft, tail=b"\0")))
attack = refused("list-min")
attack("no price", intent(price_sats=None))
attack("a price below the least", intent(min_price_sats=PRICE + 1))
attack = refused("dest-allow")
attack("a stranger's payout address", intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"))
attack = refused("inputs-confirmed")
attack("no facts", lambda case: put(case, facts=None))
attack("the item's output is spent", facts(is_unspent=False))
attack("the item's output is not in a block", facts(is_confirmed=False))
attack = refused("amount-proof")
attack("an output of unknown value", facts(value_sats=None))
attack("an output of another key", facts(script=STRANGER_SCRIPT))
attack("an output of our payment key", facts(script=PAYOUT_SCRIPT))
attack("an output of other sats than the facts say", facts(value_sats=POSTAGE + 1))
attack = refused("inputs-cardinal")
attack("an output that holds two inscriptions", facts(inscriptions=("a", "b")))
attack("an output that holds runes", facts(runes=("DOG",)))
attack("an output of which it is not known what it holds", facts(inscriptions=None))
attack("an index that is behind", facts(index_height=TIP - 2))
# The transfer: inputs
attack = refused("inputs-reserved")
attack("another output of ours than the listed one", item(vout=0))
attack("an intent for another output", intent(outpoint=Outpoint(b"\x5b" * 32, 1)))
attack("a coin of our payment address beside the item", insert_input(1, [(b"\x01", output(50_000, PAYOUT_SCRIPT))]))
attack("a second item of the vault", insert_input(1, [(b"\x01", output(POSTAGE, VAULT_SCRIPT))]))
attack(
    "an item that is in the escrow already",
    lambda case: insert_input(1, [(b"\x01", output(POSTAGE, case.tree.script))])(case),
)
attack(
    "a second item in a whole former transaction",
    lambda case: case.transfer.spends.append(
        Spend(txid_of(former(VAULT_SCRIPT, 600, 2)), 2, fields=[(b"\x00", former(VAULT_SCRIPT, 600, 2))])
    ),
)
attack("the item twice", lambda case: case.transfer.spends.append(case.transfer.spends[0]))
attack = refused("amount-proof", ORDNET)
attack("an input of unknown value", insert_input(1, []))
attack("an input that says two values", lambda case: case.transfer.spends.append(_two_words()))
attack = refused("inputs-reserved")
attack("an input whose former transaction is another", insert_input(1, [(b"\x00", former(STRANGER_SCRIPT))]))
attack = refused("amount-proof")
attack("a witness utxo with more sats than there are", item_field(b"\x01", output(POSTAGE + 1, VAULT_SCRIPT)))
attack("a witness utxo of a stranger", item_field(b"\x01", output(POSTAGE, STRANGER_SCRIPT)))
attack = refused("item-flow", ORDNET)
attack(
    "the venue's coin first, so that its sats come to the escrow and the item to its change",
    lambda case: case.transfer.spends.reverse(),
)
attack = refused("item-flow")
attack("a stranger's coin before the item", insert_input(0, [(b"\x01", output(POSTAGE, STRANGER_SCRIPT))]))
attack("a coin of nothing before the item", insert_input(0, [(b"\x01", output(0, STRANGER_SCRIPT))]))
attack = refused("outputs-known", ORDINALSWALLET)
attack("a stranger's coin behind the item", insert_input(1, [(b"\x01", output(600, STRANGER_SCRIPT))]))


def _two_words() -> Spend:
    made_by = former(STRANGER_SCRIPT, 600)
    return Spend(txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", output(601, STRANGER_SCRIPT))])


# The transfer: outputs
attack = refused("escrow")
attack("no output", lambda case: case.transfer.pays.clear())
attack("an escrow of a stranger", escrow(STRANGER_SCRIPT))
attack("the venue's address instead of an escrow", escrow(VENUE_SCRIPT))
attack("no escrow but the vault", escrow(VAULT_SCRIPT))
attack("an OP_RETURN", escrow(b"\x6a"))
attack("the escrow as the second output", lambda case: case.transfer.pays.insert(0, Pay(POSTAGE, STRANGER_SCRIPT)))
attack("an output of nothing before the escrow", lambda case: case.transfer.pays.insert(0, Pay(0, b"\x6a")))
attack(
    "the other venue's escrow",
    lambda case: whole(lambda _: tree_of("ordnet" if case.form == "ordinalswallet" else "ordinalswallet"))(case),
)
attack = refused("outputs-known", ORDINALSWALLET)
attack("an output more", lambda case: case.transfer.pays.append(Pay(330, STRANGER_SCRIPT)))
attack = refused("postage")
attack("the escrow with a sat less", lambda case: case.hold(POSTAGE - 1))
attack("the escrow with a sat more", lambda case: case.hold(POSTAGE + 1))
attack("a fee of 11 sats", lambda case: case.hold(POSTAGE - 11))
attack("a fee of 13 sats", lambda case: case.hold(POSTAGE - 13))
attack = refused("postage", ORDNET)
attack("a fee of 12 sats", lambda case: case.hold(POSTAGE - 12))
attack = refused("postage")
attack("half of the sats", lambda case: case.hold(POSTAGE // 2))
attack("an escrow of 2^64 - 1 sats", lambda case: put(case.transfer.pays[0], value=2**64 - 1))
attack = refused("item-flow", ORDINALSWALLET)
attack(
    "an item on one of the sats that are the fee",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 12)),
)
attack("an item on the very last sat", lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 1)))
attack(
    "a fee though it is not known where the item lies",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=None)),
)
attack = refused("postage")
attack("an escrow that the network does not carry", small(329, 329))
attack = refused("postage", ORDINALSWALLET)
attack("an escrow that a fee makes too small to be carried", small(341, 329))

# The escrow: scripts that agree with each other but not with our key
attack = refused("escrow")
attack("an escrow of a stranger and the venue", whole(lambda case: tree_of(case.form, STRANGER_X)))
attack("an escrow of the venue alone, twice", whole(lambda case: tree_of(case.form, THEIRS)))
attack("an escrow of our payment key", whole(lambda case: tree_of(case.form, PAYMENT_X)))
attack("an escrow with another co-signer", whole(lambda case: tree_of(case.form, theirs=STRANGER_X)))
attack("an escrow with the keys in the other order", leaves(lambda own: (two_of_two(THEIRS, OURS), *own[1:])))
attack("an escrow whose sale needs one signature", leaves(lambda own: (own[0][:-2] + b"\x51\x9c", *own[1:])))
attack("an escrow whose sale needs the venue alone", leaves(lambda own: (b"\x20" + THEIRS + b"\xac", *own[1:])))
attack("an escrow with NUMEQUALVERIFY", leaves(lambda own: (own[0][:-1] + b"\x9d", *own[1:])))
attack("an escrow with the venue's key path", whole(lambda case: replace(case.tree, internal=THEIRS)))
attack("an escrow with a stranger's key path", whole(lambda case: replace(case.tree, internal=STRANGER_X)))
attack = refused("escrow", ORDINALSWALLET)
attack("an escrow with our key path and the venue's tree", whole(lambda case: replace(case.tree, internal=OURS)))
attack = refused("escrow", ORDNET)
attack("an escrow without our key path", whole(lambda case: replace(case.tree, internal=NUMS)))
attack("an escrow with a second leaf", leaves(lambda own: (*own, b"\x20" + THEIRS + b"\xac")))
attack = refused("escrow", ORDINALSWALLET)
attack("an escrow without a way back", leaves(lambda own: own[:1]))
attack("an escrow whose way back is the venue's", way_back(after_blocks(b"\x90\x00", THEIRS)))
attack("an escrow whose way back is a day longer", way_back(after_blocks(b"\x20\x01", OURS)))
attack("an escrow whose way back is never", way_back(after_blocks(b"\xff\xff\x00", OURS)))
attack("an escrow whose way back counts seconds", way_back(after_blocks(b"\x90\x00\x40", OURS)))
attack("an escrow whose way back waits for a height", leaves(lambda own: (own[0], own[1].replace(b"\xb2", b"\xb1", 1))))

# How transfer and sale are to be signed: sighash, keys, signatures and form
attack = refused("sighash-allowed")
for name, flag in {
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "SINGLE|ANYONECANPAY": 0x83,
    "256": 256,
}.items():
    attack(f"a transfer with {name}", item_field(SIGHASH, struct.pack("<I", flag)))
for name, flag in {
    "DEFAULT": 0,
    "ALL": 1,
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "0x183": 0x183,
}.items():
    attack(f"a sale with {name}", sale_field(SIGHASH, struct.pack("<I", flag)))
attack("a sale that names no sighash", no_sale_field(SIGHASH))
attack = refused("input-signed")
attack("a transfer that is signed already", item_field(b"\x13", b"\x01" * 64))
attack("a transfer that is final already", item_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack("a transfer signed by a leaf", item_field(b"\x14" + OURS + b"\x07" * 32, b"\x01" * 64))
attack = refused("key-path")
attack(
    "a transfer by a leaf",
    lambda case: case.transfer.spends[0].put(LEAF + case.tree.block(0), case.tree.leaves[0] + b"\xc0"),
)
attack("a transfer with a merkle root", item_field(ROOT, b"\x07" * 32))
attack("a transfer with a stranger's internal key", item_field(INTERNAL, STRANGER_X))
attack("a transfer with a redeem script", item_field(b"\x04", PAYOUT_SCRIPT))
attack("a transfer with a witness script", item_field(b"\x05", b"\x51"))
attack = refused("tx-form")
attack("a transfer of version 4", lambda case: put(case.transfer, version=4))
attack("a transfer of a coming block", lambda case: put(case.transfer, locktime=TIP + 1))
attack("a transfer that waits", item(sequence=144))
attack = refused("tx-form", ORDNET)
attack("a transfer whose anchor waits", lambda case: put(case.transfer.spends[1], sequence=0))

# The sale out of the escrow
attack = refused("sale-input")
attack("a sale of nothing", lambda case: case.sale.spends.clear())
attack(
    "a sale of another transfer",
    lambda case: (case.drafts(), put(case, is_linked=False), put(case.sale.spends[0], txid=b"\x01" * 32)),
)
attack("a sale of the transfer's second output", sale_input(vout=1))
attack(
    "a sale straight out of the vault",
    lambda case: (
        case.drafts(),
        put(case, is_linked=False),
        put(case.sale.spends[0], txid=case.transfer.spends[0].txid, vout=1),
    ),
)
attack("a sale with a stranger's coin before", lambda case: case.sale.spends.insert(0, Spend(b"\x01" * 32, 0)))
attack("a sale with a stranger's coin behind", lambda case: case.sale.spends.append(Spend(b"\x01" * 32, 0)))
attack = refused("amount-proof")
attack("a sale of a coin that says nothing", no_sale_field(b"\x01"))
attack("a sale of more sats than are held", sale_field(b"\x01", output(POSTAGE + 1, VAULT_SCRIPT)))
attack("a sale of the vault's output", sale_field(b"\x01", output(POSTAGE, VAULT_SCRIPT)))
attack(
    "a sale with a former transaction that is another",
    lambda case: case.sale.spends[0].put(b"\x00", former(case.tree.script)),
)
attack = refused("sale-leaf")
attack(
    "a sale without a leaf",
    lambda case: put(case.sale.spends[0], fields=[pair for pair in case.sale.spends[0].fields if pair[0][:1] != LEAF]),
)
attack = refused("sale-leaf", ORDINALSWALLET)
attack("a sale by the way back", sold_by(lambda tree: tree.leaves[1] + b"\xc0", lambda tree: tree.block(1)))
attack("a sale by the way back under the sale's control block", sold_by(lambda tree: tree.leaves[1] + b"\xc0"))
attack = refused("sale-leaf")
attack(
    "a control block of the wrong parity",
    control_block(lambda tree: bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:]),
)
attack(
    "a control block of another version",
    control_block(lambda tree: bytes([tree.block(0)[0] ^ 2]) + tree.block(0)[1:]),
)
attack(
    "a control block with a stranger's key",
    control_block(lambda tree: tree.block(0)[:1] + STRANGER_X + tree.block(0)[33:]),
)
attack("a control block with another leaf beside", control_block(lambda tree: tree.block(0)[:33] + tap_leaf(b"\x51")))
attack("a control block one step deeper", control_block(lambda tree: tree.block(0) + b"\x07" * 32))
attack("a leaf of another version", sold_by(lambda tree: tree.leaves[0] + b"\xc2"))
attack("a leaf that anybody may spend", sold_by(lambda tree: b"\x51\xc0"))
attack("a leaf with another co-signer", sold_by(lambda tree: two_of_two(OURS, STRANGER_X) + b"\xc0"))
attack("a second leaf beside the sale's", more_leaves)
attack = refused("escrow", ORDINALSWALLET)
attack("a sale with our key as internal key", sale_field(INTERNAL, OURS))
attack = refused("escrow", ORDNET)
attack("a sale with NUMS as internal key", sale_field(INTERNAL, NUMS))
attack = refused("escrow")
attack("a sale with a stranger's internal key", sale_field(INTERNAL, STRANGER_X))
attack("a sale with another merkle root", sale_field(ROOT, b"\x07" * 32))
attack("a sale with a redeem script", sale_field(b"\x04", b"\x51"))
attack("a sale with a witness script", sale_field(b"\x05", b"\x51"))
attack = refused("single-pair")
attack("a sale without an output", lambda case: case.sale.pays.clear())
attack = refused("outputs-known")
attack("a sale that pays a stranger", payout(script=STRANGER_SCRIPT))
attack("a sale that pays the venue", payout(script=VENUE_SCRIPT))
attack("a sale that pays the vault", payout(script=VAULT_SCRIPT))
attack("a sale that pays the escrow", lambda case: put(case.sale.pays[0], script=case.tree.script))
attack("a sale that pays us in the second output", lambda case: case.sale.pays.insert(0, Pay(330, STRANGER_SCRIPT)))
attack = refused("payout")
attack("a sale a sat too cheap", payout(value=PRICE - 1))
attack("a sale for nothing", payout(value=0))
attack("a sale for the postage", payout(value=POSTAGE))
attack = refused("outputs-known")
attack("a sale for more than there are bitcoin", payout(value=21 * 10**14 + 1))
attack = refused("payout")
attack("a sale less a fee that was not declared", payout(value=PRICE - PRICE // 100))
attack(
    "a sale less more than the declared fee",
    lambda case: (intent(seller_fee_ppm=10_000)(case), put(case.sale.pays[0], value=PRICE - PRICE // 100 - 1)),
)
attack = refused("tx-form")
attack("a sale of version 4", lambda case: put(case.sale, version=4))
attack("a sale of a coming block", lambda case: put(case.sale, locktime=TIP + 1))
attack("a sale that waits", sale_input(sequence=144))
attack = refused("input-signed")
attack(
    "a sale signed by us already",
    lambda case: case.sale.spends[0].put(b"\x14" + OURS + tap_leaf(case.tree.leaves[0]), b"\x01" * 64),
)
attack("a sale with a key path signature", sale_field(b"\x13", b"\x01" * 64))
attack("a sale that is final already", sale_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack = refused("payout")
attack("a sale of much postage that keeps it", small(25_000, 25_000))

# The recovery, which brings the item back
attack = refused("recovery", ORDNET)
attack("no recovery", lambda case: put(case, recovery=None))
attack = refused("recovery", ORDINALSWALLET)
attack("a recovery that nobody needs", lambda case: put(case, recovery=honest("ordnet").recovery))
attack = refused("recovery", ORDNET)
attack("a recovery to a stranger", recovered(lambda draft: put(draft.pays[0], script=STRANGER_SCRIPT)))
attack(
    "a recovery to the payment address, where items are spent as coins",
    recovered(lambda draft: put(draft.pays[0], script=PAYOUT_SCRIPT)),
)
attack(
    "a recovery into another escrow",
    lambda case: recovered(lambda draft: put(draft.pays[0], script=case.tree.script))(case),
)
attack("a recovery to nobody", recovered(lambda draft: draft.pays.clear()))
attack("a recovery with an output more", recovered(lambda draft: draft.pays.append(Pay(330, STRANGER_SCRIPT))))
attack("a recovery with a fee of 1,001 sats", recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1_001)))
attack("a recovery of more than is held", recovered(lambda draft: put(draft.pays[0], value=POSTAGE + 1)))
attack = refused("item-flow", ORDNET)
attack(
    "a recovery whose fee is the item",
    lambda case: (
        of_facts(case, item_offset=POSTAGE - 1),
        recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1))(case),
    ),
)
attack(
    "a recovery with a fee though it is not known where the item lies",
    lambda case: (
        of_facts(case, item_offset=None),
        recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1))(case),
    ),
)
attack = refused("recovery", ORDNET)
attack("a recovery of another coin", recovered(lambda draft: put(draft.spends[0], vout=1)))
attack(
    "a recovery with a coin of the vault more",
    recovered(lambda draft: draft.spends.append(Spend(b"\1" * 32, 0, fields=[(b"\x01", output(600, VAULT_SCRIPT))]))),
)
attack = refused("amount-proof", ORDNET)
attack("a recovery without its sats", recovered(lambda draft: draft.spends[0].drop(b"\x01")))
attack = refused("sighash-allowed", ORDNET)
attack(
    "a recovery with SINGLE|ANYONECANPAY",
    recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 0x83))),
)
attack(
    "a recovery with ALL|ANYONECANPAY", recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 0x81)))
)
attack("a recovery with NONE", recovered(lambda draft: draft.spends[0].put(SIGHASH, struct.pack("<I", 2))))
attack = refused("key-path", ORDNET)
attack(
    "a recovery by the sale's leaf",
    lambda case: recovered(lambda draft: draft.spends[0].put(LEAF + case.tree.block(0), case.tree.leaves[0] + b"\xc0"))(
        case
    ),
)
attack = refused("escrow", ORDNET)
attack("a recovery with another merkle root", recovered(lambda draft: draft.spends[0].put(ROOT, b"\x07" * 32)))
attack("a recovery with a stranger's internal key", recovered(lambda draft: draft.spends[0].put(INTERNAL, STRANGER_X)))
attack = refused("input-signed", ORDNET)
attack("a recovery that is signed already", recovered(lambda draft: draft.spends[0].put(b"\x13", b"\x01" * 64)))
attack = refused("tx-form", ORDNET)
attack("a recovery that waits", recovered(lambda draft: put(draft.spends[0], sequence=144)))
attack("a recovery of a coming block", recovered(lambda draft: put(draft, locktime=TIP + 1)))

HARMLESS: list[Attack] = []  # they lose nothing, and are signed
harmless = adding_to(HARMLESS, EVERY)

attack = harmless("")
attack("honest", lambda case: None)
attack("a transfer that names no sighash", lambda case: case.transfer.spends[0].drop(SIGHASH))
attack("a transfer with ALL", item_field(SIGHASH, struct.pack("<I", 1)))
attack("a transfer that tells no internal key", lambda case: case.transfer.spends[0].drop(INTERNAL))
attack("a transfer of version 3", lambda case: put(case.transfer, version=3))
attack = harmless("", ORDINALSWALLET)
attack(
    "a fee of 12 sats, and the item on the last sat before",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 13)),
)
attack = harmless("")
attack("the smallest escrow", small(330, 330))
attack = harmless("", ORDNET)
attack("an anchor more", insert_input(1, [(b"\x01", output(600, STRANGER_SCRIPT))]))
attack("an output more behind the escrow", lambda case: case.transfer.pays.append(Pay(0, b"\x6a")))
attack = harmless("")
attack(
    "a sale that tells neither key nor root",
    lambda case: (case.sale.spends[0].drop(INTERNAL), case.sale.spends[0].drop(ROOT)),
)
attack(
    "a sale with a second output, which is not covered", lambda case: case.sale.pays.append(Pay(5_000, STRANGER_SCRIPT))
)
attack("a sale that pays more", payout(value=PRICE + 1))
attack(
    "a sale less the declared fee",
    lambda case: (intent(seller_fee_ppm=10_000)(case), put(case.sale.pays[0], value=PRICE - PRICE // 100)),
)
attack = harmless("", ORDNET)
attack("a recovery that names no sighash", recovered(lambda draft: draft.spends[0].drop(SIGHASH)))
attack("a recovery with a fee of 1,000 sats", recovered(lambda draft: put(draft.pays[0], value=POSTAGE - 1_000)))
