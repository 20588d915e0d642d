"""Attacks with what is known of the listed output, and with what the PSBT says of it."""

from __future__ import annotations

from tests.shapes import replace
from tests.wallet import listings as ls
from tests.wallet.attacks import psbt_changes as ch
from wallet.psbt.transaction import Outpoint

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

# --- what is known of the output ---
attack("nothing is known of the output", "inputs-confirmed", lambda case: ch.put(case, facts=None))
attack("facts of another output", "inputs-confirmed", ch.of_facts(outpoint=Outpoint(ch.OTHER_TXID, 1)))
attack("the output is spent", "inputs-confirmed", ch.of_facts(is_unspent=False))
attack("it is not known whether the output is spent", "inputs-confirmed", ch.of_facts(is_unspent=None))
attack("the output is not confirmed", "inputs-confirmed", ch.of_facts(is_confirmed=False))
attack("it is not known whether the output is confirmed", "inputs-confirmed", ch.of_facts(is_confirmed=None))
attack("the value is not known", "amount-proof", ch.of_facts(value_sats=None))
attack("the script is not known", "amount-proof", ch.of_facts(script=None))
attack("the output is a stranger's by the facts", "amount-proof", ch.of_facts(script=ls.STRANGER_SCRIPT))
attack("the facts know another value", "amount-proof", ch.of_facts(value_sats=ls.POSTAGE + 1))
attack("the index is two blocks behind", "inputs-cardinal", ch.of_facts(index_height=ls.TIP - 2))
attack("the index's height is not known", "inputs-cardinal", ch.of_facts(index_height=None))
attack("the chain's tip is not known", "inputs-cardinal", ch.of_facts(tip_height=None))
attack("what the output holds is not known", "inputs-cardinal", ch.of_facts(inscriptions=None))
attack("the output holds no inscription", "inputs-cardinal", ch.of_facts(inscriptions=()))
attack(
    "the output holds another inscription", "inputs-cardinal", ch.of_facts(inscriptions=(ls.INSCRIPTION[:-1] + "1",))
)
attack(
    "a second inscription in the output",
    "inputs-cardinal",
    ch.of_facts(inscriptions=(ls.INSCRIPTION, ls.INSCRIPTION[:-1] + "1")),
)
attack(
    "the inscription twice in the output", "inputs-cardinal", ch.of_facts(inscriptions=(ls.INSCRIPTION, ls.INSCRIPTION))
)
attack("a rune in the output", "inputs-cardinal", ch.of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether the output holds runes", "inputs-cardinal", ch.of_facts(runes=None))
attack("an intent for another inscription", "inputs-cardinal", ch.of_intent(inscription_id=ls.INSCRIPTION[:-1] + "1"))

# --- what the PSBT says the input spends ---
attack("no utxo at all", "amount-proof", ch.no_own_field(b"\x00", b"\x01"))
attack("no former transaction", "amount-proof", ch.no_own_field(b"\x00"), kinds=ch.SEGWIT_V0)
attack(
    "a witness utxo a sat too high",
    "amount-proof",
    lambda case: case.own.put(b"\x01", ls.output(ls.POSTAGE + 1, ls.script_by(case.kind, ls.VAULT))),
)
attack(
    "a witness utxo a sat too low",
    "amount-proof",
    lambda case: case.own.put(b"\x01", ls.output(ls.POSTAGE - 1, ls.script_by(case.kind, ls.VAULT))),
)
attack(
    "a negative witness utxo",
    "amount-proof",
    lambda case: case.own.put(b"\x01", ls.output(-ls.POSTAGE, ls.script_by(case.kind, ls.VAULT))),
)
attack("a witness utxo of a stranger", "amount-proof", ch.own_field(b"\x01", ls.output(ls.POSTAGE, ls.STRANGER_SCRIPT)))
attack(
    "a witness utxo of our other key", "amount-proof", ch.own_field(b"\x01", ls.output(ls.POSTAGE, ls.PAYOUT_SCRIPT))
)
attack("an empty witness utxo", "psbt-strict", ch.own_field(b"\x01", b""))
attack(
    "a witness utxo with a byte more",
    "psbt-strict",
    ch.own_field(b"\x01", ls.output(ls.POSTAGE, ls.PAYOUT_SCRIPT) + b"\0"),
)
attack("a former transaction that is another", "amount-proof", ch.own_field(b"\x00", ls.former(ls.STRANGER_SCRIPT)))
attack(
    "a former transaction of another amount",
    "amount-proof",
    lambda case: case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT), ls.POSTAGE + 1)),
)
attack(
    "a former transaction that is cut",
    "psbt-strict",
    lambda case: case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT))[:-1]),
)
attack(
    "a former transaction with a byte more",
    "psbt-strict",
    lambda case: case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT)) + b"\0"),
)
attack("a former transaction without inputs", "psbt-strict", ch.own_field(b"\x00", b"\2\0\0\0\0\0\0\0\0\0"))
attack(
    "a former transaction that claims witnesses and has none",
    "psbt-strict",
    ch.own_field(b"\x00", ls.former(ls.STRANGER_SCRIPT)[: -4 - 66] + b"\0\0\0\0\0"),
)


def former_too_short(case: ls.Case) -> None:
    """The right hash, and no output of that number; intent and facts follow the venue's story."""
    made_by = ls.former(ls.script_by(case.kind, ls.VAULT))
    assert case.facts is not None
    outpoint = Outpoint(ls.txid_of(made_by), 2)
    case.own.txid, case.own.vout = outpoint
    case.own.put(b"\x00", made_by)
    case.intent, case.facts = replace(case.intent, outpoint=outpoint), replace(case.facts, outpoint=outpoint)


attack("a former transaction without that output", "amount-proof", former_too_short)


def utxo_fields_differ(case: ls.Case) -> None:
    case.own.put(b"\x00", ls.former(ls.script_by(case.kind, ls.VAULT)))
    case.own.put(b"\x01", ls.output(ls.POSTAGE + 5_000, ls.script_by(case.kind, ls.VAULT)))


attack("the two utxo fields differ", "amount-proof", utxo_fields_differ)
attack(
    "another of our keys than the output's",
    "amount-proof",
    lambda case: ch.put(case, owner=replace(case.owner, public_key=ls.PAYMENT.get_public_key().sec())),
)
attack(
    "an own script that the user does not have",
    "amount-proof",
    lambda case: ch.put(case, owner=replace(case.owner, scripts=frozenset({ls.PAYOUT_SCRIPT}))),
)
