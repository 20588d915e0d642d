"""Attacks with the amounts of a funding PSBT, its sighash, its form and its signatures."""

from __future__ import annotations

import struct

from tests.wallet.attacks import offer_changes as ch
from tests.wallet.listings import STRANGER, TIP, VAULT
from tests.wallet.offers import PAYMENT_SCRIPT, PRICE, Offer

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)


def moved(sats: int) -> ch.Change:
    """From the change to the escrow."""

    def change(offer: Offer) -> None:
        offer.escrow.value += sats
        offer.change.value -= sats

    return change


attack("an escrow a sat too dear", "escrow", moved(1))
attack("an escrow of all that there is", "escrow", lambda offer: moved(offer.change.value)(offer))
attack("an escrow a sat short", "escrow", moved(-1))
attack("an escrow of nothing", "escrow", moved(-PRICE))
attack("outputs above all bitcoin", "escrow", ch.of_escrow(value=21 * 10**14 + 1))
attack("outputs that only fit when they wrap", "fee-abs", ch.of_change(value=-1))

# --- what the network gets ---
attack("a sat for the network", "fee-abs", lambda offer: ch.put(offer.change, value=offer.change.value - 1))
attack("no change where some is due", "fee-abs", lambda offer: offer.draft.pays.pop())
attack("change of nothing", "fee-abs", ch.of_change(value=0))
attack("more paid than there is", "fee-abs", ch.of_change(value=40_001))

# --- sighash ---
for _name, _flag in {
    "NONE": 2,
    "SINGLE": 3,
    "ALL|ANYONECANPAY": 0x81,
    "NONE|ANYONECANPAY": 0x82,
    "SINGLE|ANYONECANPAY": 0x83,
    "taproot's default": 0,
    "no meaning": 4,
    "ALL in a high byte as well": 0x0101,
}.items():
    attack(f"sighash: {_name}", "sighash-allowed", ch.own_field(b"\x03", struct.pack("<I", _flag)))
attack(
    "the last input alone with NONE|ANYONECANPAY",
    "sighash-allowed",
    lambda offer: offer.draft.spends[-1].put(b"\x03", struct.pack("<I", 0x82)),
)

# --- the transaction's form ---
attack("transaction version 0", "tx-form", ch.of_draft(version=0))
attack("a transaction that anybody may pin", "tx-form", ch.of_draft(version=2))
attack("a transaction of version 1", "tx-form", ch.of_draft(version=1))
attack("a transaction version that is none", "tx-form", ch.of_draft(version=4))
attack("a negative transaction version", "tx-form", ch.of_draft(version=0xFFFFFFFF))
attack("a locktime above the tip", "tx-form", ch.of_draft(locktime=TIP + 1))
attack("a locktime that is a time", "tx-form", ch.of_draft(locktime=1_700_000_000))
attack("a sequence that waits for blocks", "tx-form", ch.of_first(sequence=144))
attack("a sequence of nothing", "tx-form", ch.of_first(sequence=0))
attack("the last input waits", "tx-form", lambda offer: ch.put(offer.draft.spends[-1], sequence=0xFFFFFFFC))

# --- our key alone, unsigned so far ---
attack("a signature of ours already", "input-signed", ch.own_field(b"\x02" + ch.PAYMENT_KEY, ch.DER))
attack("a stranger's signature", "input-signed", ch.own_field(b"\x02" + STRANGER.get_public_key().sec(), ch.DER))
attack("a final witness", "input-signed", ch.own_field(b"\x08", b"\x01\x01\x51"))
attack("a final script_sig", "input-signed", ch.own_field(b"\x07", b"\x51"))
attack("a taproot signature", "input-signed", ch.own_field(b"\x13", b"\x11" * 64))
attack("a witness script", "key-path", ch.own_field(b"\x05", b"\x51"))
attack("a redeem script", "key-path", ch.own_field(b"\x04", PAYMENT_SCRIPT))
attack("a taproot internal key", "key-path", ch.own_field(b"\x17", VAULT.get_public_key().xonly()))
attack("a merkle root", "key-path", ch.own_field(b"\x18", b"\x11" * 32))
attack("a leaf script", "key-path", ch.own_field(b"\x15" + b"\xc0" + b"\x11" * 32, b"\x51\xc0"))
