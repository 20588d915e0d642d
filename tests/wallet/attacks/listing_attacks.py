"""Attacks with a listing's PSBT by a venue, or somebody in its place: each is one change of an honest one."""

from __future__ import annotations

import struct

from tests.shapes import replace
from tests.wallet.attacks.attack import Attack, Change, adding_to, put
from tests.wallet.attacks.listing_changes import (
    DER,
    OFF_CURVE_X,
    OTHER_TXID,
    SEGWIT_V0,
    STRANGER_X,
    TAPROOT,
    first_pay,
    more_pay,
    more_spend,
    no_own_field,
    of,
    of_draft,
    of_facts,
    of_intent,
    of_own,
    on_raw,
    on_transaction,
    other_spend,
    out_field,
    own_field,
    pay_script,
    payout_less,
    payout_of,
    top_field,
)
from tests.wallet.listings import (
    FORMS,
    INSCRIPTION,
    ORDINALS,
    PAYMENT,
    PAYOUT_ADDRESS,
    PAYOUT_SCRIPT,
    POSTAGE,
    PRICE,
    STRANGER,
    STRANGER_SCRIPT,
    TIP,
    VAULT,
    VENUE_SCRIPT,
    Case,
    Pay,
    former,
    output,
    script_by,
    size,
    txid_of,
    with_size,
)
from wallet import address
from wallet.psbt.transaction import Outpoint

ATTACKS: list[Attack] = []
refused = adding_to(ATTACKS, of())


# The venue's form: none is known, and none is asked for
attack = refused("op-allowed")
attack("a venue without a template", lambda case: None)
attack("another venue's template", lambda case: None)
# The bytes
attack = refused("psbt-strict")
attack("nothing at all", of_draft(raw=b""))
attack("the magic alone", of_draft(raw=b"psbt\xff"))
attack("another magic", of_draft(magic=b"psbu\xff"))
attack("elements' magic", of_draft(magic=b"pset\xff"))
attack("a network transaction instead of a PSBT", lambda case: put(case.draft, raw=former(b"\x51")))
attack("base64 instead of bytes", of_draft(raw=b"cHNidP8BAHUCAAAAASaBcTce"))
attack("cut by a byte", on_raw(lambda raw: raw[:-1]))
attack("cut in the middle", on_raw(lambda raw: raw[: len(raw) // 2]))
attack("a byte left over", of_draft(tail=b"\0"))
attack("a second PSBT behind it", on_raw(lambda raw: raw + raw))
attack("an input map too many", of_draft(tail=b"\x01\x03\x04\x83\0\0\0\0"))
attack("an output map missing", on_raw(lambda raw: raw[:-1] if raw.endswith(b"\0\0") else raw[:-2]))
attack = refused("psbt-size")
attack("a byte above the largest size", of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", own_field(b"\xf0", b"\0" * 33_000))
attack = refused("psbt-strict")
attack("a key's length in three bytes", on_raw(lambda raw: raw[:5] + b"\xfd\x01\x00" + raw[6:]))
attack("a key's length in five bytes", on_raw(lambda raw: raw[:5] + b"\xfe\x01\0\0\0" + raw[6:]))
attack("a key's length in nine bytes", on_raw(lambda raw: raw[:5] + b"\xff\x01" + b"\0" * 7 + raw[6:]))
attack("a key of 2^64 - 1 bytes", on_raw(lambda raw: raw[:5] + b"\xff" * 9 + raw[6:]))
attack("a value of 2^63 bytes", on_raw(lambda raw: raw[:7] + b"\xff" + b"\0" * 7 + b"\x80" + raw[8:]))
attack("a value's length too short by one", on_raw(lambda raw: raw[:7] + bytes([raw[7] - 1]) + raw[8:]))
attack("a value's length too long by one", on_raw(lambda raw: raw[:7] + bytes([raw[7] + 1]) + raw[8:]))
attack("a field's type in three bytes", own_field(b"\xfd\x03\x00", struct.pack("<I", 1)))
attack("a field's type cut short", own_field(b"\xfd\x03", b""))
# The global map
attack("no unsigned transaction", lambda case: put(case.draft, raw=b"psbt\xff\0\0\0"))
attack("the unsigned transaction twice", lambda case: case.draft.fields.append((b"\0", case.draft.unsigned())))
attack(
    "a second unsigned transaction under a longer key",
    lambda case: case.draft.fields.append((b"\0\0", case.draft.unsigned())),
)
attack("PSBT version 1", top_field(b"\xfb", struct.pack("<I", 1)))
attack("PSBT version 2 with a transaction", top_field(b"\xfb", struct.pack("<I", 2)))
attack("PSBT version 3", top_field(b"\xfb", struct.pack("<I", 3)))
attack("a PSBT version of one byte", top_field(b"\xfb", b"\0"))
attack("a version 2 transaction version", top_field(b"\x02", struct.pack("<I", 2)))
attack("a version 2 locktime", top_field(b"\x03", struct.pack("<I", 0)))
attack("a version 2 input count", top_field(b"\x04", b"\x01"))
attack("a version 2 output count", top_field(b"\x05", b"\x01"))
attack("a version 2 flag that all may change", top_field(b"\x06", b"\x03"))
attack("an extended key of no point", top_field(b"\x01" + b"\0" * 78, b"\0" * 4))
attack("a misshapen proprietary field", top_field(b"\xfc\x05ab", b""))
attack("the same unknown global field twice", lambda case: case.draft.fields.extend([(b"\x70", b"a")] * 2))


def whole_v2(case: Case) -> None:
    """The same listing as an honest version 2 PSBT."""
    own = case.own
    own.fields += [
        (b"\x0e", own.txid),
        (b"\x0f", struct.pack("<I", own.vout)),
        (b"\x10", struct.pack("<I", own.sequence)),
    ]
    pay = case.payout
    pay.fields += [(b"\x03", struct.pack("<Q", pay.value)), (b"\x04", pay.script)]
    top = [(b"\xfb", b"\2\0\0\0"), (b"\x02", b"\2\0\0\0"), (b"\x04", b"\x01"), (b"\x05", b"\x01")]
    maps = [top, own.fields, pay.fields]
    body = b"".join(b"".join(with_size(k) + with_size(v) for k, v in pairs) + b"\0" for pairs in maps)
    case.draft.raw = b"psbt\xff" + body


attack("an honest listing as version 2", whole_v2)
# The unsigned transaction's bytes
attack("a script_sig in the unsigned transaction", of_own(script_sig=b"\x51"))
attack("witnesses in the unsigned transaction", on_transaction(lambda raw: raw[:4] + b"\0\x01" + raw[4:]))
attack("a byte behind the transaction", on_transaction(lambda raw: raw + b"\0"))
attack("a transaction without its locktime", on_transaction(lambda raw: raw[:-4]))
attack("an empty transaction", on_transaction(lambda raw: b""))
attack("an input count in three bytes", on_transaction(lambda raw: raw[:4] + b"\xfd\x01\0" + raw[5:]))
attack("2^64 - 1 inputs", on_transaction(lambda raw: raw[:4] + b"\xff" * 9 + raw[5:]))
attack("2^64 - 1 outputs", on_transaction(lambda raw: raw[:46] + b"\xff" * 9 + raw[47:]))
attack("a script's length in three bytes", on_transaction(lambda raw: raw[:55] + b"\xfd\x16\0" + raw[56:]))
attack("a script longer than the transaction", on_transaction(lambda raw: raw[:55] + b"\xfc" + raw[56:]))
attack("no inputs", on_transaction(lambda raw: raw[:4] + b"\0" + raw[46:]))
attack("an input more than maps", on_transaction(lambda raw: raw[:4] + b"\x02" + raw[5:46] * 2 + raw[46:]))
attack("an output fewer than maps", on_transaction(lambda raw: raw[:46] + b"\0" + raw[-4:]))

# Price and payout address
attack = refused("list-min")
attack("no price", of_intent(price_sats=None))
attack("no minimum price", of_intent(min_price_sats=None))
attack("a price of nothing", of_intent(price_sats=0, min_price_sats=0))
attack("a negative price", of_intent(price_sats=-PRICE, min_price_sats=-PRICE))
attack("a minimum price of nothing", of_intent(min_price_sats=0))
attack("a price a sat below the minimum", of_intent(min_price_sats=PRICE + 1))
attack("a price above all bitcoin", of_intent(price_sats=21 * 10**14 + 1))
attack = refused("dest-allow")
attack("a payout address that is none", of_intent(payout_address="bc1q"))
attack("a testnet payout address", of_intent(payout_address="tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"))
attack(
    "our own payout script as a testnet address", of_intent(payout_address=address.encode("tb", 0, PAYOUT_SCRIPT[2:]))
)
attack("a regtest payout address", of_intent(payout_address="bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw"))
attack("a stranger's payout address", of_intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"))
attack("a legacy payout address", of_intent(payout_address="1BoatSLRHtKNngkdXEeobR76b53LETtpyT"))
attack("a stranger's P2SH payout address", of_intent(payout_address="3P14159f73E4gFr7JterCCQh9QjiTjiZrG"))
attack("a payout address with blanks", of_intent(payout_address=" " + PAYOUT_ADDRESS))
# Inputs
attack = refused("inputs-reserved")
attack("another output of the same transaction", of_own(vout=0))
attack("the output after ours", of_own(vout=2))
attack("output 2^32 - 1", of_own(vout=0xFFFFFFFF))
attack("another transaction's output", of_own(txid=OTHER_TXID))
attack("the txid as it is shown, not as it is written", lambda case: put(case.own, txid=case.own.txid[::-1]))
attack("a coinbase's input", of_own(txid=bytes(32), vout=0xFFFFFFFF))
attack("another outpoint with our output as its witness utxo", of_own(txid=b"\x01" * 32, vout=0))
attack("an intent for another output", of_intent(outpoint=Outpoint(OTHER_TXID, 1)))
attack("a second input of ours", more_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))]))
attack("a second inscription's input", more_spend([(b"\x01", output(POSTAGE, script_by("p2tr", VAULT)))]))
attack("an input of ours before the listed one", more_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))], at=0))
attack("a stranger's input more", more_spend([(b"\x01", output(600, STRANGER_SCRIPT))]))
attack("an input more that says nothing", more_spend([]))
attack("the listed output spent twice", lambda case: case.draft.spends.append(case.own))
attack = refused("outputs-known", of("paired at 2", "secure with fee"))
attack("our input at another index", lambda case: case.draft.spends.reverse())
attack = refused("inputs-reserved", of("paired at 2", "secure with fee"))
attack("an input of ours in place of the placeholder", other_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))]))
attack(
    "the vault's input in place of the placeholder",
    lambda case: other_spend([(b"\x01", output(POSTAGE, script_by(case.kind, VAULT)))])(case),
)
attack("a placeholder that says nothing", other_spend([]))
attack(
    "a placeholder that is ours by one of its two fields",
    other_spend([(b"\x01", output(600, STRANGER_SCRIPT)), (b"\x00", former(PAYOUT_SCRIPT))]),
)


def placeholder_of_ours(case: Case) -> None:
    """Its former transaction is real, its witness utxo hides that it is ours."""
    made_by = former(PAYOUT_SCRIPT)
    spend = next(item for item in case.draft.spends if item is not case.own)
    spend.txid, spend.vout = txid_of(made_by), 1
    spend.fields = [(b"\x01", output(600, STRANGER_SCRIPT)), (b"\x00", made_by)]


attack("a placeholder that is ours by its former transaction", placeholder_of_ours)
attack(
    "the listed output also in place of the placeholder",
    lambda case: put(next(s for s in case.draft.spends if s is not case.own), txid=case.own.txid, vout=case.own.vout),
)
attack = refused("outputs-known", of("paired at 2", "secure with fee"))
attack(
    "a placeholder fewer",
    lambda case: case.draft.spends.remove(next(s for s in case.draft.spends if s is not case.own)),
)

# What is known of the output
attack = refused("inputs-confirmed")
attack("nothing is known of the output", lambda case: put(case, facts=None))
attack("facts of another output", of_facts(outpoint=Outpoint(OTHER_TXID, 1)))
attack("the output is spent", of_facts(is_unspent=False))
attack("it is not known whether the output is spent", of_facts(is_unspent=None))
attack("the output is not confirmed", of_facts(is_confirmed=False))
attack("it is not known whether the output is confirmed", of_facts(is_confirmed=None))
attack = refused("amount-proof")
attack("the value is not known", of_facts(value_sats=None))
attack("the script is not known", of_facts(script=None))
attack("the output is a stranger's by the facts", of_facts(script=STRANGER_SCRIPT))
attack("the facts know another value", of_facts(value_sats=POSTAGE + 1))
attack = refused("inputs-cardinal")
attack("the index is two blocks behind", of_facts(index_height=TIP - 2))
attack("the index's height is not known", of_facts(index_height=None))
attack("the chain's tip is not known", of_facts(tip_height=None))
attack("what the output holds is not known", of_facts(inscriptions=None))
attack("the output holds no inscription", of_facts(inscriptions=()))
attack("the output holds another inscription", of_facts(inscriptions=(INSCRIPTION[:-1] + "1",)))
attack("a second inscription in the output", of_facts(inscriptions=(INSCRIPTION, INSCRIPTION[:-1] + "1")))
attack("the inscription twice in the output", of_facts(inscriptions=(INSCRIPTION, INSCRIPTION)))
attack("a rune in the output", of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether the output holds runes", of_facts(runes=None))
attack("an intent for another inscription", of_intent(inscription_id=INSCRIPTION[:-1] + "1"))
# What the PSBT says the input spends
attack = refused("amount-proof")
attack("no utxo at all", no_own_field(b"\x00", b"\x01"))
attack = refused("amount-proof", of(kinds=SEGWIT_V0))
attack("no former transaction", no_own_field(b"\x00"))
attack = refused("amount-proof")
attack(
    "a witness utxo a sat too high",
    lambda case: case.own.put(b"\x01", output(POSTAGE + 1, script_by(case.kind, VAULT))),
)
attack(
    "a witness utxo a sat too low", lambda case: case.own.put(b"\x01", output(POSTAGE - 1, script_by(case.kind, VAULT)))
)
attack("a negative witness utxo", lambda case: case.own.put(b"\x01", output(-POSTAGE, script_by(case.kind, VAULT))))
attack("a witness utxo of a stranger", own_field(b"\x01", output(POSTAGE, STRANGER_SCRIPT)))
attack("a witness utxo of our other key", own_field(b"\x01", output(POSTAGE, PAYOUT_SCRIPT)))
attack = refused("psbt-strict")
attack("an empty witness utxo", own_field(b"\x01", b""))
attack("a witness utxo with a byte more", own_field(b"\x01", output(POSTAGE, PAYOUT_SCRIPT) + b"\0"))
attack = refused("amount-proof")
attack("a former transaction that is another", own_field(b"\x00", former(STRANGER_SCRIPT)))
attack(
    "a former transaction of another amount",
    lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT), POSTAGE + 1)),
)
attack = refused("psbt-strict")
attack("a former transaction that is cut", lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT))[:-1]))
attack(
    "a former transaction with a byte more",
    lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT)) + b"\0"),
)
attack("a former transaction without inputs", own_field(b"\x00", b"\2\0\0\0\0\0\0\0\0\0"))
attack(
    "a former transaction that claims witnesses and has none",
    own_field(b"\x00", former(STRANGER_SCRIPT)[: -4 - 66] + b"\0\0\0\0\0"),
)


def former_too_short(case: Case) -> None:
    """The right hash, and no output of that number; intent and facts follow the venue's story."""
    made_by = former(script_by(case.kind, VAULT))
    assert case.facts is not None
    outpoint = Outpoint(txid_of(made_by), 2)
    case.own.txid, case.own.vout = outpoint
    case.own.put(b"\x00", made_by)
    case.intent, case.facts = replace(case.intent, outpoint=outpoint), replace(case.facts, outpoint=outpoint)


attack = refused("amount-proof")
attack("a former transaction without that output", former_too_short)


def utxo_fields_differ(case: Case) -> None:
    case.own.put(b"\x00", former(script_by(case.kind, VAULT)))
    case.own.put(b"\x01", output(POSTAGE + 5_000, script_by(case.kind, VAULT)))


attack("the two utxo fields differ", utxo_fields_differ)
attack(
    "another of our keys than the output's",
    lambda case: put(case, owner=replace(case.owner, public_key=PAYMENT.get_public_key().sec())),
)
attack(
    "an own script that the user does not have",
    lambda case: put(case, owner=replace(case.owner, scripts=frozenset({PAYOUT_SCRIPT}))),
)

# The outputs of a listing's PSBT: the payout, the fee and what comes beside them
attack = refused("outputs-known", of(*FORMS))
attack("the payout swapped to a stranger", pay_script(STRANGER_SCRIPT))
attack = refused("outputs-known")
attack("the payout to the venue", pay_script(VENUE_SCRIPT))
attack("the payout to our ordinals address", pay_script(script_by("p2tr", ORDINALS)))
attack("the payout back to the listed script", lambda case: put(case.payout, script=script_by(case.kind, VAULT)))
attack("the payout to our untweaked key", pay_script(b"\x51\x20" + VAULT.get_public_key().xonly()))
attack("the payout to anyone", pay_script(b"\x51"))
attack("the payout to nobody", pay_script(b""))
attack("the payout burnt in an OP_RETURN", pay_script(b"\x6a" + PAYOUT_SCRIPT))
attack("the payout's program under another witness version", pay_script(b"\x52" + PAYOUT_SCRIPT[1:]))
attack("the payout's hash in a legacy script", pay_script(b"\x76\xa9" + PAYOUT_SCRIPT[1:] + b"\x88\xac"))
attack("the payout's script with an opcode more", pay_script(PAYOUT_SCRIPT + b"\x75"))
attack("the payout's script without its last byte", pay_script(PAYOUT_SCRIPT[:-1]))
attack("the payout's script with its hash reversed", pay_script(PAYOUT_SCRIPT[:2] + PAYOUT_SCRIPT[:1:-1]))
attack = refused("payout", of(*FORMS))
attack("the payout short by a sat", payout_less(1))
attack = refused("payout")
attack("the payout without the postage", payout_less(POSTAGE))
attack = refused("payout", of(*FORMS))
attack("the payout halved", payout_of((PRICE + POSTAGE) // 2))
attack = refused("payout")
attack("the payout at the minimum price instead of the price", payout_of(200_000 + POSTAGE))
attack("the payout in another unit", payout_of((PRICE + POSTAGE) // 100))
attack = refused("payout", of(*FORMS))
attack("a payout of nothing", payout_of(0))
attack("a payout of one sat", payout_of(1))
attack("a payout of dust", payout_of(546))
attack = refused("payout")
attack("a payout cut to 16 bits", payout_of((PRICE + POSTAGE) & 0xFFFF))
attack = refused("outputs-known", of(*FORMS))
attack("a negative payout", payout_of(-PRICE))
attack = refused("outputs-known")
attack("a payout of -1", payout_of(-1))
attack("a payout of -2^63", payout_of(2**63))
attack("a payout a sat above all bitcoin", payout_of(21 * 10**14 + 1))
attack = refused("outputs-known", of("listing", "secure", "secure with fee"))
attack("an unknown output more", more_pay(1_000, STRANGER_SCRIPT))
attack = refused("outputs-known")
attack("an output of ours more", more_pay(1_000, PAYOUT_SCRIPT))
attack("an undeclared fee output", more_pay(5_000, VENUE_SCRIPT))
attack("a runestone more", more_pay(0, bytes.fromhex("6a5d0814021600")))
attack("a free OP_RETURN more", more_pay(0, b"\x6a"))
attack("a stranger's output before the payout", first_pay(PRICE + POSTAGE, STRANGER_SCRIPT))
attack("the payout split in two", lambda case: (payout_less(5_000)(case), more_pay(5_000, PAYOUT_SCRIPT)(case)))
attack("the payout paid twice", more_pay(PRICE + POSTAGE, PAYOUT_SCRIPT))
attack = refused("single-pair", of("listing"))
attack("no output where SINGLE needs one", lambda case: case.draft.pays.clear())
attack = refused("outputs-known", of("secure", "secure with fee"))
attack("no output at all", lambda case: case.draft.pays.clear())
attack = refused("single-pair", of("paired at 2"))
attack("SINGLE's output missing at our index", lambda case: case.draft.pays.pop())
attack = refused("outputs-known", of("paired at 2"))
attack("the payout moved from SINGLE's index", lambda case: case.draft.pays.reverse())
attack = refused("outputs-order", of("secure with fee"))
attack("the payout and the fee swapped", lambda case: case.draft.pays.reverse())
attack = refused("outputs-known", of("paired at 2"))
attack(
    "a stranger at SINGLE's index, the payout before it",
    lambda case: (put(case.draft.pays[0], script=PAYOUT_SCRIPT), pay_script(STRANGER_SCRIPT)(case)),
)
attack = refused("venue-fee", of("paired at 2", "secure with fee"))
attack("the fee a sat above the declared", lambda case: put(case.draft.pays[1], value=case.draft.pays[1].value + 1))
attack("the fee as high as the price", lambda case: put(case.draft.pays[1], value=PRICE))
attack = refused("outputs-known", of("paired at 2", "secure with fee"))
attack("a negative fee", lambda case: put(case.draft.pays[1], value=-1))
attack("the fee to a stranger", lambda case: put(case.draft.pays[1], script=STRANGER_SCRIPT))
attack = refused("outputs-known", of("secure with fee"))
attack("the fee output missing", lambda case: case.draft.pays.pop())
attack(
    "two outputs that overflow 64 bits together",
    lambda case: [put(pay, value=2**63 + PRICE) for pay in case.draft.pays],
)

# Sighash
attack = refused("sighash-allowed")
attack("no sighash", no_own_field(b"\x03"))
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
    attack(f"sighash {named:#x}", own_field(b"\x03", struct.pack("<I", named)))
attack = refused("sighash-allowed", of("listing", "paired at 2"))
attack("sighash ALL|ANYONECANPAY on a plain listing", own_field(b"\x03", struct.pack("<I", 0x81)))
attack = refused("sighash-allowed", of("secure", "secure with fee"))
attack("sighash SINGLE|ANYONECANPAY on a secure listing", own_field(b"\x03", struct.pack("<I", 0x83)))
attack = refused("psbt-strict")
attack("a sighash of one byte", own_field(b"\x03", b"\x83"))
attack("a sighash of eight bytes", own_field(b"\x03", struct.pack("<Q", 0x83)))
attack("a sighash under a longer key", own_field(b"\x03\x00", struct.pack("<I", 0x83)))
attack("two sighashes", lambda case: case.own.fields.append((b"\x03", struct.pack("<I", 0x02))))
attack = refused("sighash-allowed", of("paired at 2", "secure with fee"))
attack(
    "the sighash on another input only",
    lambda case: (
        case.own.drop(b"\x03"),
        next(s for s in case.draft.spends if s is not case.own).fields.append((b"\x03", struct.pack("<I", 0x83))),
    ),
)
# The transaction's form
attack = refused("tx-form")
for version in (0, 3, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
    attack(f"transaction version {version:#x}", of_draft(version=version))
attack("a locktime a block above the tip", of_draft(locktime=TIP + 1))
attack("the highest locktime that is a height", of_draft(locktime=499_999_999))
attack("the lowest locktime that is a time", of_draft(locktime=500_000_000))
attack("the highest locktime", of_draft(locktime=0xFFFFFFFF))
attack(
    "a tip that is a time, and a locktime below it",
    lambda case: (
        of_facts(tip_height=600_000_000, index_height=600_000_000)(case),
        put(case.draft, locktime=550_000_000),
    ),
)
for sequence in (0, 1, 0x0000FFFF, 0x00400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC):
    attack(f"sequence {sequence:#x}", of_own(sequence=sequence))
attack = refused("tx-form", of("paired at 2", "secure with fee"))
attack(
    "a placeholder that waits", lambda case: put(next(s for s in case.draft.spends if s is not case.own), sequence=6)
)

# Keys, scripts and signatures on our input
attack = refused("key-path")
attack("a stranger's internal key", own_field(b"\x17", STRANGER_X))
attack = refused("key-path", of(kinds=TAPROOT))
attack("the output key as the internal key", own_field(b"\x17", script_by("p2tr", VAULT)[2:]))
attack = refused("key-path", of(kinds=SEGWIT_V0))
attack("our internal key on an older kind", own_field(b"\x17", VAULT.get_public_key().xonly()))
attack = refused("psbt-strict")
attack("an internal key of 33 bytes", own_field(b"\x17", VAULT.get_public_key().sec()))
attack("an internal key off the curve", own_field(b"\x17", OFF_CURVE_X))
attack = refused("key-path")
attack("a merkle root", own_field(b"\x18", b"\x33" * 32))
attack = refused("psbt-strict")
attack("an empty merkle root", own_field(b"\x18", b""))
attack = refused("key-path")
attack("a leaf script", own_field(b"\x15\xc0" + STRANGER_X, b"\x51\xc0"))
attack = refused("psbt-strict")
attack("a leaf script with a misshapen control block", own_field(b"\x15\xc0" + STRANGER_X + b"\0", b"\x51\xc0"))
attack("a leaf script without its version", own_field(b"\x15\xc0" + STRANGER_X, b""))
attack = refused("key-path")
attack("a witness script", own_field(b"\x05", b"\x51"))
attack("a redeem script", own_field(b"\x04", b"\x51"))
attack("a stranger's redeem script", own_field(b"\x04", script_by("p2wpkh", STRANGER)))
attack = refused("key-path", of(kinds=("p2tr", "p2wpkh")))
attack("our redeem script on a bare output", own_field(b"\x04", script_by("p2wpkh", VAULT)))
attack = refused("input-signed")
attack("a key signature already", own_field(b"\x13", b"\x44" * 64))
attack = refused("psbt-strict")
attack("a key signature of 63 bytes", own_field(b"\x13", b"\x44" * 63))
attack = refused("input-signed")
attack("a leaf signature already", own_field(b"\x14" + STRANGER_X + b"\x55" * 32, b"\x44" * 64))
attack("a stranger's partial signature", own_field(b"\x02" + STRANGER.get_public_key().sec(), DER + b"\x81"))
attack("a partial signature in our name", own_field(b"\x02" + VAULT.get_public_key().sec(), DER + b"\x83"))
attack = refused("psbt-strict")
attack("a partial signature of a key off the curve", own_field(b"\x02\x02" + OFF_CURVE_X, DER + b"\x83"))
attack("a partial signature that is no DER", own_field(b"\x02" + STRANGER.get_public_key().sec(), b"\x44" * 71))
attack = refused("input-signed")
attack("a final witness", own_field(b"\x08", b"\x01" + with_size(b"\x44" * 64)))
attack = refused("psbt-strict")
attack("a final witness with a byte more", own_field(b"\x08", b"\0\0"))
attack = refused("input-signed")
attack("a final script_sig", own_field(b"\x07", b""))
attack("a MuSig2 nonce", own_field(b"\x1b" + STRANGER.get_public_key().sec() * 2, STRANGER.get_public_key().sec() * 2))
attack("MuSig2 participants", own_field(b"\x1a" + STRANGER.get_public_key().sec(), STRANGER.get_public_key().sec()))
attack("a MuSig2 signature", own_field(b"\x1c" + STRANGER.get_public_key().sec() * 2, b"\x66" * 32))
attack = refused("psbt-strict")
attack("a derivation of a key off the curve", own_field(b"\x06\x02" + OFF_CURVE_X, b"\0" * 4))
attack("a derivation path of half a step", own_field(b"\x06" + STRANGER.get_public_key().sec(), b"\0" * 6))
attack("a taproot derivation with too few leaves", own_field(b"\x16" + STRANGER_X, b"\x02" + b"\0" * 36))
attack("the utxo field twice", lambda case: case.own.fields.append((b"\x01", output(POSTAGE, STRANGER_SCRIPT))))
attack("the same unknown field twice", lambda case: case.own.fields.extend([(b"\x77\x01", b"a"), (b"\x77\x01", b"b")]))
attack("a version 2 outpoint on our input", own_field(b"\x0e", OTHER_TXID))
attack("a version 2 output number on our input", own_field(b"\x0f", b"\0\0\0\0"))
attack("a version 2 sequence on our input", own_field(b"\x10", b"\xff" * 4))
attack("a version 2 time on our input", own_field(b"\x11", struct.pack("<I", 1_700_000_000)))
attack("a version 2 height on our input", own_field(b"\x12", struct.pack("<I", 1)))
attack("a misshapen proprietary field on our input", own_field(b"\xfc", b""))
attack("a preimage's hash of a wrong length", own_field(b"\x0b" + b"\0" * 20, b""))
# Fields of the output
attack("a version 2 amount on the output", out_field(b"\x03", struct.pack("<Q", PRICE)))
attack("a version 2 script on the output", out_field(b"\x04", STRANGER_SCRIPT))
attack("a misshapen redeem script key on the output", out_field(b"\x00\x01", b""))
attack("an internal key off the curve on the output", out_field(b"\x05", OFF_CURVE_X))
attack("a tree that is half", out_field(b"\x06", b"\x01\xc0\x01\x51"))
attack("a tree with a leaf too deep", out_field(b"\x06", b"\x81\xc0\x01\x51"))
attack("an output's field twice", lambda case: case.payout.fields.extend([(b"\x00", b""), (b"\x00", b"")]))
attack("a derivation of no key on the output", out_field(b"\x02", b"\0" * 4))
attack("an oversized tree length", out_field(b"\x06", b"\x00\xc0" + size(2**32)))

# What knowing the venue's form would have ruled out
attack = refused("outputs-known", of("OKX"))
attack("the payout at another input's index", lambda case: case.draft.pays.reverse())
attack = refused("outputs-known", of("OKX", "paired at 2"))
attack(
    "our input moved to where somebody else is paid", lambda case: case.draft.spends.insert(0, case.draft.spends.pop())
)
attack = refused("single-pair", of("OKX"))
attack("no output at the index of our input", lambda case: case.draft.pays.pop())
attack = refused("inputs-reserved", of("OKX"))
attack(
    "the listed output in a placeholder too",
    lambda case: put(case.draft.spends[0], txid=case.own.txid, vout=case.own.vout),
)
attack("the listed output nowhere", lambda case: case.draft.spends.pop(2))
attack("an input of ours among OKX's", lambda case: case.draft.spends[0].put(b"\x01", output(50_000, PAYOUT_SCRIPT)))
attack = refused("payout", of("secure with fee"))
attack("a fee that nobody declared", of_intent(seller_fee_ppm=0))
attack = refused("payout", of("price alone", "OKX"))
attack("a fee deducted from the price alone that nobody declared", payout_of(245_000))
attack = refused("payout", of("fee deducted", "secure with fee"))
attack("a fee deducted twice", payout_of(240_000))
attack = refused("payout", of("price alone"))
attack(
    "the price paid, a part of it to the vault",
    lambda case: (payout_less(1_000)(case), more_pay(1_000, script_by("p2tr", VAULT))(case)),
)
attack = refused("outputs-known", of("secure"))
attack("the payout in two halves", lambda case: put(case.draft, pays=[Pay(PRICE, PAYOUT_SCRIPT)] * 2))
attack = refused("outputs-known", of("secure", "secure with fee"))
attack("a second payout that another signature could count as its own", more_pay(90_000, PAYOUT_SCRIPT))


def holds(value: int) -> Change:
    """The listed output holds so many sats, by facts and PSBT alike."""

    def change(case: Case) -> None:
        of_facts(value_sats=value)(case)
        case.own.put(b"\x01", output(value, script_by("p2tr", VAULT)))

    return change


attack = refused("payout", of("price alone", "OKX", "listing", "secure", kinds=TAPROOT))
attack("an output that holds a sat too much to give away", holds(20_001))
attack = refused("payout", of("price alone", "fee deducted", kinds=TAPROOT))
attack("a fortune in the listed output, the price alone paid", holds(5_000_000))
