"""Attacks with a PSBT that empties a bidding wallet: each is one change of an honest one."""

from __future__ import annotations

import struct
from typing import Any

from tests.shapes import replace
from tests.wallet.attacks.attack import Attack, Change, adding_to, put
from tests.wallet.listings import PAYMENT, STRANGER, TIP, VENUE, Pay, Spend, former, output, script_by, txid_of
from tests.wallet.withdrawal_cases import (
    AMOUNT,
    COIN,
    PAYMENT_SCRIPT,
    PUBKEY,
    STRANGER_SCRIPT,
    VAULT_SCRIPT,
    WALLET,
    Case,
    Leaf,
    both_must_sign,
    facts_of,
    honest,
    multisig,
    outpoints,
    p2wsh,
    wallet_spend,
)

RIGHT_LEAF = Leaf()
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32) + b"\x01"
ATTACKS: list[Attack] = []
HARMLESS: list[Attack] = []  # they decide nothing about where the sats go, and are signed
refused = adding_to(ATTACKS, [honest])
harmless = adding_to(HARMLESS, [honest])("")


def of_facts(**values: Any) -> Change:
    def change(case: Case) -> None:
        first = next(iter(case.facts))
        case.facts[first] = replace(case.facts[first], **values)

    return change


def of_pay(at: int, **values: Any) -> Change:
    return lambda case: put(case.draft.pays[at], **values)


def of_spend(**values: Any) -> Change:
    return lambda case: put(case.draft.spends[0], **values)


def in_field(kind: bytes, value: bytes) -> Change:
    return lambda case: case.draft.spends[0].put(kind, value)


def no_field(*kinds: bytes) -> Change:
    return lambda case: [case.draft.spends[0].drop(kind) for kind in kinds]


def with_wallet(witness_script: bytes) -> Change:
    """Returns the same, out of a wallet with another script."""

    def change(case: Case) -> None:
        other = honest(witness_script)
        put(case, draft=other.draft, facts=other.facts)

    return change


def with_input(spend: Spend, paid: bytes, value: int) -> Change:
    def change(case: Case) -> None:
        case.draft.spends.append(spend)
        outpoint = outpoints(case.draft)[-1]
        case.facts[outpoint] = facts_of(outpoint, value, paid)

    return change


def bare_input(paid: bytes, value: int, *extra: tuple[bytes, bytes]) -> Spend:
    made_by = former(paid, value, 2)
    return Spend(txid_of(made_by), 2, fields=[(b"\x00", made_by), (b"\x01", output(value, paid)), *extra])


# Where it goes
attack = refused("dest-allow")
attack("the payout goes to a stranger", of_pay(0, script=STRANGER_SCRIPT))
attack("the change goes to a stranger", of_pay(1, script=STRANGER_SCRIPT))
attack("a stranger is paid beside", lambda case: case.draft.pays.append(Pay(1_000, STRANGER_SCRIPT)))
attack("the payout goes to our vault", of_pay(0, script=VAULT_SCRIPT))
attack("the payout goes to the bare multisig", of_pay(0, script=WALLET))
attack("the payout goes to our nested script", of_pay(0, script=script_by("p2sh-p2wpkh", PAYMENT)))
attack("the change goes to another multisig", of_pay(1, script=p2wsh(multisig(1, VENUE, STRANGER))))
attack("a note in an output", lambda case: case.draft.pays.append(Pay(0, b"\x6a\x04spam")))
attack("an output to anybody", lambda case: case.draft.pays.append(Pay(1_000, b"\x51")))
attack = refused("outputs-known")
attack("nothing is paid to us", of_pay(0, script=p2wsh(WALLET)))
attack("two payouts", of_pay(1, script=PAYMENT_SCRIPT))
attack("a third output", lambda case: case.draft.pays.append(Pay(600, p2wsh(WALLET))))
attack("more than there is", of_pay(1, value=21_000_000 * 100_000_000))
attack("a negative change", of_pay(1, value=-1))
attack = refused("dust")
attack("the change is dust", lambda case: put(case.draft.pays[1], value=329))
# How much
attack = refused("amount")
attack("less arrives and more goes back", lambda case: (of_pay(0, value=90_000)(case), of_pay(1, value=28_000)(case)))
attack(
    "more arrives than was asked for", lambda case: (of_pay(0, value=AMOUNT + 1)(case), of_pay(1, value=17_000)(case))
)
attack("another amount was asked for", lambda case: put(case, amount=AMOUNT - 1))
attack = refused("fee-share")
attack("a quarter of it becomes fee", lambda case: (of_pay(0, value=95_000)(case), of_pay(1, value=600)(case)))
attack = refused("fee-abs")
attack("outputs above inputs", of_pay(1, value=21_000))
attack = refused("dust")
attack("all becomes fee", lambda case: put(case.draft, pays=[Pay(1, PAYMENT_SCRIPT)]))
# What is spent
attack = refused("inputs-reserved")
attack("no input", lambda case: put(case.draft, spends=[]))
attack("an input more than was written down", lambda case: put(case, coins=outpoints(case.draft)[:1]))
attack("the inputs in another order", lambda case: put(case, coins=outpoints(case.draft)[::-1]))
attack("another coin", lambda case: (put(case, coins=outpoints(case.draft)), of_spend(vout=5)(case)))
attack("one coin twice", lambda case: put(case.draft, spends=[case.draft.spends[0]] * 2))
attack("too many coins", lambda case: put(case.draft, spends=[wallet_spend(at) for at in range(21)]))
attack = refused("inputs-confirmed")
attack("nothing is known of a coin", lambda case: case.facts.popitem())
attack(
    "facts of another coin",
    lambda case: put(case, facts=dict(zip(case.facts, [*case.facts.values()][::-1], strict=True))),
)
attack("a coin is spent", of_facts(is_unspent=False))
attack("a coin may be spent", of_facts(is_unspent=None))
attack("a coin is not in a block", of_facts(is_confirmed=False))
attack("a coin may not be in a block", of_facts(is_confirmed=None))
attack = refused("inputs-own")
attack("the coin is at another script", of_facts(script=STRANGER_SCRIPT))
attack("the coin is at our payment address", of_facts(script=PAYMENT_SCRIPT))
attack = refused("amount-proof")
attack("the script is not known", of_facts(script=None))
attack("the value is not known", of_facts(value_sats=None))
attack("the value is another", of_facts(value_sats=COIN + 1))
attack("the value is none", of_facts(value_sats=0))
attack = refused("inputs-cardinal")
attack("an inscription on a coin", of_facts(inscriptions=("a" * 64 + "i0",)))
attack("perhaps an inscription on a coin", of_facts(inscriptions=None))
attack("a rune on a coin", of_facts(runes=("DOG•GO",)))
attack("perhaps a rune on a coin", of_facts(runes=None))
attack("an index two blocks behind", of_facts(index_height=TIP - 2))
attack("an index of unknown height", of_facts(index_height=None))
attack("a chain of unknown height", of_facts(tip_height=None))
attack = refused("inputs-own")
attack(
    "a coin of our payment address comes along", with_input(bare_input(PAYMENT_SCRIPT, 9_000), PAYMENT_SCRIPT, 9_000)
)
attack("a stranger's coin comes along", with_input(bare_input(STRANGER_SCRIPT, 9_000), STRANGER_SCRIPT, 9_000))
attack(
    "a coin of our vault comes along as if it were the wallet's",
    with_input(bare_input(VAULT_SCRIPT, 9_000, (b"\x05", WALLET)), VAULT_SCRIPT, 9_000),
)
attack(
    "a coin of another wallet comes along",
    with_input(wallet_spend(3, multisig(2, PAYMENT, STRANGER)), p2wsh(multisig(2, PAYMENT, STRANGER)), COIN),
)
# By which script
attack("no script", no_field(b"\x05"))
attack("no script at all", lambda case: [spend.drop(b"\x05") for spend in case.draft.spends])
attack("a wallet without our key", with_wallet(multisig(2, VENUE, STRANGER)))
harmless("a wallet that one key opens", with_wallet(multisig(1, PAYMENT, VENUE)))
harmless("a wallet of three keys", with_wallet(multisig(2, PAYMENT, VENUE, STRANGER)))
harmless("a wallet with our key twice", with_wallet(multisig(2, PAYMENT, PAYMENT)))
harmless("a wallet of our key alone", with_wallet(b"\x21" + PUBKEY + b"\xac"))
harmless("a wallet with a word behind", with_wallet(WALLET + b"\x51"))
harmless("a wallet that counts wrong", with_wallet(WALLET[:-2] + b"\x53\xae"))
harmless("a wallet cut short", with_wallet(WALLET[:-1]))
attack("a wallet of nothing", with_wallet(b""))
harmless("a wallet with a whole key", with_wallet(b"\x52\x21" + PUBKEY + b"\x41\x04" + b"\x11" * 64 + b"\x52\xae"))
attack(
    "our script told of a coin elsewhere",
    lambda case: [put(case, facts={o: replace(f, script=p2wsh(multisig(1, STRANGER))) for o, f in case.facts.items()})],
)
# What is said of the coins
attack = refused("amount-proof")
attack("it does not say what is spent", no_field(b"\x00", b"\x01"))
attack("it says a smaller value", in_field(b"\x01", output(COIN - 1, p2wsh(WALLET))))
attack("it says another script", in_field(b"\x01", output(COIN, PAYMENT_SCRIPT)))
attack("the former transaction is missing", no_field(b"\x00"))
attack("the former transaction is another", in_field(b"\x00", former(p2wsh(WALLET), COIN + 5, 0)))
# How it is signed
attack = refused("sighash-allowed")
attack("sighash NONE", in_field(b"\x03", struct.pack("<I", 2)))
attack("sighash SINGLE", in_field(b"\x03", struct.pack("<I", 3)))
attack("sighash ALL|ANYONECANPAY", in_field(b"\x03", struct.pack("<I", 0x81)))
attack("sighash SINGLE|ANYONECANPAY", in_field(b"\x03", struct.pack("<I", 0x83)))
attack("sighash DEFAULT", in_field(b"\x03", struct.pack("<I", 0)))
attack("a sighash without a meaning", in_field(b"\x03", struct.pack("<I", 0x101)))
attack = refused("input-signed")
attack("our signature is there already", in_field(b"\x02" + PUBKEY, DER))
attack("the venue's signature is there already", in_field(b"\x02" + VENUE.get_public_key().sec(), DER))
attack("a final witness", in_field(b"\x08", b"\x01\x01\x51"))
attack("a final script", in_field(b"\x07", b"\x51"))
attack("a taproot signature", in_field(b"\x13", b"\x11" * 64))
attack("a redeem script", in_field(b"\x04", b"\x00\x20" + b"\x11" * 32))
attack("a taproot key", in_field(b"\x17", PUBKEY[1:]))
# Form
attack = refused("tx-form")
attack("a time to wait for", lambda case: put(case.draft, locktime=1_900_000_000))
attack("a block to wait for", lambda case: put(case.draft, locktime=TIP + 1))
attack("a sequence that waits", of_spend(sequence=10))
attack("version 0", lambda case: put(case.draft, version=0))
harmless("version 3", lambda case: put(case.draft, version=3))
attack = refused("psbt-strict")
attack("a script_sig", of_spend(script_sig=b"\x51"))
attack("bytes behind the end", lambda case: put(case.draft, tail=b"\0"))
attack("not a PSBT", lambda case: put(case.draft, magic=b"psbT\xff"))
attack("nothing", lambda case: put(case.draft, raw=b""))
attack = refused("psbt-size")
attack("too long", lambda case: put(case.draft, tail=b"\0" * 33_000))
attack = refused("psbt-strict")
attack("a field twice", lambda case: case.draft.spends[0].fields.append((b"\x03", struct.pack("<I", 1))))
# Whose key
attack = refused("inputs-own")
attack("another user's key", lambda case: put(case, key=STRANGER))
# Scripts that are not what they seem
attack("a script that signs its end only", with_wallet(b"\xab" + WALLET))
attack("a script that signs its end only, behind our key", with_wallet(b"\x21" + PUBKEY + b"\xad\xab\x51"))
attack("our key in a longer push", with_wallet(b"\x22\x21" + PUBKEY + b"\x75\x51"))
attack("our key in a push that is cut", with_wallet(b"\x51\x4c\x22" + PUBKEY))
attack("a push without its length", with_wallet(b"\x21" + PUBKEY + b"\xac\x4d\x01"))
attack("our key without its parity", with_wallet(b"\x20" + PUBKEY[1:] + b"\xac"))
harmless("a wallet of any two of three", with_wallet(multisig(2, VENUE, PAYMENT, STRANGER)))
harmless("a wallet of five of five", with_wallet(multisig(5, VENUE, PAYMENT, STRANGER, VENUE, STRANGER)))
harmless("our key in a long form of a push", with_wallet(b"\x4c\x21" + PUBKEY + b"\xac"))
harmless("our key in a longer form of a push", with_wallet(b"\x4e\x21\0\0\0" + PUBKEY + b"\xac\x4d\x01\0\xab\x75"))
_SECRET, _WAIT = b"\x63\xa8\x20" + b"\x11" * 32 + b"\x88\x67", b"\x02\x90\x00\xb2\x75\x68"
harmless("a wallet that asks for a secret, or waits", with_wallet(_SECRET + _WAIT + b"\x21" + PUBKEY + b"\xac"))


def of_leaf(name: str, tag: str, change: Change, leaf: Leaf = RIGHT_LEAF) -> None:
    refused(tag, [leaf.honest])(f"{name}, in a leaf", change)


def nothing(case: Case) -> None:
    """The leaf alone is the attack."""


def each_field(kind: bytes, value: bytes) -> Change:
    return lambda case: [spend.put(kind, value) for spend in case.draft.spends]


# Out of a leaf of a taproot wallet
_CONTROL = b"\x15" + RIGHT_LEAF.control_block
of_leaf("none of our keys", "inputs-own", nothing, Leaf(both_must_sign(VENUE, STRANGER)))
of_leaf("our key with its parity", "inputs-own", nothing, Leaf(b"\x21" + PUBKEY + b"\xac"))
of_leaf("signs its end only", "inputs-own", nothing, Leaf(b"\xab" + RIGHT_LEAF.script))
of_leaf("of another version", "inputs-own", nothing, Leaf(version=0xC2))
of_leaf("another version than its control block's", "inputs-own", each_field(_CONTROL, RIGHT_LEAF.script + b"\xc2"))
of_leaf("another script", "inputs-own", each_field(_CONTROL, RIGHT_LEAF.script + b"\x51\xc0"))
of_leaf("no leaf", "inputs-own", lambda case: case.draft.spends[0].drop(_CONTROL))
of_leaf(
    "two leaves",
    "inputs-own",
    in_field(b"\x15" + Leaf(b"\x51").control_block[:33] + b"\x22" * 32, RIGHT_LEAF.script + b"\xc0"),
)
of_leaf("a witness script beside it", "inputs-own", in_field(b"\x05", WALLET))
of_leaf("the coin is elsewhere", "inputs-own", of_facts(script=STRANGER_SCRIPT))
of_leaf("the coin is our vault's", "inputs-own", of_facts(script=VAULT_SCRIPT))
of_leaf("it says nothing of the coin", "amount-proof", no_field(b"\x01"))
of_leaf("it says another value", "amount-proof", in_field(b"\x01", output(COIN + 1, RIGHT_LEAF.output[0])))
for named in (2, 3, 0x81, 0x82, 0x83, 0x100):
    of_leaf(f"sighash {named:#x}", "sighash-allowed", in_field(b"\x03", struct.pack("<I", named)))
of_leaf(
    "a leaf signature is there already", "input-signed", in_field(b"\x14" + PUBKEY[1:] + RIGHT_LEAF.hash, b"\x11" * 64)
)
of_leaf("a key signature is there already", "input-signed", in_field(b"\x13", b"\x11" * 64))
of_leaf("a final witness", "input-signed", in_field(b"\x08", b"\x01\x01\x51"))
of_leaf("an older signature", "input-signed", in_field(b"\x02" + PUBKEY, DER))
of_leaf("the payout goes to a stranger", "dest-allow", of_pay(0, script=STRANGER_SCRIPT))
of_leaf("the change goes to its bare key", "dest-allow", of_pay(1, script=b"\x51\x20" + VENUE.get_public_key().xonly()))
of_leaf("a sequence that waits", "tx-form", of_spend(sequence=10))
