"""Attacks with the item, and with the transfer that takes it into the escrow."""

from __future__ import annotations

from tests.wallet import listings as ls
from tests.wallet.attacks import escrow_changes as ch
from tests.wallet.escrows import POSTAGE, VAULT_SCRIPT, of_facts, tree_of
from wallet.psbt.transaction import Outpoint

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

# --- bytes, price, payout address, item: as of any listing ---
attack("no transfer at all", "psbt-strict", lambda case: ch.put(case.transfer, raw=b""))
attack("a byte behind the transfer", "psbt-strict", lambda case: ch.put(case.transfer, tail=b"\0"))
attack("no sale at all", "psbt-strict", lambda case: ch.put(case.sale, raw=b""))
attack("a byte behind the sale", "psbt-strict", lambda case: ch.put(case.sale, tail=b"\0"))
attack("a sale of 33 KB", "psbt-size", ch.sale_field(b"\xf0", b"\0" * 33_000))
attack("a byte behind the recovery", "psbt-strict", ch.recovered(lambda draft: ch.put(draft, tail=b"\0")), ch.ORDNET)
attack("no price", "list-min", ch.intent(price_sats=None))
attack("a price below the least", "list-min", ch.intent(min_price_sats=ls.PRICE + 1))
attack(
    "a stranger's payout address", "dest-allow", ch.intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
)
attack("no facts", "inputs-confirmed", lambda case: ch.put(case, facts=None))
attack("the item's output is spent", "inputs-confirmed", ch.facts(is_unspent=False))
attack("the item's output is not in a block", "inputs-confirmed", ch.facts(is_confirmed=False))
attack("an output of unknown value", "amount-proof", ch.facts(value_sats=None))
attack("an output of another key", "amount-proof", ch.facts(script=ls.STRANGER_SCRIPT))
attack("an output of our payment key", "amount-proof", ch.facts(script=ls.PAYOUT_SCRIPT))
attack("an output of other sats than the facts say", "amount-proof", ch.facts(value_sats=POSTAGE + 1))
attack("an output that holds two inscriptions", "inputs-cardinal", ch.facts(inscriptions=("a", "b")))
attack("an output that holds runes", "inputs-cardinal", ch.facts(runes=("DOG",)))
attack("an output of which it is not known what it holds", "inputs-cardinal", ch.facts(inscriptions=None))
attack("an index that is behind", "inputs-cardinal", ch.facts(index_height=ls.TIP - 2))

# --- the transfer: inputs ---
attack("another output of ours than the listed one", "inputs-reserved", ch.item(vout=0))
attack("an intent for another output", "inputs-reserved", ch.intent(outpoint=Outpoint(b"\x5b" * 32, 1)))
attack(
    "a coin of our payment address beside the item",
    "inputs-reserved",
    ch.insert_input(1, [(b"\x01", ls.output(50_000, ls.PAYOUT_SCRIPT))]),
)
attack(
    "a second item of the vault", "inputs-reserved", ch.insert_input(1, [(b"\x01", ls.output(POSTAGE, VAULT_SCRIPT))])
)
attack(
    "an item that is in the escrow already",
    "inputs-reserved",
    lambda case: ch.insert_input(1, [(b"\x01", ls.output(POSTAGE, case.tree.script))])(case),
)
attack(
    "a second item in a whole former transaction",
    "inputs-reserved",
    lambda case: case.transfer.spends.append(
        ls.Spend(ls.txid_of(ls.former(VAULT_SCRIPT, 600, 2)), 2, fields=[(b"\x00", ls.former(VAULT_SCRIPT, 600, 2))])
    ),
)
attack("the item twice", "inputs-reserved", lambda case: case.transfer.spends.append(case.transfer.spends[0]))
attack("an input of unknown value", "amount-proof", ch.insert_input(1, []), ch.ORDNET)
attack(
    "an input that says two values", "amount-proof", lambda case: case.transfer.spends.append(_two_words()), ch.ORDNET
)
attack(
    "an input whose former transaction is another",
    "inputs-reserved",
    ch.insert_input(1, [(b"\x00", ls.former(ls.STRANGER_SCRIPT))]),
)
attack(
    "a witness utxo with more sats than there are",
    "amount-proof",
    ch.item_field(b"\x01", ls.output(POSTAGE + 1, VAULT_SCRIPT)),
)
attack("a witness utxo of a stranger", "amount-proof", ch.item_field(b"\x01", ls.output(POSTAGE, ls.STRANGER_SCRIPT)))
attack(
    "the venue's coin first, so that its sats come to the escrow and the item to its change",
    "item-flow",
    lambda case: case.transfer.spends.reverse(),
    ch.ORDNET,
)
attack(
    "a stranger's coin before the item",
    "item-flow",
    ch.insert_input(0, [(b"\x01", ls.output(POSTAGE, ls.STRANGER_SCRIPT))]),
)
attack(
    "a coin of nothing before the item", "item-flow", ch.insert_input(0, [(b"\x01", ls.output(0, ls.STRANGER_SCRIPT))])
)
attack(
    "a stranger's coin behind the item",
    "outputs-known",
    ch.insert_input(1, [(b"\x01", ls.output(600, ls.STRANGER_SCRIPT))]),
    ch.ORDINALSWALLET,
)


def _two_words() -> ls.Spend:
    made_by = ls.former(ls.STRANGER_SCRIPT, 600)
    return ls.Spend(ls.txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", ls.output(601, ls.STRANGER_SCRIPT))])


# --- the transfer: outputs ---
attack("no output", "escrow", lambda case: case.transfer.pays.clear())
attack("an escrow of a stranger", "escrow", ch.escrow(ls.STRANGER_SCRIPT))
attack("the venue's address instead of an escrow", "escrow", ch.escrow(ls.VENUE_SCRIPT))
attack("no escrow but the vault", "escrow", ch.escrow(VAULT_SCRIPT))
attack("an OP_RETURN", "escrow", ch.escrow(b"\x6a"))
attack(
    "the escrow as the second output",
    "escrow",
    lambda case: case.transfer.pays.insert(0, ls.Pay(POSTAGE, ls.STRANGER_SCRIPT)),
)
attack(
    "an output of nothing before the escrow", "escrow", lambda case: case.transfer.pays.insert(0, ls.Pay(0, b"\x6a"))
)
attack(
    "the other venue's escrow",
    "escrow",
    lambda case: ch.whole(lambda _: tree_of("ordnet" if case.form == "ordinalswallet" else "ordinalswallet"))(case),
)
attack(
    "an output more",
    "outputs-known",
    lambda case: case.transfer.pays.append(ls.Pay(330, ls.STRANGER_SCRIPT)),
    ch.ORDINALSWALLET,
)
attack("the escrow with a sat less", "postage", lambda case: case.hold(POSTAGE - 1))
attack("the escrow with a sat more", "postage", lambda case: case.hold(POSTAGE + 1))
attack("a fee of 11 sats", "postage", lambda case: case.hold(POSTAGE - 11))
attack("a fee of 13 sats", "postage", lambda case: case.hold(POSTAGE - 13))
attack("a fee of 12 sats", "postage", lambda case: case.hold(POSTAGE - 12), ch.ORDNET)
attack("half of the sats", "postage", lambda case: case.hold(POSTAGE // 2))
attack("an escrow of 2^64 - 1 sats", "postage", lambda case: ch.put(case.transfer.pays[0], value=2**64 - 1))
attack(
    "an item on one of the sats that are the fee",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 12)),
    ch.ORDINALSWALLET,
)
attack(
    "an item on the very last sat",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=POSTAGE - 1)),
    ch.ORDINALSWALLET,
)
attack(
    "a fee though it is not known where the item lies",
    "item-flow",
    lambda case: (case.hold(POSTAGE - 12), of_facts(case, item_offset=None)),
    ch.ORDINALSWALLET,
)


attack("an escrow that the network does not carry", "postage", ch.small(329, 329))
attack("an escrow that a fee makes too small to be carried", "postage", ch.small(341, 329), ch.ORDINALSWALLET)
