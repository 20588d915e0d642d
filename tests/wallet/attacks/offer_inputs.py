"""Attacks with the bytes of a funding PSBT, with the price and with the coins that pay it."""

from __future__ import annotations

import struct

from tests.shapes import replace
from tests.wallet.attacks import offer_changes as ch
from tests.wallet.listings import TIP, Spend, former, output, txid_of
from tests.wallet.offers import PAYMENT_SCRIPT, STRANGER_PAYMENT, VAULT_SCRIPT, Offer, coin, known, outpoint_of
from wallet.psbt.transaction import Outpoint

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

# --- the bytes ---
attack("nothing at all", "psbt-strict", ch.of_draft(raw=b""))
attack("the magic alone", "psbt-strict", ch.of_draft(raw=b"psbt\xff"))
attack("another magic", "psbt-strict", ch.of_draft(magic=b"psbu\xff"))
attack("a network transaction instead of a PSBT", "psbt-strict", lambda offer: ch.put(offer.draft, raw=former(b"\x51")))
attack("cut by a byte", "psbt-strict", ch.on_raw(lambda raw: raw[:-1]))
attack("a byte left over", "psbt-strict", ch.of_draft(tail=b"\0"))
attack("a second PSBT behind it", "psbt-strict", ch.on_raw(lambda raw: raw + raw))
attack("a byte above the largest size", "psbt-size", ch.of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", "psbt-size", ch.own_field(b"\xf0", b"\0" * 33_000))
attack("the witness utxo twice", "psbt-strict", lambda offer: offer.first.fields.append((b"\x01", b"")))
attack("a script_sig in the unsigned transaction", "psbt-strict", ch.of_first(script_sig=b"\x51"))
attack("PSBT version 2 with a transaction", "psbt-strict", ch.of_draft(fields=[(b"\xfb", struct.pack("<I", 2))]))

# --- the price ---
attack("no price", "max-bid", ch.of_intent(price_sats=None))
attack("a price of nothing", "max-bid", ch.of_intent(price_sats=0))
attack("a negative price", "max-bid", ch.of_intent(price_sats=-1))
attack("a price above all bitcoin", "max-bid", ch.of_intent(price_sats=21 * 10**14 + 1))

# --- inputs ---
attack("no inputs", "inputs-reserved", ch.of_draft(spends=[]))
attack("one coin spent twice", "inputs-reserved", lambda offer: offer.draft.spends.append(offer.first))
attack("another output of the same transaction", "inputs-reserved", ch.of_first(vout=0))
attack("another transaction's output", "inputs-reserved", ch.of_first(txid=ch.OTHER_TXID))
attack(
    "a coin's txid as it is shown, not as it is written",
    "inputs-reserved",
    lambda offer: ch.put(offer.first, txid=offer.first.txid[::-1]),
)
attack(
    "a coin of ours that was not chosen",
    "inputs-reserved",
    lambda offer: ch.add_coin(offer, coin(70_000, at=2), 70_000, chosen=False),
)
attack(
    "a stranger's coin more",
    "inputs-reserved",
    lambda offer: ch.add_coin(offer, coin(70_000, STRANGER_PAYMENT), 70_000, STRANGER_PAYMENT, chosen=False),
)
attack(
    "an inscription of the vault in place of a coin",
    "inputs-reserved",
    lambda offer: ch.add_coin(offer, coin(10_000, VAULT_SCRIPT), 10_000, VAULT_SCRIPT, chosen=False),
)


def many_coins(offer: Offer) -> None:
    for number in range(20):
        ch.add_coin(offer, coin(1_000 + number, at=2), 1_000 + number, chosen=False)


attack("twenty coins that were not chosen", "inputs-reserved", many_coins)

# --- what is known of the coins ---
attack("nothing is known of any coin", "inputs-confirmed", lambda offer: ch.put(offer, facts={}))
attack(
    "nothing is known of the last coin",
    "inputs-confirmed",
    lambda offer: offer.facts.pop(outpoint_of(offer.draft.spends[-1])),
)
attack("facts of another output", "inputs-confirmed", ch.of_facts(outpoint=Outpoint(ch.OTHER_TXID, 1)))
attack("a coin is spent", "inputs-confirmed", ch.of_facts(is_unspent=False))
attack("it is not known whether a coin is spent", "inputs-confirmed", ch.of_facts(is_unspent=None))
attack("a coin is not confirmed", "inputs-confirmed", ch.of_facts(is_confirmed=False))
attack("it is not known whether a coin is confirmed", "inputs-confirmed", ch.of_facts(is_confirmed=None))
attack("a coin's value is not known", "amount-proof", ch.of_facts(value_sats=None))
attack("a coin's script is not known", "amount-proof", ch.of_facts(script=None))
attack("a coin is a stranger's by the facts", "amount-proof", ch.of_facts(script=STRANGER_PAYMENT))
attack("a coin is the vault's by the facts", "amount-proof", ch.of_facts(script=VAULT_SCRIPT))
attack("a coin is worth a sat more by the facts", "amount-proof", ch.of_facts(value_sats=200_001))
attack("a coin is worth a sat less by the facts", "amount-proof", ch.of_facts(value_sats=199_999))
attack("the index is two blocks behind", "inputs-cardinal", ch.of_facts(index_height=TIP - 2))
attack("the index's height is not known", "inputs-cardinal", ch.of_facts(index_height=None))
attack("the chain's tip is not known", "inputs-cardinal", ch.of_facts(tip_height=None))
attack("what a coin holds is not known", "inputs-cardinal", ch.of_facts(inscriptions=None))
attack("an inscription lies on a coin", "inputs-cardinal", ch.of_facts(inscriptions=(ch.INSCRIPTION,)))
attack("a rune lies on a coin", "inputs-cardinal", ch.of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether a coin holds runes", "inputs-cardinal", ch.of_facts(runes=None))


def second_is_inscribed(offer: Offer) -> None:
    last = outpoint_of(offer.draft.spends[-1])
    offer.facts[last] = replace(offer.facts[last], inscriptions=(ch.INSCRIPTION,))


attack("an inscription lies on the last coin", "inputs-cardinal", second_is_inscribed)

# --- what the PSBT says that a coin is ---
attack("no utxo at all", "amount-proof", ch.no_own_field(b"\x01"))
attack("a witness utxo a sat too high", "amount-proof", ch.own_field(b"\x01", output(200_001, PAYMENT_SCRIPT)))
attack("a witness utxo a sat too low", "amount-proof", ch.own_field(b"\x01", output(199_999, PAYMENT_SCRIPT)))
attack("a witness utxo of another script", "amount-proof", ch.own_field(b"\x01", output(200_000, STRANGER_PAYMENT)))
attack("another former transaction", "amount-proof", ch.own_field(b"\x00", former(PAYMENT_SCRIPT, 200_000, at=2)))


def former_lies(offer: Offer) -> None:
    """The former transaction is real and says another value than the witness utxo."""
    made_by = former(PAYMENT_SCRIPT, 300_000)
    spend = Spend(txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", output(200_000, PAYMENT_SCRIPT))])
    offer.draft.spends[0] = spend
    offer.facts[outpoint_of(spend)] = known(spend, 200_000)
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(spend)})


attack("a former transaction and a witness utxo that differ", "amount-proof", former_lies)
