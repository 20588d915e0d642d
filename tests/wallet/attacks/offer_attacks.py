"""Attacks with the funding PSBT of an offer: each is one change of an honest one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from embit.ec import PublicKey
from embit.hashes import tagged_hash

from simulator.venue_scripts import ENCLAVE, GATE, MARKET, xonly
from tests.shapes import replace
from tests.wallet.attacks.attack import Attack, Change, adding_to, put
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
    with_size,
)
from tests.wallet.offers import (
    EXPIRES_S,
    FORMS,
    OWNERS,
    PAYMENT_SCRIPT,
    PRICE,
    STRANGER_PAYMENT,
    VAULT_SCRIPT,
    Offer,
    coin,
    honest,
    known,
    outpoint_of,
)
from wallet.psbt.transaction import Outpoint
from wallet.terms import CoSigners

OTHER_TXID = b"\x5a" * 32
OFF_CURVE = b"\x51\x20" + b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "01")
PAYMENT_KEY = PAYMENT.get_public_key().sec()
INSCRIPTION = "ab" * 32 + "i0"


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


ATTACKS: list[Attack] = []
refused = adding_to(ATTACKS, [partial(honest, form) for form in FORMS])


# The bytes
attack = refused("psbt-strict")
attack("nothing at all", of_draft(raw=b""))
attack("the magic alone", of_draft(raw=b"psbt\xff"))
attack("another magic", of_draft(magic=b"psbu\xff"))
attack("a network transaction instead of a PSBT", lambda offer: put(offer.draft, raw=former(b"\x51")))
attack("cut by a byte", on_raw(lambda raw: raw[:-1]))
attack("a byte left over", of_draft(tail=b"\0"))
attack("a second PSBT behind it", on_raw(lambda raw: raw + raw))
attack = refused("psbt-size")
attack("a byte above the largest size", of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", own_field(b"\xf0", b"\0" * 33_000))
attack = refused("psbt-strict")
attack("the witness utxo twice", lambda offer: offer.first.fields.append((b"\x01", b"")))
attack("a script_sig in the unsigned transaction", of_first(script_sig=b"\x51"))
attack("PSBT version 2 with a transaction", lambda offer: offer.draft.fields.append((b"\xfb", struct.pack("<I", 2))))
# The price
attack = refused("max-bid")
attack("no price", of_intent(price_sats=None))
attack("a price of nothing", of_intent(price_sats=0))
attack("a negative price", of_intent(price_sats=-1))
attack("a price above all bitcoin", of_intent(price_sats=21 * 10**14 + 1))
# Inputs
attack = refused("inputs-reserved")
attack("no inputs", lambda offer: offer.draft.spends.clear())
attack("one coin spent twice", lambda offer: offer.draft.spends.append(offer.first))
attack("another output of the same transaction", of_first(vout=0))
attack("another transaction's output", of_first(txid=OTHER_TXID))
attack(
    "a coin's txid as it is shown, not as it is written", lambda offer: put(offer.first, txid=offer.first.txid[::-1])
)
attack("a coin of ours that was not chosen", lambda offer: add_coin(offer, coin(70_000, at=2), 70_000, chosen=False))
attack(
    "a stranger's coin more",
    lambda offer: add_coin(offer, coin(70_000, STRANGER_PAYMENT), 70_000, STRANGER_PAYMENT, chosen=False),
)
attack(
    "an inscription of the vault in place of a coin",
    lambda offer: add_coin(offer, coin(10_000, VAULT_SCRIPT), 10_000, VAULT_SCRIPT, chosen=False),
)


def many_coins(offer: Offer) -> None:
    for number in range(20):
        add_coin(offer, coin(1_000 + number, at=2), 1_000 + number, chosen=False)


attack("twenty coins that were not chosen", many_coins)
# What is known of the coins
attack = refused("inputs-confirmed")
attack("nothing is known of any coin", lambda offer: put(offer, facts={}))
attack("nothing is known of the last coin", lambda offer: offer.facts.pop(outpoint_of(offer.draft.spends[-1])))
attack("facts of another output", of_facts(outpoint=Outpoint(OTHER_TXID, 1)))
attack("a coin is spent", of_facts(is_unspent=False))
attack("it is not known whether a coin is spent", of_facts(is_unspent=None))
attack("a coin is not confirmed", of_facts(is_confirmed=False))
attack("it is not known whether a coin is confirmed", of_facts(is_confirmed=None))
attack = refused("amount-proof")
attack("a coin's value is not known", of_facts(value_sats=None))
attack("a coin's script is not known", of_facts(script=None))
attack("a coin is a stranger's by the facts", of_facts(script=STRANGER_PAYMENT))
attack("a coin is the vault's by the facts", of_facts(script=VAULT_SCRIPT))
attack("a coin is worth a sat more by the facts", of_facts(value_sats=200_001))
attack("a coin is worth a sat less by the facts", of_facts(value_sats=199_999))
attack = refused("inputs-cardinal")
attack("the index is two blocks behind", of_facts(index_height=TIP - 2))
attack("the index's height is not known", of_facts(index_height=None))
attack("the chain's tip is not known", of_facts(tip_height=None))
attack("what a coin holds is not known", of_facts(inscriptions=None))
attack("an inscription lies on a coin", of_facts(inscriptions=(INSCRIPTION,)))
attack("a rune lies on a coin", of_facts(runes=("UNCOMMON•GOODS",)))
attack("it is not known whether a coin holds runes", of_facts(runes=None))


def second_is_inscribed(offer: Offer) -> None:
    last = outpoint_of(offer.draft.spends[-1])
    offer.facts[last] = replace(offer.facts[last], inscriptions=(INSCRIPTION,))


attack("an inscription lies on the last coin", second_is_inscribed)
# What the PSBT says that a coin is
attack = refused("amount-proof")
attack("no utxo at all", no_own_field(b"\x01"))
attack("a witness utxo a sat too high", own_field(b"\x01", output(200_001, PAYMENT_SCRIPT)))
attack("a witness utxo a sat too low", own_field(b"\x01", output(199_999, PAYMENT_SCRIPT)))
attack("a witness utxo of another script", own_field(b"\x01", output(200_000, STRANGER_PAYMENT)))
attack("another former transaction", own_field(b"\x00", former(PAYMENT_SCRIPT, 200_000, at=2)))


def former_lies(offer: Offer) -> None:
    """The former transaction is real and says another value than the witness utxo."""
    made_by = former(PAYMENT_SCRIPT, 300_000)
    spend = Spend(txid_of(made_by), 1, fields=[(b"\x00", made_by), (b"\x01", output(200_000, PAYMENT_SCRIPT))])
    offer.draft.spends[0] = spend
    offer.facts[outpoint_of(spend)] = known(spend, 200_000)
    offer.intent = replace(offer.intent, coins=offer.intent.coins | {outpoint_of(spend)})


attack("a former transaction and a witness utxo that differ", former_lies)

# The outputs of a funding PSBT: the escrow, its announcement and the change
attack = refused("escrow")
attack("no outputs", lambda offer: offer.draft.pays.clear())
attack("no escrow", lambda offer: offer.draft.pays.pop(0))
attack("the change alone", lambda offer: put(offer.draft, pays=[offer.change]))
attack("two escrows", lambda offer: put(offer.change, script=offer.escrow.script))
attack(
    "two escrows that are the price together",
    lambda offer: (offer.draft.pays.append(Pay(1, offer.escrow.script)), put(offer.escrow, value=PRICE - 1)),
)
attack = refused("outputs-known")
attack("another taproot output in place of the change", of_change(script=script_by("p2tr", ORDINALS)))
attack("an output more", more_pay(1, STRANGER_SCRIPT))
attack("a second change", more_pay(1, PAYMENT_SCRIPT))
attack("an output of nothing more", more_pay(0, STRANGER_PAYMENT))
attack = refused("escrow")
attack("a runestone", more_pay(0, b"\x6a\x5d\x02\x00\x00"))
attack("a note in an OP_RETURN", more_pay(0, b"\x6a\x04note"))
attack = refused("outputs-known")
attack("the change to a stranger", of_change(script=STRANGER_PAYMENT))
attack("the change to a stranger's taproot", of_change(script=STRANGER_SCRIPT))
attack("the change to our vault", of_change(script=VAULT_SCRIPT))
attack("the change to our key nested", of_change(script=script_by("p2sh-p2wpkh", PAYMENT)))
attack("the change to our key by a legacy script", of_change(script=b"\x76\xa9\x14" + PAYMENT_SCRIPT[2:] + b"\x88\xac"))
attack("the change to a longer script that begins as ours", of_change(script=PAYMENT_SCRIPT + b"\x51"))
attack = refused("escrow")
attack("the change as an escrow", lambda offer: put(offer.draft, pays=[offer.announcement, offer.change]))
attack("no announcement", lambda offer: offer.draft.pays.pop(1))
attack("two announcements", lambda offer: offer.draft.pays.append(offer.announcement))
attack = refused("outputs-known")
attack("an escrow that anyone can spend", of_escrow(script=b"\x51"))
attack("an escrow to a stranger's P2WPKH", of_escrow(script=STRANGER_PAYMENT))
attack("an escrow to a legacy script", of_escrow(script=b"\x76\xa9\x14" + b"\x11" * 20 + b"\x88\xac"))
attack("an escrow to P2SH", of_escrow(script=b"\xa9\x14" + b"\x11" * 20 + b"\x87"))
attack("an escrow to a script hash", of_escrow(script=b"\x00\x20" + b"\x3c" * 32))
attack = refused("escrow")
attack("an escrow in an OP_RETURN", of_escrow(script=b"\x6a\x20" + b"\x11" * 32))
attack = refused("outputs-known")
attack("an escrow that is our vault", of_escrow(script=VAULT_SCRIPT))
attack("an escrow that is our payment address", of_escrow(script=PAYMENT_SCRIPT))
attack("an escrow at no point of the curve", of_escrow(script=OFF_CURVE))
attack("an escrow of the venue's alone", of_escrow(script=script_by("p2tr", VENUE)))
attack("an escrow of another leaf", lambda offer: put(offer.leaf, secret=b"\x55" * 32))


def of_its_script(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: put(offer.escrow, script=change(offer.escrow.script))


attack("an escrow of a later witness version", of_its_script(lambda script: b"\x52" + script[1:]))
attack("an escrow with a byte more", of_its_script(lambda script: script + b"\0"))
attack("an escrow with a byte less", of_its_script(lambda script: script[:-1]))


def of_announcement(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: put(offer.announcement, script=change(offer.announcement.script))


attack = refused("escrow")
attack("an announcement that burns a sat", lambda offer: put(offer.announcement, value=1))
attack("an announcement with a byte more", of_announcement(lambda script: script + b"\0"))
attack("an announcement with a byte less", of_announcement(lambda script: script[:-1]))
attack("an announcement pushed the long way", of_announcement(lambda script: b"\x6a\x4c" + script[1:]))
attack("a runestone in its place", of_announcement(lambda script: b"\x6a\x5d" + script[2:]))
attack("a note in its place", of_announcement(lambda script: b"\x6a\x04note"))
attack("another merkle root than the escrow's", of_announcement(lambda script: script[:-1] + b"\0"))
attack("another key than the escrow's", of_announcement(lambda script: b"\x6a\x40" + bytes(32) + script[34:]))
attack("an announcement of no point of the curve", of_announcement(lambda script: b"\x6a\x40" + b"\xff" * 64))
attack = refused("outputs-known")
for _name, _taker in {"a stranger": STRANGER, "the venue": VENUE, "our ordinals wallet": ORDINALS}.items():
    attack(f"an escrow that {_name} could take back alone", lambda offer, taker=_taker: offer.fund(xonly(taker)))


def by_the_other(offer: Offer) -> None:
    """Our other key could take it back, which is not the leaf's buyer."""
    [other] = {xonly(PAYMENT), xonly(VAULT)} - {offer.leaf.buyer}
    offer.fund(other)


attack("an escrow that another key of ours could take back than the leaf says", by_the_other)


def a_second_leaf(offer: Offer) -> None:
    """All as it should be, but another leaf beside the one that is told."""
    beside = tagged_hash("TapLeaf", b"\xc0\x01\x51")
    root = tagged_hash("TapBranch", b"".join(sorted([beside, offer.leaf.root()])))
    key = PublicKey.from_xonly(offer.leaf.buyer)
    offer.escrow.script = b"\x51\x20" + key.taproot_tweak(root).xonly()
    offer.announcement.script = b"\x6a\x40" + offer.leaf.buyer + root


attack("a second leaf that anyone can spend by", a_second_leaf)


def of_leaf_version(offer: Offer) -> None:
    """The same leaf of a later version, by which anyone can spend."""
    root = tagged_hash("TapLeaf", b"\xc2" + with_size(offer.leaf.script()))
    key = PublicKey.from_xonly(offer.leaf.buyer)
    offer.escrow.script = b"\x51\x20" + key.taproot_tweak(root).xonly()
    offer.announcement.script = b"\x6a\x40" + offer.leaf.buyer + root


attack("a leaf of a later version", of_leaf_version)

# The leaf of an offer, of which the escrow is the right one


def of_leaf(**values: object) -> Change:
    return lambda offer: (put(offer.leaf, **values), offer.fund(xonly(OWNERS[offer.form])))


def on_leaf(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: (put(offer.leaf, raw=change(offer.leaf.script())), offer.fund(xonly(OWNERS[offer.form])))


attack = refused("leaf-terms")
attack("a leaf of a sat less", of_leaf(price=PRICE - 1))
attack("a leaf of a sat more", of_leaf(price=PRICE + 1))
attack("a leaf of no price", of_leaf(price=0))
attack("a leaf of a price that wraps", of_leaf(price=2**63 + PRICE))
attack("a leaf's price with its bytes turned", of_leaf(price=int.from_bytes(PRICE.to_bytes(8, "big"), "little")))
for _name, _script in {
    "a stranger's taproot": STRANGER_SCRIPT,
    "a stranger's P2WPKH": STRANGER_PAYMENT,
    "the venue's": script_by("p2tr", VENUE),
    "our payment address": PAYMENT_SCRIPT,
    "our ordinals wallet": script_by("p2tr", ORDINALS),
    "our untweaked key": b"\x51\x20" + xonly(VAULT),
    "our vault, and a byte": VAULT_SCRIPT + b"\x51",
    "our vault less a byte": VAULT_SCRIPT[:-1],
    "anyone": b"\x51",
}.items():
    attack(f"a leaf that sends the goods to: {_name}", of_leaf(receive=_script))
attack("a leaf that is good for a second too long", of_leaf(expires_s=EXPIRES_S + 3_601))
attack("a leaf that is good for a year", of_leaf(expires_s=EXPIRES_S + 365 * 86_400))
attack("a leaf that is good for ever", of_leaf(expires_s=2**64 - 1))
attack("a leaf whose end is in milliseconds", of_leaf(expires_s=EXPIRES_S * 1000))
attack("a leaf whose buyer is a stranger", of_leaf(buyer=xonly(STRANGER)))
attack("a leaf whose buyer is the market", of_leaf(buyer=xonly(MARKET)))
attack("a leaf whose buyer is our key as it is tweaked", of_leaf(buyer=VAULT_SCRIPT[2:]))
for _name in ("market", "gate", "enclave"):
    refused("leaf-keys")(f"a stranger in place of the {_name}", of_leaf(**{_name: xonly(STRANGER)}))
    refused("leaf-keys")(f"our key in place of the {_name}", of_leaf(**{_name: xonly(VAULT)}))
    refused("leaf")(f"a key of a type that is not known in place of the {_name}", of_leaf(**{_name: b"\x01"}))
    refused("leaf")(f"no key in place of the {_name}", of_leaf(**{_name: b""}))
    refused("leaf")(f"a whole key in place of the {_name}", of_leaf(**{_name: b"\x02" + xonly(STRANGER)}))
attack = refused("leaf-keys")
attack("gate and enclave changed about", of_leaf(gate=xonly(ENCLAVE), enclave=xonly(GATE)))
attack("one key for all", of_leaf(gate=xonly(MARKET), enclave=xonly(MARKET)))
attack("three strangers", of_leaf(market=xonly(VENUE), gate=xonly(STRANGER), enclave=xonly(ORDINALS)))
attack("other keys were pinned", of_intent(co_signers=CoSigners(b"\x11" * 32, b"\x12" * 32, b"\x13" * 32)))
attack = refused("leaf")
attack("a leaf of version 1", of_leaf(version=b"ordnet-offer/v1"))
attack("a leaf of version 20", of_leaf(version=b"ordnet-offer/v20"))
attack("a root of 31 bytes", of_leaf(eligible=b"\x2d" * 31))
attack("criteria of 33 bytes", of_leaf(criteria=b"\x2e" * 33))
attack("a secret of 20 bytes", of_leaf(secret=b"\x2f" * 20))
attack("a receiver of nothing", of_leaf(receive=b""))
attack("a receiver of 76 bytes, in one byte of length", of_leaf(receive=b"\x51" * 76))
attack("no leaf", of_leaf(raw=b""))
attack("a leaf that anyone can spend by", of_leaf(raw=b"\x51"))
attack("a stranger's key as the leaf", of_leaf(raw=b"\x20" + xonly(STRANGER) + b"\xac"))
attack("a leaf cut by a byte", on_leaf(lambda leaf: leaf[:-1]))
attack("a leaf without its data", on_leaf(lambda leaf: leaf[leaf.index(b"\x68\xa8") + 1 :]))
attack("a leaf that drops its result and takes any", on_leaf(lambda leaf: leaf + b"\x75\x51"))
attack("a leaf with an OP_SUCCESS behind it", on_leaf(lambda leaf: leaf + b"\x50"))
attack("a leaf with an OP_SUCCESS before it", on_leaf(lambda leaf: b"\x50" + leaf))
attack("a leaf whose data are run", on_leaf(lambda leaf: b"\x51" + leaf[1:]))
attack("a leaf with NOTIF", on_leaf(lambda leaf: leaf[:1] + b"\x64" + leaf[2:]))
attack("a leaf with an ELSE", on_leaf(lambda leaf: leaf.replace(b"\x68\xa8\x20", b"\x67\x68\xa8\x20")))
attack("a leaf that hashes otherwise", on_leaf(lambda leaf: leaf.replace(b"\x68\xa8\x20", b"\x68\xa9\x20")))
attack("a leaf that compares and goes on", on_leaf(lambda leaf: leaf.replace(b"\x88\x20", b"\x87\x20", 1)))
attack("none of two is enough", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x00\x9d")))
attack("both of two are needed", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x52\x9d")))
attack("any number of two", on_leaf(lambda leaf: leaf.replace(b"\xba\x51\x9d", b"\xba\x51\x75")))
attack("a gate that is not asked", on_leaf(lambda leaf: leaf.replace(b"\xad\x20", b"\x75\x20")))
attack("an enclave that may say no", on_leaf(lambda leaf: leaf[:-1] + b"\x75"))
attack("a push the long way", on_leaf(lambda leaf: leaf.replace(b"\x63\x0f", b"\x63\x4c\x0f")))
attack("the data twice", on_leaf(lambda leaf: leaf[: leaf.index(b"\x68\xa8") + 1] + leaf))
attack("an OP_CODESEPARATOR before the enclave", on_leaf(lambda leaf: leaf.replace(b"\xad\x20", b"\xad\xab\x20")))

# The amounts of a funding PSBT, its sighash, its form and its signatures


def moved(sats: int) -> Change:
    """From the change to the escrow."""

    def change(offer: Offer) -> None:
        offer.escrow.value += sats
        offer.change.value -= sats

    return change


attack = refused("escrow")
attack("an escrow a sat too dear", moved(1))
attack("an escrow of all that there is", lambda offer: moved(offer.change.value)(offer))
attack("an escrow a sat short", moved(-1))
attack("an escrow of nothing", moved(-PRICE))
attack("outputs above all bitcoin", of_escrow(value=21 * 10**14 + 1))
attack = refused("fee-abs")
attack("outputs that only fit when they wrap", of_change(value=-1))
# What the network gets
attack("a sat for the network", lambda offer: put(offer.change, value=offer.change.value - 1))
attack("no change where some is due", lambda offer: offer.draft.pays.pop())
attack("change of nothing", of_change(value=0))
attack("more paid than there is", of_change(value=40_001))
# Sighash
attack = refused("sighash-allowed")
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
    attack(f"sighash: {_name}", own_field(b"\x03", struct.pack("<I", _flag)))
attack(
    "the last input alone with NONE|ANYONECANPAY",
    lambda offer: offer.draft.spends[-1].put(b"\x03", struct.pack("<I", 0x82)),
)
# The transaction's form
attack = refused("tx-form")
attack("transaction version 0", of_draft(version=0))
attack("a transaction that anybody may pin", of_draft(version=2))
attack("a transaction of version 1", of_draft(version=1))
attack("a transaction version that is none", of_draft(version=4))
attack("a negative transaction version", of_draft(version=0xFFFFFFFF))
attack("a locktime above the tip", of_draft(locktime=TIP + 1))
attack("a locktime that is a time", of_draft(locktime=1_700_000_000))
attack("a sequence that waits for blocks", of_first(sequence=144))
attack("a sequence of nothing", of_first(sequence=0))
attack("the last input waits", lambda offer: put(offer.draft.spends[-1], sequence=0xFFFFFFFC))
# Our key alone, unsigned so far
attack = refused("input-signed")
attack("a signature of ours already", own_field(b"\x02" + PAYMENT_KEY, DER))
attack("a stranger's signature", own_field(b"\x02" + STRANGER.get_public_key().sec(), DER))
attack("a final witness", own_field(b"\x08", b"\x01\x01\x51"))
attack("a final script_sig", own_field(b"\x07", b"\x51"))
attack("a taproot signature", own_field(b"\x13", b"\x11" * 64))
attack = refused("key-path")
attack("a witness script", own_field(b"\x05", b"\x51"))
attack("a redeem script", own_field(b"\x04", PAYMENT_SCRIPT))
attack("a taproot internal key", own_field(b"\x17", VAULT.get_public_key().xonly()))
attack("a merkle root", own_field(b"\x18", b"\x11" * 32))
attack("a leaf script", own_field(b"\x15" + b"\xc0" + b"\x11" * 32, b"\x51\xc0"))
