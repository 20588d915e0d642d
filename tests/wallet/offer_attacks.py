"""Attacks with the funding PSBT of an offer, by a venue or another in its place: small changes to an honest one.

An attack names itself, the tag it must be refused with, and the forms it is tried on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.wallet.listings import (
    ORDINALS,
    PAYMENT,
    STRANGER,
    STRANGER_SCRIPT,
    TIP,
    VAULT,
    VENUE,
    Pay,
    Spend,
    former,
    output,
    script_by,
    txid_of,
)
from tests.wallet.offers import (
    ANNOUNCEMENT,
    ESCROW_SCRIPT,
    FORMS,
    MERKLE_ROOT,
    PAYMENT_SCRIPT,
    PRICE,
    STRANGER_PAYMENT,
    VAULT_SCRIPT,
    WSH_ESCROW,
    Form,
    Offer,
    coin,
    honest,
    known,
    outpoint_of,
)
from wallet.psbt.transaction import Outpoint

Change = Callable[[Offer], object]

PLAY: tuple[Form, ...] = ("play",)
WITH_FEES: tuple[Form, ...] = ("with fees",)
OTHER_TXID = b"\x5a" * 32
OFF_CURVE = b"\x51\x20" + b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")
PAYMENT_KEY = PAYMENT.get_public_key().sec()
INSCRIPTION = "ab" * 32 + "i0"


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    forms: Sequence[Form] = FORMS

    def cases(self) -> list[Offer]:
        made = []
        for form in self.forms:
            offer = honest(form)
            self.change(offer)
            made.append(offer)
        return made


ATTACKS: list[Attack] = []


def attack(name: str, tag: str, change: Change, forms: Sequence[Form] = FORMS) -> None:
    ATTACKS.append(Attack(name, tag, change, forms))


def put(part: object, **values: object) -> None:
    for name, value in values.items():
        setattr(part, name, value)


def of_draft(**values: object) -> Change:
    return lambda offer: put(offer.draft, **values)


def of_first(**values: object) -> Change:
    return lambda offer: put(offer.first, **values)


def of_escrow(**values: object) -> Change:
    return lambda offer: put(offer.escrow, **values)


def of_change(**values: object) -> Change:
    return lambda offer: put(offer.change, **values)


def of_facts(**values: object) -> Change:
    return lambda offer: offer.of_facts(**values)


def of_intent(**values: object) -> Change:
    return lambda offer: put(offer, intent=replace(offer.intent, **values))  # type: ignore[arg-type]


def own_field(key: bytes, value: bytes) -> Change:
    return lambda offer: offer.first.put(key, value)


def no_own_field(key: bytes) -> Change:
    return lambda offer: offer.first.drop(key)


def more_pay(value: int, script: bytes) -> Change:
    return lambda offer: offer.draft.pays.append(Pay(value, script))


def on_raw(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: put(offer.draft, raw=change(offer.draft.encode()))


def add_coin(offer: Offer, spend: Spend, sats: int, script: bytes = PAYMENT_SCRIPT, *, chosen: bool = True) -> None:
    """One input more, whose value the change gets."""
    offer.draft.spends.append(spend)
    offer.facts[outpoint_of(spend)] = known(spend, sats, script)
    if chosen:
        offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(spend)})
    offer.change.value += sats


# --- the venue and its template ---
attack("a venue without a template", "op-allowed", lambda offer: put(offer, template=None))
attack("ord.net itself, by the practice market's template", "op-allowed", of_intent(venue="ordnet"))
attack("satflow, where bids are texts", "op-allowed", of_intent(venue="satflow"))

# --- the bytes ---
attack("nothing at all", "psbt-strict", of_draft(raw=b""))
attack("the magic alone", "psbt-strict", of_draft(raw=b"psbt\xff"))
attack("another magic", "psbt-strict", of_draft(magic=b"psbu\xff"))
attack("a network transaction instead of a PSBT", "psbt-strict", lambda offer: put(offer.draft, raw=former(b"\x51")))
attack("cut by a byte", "psbt-strict", on_raw(lambda raw: raw[:-1]))
attack("a byte left over", "psbt-strict", of_draft(tail=b"\0"))
attack("a second PSBT behind it", "psbt-strict", on_raw(lambda raw: raw + raw))
attack("a byte above the largest size", "psbt-size", of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", "psbt-size", own_field(b"\xf0", b"\0" * 33_000))
attack("the witness utxo twice", "psbt-strict", lambda offer: offer.first.fields.append((b"\x01", b"")))
attack("a script_sig in the unsigned transaction", "psbt-strict", of_first(script_sig=b"\x51"))
attack("PSBT version 2 with a transaction", "psbt-strict", of_draft(fields=[(b"\xfb", struct.pack("<I", 2))]))

# --- the price ---
attack("no price", "max-bid", of_intent(price_sats=None))
attack("a price of nothing", "max-bid", of_intent(price_sats=0))
attack("a negative price", "max-bid", of_intent(price_sats=-1))
attack("a price above all bitcoin", "max-bid", of_intent(price_sats=21 * 10**14 + 1))

# --- inputs ---
attack("no inputs", "inputs-reserved", of_draft(spends=[]))
attack("one coin spent twice", "inputs-reserved", lambda offer: offer.draft.spends.append(offer.first))
attack("another output of the same transaction", "inputs-reserved", of_first(vout=0))
attack("another transaction's output", "inputs-reserved", of_first(txid=OTHER_TXID))
attack(
    "a coin's txid as it is shown, not as it is written",
    "inputs-reserved",
    lambda offer: put(offer.first, txid=offer.first.txid[::-1]),
)
attack(
    "a coin of ours that was not chosen",
    "inputs-reserved",
    lambda offer: add_coin(offer, coin(70_000, at=2), 70_000, chosen=False),
)
attack(
    "a stranger's coin more",
    "inputs-reserved",
    lambda offer: add_coin(offer, coin(70_000, STRANGER_PAYMENT), 70_000, STRANGER_PAYMENT, chosen=False),
)
attack(
    "an inscription of the vault in place of a coin",
    "inputs-reserved",
    lambda offer: add_coin(offer, coin(10_000, VAULT_SCRIPT), 10_000, VAULT_SCRIPT, chosen=False),
)


def many_coins(offer: Offer) -> None:
    assert offer.template
    for number in range(offer.template.max_inputs - 1):
        add_coin(offer, coin(1_000 + number, at=2), 1_000 + number, chosen=False)


attack("a coin more than the template has", "inputs-reserved", many_coins)

# --- what is known of the coins ---
attack("nothing is known of any coin", "inputs-confirmed", lambda offer: put(offer, facts={}))
attack(
    "nothing is known of the last coin",
    "inputs-confirmed",
    lambda offer: offer.facts.pop(outpoint_of(offer.draft.spends[-1])),
)
attack("facts of another output", "inputs-confirmed", of_facts(outpoint=Outpoint(OTHER_TXID, 1)))
attack("a coin is spent", "inputs-confirmed", of_facts(is_unspent=False))
attack("it is not known whether a coin is spent", "inputs-confirmed", of_facts(is_unspent=None))
attack("a coin is not confirmed", "inputs-confirmed", of_facts(is_confirmed=False))
attack("it is not known whether a coin is confirmed", "inputs-confirmed", of_facts(is_confirmed=None))
attack("a coin's value is not known", "amount-proof", of_facts(value_sats=None))
attack("a coin's script is not known", "amount-proof", of_facts(script=None))
attack("a coin is a stranger's by the facts", "amount-proof", of_facts(script=STRANGER_PAYMENT))
attack("a coin is the vault's by the facts", "amount-proof", of_facts(script=VAULT_SCRIPT))
attack("a coin is worth a sat more by the facts", "amount-proof", of_facts(value_sats=200_001))
attack("a coin is worth a sat less by the facts", "amount-proof", of_facts(value_sats=199_999))
attack("the index is two blocks behind", "inputs-cardinal", of_facts(index_height=TIP - 2))
attack("the index's height is not known", "inputs-cardinal", of_facts(index_height=None))
attack("the chain's tip is not known", "inputs-cardinal", of_facts(tip_height=None))
attack("what a coin holds is not known", "inputs-cardinal", of_facts(inscriptions=None))
attack("an inscription lies on a coin", "inputs-cardinal", of_facts(inscriptions=(INSCRIPTION,)))
attack("a rune lies on a coin", "inputs-cardinal", of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether a coin holds runes", "inputs-cardinal", of_facts(runes=None))


def second_is_inscribed(offer: Offer) -> None:
    last = outpoint_of(offer.draft.spends[-1])
    offer.facts[last] = replace(offer.facts[last], inscriptions=(INSCRIPTION,))


attack("an inscription lies on the last coin", "inputs-cardinal", second_is_inscribed)

# --- what the PSBT says that a coin is ---
attack("no utxo at all", "amount-proof", no_own_field(b"\x01"))
attack("a witness utxo a sat too high", "amount-proof", own_field(b"\x01", output(200_001, PAYMENT_SCRIPT)))
attack("a witness utxo a sat too low", "amount-proof", own_field(b"\x01", output(199_999, PAYMENT_SCRIPT)))
attack("a witness utxo of another script", "amount-proof", own_field(b"\x01", output(200_000, STRANGER_PAYMENT)))
attack("another former transaction", "amount-proof", own_field(b"\x00", former(PAYMENT_SCRIPT, 200_000, at=2)))


def former_lies(offer: Offer) -> None:
    """The former transaction is real and says another value than the witness utxo."""
    made_by = former(PAYMENT_SCRIPT, 300_000)
    spend = Spend(txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", output(200_000, PAYMENT_SCRIPT))])
    offer.draft.spends[0] = spend
    offer.facts[outpoint_of(spend)] = known(spend, 200_000)
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(spend)})


attack("a former transaction and a witness utxo that differ", "amount-proof", former_lies)

# --- outputs ---
attack("no outputs", "outputs-known", of_draft(pays=[]))
attack("no escrow", "outputs-known", lambda offer: offer.draft.pays.pop(0))
attack("the change alone", "outputs-known", lambda offer: put(offer.draft, pays=[offer.change]))
attack("two escrows", "outputs-known", lambda offer: put(offer.change, script=script_by("p2tr", ORDINALS)))
attack("an output more", "outputs-known", more_pay(1, STRANGER_SCRIPT))
attack("a second change", "outputs-known", more_pay(1, PAYMENT_SCRIPT))
attack("an output of nothing more", "outputs-known", more_pay(0, STRANGER_PAYMENT))
attack("a runestone", "outputs-known", more_pay(0, b"\x6a\x5d\x02\x00\x00"))
attack("a note in an OP_RETURN", "outputs-known", more_pay(0, b"\x6a\x04note"))
attack("the change to a stranger", "outputs-known", of_change(script=STRANGER_PAYMENT))
attack("the change to a stranger's taproot", "outputs-known", of_change(script=STRANGER_SCRIPT))
attack("the change to our vault", "outputs-known", of_change(script=VAULT_SCRIPT))
attack("the change to our key nested", "outputs-known", of_change(script=script_by("p2sh-p2wpkh", PAYMENT)))
attack(
    "the change to our key by a legacy script",
    "outputs-known",
    of_change(script=b"\x76\xa9\x14" + PAYMENT_SCRIPT[2:] + b"\x88\xac"),
)
attack("the change to a longer script that begins as ours", "outputs-known", of_change(script=PAYMENT_SCRIPT + b"\x51"))
attack("the change first", "outputs-order", lambda offer: offer.draft.pays.reverse())
attack("the announcement last", "outputs-order", lambda offer: offer.draft.pays.append(offer.draft.pays.pop(1)), PLAY)
attack("no announcement", "outputs-known", lambda offer: offer.draft.pays.pop(1), PLAY)
attack("an announcement where there is none", "outputs-known", more_pay(0, ANNOUNCEMENT), WITH_FEES)
attack("two announcements", "outputs-known", lambda offer: offer.draft.pays.insert(1, Pay(0, ANNOUNCEMENT)), PLAY)
attack("an escrow that anyone can spend", "outputs-known", of_escrow(script=b"\x51"))
attack("an escrow to a stranger's P2WPKH", "outputs-known", of_escrow(script=STRANGER_PAYMENT))
attack("an escrow to a legacy script", "outputs-known", of_escrow(script=b"\x76\xa9\x14" + b"\x11" * 20 + b"\x88\xac"))
attack("an escrow to P2SH", "outputs-known", of_escrow(script=b"\xa9\x14" + b"\x11" * 20 + b"\x87"))
attack("an escrow to a script hash", "outputs-known", of_escrow(script=WSH_ESCROW), forms=PLAY)
attack("an escrow of a later witness version", "outputs-known", of_escrow(script=b"\x52\x20" + ESCROW_SCRIPT[2:]))
attack("an escrow with a byte more", "outputs-known", of_escrow(script=ESCROW_SCRIPT + b"\0"))
attack("an escrow with a byte less", "outputs-known", of_escrow(script=ESCROW_SCRIPT[:-1]))
attack("an escrow in an OP_RETURN", "outputs-known", of_escrow(script=b"\x6a\x20" + b"\x11" * 32))
attack("an escrow that is our vault", "outputs-known", of_escrow(script=VAULT_SCRIPT))
attack("an escrow that is our payment address", "outputs-known", of_escrow(script=PAYMENT_SCRIPT))
attack("an escrow at no point of the curve", "escrow", of_escrow(script=OFF_CURVE))


def of_announcement(**values: object) -> Change:
    return lambda offer: put(offer.draft.pays[1], **values)


attack("an announcement that burns a sat", "outputs-known", of_announcement(value=1), PLAY)
attack("an announcement with a byte more", "outputs-known", of_announcement(script=ANNOUNCEMENT + b"\0"), PLAY)
attack("an announcement with a byte less", "outputs-known", of_announcement(script=ANNOUNCEMENT[:-1]), PLAY)
attack(
    "an announcement pushed the long way",
    "outputs-known",
    of_announcement(script=b"\x6a\x4c\x40" + ANNOUNCEMENT[2:]),
    PLAY,
)
attack("a runestone in its place", "outputs-known", of_announcement(script=b"\x6a\x5d" + ANNOUNCEMENT[2:]), PLAY)
attack("a note in its place", "outputs-known", of_announcement(script=b"\x6a\x04note"), PLAY)
attack(
    "an escrow that a stranger could take back",
    "escrow",
    lambda offer: taken_back_by(offer, STRANGER.get_public_key()),
    PLAY,
)
attack(
    "an escrow that the payment key could take back, which no wallet looks for",
    "escrow",
    lambda offer: taken_back_by(offer, PAYMENT.get_public_key()),
    PLAY,
)
attack("another escrow than is announced", "escrow", of_escrow(script=script_by("p2tr", ORDINALS)), PLAY)
attack("another merkle root than the escrow's", "escrow", of_announcement(script=ANNOUNCEMENT[:-1] + b"\0"), PLAY)
attack("an escrow of the venue's alone", "escrow", of_escrow(script=script_by("p2tr", VENUE)), PLAY)
attack("an announcement of no point of the curve", "escrow", of_announcement(script=b"\x6a\x40" + b"\xff" * 64), PLAY)


def taken_back_by(offer: Offer, key: Any) -> None:
    """All as it should be, of another internal key."""
    offer.escrow.script = b"\x51\x20" + key.taproot_tweak(MERKLE_ROOT).xonly()
    offer.draft.pays[1].script = b"\x6a\x40" + key.xonly() + MERKLE_ROOT


def moved(sats: int) -> Change:
    """From the change to the escrow."""

    def change(offer: Offer) -> None:
        offer.escrow.value += sats
        offer.change.value -= sats

    return change


attack("an escrow a sat too dear", "escrow", moved(1), forms=PLAY)
attack("an escrow a sat above price and fee", "escrow", moved(5_001), forms=WITH_FEES)
attack("an escrow of all that there is", "escrow", lambda offer: moved(offer.change.value)(offer))
attack("an escrow a sat short", "escrow", moved(-1))
attack("an escrow of nothing", "escrow", moved(-PRICE))
attack("outputs above all bitcoin", "outputs-known", of_escrow(value=21 * 10**14 + 1))
attack("outputs that only fit when they wrap", "outputs-known", of_change(value=-1))

# --- what the network gets ---
attack("a sat for the network", "fee-rate", lambda offer: put(offer.change, value=offer.change.value - 1), forms=PLAY)
attack("no change where some is due", "fee-rate", lambda offer: offer.draft.pays.pop())
attack("change of nothing", "fee-rate", of_change(value=0))
attack("a fee rate a sat too high", "fee-rate", lambda offer: put(offer.change, value=40_000 - 2_201), forms=WITH_FEES)
attack("a fee a sat too high in all", "fee-abs", lambda offer: put(offer.change, value=40_000 - 2_101), forms=WITH_FEES)
attack(
    "a fee a sat too high for the price",
    "fee-share",
    lambda offer: put(offer.change, value=40_000 - 2_001),
    forms=WITH_FEES,
)
attack("more paid than there is", "fee-abs", of_change(value=40_001))

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
    attack(f"sighash: {_name}", "sighash-allowed", own_field(b"\x03", struct.pack("<I", _flag)))
attack(
    "the last input alone with NONE|ANYONECANPAY",
    "sighash-allowed",
    lambda offer: offer.draft.spends[-1].put(b"\x03", struct.pack("<I", 0x82)),
)

# --- the transaction's form ---
attack("transaction version 0", "tx-form", of_draft(version=0))
attack("a transaction that anybody may pin", "tx-form", of_draft(version=2), PLAY)
attack("a version 3 transaction where none is due", "tx-form", of_draft(version=3), WITH_FEES)
attack("a transaction version that is none", "tx-form", of_draft(version=4))
attack("a negative transaction version", "tx-form", of_draft(version=0xFFFFFFFF))
attack("a locktime above the tip", "tx-form", of_draft(locktime=TIP + 1))
attack("a locktime that is a time", "tx-form", of_draft(locktime=1_700_000_000))
attack("a sequence that waits for blocks", "tx-form", of_first(sequence=144))
attack("a sequence of nothing", "tx-form", of_first(sequence=0))
attack("the last input waits", "tx-form", lambda offer: put(offer.draft.spends[-1], sequence=0xFFFFFFFC))

# --- our key alone, unsigned so far ---
attack("a signature of ours already", "input-signed", own_field(b"\x02" + PAYMENT_KEY, DER))
attack("a stranger's signature", "input-signed", own_field(b"\x02" + STRANGER.get_public_key().sec(), DER))
attack("a final witness", "input-signed", own_field(b"\x08", b"\x01\x01\x51"))
attack("a final script_sig", "input-signed", own_field(b"\x07", b"\x51"))
attack("a taproot signature", "input-signed", own_field(b"\x13", b"\x11" * 64))
attack("a witness script", "key-path", own_field(b"\x05", b"\x51"))
attack("a redeem script", "key-path", own_field(b"\x04", PAYMENT_SCRIPT))
attack("a taproot internal key", "key-path", own_field(b"\x17", VAULT.get_public_key().xonly()))
attack("a merkle root", "key-path", own_field(b"\x18", b"\x11" * 32))
attack("a leaf script", "key-path", own_field(b"\x15" + b"\xc0" + b"\x11" * 32, b"\x51\xc0"))
