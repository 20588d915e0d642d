"""Attacks with the sale out of the escrow."""

from __future__ import annotations

from tests.wallet.attacks import escrow_changes as ch
from tests.wallet.escrows import NUMS, OURS, POSTAGE, VAULT_SCRIPT, tap_leaf, two_of_two
from tests.wallet.listings import PRICE, STRANGER_SCRIPT, TIP, VENUE_SCRIPT, Pay, Spend, former, output

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

attack("a sale of nothing", "sale-input", lambda case: case.sale.spends.clear())
attack(
    "a sale of another transfer",
    "sale-input",
    lambda case: (case.drafts(), ch.put(case, is_linked=False), ch.put(case.sale.spends[0], txid=b"\x01" * 32)),
)
attack("a sale of the transfer's second output", "sale-input", ch.sale_input(vout=1))
attack(
    "a sale straight out of the vault",
    "sale-input",
    lambda case: (
        case.drafts(),
        ch.put(case, is_linked=False),
        ch.put(case.sale.spends[0], txid=case.transfer.spends[0].txid, vout=1),
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
attack("a sale of a coin that says nothing", "amount-proof", ch.no_sale_field(b"\x01"))
attack("a sale of more sats than are held", "amount-proof", ch.sale_field(b"\x01", output(POSTAGE + 1, VAULT_SCRIPT)))
attack("a sale of the vault's output", "amount-proof", ch.sale_field(b"\x01", output(POSTAGE, VAULT_SCRIPT)))
attack(
    "a sale with a former transaction that is another",
    "amount-proof",
    lambda case: case.sale.spends[0].put(b"\x00", former(case.tree.script)),
)
attack(
    "a sale without a leaf",
    "sale-leaf",
    lambda case: ch.put(
        case.sale.spends[0], fields=[pair for pair in case.sale.spends[0].fields if pair[0][:1] != ch.LEAF]
    ),
)
attack(
    "a sale by the way back",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(1), lambda tree: tree.leaves[1] + b"\xc0"),
    ch.ORDINALSWALLET,
)
attack(
    "a sale by the way back under the sale's control block",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(0), lambda tree: tree.leaves[1] + b"\xc0"),
    ch.ORDINALSWALLET,
)
attack(
    "a control block of the wrong parity",
    "sale-leaf",
    ch.other_leaf(
        lambda tree: bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:], lambda tree: tree.leaves[0] + b"\xc0"
    ),
)
attack(
    "a control block of another version",
    "sale-leaf",
    ch.other_leaf(
        lambda tree: bytes([tree.block(0)[0] ^ 2]) + tree.block(0)[1:], lambda tree: tree.leaves[0] + b"\xc0"
    ),
)
attack(
    "a control block with a stranger's key",
    "sale-leaf",
    ch.other_leaf(
        lambda tree: tree.block(0)[:1] + ch.STRANGER_X + tree.block(0)[33:], lambda tree: tree.leaves[0] + b"\xc0"
    ),
)
attack(
    "a control block with another leaf beside",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(0)[:33] + tap_leaf(b"\x51"), lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a control block one step deeper",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(0) + b"\x07" * 32, lambda tree: tree.leaves[0] + b"\xc0"),
)
attack(
    "a leaf of another version",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(0), lambda tree: tree.leaves[0] + b"\xc2"),
)
attack(
    "a leaf that anybody may spend", "sale-leaf", ch.other_leaf(lambda tree: tree.block(0), lambda tree: b"\x51\xc0")
)
attack(
    "a leaf with another co-signer",
    "sale-leaf",
    ch.other_leaf(lambda tree: tree.block(0), lambda tree: two_of_two(OURS, ch.STRANGER_X) + b"\xc0"),
)
attack("a second leaf beside the sale's", "sale-leaf", ch.more_leaves)
attack("a sale with our key as internal key", "escrow", ch.sale_field(ch.INTERNAL, OURS), ch.ORDINALSWALLET)
attack("a sale with NUMS as internal key", "escrow", ch.sale_field(ch.INTERNAL, NUMS), ch.ORDNET)
attack("a sale with a stranger's internal key", "escrow", ch.sale_field(ch.INTERNAL, ch.STRANGER_X))
attack("a sale with another merkle root", "escrow", ch.sale_field(ch.ROOT, b"\x07" * 32))
attack("a sale with a redeem script", "escrow", ch.sale_field(b"\x04", b"\x51"))
attack("a sale with a witness script", "escrow", ch.sale_field(b"\x05", b"\x51"))
attack("a sale without an output", "single-pair", lambda case: case.sale.pays.clear())
attack("a sale that pays a stranger", "outputs-known", ch.payout(script=STRANGER_SCRIPT))
attack("a sale that pays the venue", "outputs-known", ch.payout(script=VENUE_SCRIPT))
attack("a sale that pays the vault", "outputs-known", ch.payout(script=VAULT_SCRIPT))
attack("a sale that pays the escrow", "outputs-known", lambda case: ch.put(case.sale.pays[0], script=case.tree.script))
attack(
    "a sale that pays us in the second output",
    "outputs-known",
    lambda case: case.sale.pays.insert(0, Pay(330, STRANGER_SCRIPT)),
)
attack("a sale a sat too cheap", "payout", ch.payout(value=PRICE - 1))
attack("a sale for nothing", "payout", ch.payout(value=0))
attack("a sale for the postage", "payout", ch.payout(value=POSTAGE))
attack("a sale for more than there are bitcoin", "outputs-known", ch.payout(value=21 * 10**14 + 1))
attack("a sale less a fee that was not declared", "payout", ch.payout(value=PRICE - PRICE // 100))
attack(
    "a sale less more than the declared fee",
    "payout",
    lambda case: (ch.intent(seller_fee_ppm=10_000)(case), ch.put(case.sale.pays[0], value=PRICE - PRICE // 100 - 1)),
)
attack("a sale of version 4", "tx-form", lambda case: ch.put(case.sale, version=4))
attack("a sale of a coming block", "tx-form", lambda case: ch.put(case.sale, locktime=TIP + 1))
attack("a sale that waits", "tx-form", ch.sale_input(sequence=144))
attack(
    "a sale signed by us already",
    "input-signed",
    lambda case: case.sale.spends[0].put(b"\x14" + OURS + tap_leaf(case.tree.leaves[0]), b"\x01" * 64),
)
attack("a sale with a key path signature", "input-signed", ch.sale_field(b"\x13", b"\x01" * 64))
attack("a sale that is final already", "input-signed", ch.sale_field(b"\x08", b"\x01\x40" + b"\x01" * 64))
attack("a sale of much postage that keeps it", "payout", ch.small(25_000, 25_000))
