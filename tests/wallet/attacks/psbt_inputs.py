"""Attacks with the price and with the inputs of a listing's PSBT."""

from __future__ import annotations

from tests.wallet import listings
from tests.wallet import listings as ls
from tests.wallet.attacks import psbt_changes as ch
from wallet import address
from wallet.psbt.transaction import Outpoint

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

# --- price and payout address ---
attack("no price", "list-min", ch.of_intent(price_sats=None))
attack("no minimum price", "list-min", ch.of_intent(min_price_sats=None))
attack("a price of nothing", "list-min", ch.of_intent(price_sats=0, min_price_sats=0))
attack("a negative price", "list-min", ch.of_intent(price_sats=-ls.PRICE, min_price_sats=-ls.PRICE))
attack("a minimum price of nothing", "list-min", ch.of_intent(min_price_sats=0))
attack("a price a sat below the minimum", "list-min", ch.of_intent(min_price_sats=ls.PRICE + 1))
attack("a price above all bitcoin", "list-min", ch.of_intent(price_sats=21 * 10**14 + 1))
attack("a payout address that is none", "dest-allow", ch.of_intent(payout_address="bc1q"))
attack(
    "a testnet payout address", "dest-allow", ch.of_intent(payout_address="tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx")
)
attack(
    "our own payout script as a testnet address",
    "dest-allow",
    ch.of_intent(payout_address=address.encode("tb", 0, ls.PAYOUT_SCRIPT[2:])),
)
attack(
    "a regtest payout address",
    "dest-allow",
    ch.of_intent(payout_address="bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw"),
)
attack(
    "a stranger's payout address",
    "dest-allow",
    ch.of_intent(payout_address="bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"),
)
attack("a legacy payout address", "dest-allow", ch.of_intent(payout_address="1BoatSLRHtKNngkdXEeobR76b53LETtpyT"))
attack(
    "a stranger's P2SH payout address", "dest-allow", ch.of_intent(payout_address="3P14159f73E4gFr7JterCCQh9QjiTjiZrG")
)
attack("a payout address with blanks", "dest-allow", ch.of_intent(payout_address=" " + listings.PAYOUT_ADDRESS))

# --- inputs ---
attack("another output of the same transaction", "inputs-reserved", ch.of_own(vout=0))
attack("the output after ours", "inputs-reserved", ch.of_own(vout=2))
attack("output 2^32 - 1", "inputs-reserved", ch.of_own(vout=0xFFFFFFFF))
attack("another transaction's output", "inputs-reserved", ch.of_own(txid=ch.OTHER_TXID))
attack(
    "the txid as it is shown, not as it is written",
    "inputs-reserved",
    lambda case: ch.put(case.own, txid=case.own.txid[::-1]),
)
attack("a coinbase's input", "inputs-reserved", ch.of_own(txid=bytes(32), vout=0xFFFFFFFF))
attack(
    "another outpoint with our output as its witness utxo",
    "inputs-reserved",
    ch.of_own(txid=b"\x01" * 32, vout=0),
)
attack("an intent for another output", "inputs-reserved", ch.of_intent(outpoint=Outpoint(ch.OTHER_TXID, 1)))
attack("a second input of ours", "inputs-reserved", ch.more_spend([(b"\x01", ls.output(50_000, ls.PAYOUT_SCRIPT))]))
attack(
    "a second inscription's input",
    "inputs-reserved",
    ch.more_spend([(b"\x01", ls.output(ls.POSTAGE, ls.script_by("p2tr", ls.VAULT)))]),
)
attack(
    "an input of ours before the listed one",
    "inputs-reserved",
    ch.more_spend([(b"\x01", ls.output(50_000, ls.PAYOUT_SCRIPT))], at=0),
)
attack("a stranger's input more", "inputs-reserved", ch.more_spend([(b"\x01", ls.output(600, ls.STRANGER_SCRIPT))]))
attack("an input more that says nothing", "inputs-reserved", ch.more_spend([]))
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
    ch.other_spend([(b"\x01", ls.output(50_000, ls.PAYOUT_SCRIPT))]),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the vault's input in place of the placeholder",
    "inputs-reserved",
    lambda case: ch.other_spend([(b"\x01", ls.output(ls.POSTAGE, ls.script_by(case.kind, ls.VAULT)))])(case),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "a placeholder that says nothing", "inputs-reserved", ch.other_spend([]), forms=("paired at 2", "secure with fee")
)
attack(
    "a placeholder that is ours by one of its two fields",
    "inputs-reserved",
    ch.other_spend([(b"\x01", ls.output(600, ls.STRANGER_SCRIPT)), (b"\x00", ls.former(ls.PAYOUT_SCRIPT))]),
    forms=("paired at 2", "secure with fee"),
)


def placeholder_of_ours(case: ls.Case) -> None:
    """Its former transaction is real, its witness utxo hides that it is ours."""
    made_by = ls.former(ls.PAYOUT_SCRIPT)
    spend = next(item for item in case.draft.spends if item is not case.own)
    spend.txid, spend.vout = ls.txid_of(made_by), 1
    spend.fields = [(b"\x01", ls.output(600, ls.STRANGER_SCRIPT)), (b"\x00", made_by)]


attack(
    "a placeholder that is ours by its former transaction",
    "inputs-reserved",
    placeholder_of_ours,
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the listed output also in place of the placeholder",
    "inputs-reserved",
    lambda case: ch.put(
        next(s for s in case.draft.spends if s is not case.own), txid=case.own.txid, vout=case.own.vout
    ),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "a placeholder fewer",
    "outputs-known",
    lambda case: case.draft.spends.remove(next(s for s in case.draft.spends if s is not case.own)),
    forms=("paired at 2", "secure with fee"),
)
