"""Attacks with a listing PSBT, by a venue or another in its place: small changes to an honest one.

An attack names itself, the tag it must be refused with, and the kinds of key and forms of listing it is tried on. Where
it changes nothing that a signature covers, or pays us no less than was asked, it is no attack: `HARMLESS` says why, and
there the change is signed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.wallet import listings
from tests.wallet.listings import (
    FORMS,
    INSCRIPTION,
    KINDS,
    ORDINALS,
    PAYMENT,
    PAYOUT_SCRIPT,
    POSTAGE,
    PRICE,
    STRANGER,
    STRANGER_SCRIPT,
    TIP,
    VAULT,
    VENUE_SCRIPT,
    Case,
    Form,
    Pay,
    Spend,
    former,
    output,
    script_by,
    size,
    txid_of,
    with_size,
)
from wallet import bech32
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint

Change = Callable[[Case], object]

PLAIN: tuple[Form, ...] = ("listing", "secure")
SEGWIT_V0: tuple[OwnKind, ...] = ("p2wpkh", "p2sh-p2wpkh")
TAPROOT: tuple[OwnKind, ...] = ("p2tr",)

OTHER_TXID = b"\x5a" * 32
STRANGER_X = STRANGER.get_public_key().xonly()
OFF_CURVE_X = b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32)


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    kinds: Sequence[OwnKind] = KINDS
    forms: Sequence[Form] = PLAIN

    def cases(self) -> list[Case]:
        made = []
        for kind in self.kinds:
            for form in self.forms:
                case = listings.honest(kind, form)
                self.change(case)
                made.append(case)
        return made


@dataclass(frozen=True)
class Harmless:
    """Why nothing is lost by signing it, and where that is so."""

    why: str
    forms: Sequence[Form]
    kinds: Sequence[OwnKind] = KINDS


ATTACKS: list[Attack] = []


def attack(name: str, tag: str, change: Change, **where: Any) -> None:
    ATTACKS.append(Attack(name, tag, change, **where))


def put(part: object, **values: Any) -> None:
    for name, value in values.items():
        setattr(part, name, value)


def of_intent(**values: Any) -> Change:
    return lambda case: put(case, intent=replace(case.intent, **values))


def of_facts(**values: Any) -> Change:
    return lambda case: put(case, facts=replace(case.facts, **values))  # type: ignore[type-var]


def of_draft(**values: Any) -> Change:
    return lambda case: put(case.draft, **values)


def of_own(**values: Any) -> Change:
    return lambda case: put(case.own, **values)


def own_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.own.put(key, value)


def no_own_field(*keys: bytes) -> Change:
    return lambda case: [case.own.drop(key) for key in keys]


def top_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.draft.fields.append((key, value))


def out_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.payout.fields.append((key, value))


def on_raw(change: Callable[[bytes], bytes]) -> Change:
    return lambda case: put(case.draft, raw=change(case.draft.encode()))


def on_transaction(change: Callable[[bytes], bytes]) -> Change:
    return lambda case: put(case.draft, transaction=change(case.draft.unsigned()))


def payout_of(value: int) -> Change:
    return lambda case: put(case.payout, value=value)


def payout_less(sats: int) -> Change:
    return lambda case: put(case.payout, value=case.payout.value - sats)


def pay_script(script: bytes) -> Change:
    return lambda case: put(case.payout, script=script)


def more_pay(value: int, script: bytes) -> Change:
    return lambda case: case.draft.pays.append(Pay(value, script))


def first_pay(value: int, script: bytes) -> Change:
    return lambda case: case.draft.pays.insert(0, Pay(value, script))


def more_spend(fields: listings.Pairs, at: int = 1, txid: bytes = OTHER_TXID) -> Change:
    return lambda case: case.draft.spends.insert(at, Spend(txid, 0, fields=list(fields)))


def other_spend(fields: listings.Pairs) -> Change:
    """In place of a placeholder."""

    def change(case: Case) -> None:
        case.draft.spends[1 - case.draft.spends.index(case.own) % 2].fields = list(fields)

    return change


# --- the venue's form: none is known, and none is asked for ---
attack("a venue without a template", "op-allowed", lambda case: None)
attack("another venue's template", "op-allowed", lambda case: None)

# --- the bytes ---
attack("nothing at all", "psbt-strict", of_draft(raw=b""))
attack("the magic alone", "psbt-strict", of_draft(raw=b"psbt\xff"))
attack("another magic", "psbt-strict", of_draft(magic=b"psbu\xff"))
attack("elements' magic", "psbt-strict", of_draft(magic=b"pset\xff"))
attack("a network transaction instead of a PSBT", "psbt-strict", lambda case: put(case.draft, raw=former(b"\x51")))
attack("base64 instead of bytes", "psbt-strict", of_draft(raw=b"cHNidP8BAHUCAAAAASaBcTce"))
attack("cut by a byte", "psbt-strict", on_raw(lambda raw: raw[:-1]))
attack("cut in the middle", "psbt-strict", on_raw(lambda raw: raw[: len(raw) // 2]))
attack("a byte left over", "psbt-strict", of_draft(tail=b"\0"))
attack("a second PSBT behind it", "psbt-strict", on_raw(lambda raw: raw + raw))
attack("an input map too many", "psbt-strict", of_draft(tail=b"\x01\x03\x04\x83\0\0\0\0"))
attack("an output map missing", "psbt-strict", on_raw(lambda raw: raw[:-1] if raw.endswith(b"\0\0") else raw[:-2]))
attack("a byte above the largest size", "psbt-size", of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", "psbt-size", own_field(b"\xf0", b"\0" * 33_000))
attack("a key's length in three bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xfd\x01\x00" + raw[6:]))
attack("a key's length in five bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xfe\x01\0\0\0" + raw[6:]))
attack("a key's length in nine bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xff\x01" + b"\0" * 7 + raw[6:]))
attack("a key of 2^64 - 1 bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xff" * 9 + raw[6:]))
attack("a value of 2^63 bytes", "psbt-strict", on_raw(lambda raw: raw[:7] + b"\xff" + b"\0" * 7 + b"\x80" + raw[8:]))
attack("a value's length too short by one", "psbt-strict", on_raw(lambda raw: raw[:7] + bytes([raw[7] - 1]) + raw[8:]))
attack("a value's length too long by one", "psbt-strict", on_raw(lambda raw: raw[:7] + bytes([raw[7] + 1]) + raw[8:]))
attack("a field's type in three bytes", "psbt-strict", own_field(b"\xfd\x03\x00", struct.pack("<I", 1)))
attack("a field's type cut short", "psbt-strict", own_field(b"\xfd\x03", b""))

# --- the global map ---
attack("no unsigned transaction", "psbt-strict", lambda case: put(case.draft, raw=b"psbt\xff\0\0\0"))
attack(
    "the unsigned transaction twice",
    "psbt-strict",
    lambda case: case.draft.fields.append((b"\0", case.draft.unsigned())),
)
attack(
    "a second unsigned transaction under a longer key",
    "psbt-strict",
    lambda case: case.draft.fields.append((b"\0\0", case.draft.unsigned())),
)
attack("PSBT version 1", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 1)))
attack("PSBT version 2 with a transaction", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 2)))
attack("PSBT version 3", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 3)))
attack("a PSBT version of one byte", "psbt-strict", top_field(b"\xfb", b"\0"))
attack("a version 2 transaction version", "psbt-strict", top_field(b"\x02", struct.pack("<I", 2)))
attack("a version 2 locktime", "psbt-strict", top_field(b"\x03", struct.pack("<I", 0)))
attack("a version 2 input count", "psbt-strict", top_field(b"\x04", b"\x01"))
attack("a version 2 output count", "psbt-strict", top_field(b"\x05", b"\x01"))
attack("a version 2 flag that all may change", "psbt-strict", top_field(b"\x06", b"\x03"))
attack("an extended key of no point", "psbt-strict", top_field(b"\x01" + b"\0" * 78, b"\0" * 4))
attack("a misshapen proprietary field", "psbt-strict", top_field(b"\xfc\x05ab", b""))
attack(
    "the same unknown global field twice", "psbt-strict", lambda case: case.draft.fields.extend([(b"\x70", b"a")] * 2)
)


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


attack("an honest listing as version 2", "psbt-strict", whole_v2)

# --- the unsigned transaction's bytes ---
attack("a script_sig in the unsigned transaction", "psbt-strict", of_own(script_sig=b"\x51"))
attack(
    "witnesses in the unsigned transaction", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\0\x01" + raw[4:])
)
attack("a byte behind the transaction", "psbt-strict", on_transaction(lambda raw: raw + b"\0"))
attack("a transaction without its locktime", "psbt-strict", on_transaction(lambda raw: raw[:-4]))
attack("an empty transaction", "psbt-strict", on_transaction(lambda raw: b""))
attack("an input count in three bytes", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\xfd\x01\0" + raw[5:]))
attack("2^64 - 1 inputs", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\xff" * 9 + raw[5:]))
attack("2^64 - 1 outputs", "psbt-strict", on_transaction(lambda raw: raw[:46] + b"\xff" * 9 + raw[47:]))
attack(
    "a script's length in three bytes", "psbt-strict", on_transaction(lambda raw: raw[:55] + b"\xfd\x16\0" + raw[56:])
)
attack("a script longer than the transaction", "psbt-strict", on_transaction(lambda raw: raw[:55] + b"\xfc" + raw[56:]))
attack("no inputs", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\0" + raw[46:]))
attack(
    "an input more than maps", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\x02" + raw[5:46] * 2 + raw[46:])
)
attack("an output fewer than maps", "psbt-strict", on_transaction(lambda raw: raw[:46] + b"\0" + raw[-4:]))

# --- price and payout address ---
attack("no price", "list-min", of_intent(price_sats=None))
attack("no minimum price", "list-min", of_intent(min_price_sats=None))
attack("a price of nothing", "list-min", of_intent(price_sats=0, min_price_sats=0))
attack("a negative price", "list-min", of_intent(price_sats=-PRICE, min_price_sats=-PRICE))
attack("a minimum price of nothing", "list-min", of_intent(min_price_sats=0))
attack("a price a sat below the minimum", "list-min", of_intent(min_price_sats=PRICE + 1))
attack("a price above all bitcoin", "list-min", of_intent(price_sats=21 * 10**14 + 1))
attack("a payout address that is none", "dest-allow", of_intent(payout_address="bc1q"))
attack("a testnet payout address", "dest-allow", of_intent(payout_address="tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"))
attack(
    "our own payout script as a testnet address",
    "dest-allow",
    of_intent(payout_address=bech32.encode("tb", 0, PAYOUT_SCRIPT[2:])),
)
attack(
    "a regtest payout address", "dest-allow", of_intent(payout_address="bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw")
)
attack(
    "a stranger's payout address", "dest-allow", of_intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
)
attack("a legacy payout address", "dest-allow", of_intent(payout_address="1BoatSLRHtKNngkdXEeobR76b53LETtpyT"))
attack("a stranger's P2SH payout address", "dest-allow", of_intent(payout_address="3P14159f73E4gFr7JterCCQh9QjiTjiZrG"))
attack("a payout address with blanks", "dest-allow", of_intent(payout_address=" " + listings.PAYOUT_ADDRESS))

# --- inputs ---
attack("another output of the same transaction", "inputs-reserved", of_own(vout=0))
attack("the output after ours", "inputs-reserved", of_own(vout=2))
attack("output 2^32 - 1", "inputs-reserved", of_own(vout=0xFFFFFFFF))
attack("another transaction's output", "inputs-reserved", of_own(txid=OTHER_TXID))
attack(
    "the txid as it is shown, not as it is written",
    "inputs-reserved",
    lambda case: put(case.own, txid=case.own.txid[::-1]),
)
attack("a coinbase's input", "inputs-reserved", of_own(txid=bytes(32), vout=0xFFFFFFFF))
attack(
    "another outpoint with our output as its witness utxo",
    "inputs-reserved",
    of_own(txid=b"\x01" * 32, vout=0),
)
attack("an intent for another output", "inputs-reserved", of_intent(outpoint=Outpoint(OTHER_TXID, 1)))
attack("a second input of ours", "inputs-reserved", more_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))]))
attack(
    "a second inscription's input",
    "inputs-reserved",
    more_spend([(b"\x01", output(POSTAGE, script_by("p2tr", VAULT)))]),
)
attack(
    "an input of ours before the listed one",
    "inputs-reserved",
    more_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))], at=0),
)
attack("a stranger's input more", "inputs-reserved", more_spend([(b"\x01", output(600, STRANGER_SCRIPT))]))
attack("an input more that says nothing", "inputs-reserved", more_spend([]))
attack("the listed output spent twice", "inputs-reserved", lambda case: case.draft.spends.append(case.own))
attack(
    "our input at another index",
    "outputs-known",
    lambda case: case.draft.spends.reverse(),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "an input of ours in place of the placeholder",
    "inputs-reserved",
    other_spend([(b"\x01", output(50_000, PAYOUT_SCRIPT))]),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the vault's input in place of the placeholder",
    "inputs-reserved",
    lambda case: other_spend([(b"\x01", output(POSTAGE, script_by(case.kind, VAULT)))])(case),
    forms=("paired at 2", "secure with fee"),
)
attack("a placeholder that says nothing", "inputs-reserved", other_spend([]), forms=("paired at 2", "secure with fee"))
attack(
    "a placeholder that is ours by one of its two fields",
    "inputs-reserved",
    other_spend([(b"\x01", output(600, STRANGER_SCRIPT)), (b"\x00", former(PAYOUT_SCRIPT))]),
    forms=("paired at 2", "secure with fee"),
)


def placeholder_of_ours(case: Case) -> None:
    """Its former transaction is real, its witness utxo hides that it is ours."""
    made_by = former(PAYOUT_SCRIPT)
    spend = next(item for item in case.draft.spends if item is not case.own)
    spend.txid, spend.vout = txid_of(made_by), 1
    spend.fields = [(b"\x01", output(600, STRANGER_SCRIPT)), (b"\x00", made_by)]


attack(
    "a placeholder that is ours by its former transaction",
    "inputs-reserved",
    placeholder_of_ours,
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the listed output also in place of the placeholder",
    "inputs-reserved",
    lambda case: put(next(s for s in case.draft.spends if s is not case.own), txid=case.own.txid, vout=case.own.vout),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "a placeholder fewer",
    "outputs-known",
    lambda case: case.draft.spends.remove(next(s for s in case.draft.spends if s is not case.own)),
    forms=("paired at 2", "secure with fee"),
)

# --- what is known of the output ---
attack("nothing is known of the output", "inputs-confirmed", lambda case: put(case, facts=None))
attack("facts of another output", "inputs-confirmed", of_facts(outpoint=Outpoint(OTHER_TXID, 1)))
attack("the output is spent", "inputs-confirmed", of_facts(is_unspent=False))
attack("it is not known whether the output is spent", "inputs-confirmed", of_facts(is_unspent=None))
attack("the output is not confirmed", "inputs-confirmed", of_facts(is_confirmed=False))
attack("it is not known whether the output is confirmed", "inputs-confirmed", of_facts(is_confirmed=None))
attack("the value is not known", "amount-proof", of_facts(value_sats=None))
attack("the script is not known", "amount-proof", of_facts(script=None))
attack("the output is a stranger's by the facts", "amount-proof", of_facts(script=STRANGER_SCRIPT))
attack("the facts know another value", "amount-proof", of_facts(value_sats=POSTAGE + 1))
attack("the index is two blocks behind", "inputs-cardinal", of_facts(index_height=TIP - 2))
attack("the index's height is not known", "inputs-cardinal", of_facts(index_height=None))
attack("the chain's tip is not known", "inputs-cardinal", of_facts(tip_height=None))
attack("what the output holds is not known", "inputs-cardinal", of_facts(inscriptions=None))
attack("the output holds no inscription", "inputs-cardinal", of_facts(inscriptions=()))
attack("the output holds another inscription", "inputs-cardinal", of_facts(inscriptions=(INSCRIPTION[:-1] + "1",)))
attack(
    "a second inscription in the output",
    "inputs-cardinal",
    of_facts(inscriptions=(INSCRIPTION, INSCRIPTION[:-1] + "1")),
)
attack("the inscription twice in the output", "inputs-cardinal", of_facts(inscriptions=(INSCRIPTION, INSCRIPTION)))
attack("a rune in the output", "inputs-cardinal", of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether the output holds runes", "inputs-cardinal", of_facts(runes=None))
attack("an intent for another inscription", "inputs-cardinal", of_intent(inscription_id=INSCRIPTION[:-1] + "1"))

# --- what the PSBT says the input spends ---
attack("no utxo at all", "amount-proof", no_own_field(b"\x00", b"\x01"))
attack("no former transaction", "amount-proof", no_own_field(b"\x00"), kinds=SEGWIT_V0)
attack(
    "a witness utxo a sat too high",
    "amount-proof",
    lambda case: case.own.put(b"\x01", output(POSTAGE + 1, script_by(case.kind, VAULT))),
)
attack(
    "a witness utxo a sat too low",
    "amount-proof",
    lambda case: case.own.put(b"\x01", output(POSTAGE - 1, script_by(case.kind, VAULT))),
)
attack(
    "a negative witness utxo",
    "amount-proof",
    lambda case: case.own.put(b"\x01", output(-POSTAGE, script_by(case.kind, VAULT))),
)
attack("a witness utxo of a stranger", "amount-proof", own_field(b"\x01", output(POSTAGE, STRANGER_SCRIPT)))
attack("a witness utxo of our other key", "amount-proof", own_field(b"\x01", output(POSTAGE, PAYOUT_SCRIPT)))
attack("an empty witness utxo", "psbt-strict", own_field(b"\x01", b""))
attack("a witness utxo with a byte more", "psbt-strict", own_field(b"\x01", output(POSTAGE, PAYOUT_SCRIPT) + b"\0"))
attack("a former transaction that is another", "amount-proof", own_field(b"\x00", former(STRANGER_SCRIPT)))
attack(
    "a former transaction of another amount",
    "amount-proof",
    lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT), POSTAGE + 1)),
)
attack(
    "a former transaction that is cut",
    "psbt-strict",
    lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT))[:-1]),
)
attack(
    "a former transaction with a byte more",
    "psbt-strict",
    lambda case: case.own.put(b"\x00", former(script_by(case.kind, VAULT)) + b"\0"),
)
attack("a former transaction without inputs", "psbt-strict", own_field(b"\x00", b"\2\0\0\0\0\0\0\0\0\0"))
attack(
    "a former transaction that claims witnesses and has none",
    "psbt-strict",
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


attack("a former transaction without that output", "amount-proof", former_too_short)


def utxo_fields_differ(case: Case) -> None:
    case.own.put(b"\x00", former(script_by(case.kind, VAULT)))
    case.own.put(b"\x01", output(POSTAGE + 5_000, script_by(case.kind, VAULT)))


attack("the two utxo fields differ", "amount-proof", utxo_fields_differ)
attack(
    "another of our keys than the output's",
    "amount-proof",
    lambda case: put(case, owner=replace(case.owner, public_key=PAYMENT.get_public_key().sec())),
)
attack(
    "an own script that the user does not have",
    "amount-proof",
    lambda case: put(case, owner=replace(case.owner, scripts=frozenset({PAYOUT_SCRIPT}))),
)

# --- outputs ---
attack("the payout swapped to a stranger", "outputs-known", pay_script(STRANGER_SCRIPT), forms=FORMS)
attack("the payout to the venue", "outputs-known", pay_script(VENUE_SCRIPT))
attack("the payout to our ordinals address", "outputs-known", pay_script(script_by("p2tr", ORDINALS)))
attack(
    "the payout back to the listed script",
    "outputs-known",
    lambda case: put(case.payout, script=script_by(case.kind, VAULT)),
)
attack("the payout to our untweaked key", "outputs-known", pay_script(b"\x51\x20" + VAULT.get_public_key().xonly()))
attack("the payout to anyone", "outputs-known", pay_script(b"\x51"))
attack("the payout to nobody", "outputs-known", pay_script(b""))
attack("the payout burnt in an OP_RETURN", "outputs-known", pay_script(b"\x6a" + PAYOUT_SCRIPT))
attack("the payout's program under another witness version", "outputs-known", pay_script(b"\x52" + PAYOUT_SCRIPT[1:]))
attack(
    "the payout's hash in a legacy script", "outputs-known", pay_script(b"\x76\xa9" + PAYOUT_SCRIPT[1:] + b"\x88\xac")
)
attack("the payout's script with an opcode more", "outputs-known", pay_script(PAYOUT_SCRIPT + b"\x75"))
attack("the payout's script without its last byte", "outputs-known", pay_script(PAYOUT_SCRIPT[:-1]))
attack(
    "the payout's script with its hash reversed", "outputs-known", pay_script(PAYOUT_SCRIPT[:2] + PAYOUT_SCRIPT[:1:-1])
)
attack("the payout short by a sat", "payout", payout_less(1), forms=FORMS)
attack("the payout without the postage", "payout", payout_less(POSTAGE))
attack("the payout halved", "payout", payout_of((PRICE + POSTAGE) // 2), forms=FORMS)
attack("the payout at the minimum price instead of the price", "payout", payout_of(200_000 + POSTAGE))
attack("the payout in another unit", "payout", payout_of((PRICE + POSTAGE) // 100))
attack("a payout of nothing", "payout", payout_of(0), forms=FORMS)
attack("a payout of one sat", "payout", payout_of(1), forms=FORMS)
attack("a payout of dust", "payout", payout_of(546), forms=FORMS)
attack("a payout cut to 16 bits", "payout", payout_of((PRICE + POSTAGE) & 0xFFFF))
attack("a negative payout", "outputs-known", payout_of(-PRICE), forms=FORMS)
attack("a payout of -1", "outputs-known", payout_of(-1))
attack("a payout of -2^63", "outputs-known", payout_of(2**63))
attack("a payout a sat above all bitcoin", "outputs-known", payout_of(21 * 10**14 + 1))
attack(
    "an unknown output more",
    "outputs-known",
    more_pay(1_000, STRANGER_SCRIPT),
    forms=("listing", "secure", "secure with fee"),
)
attack("an output of ours more", "outputs-known", more_pay(1_000, PAYOUT_SCRIPT))
attack("an undeclared fee output", "outputs-known", more_pay(5_000, VENUE_SCRIPT))
attack("a runestone more", "outputs-known", more_pay(0, bytes.fromhex("6a5d0814021600")))
attack("a free OP_RETURN more", "outputs-known", more_pay(0, b"\x6a"))
attack("a stranger's output before the payout", "outputs-known", first_pay(PRICE + POSTAGE, STRANGER_SCRIPT))
attack(
    "the payout split in two",
    "outputs-known",
    lambda case: (payout_less(5_000)(case), more_pay(5_000, PAYOUT_SCRIPT)(case)),
)
attack("the payout paid twice", "outputs-known", more_pay(PRICE + POSTAGE, PAYOUT_SCRIPT))
attack("no output where SINGLE needs one", "single-pair", lambda case: case.draft.pays.clear(), forms=("listing",))
attack("no output at all", "outputs-known", lambda case: case.draft.pays.clear(), forms=("secure", "secure with fee"))
attack(
    "SINGLE's output missing at our index", "single-pair", lambda case: case.draft.pays.pop(), forms=("paired at 2",)
)
attack(
    "the payout moved from SINGLE's index",
    "outputs-known",
    lambda case: case.draft.pays.reverse(),
    forms=("paired at 2",),
)
attack(
    "the payout and the fee swapped",
    "outputs-order",
    lambda case: case.draft.pays.reverse(),
    forms=("secure with fee",),
)
attack(
    "a stranger at SINGLE's index, the payout before it",
    "outputs-known",
    lambda case: (put(case.draft.pays[0], script=PAYOUT_SCRIPT), pay_script(STRANGER_SCRIPT)(case)),
    forms=("paired at 2",),
)
attack(
    "the fee a sat above the declared",
    "venue-fee",
    lambda case: put(case.draft.pays[1], value=case.draft.pays[1].value + 1),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the fee as high as the price",
    "venue-fee",
    lambda case: put(case.draft.pays[1], value=PRICE),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "a negative fee",
    "outputs-known",
    lambda case: put(case.draft.pays[1], value=-1),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the fee to a stranger",
    "outputs-known",
    lambda case: put(case.draft.pays[1], script=STRANGER_SCRIPT),
    forms=("paired at 2", "secure with fee"),
)
attack("the fee output missing", "outputs-known", lambda case: case.draft.pays.pop(), forms=("secure with fee",))
attack(
    "two outputs that overflow 64 bits together",
    "outputs-known",
    lambda case: [put(pay, value=2**63 + PRICE) for pay in case.draft.pays],
    forms=("secure with fee",),
)

# --- sighash ---
attack("no sighash", "sighash-allowed", no_own_field(b"\x03"))
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
    attack(f"sighash {named:#x}", "sighash-allowed", own_field(b"\x03", struct.pack("<I", named)))
attack(
    "sighash ALL|ANYONECANPAY on a plain listing",
    "sighash-allowed",
    own_field(b"\x03", struct.pack("<I", 0x81)),
    forms=("listing", "paired at 2"),
)
attack(
    "sighash SINGLE|ANYONECANPAY on a secure listing",
    "sighash-allowed",
    own_field(b"\x03", struct.pack("<I", 0x83)),
    forms=("secure", "secure with fee"),
)
attack("a sighash of one byte", "psbt-strict", own_field(b"\x03", b"\x83"))
attack("a sighash of eight bytes", "psbt-strict", own_field(b"\x03", struct.pack("<Q", 0x83)))
attack("a sighash under a longer key", "psbt-strict", own_field(b"\x03\x00", struct.pack("<I", 0x83)))
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
    attack(f"transaction version {version:#x}", "tx-form", of_draft(version=version))
attack("a locktime a block above the tip", "tx-form", of_draft(locktime=TIP + 1))
attack("the highest locktime that is a height", "tx-form", of_draft(locktime=499_999_999))
attack("the lowest locktime that is a time", "tx-form", of_draft(locktime=500_000_000))
attack("the highest locktime", "tx-form", of_draft(locktime=0xFFFFFFFF))
attack(
    "a tip that is a time, and a locktime below it",
    "tx-form",
    lambda case: (
        of_facts(tip_height=600_000_000, index_height=600_000_000)(case),
        put(case.draft, locktime=550_000_000),
    ),
)
for sequence in (0, 1, 0x0000FFFF, 0x00400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC):
    attack(f"sequence {sequence:#x}", "tx-form", of_own(sequence=sequence))
attack(
    "a placeholder that waits",
    "tx-form",
    lambda case: put(next(s for s in case.draft.spends if s is not case.own), sequence=6),
    forms=("paired at 2", "secure with fee"),
)

# --- keys, scripts and signatures on our input ---
attack("a stranger's internal key", "key-path", own_field(b"\x17", STRANGER_X))
attack(
    "the output key as the internal key", "key-path", own_field(b"\x17", script_by("p2tr", VAULT)[2:]), kinds=TAPROOT
)
attack(
    "our internal key on an older kind", "key-path", own_field(b"\x17", VAULT.get_public_key().xonly()), kinds=SEGWIT_V0
)
attack("an internal key of 33 bytes", "psbt-strict", own_field(b"\x17", VAULT.get_public_key().sec()))
attack("an internal key off the curve", "psbt-strict", own_field(b"\x17", OFF_CURVE_X))
attack("a merkle root", "key-path", own_field(b"\x18", b"\x33" * 32))
attack("an empty merkle root", "psbt-strict", own_field(b"\x18", b""))
attack("a leaf script", "key-path", own_field(b"\x15\xc0" + STRANGER_X, b"\x51\xc0"))
attack(
    "a leaf script with a misshapen control block",
    "psbt-strict",
    own_field(b"\x15\xc0" + STRANGER_X + b"\0", b"\x51\xc0"),
)
attack("a leaf script without its version", "psbt-strict", own_field(b"\x15\xc0" + STRANGER_X, b""))
attack("a witness script", "key-path", own_field(b"\x05", b"\x51"))
attack("a redeem script", "key-path", own_field(b"\x04", b"\x51"))
attack("a stranger's redeem script", "key-path", own_field(b"\x04", script_by("p2wpkh", STRANGER)))
attack(
    "our redeem script on a bare output",
    "key-path",
    own_field(b"\x04", script_by("p2wpkh", VAULT)),
    kinds=("p2tr", "p2wpkh"),
)
attack("a key signature already", "input-signed", own_field(b"\x13", b"\x44" * 64))
attack("a key signature of 63 bytes", "psbt-strict", own_field(b"\x13", b"\x44" * 63))
attack("a leaf signature already", "input-signed", own_field(b"\x14" + STRANGER_X + b"\x55" * 32, b"\x44" * 64))
attack(
    "a stranger's partial signature",
    "input-signed",
    own_field(b"\x02" + STRANGER.get_public_key().sec(), DER + b"\x81"),
)
attack(
    "a partial signature in our name", "input-signed", own_field(b"\x02" + VAULT.get_public_key().sec(), DER + b"\x83")
)
attack("a partial signature of a key off the curve", "psbt-strict", own_field(b"\x02\x02" + OFF_CURVE_X, DER + b"\x83"))
attack(
    "a partial signature that is no DER",
    "psbt-strict",
    own_field(b"\x02" + STRANGER.get_public_key().sec(), b"\x44" * 71),
)
attack("a final witness", "input-signed", own_field(b"\x08", b"\x01" + with_size(b"\x44" * 64)))
attack("a final witness with a byte more", "psbt-strict", own_field(b"\x08", b"\0\0"))
attack("a final script_sig", "input-signed", own_field(b"\x07", b""))
attack(
    "a MuSig2 nonce",
    "input-signed",
    own_field(b"\x1b" + STRANGER.get_public_key().sec() * 2, STRANGER.get_public_key().sec() * 2),
)
attack(
    "MuSig2 participants",
    "input-signed",
    own_field(b"\x1a" + STRANGER.get_public_key().sec(), STRANGER.get_public_key().sec()),
)
attack("a MuSig2 signature", "input-signed", own_field(b"\x1c" + STRANGER.get_public_key().sec() * 2, b"\x66" * 32))
attack("a derivation of a key off the curve", "psbt-strict", own_field(b"\x06\x02" + OFF_CURVE_X, b"\0" * 4))
attack(
    "a derivation path of half a step", "psbt-strict", own_field(b"\x06" + STRANGER.get_public_key().sec(), b"\0" * 6)
)
attack("a taproot derivation with too few leaves", "psbt-strict", own_field(b"\x16" + STRANGER_X, b"\x02" + b"\0" * 36))
attack(
    "the utxo field twice",
    "psbt-strict",
    lambda case: case.own.fields.append((b"\x01", output(POSTAGE, STRANGER_SCRIPT))),
)
attack(
    "the same unknown field twice",
    "psbt-strict",
    lambda case: case.own.fields.extend([(b"\x77\x01", b"a"), (b"\x77\x01", b"b")]),
)
attack("a version 2 outpoint on our input", "psbt-strict", own_field(b"\x0e", OTHER_TXID))
attack("a version 2 output number on our input", "psbt-strict", own_field(b"\x0f", b"\0\0\0\0"))
attack("a version 2 sequence on our input", "psbt-strict", own_field(b"\x10", b"\xff" * 4))
attack("a version 2 time on our input", "psbt-strict", own_field(b"\x11", struct.pack("<I", 1_700_000_000)))
attack("a version 2 height on our input", "psbt-strict", own_field(b"\x12", struct.pack("<I", 1)))
attack("a misshapen proprietary field on our input", "psbt-strict", own_field(b"\xfc", b""))
attack("a preimage's hash of a wrong length", "psbt-strict", own_field(b"\x0b" + b"\0" * 20, b""))

# --- fields of the output ---
attack("a version 2 amount on the output", "psbt-strict", out_field(b"\x03", struct.pack("<Q", PRICE)))
attack("a version 2 script on the output", "psbt-strict", out_field(b"\x04", STRANGER_SCRIPT))
attack("a misshapen redeem script key on the output", "psbt-strict", out_field(b"\x00\x01", b""))
attack("an internal key off the curve on the output", "psbt-strict", out_field(b"\x05", OFF_CURVE_X))
attack("a tree that is half", "psbt-strict", out_field(b"\x06", b"\x01\xc0\x01\x51"))
attack("a tree with a leaf too deep", "psbt-strict", out_field(b"\x06", b"\x81\xc0\x01\x51"))
attack(
    "an output's field twice", "psbt-strict", lambda case: case.payout.fields.extend([(b"\x00", b""), (b"\x00", b"")])
)
attack("a derivation of no key on the output", "psbt-strict", out_field(b"\x02", b"\0" * 4))
attack("an oversized tree length", "psbt-strict", out_field(b"\x06", b"\x00\xc0" + size(2**32)))

# --- what only counts once no form is asked for ---
attack("the payout at another input's index", "outputs-known", lambda case: case.draft.pays.reverse(), forms=("OKX",))
attack(
    "our input moved to where somebody else is paid",
    "outputs-known",
    lambda case: case.draft.spends.insert(0, case.draft.spends.pop()),
    forms=("OKX", "paired at 2"),
)
attack("no output at the index of our input", "single-pair", lambda case: case.draft.pays.pop(), forms=("OKX",))
attack(
    "the listed output in a placeholder too",
    "inputs-reserved",
    lambda case: put(case.draft.spends[0], txid=case.own.txid, vout=case.own.vout),
    forms=("OKX",),
)
attack("the listed output nowhere", "inputs-reserved", lambda case: case.draft.spends.pop(2), forms=("OKX",))
attack(
    "an input of ours among OKX's",
    "inputs-reserved",
    lambda case: case.draft.spends[0].put(b"\x01", output(50_000, PAYOUT_SCRIPT)),
    forms=("OKX",),
)
attack("a fee that nobody declared", "payout", of_intent(seller_fee_ppm=0), forms=("secure with fee",))
attack(
    "a fee deducted from the price alone that nobody declared",
    "payout",
    payout_of(245_000),
    forms=("price alone", "OKX"),
)
attack("a fee deducted twice", "payout", payout_of(240_000), forms=("fee deducted", "secure with fee"))
attack(
    "the price paid, a part of it to the vault",
    "payout",
    lambda case: (payout_less(1_000)(case), more_pay(1_000, script_by("p2tr", VAULT))(case)),
    forms=("price alone",),
)
attack(
    "the payout in two halves",
    "outputs-known",
    lambda case: put(case.draft, pays=[Pay(PRICE, PAYOUT_SCRIPT)] * 2),
    forms=("secure",),
)
attack(
    "a second payout that another signature could count as its own",
    "outputs-known",
    more_pay(90_000, PAYOUT_SCRIPT),
    forms=("secure", "secure with fee"),
)


def holds(value: int) -> Change:
    """The listed output holds so many sats, by facts and PSBT alike."""

    def change(case: Case) -> None:
        of_facts(value_sats=value)(case)
        case.own.put(b"\x01", output(value, script_by("p2tr", VAULT)))

    return change


attack(
    "an output that holds a sat too much to give away",
    "payout",
    holds(20_001),
    kinds=TAPROOT,
    forms=("price alone", "OKX", "listing", "secure"),
)
attack(
    "a fortune in the listed output, the price alone paid",
    "payout",
    holds(5_000_000),
    kinds=TAPROOT,
    forms=("price alone", "fee deducted"),
)

_OTHERS_INPUT = "with ANYONECANPAY no other input is covered, and only ours is signed"
_OTHERS_OUTPUT = "every covered output stands there for whoever pays; ours is paid in full"
_MORE = "the one more is not covered by SINGLE: whoever buys may leave it out"
_WHOLE_PRICE = "what is missing is postage, which may go to the buyer; the price is paid in full"
_FEE = "what somebody else gets comes out of the buyer's inputs, not out of our payout"
_NO_FORM = "there is no form to compare with: what the signature covers is right"
HARMLESS: dict[str, Harmless] = {
    "a venue without a template": Harmless(_NO_FORM, PLAIN),
    "another venue's template": Harmless(_NO_FORM, PLAIN),
    "a second inscription's input": Harmless("it is none of the keys that this user has here", PLAIN, SEGWIT_V0),
    "a stranger's input more": Harmless(_OTHERS_INPUT, PLAIN),
    "an input more that says nothing": Harmless(_OTHERS_INPUT, PLAIN),
    "our input at another index": Harmless(
        "ALL covers outputs, not at which index our input stands", ("secure with fee",)
    ),
    "a placeholder that says nothing": Harmless(_OTHERS_INPUT, ("paired at 2", "secure with fee")),
    "a placeholder fewer": Harmless(_OTHERS_INPUT, ("secure with fee",)),
    "the payout short by a sat": Harmless(_WHOLE_PRICE, ("listing", "secure", "paired at 2", "fee deducted")),
    "the payout without the postage": Harmless(_WHOLE_PRICE, PLAIN),
    "an unknown output more": Harmless(_OTHERS_OUTPUT, ("listing", "secure", "secure with fee")),
    "an output of ours more": Harmless(_MORE, ("listing",)),
    "an undeclared fee output": Harmless(_FEE, PLAIN),
    "a runestone more": Harmless("the output holds no runes by facts, so it moves none of ours", PLAIN),
    "a free OP_RETURN more": Harmless(_OTHERS_OUTPUT, PLAIN),
    "a stranger's output before the payout": Harmless("ALL covers the payout wherever it stands", ("secure",)),
    "the payout split in two": Harmless(_WHOLE_PRICE, ("listing",)),
    "the payout paid twice": Harmless(_MORE, ("listing",)),
    "the payout and the fee swapped": Harmless("ALL covers the payout wherever it stands", ("secure with fee",)),
    "the fee a sat above the declared": Harmless(_FEE, ("paired at 2", "secure with fee")),
    "the fee as high as the price": Harmless(_FEE, ("paired at 2", "secure with fee")),
    "a negative fee": Harmless("such a transaction is valid nowhere", ("paired at 2", "secure with fee")),
    "the fee to a stranger": Harmless(_FEE, ("paired at 2", "secure with fee")),
    "the fee output missing": Harmless(_FEE, ("secure with fee",)),
    "transaction version 0x3": Harmless("nodes relay it, so it is good for a sale at the price", PLAIN),
    "a placeholder that waits": Harmless(_OTHERS_INPUT, ("paired at 2", "secure with fee")),
}


def is_harmless(name: str, case: Case) -> bool:
    """Whether what the attack of this name makes of an honest listing is signed."""
    found = HARMLESS.get(name)
    return found is not None and case.form in found.forms and case.kind in found.kinds
