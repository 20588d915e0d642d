"""Attacks with the outputs of a funding PSBT: the escrow, its announcement and the change."""

from __future__ import annotations

from collections.abc import Callable

from embit.ec import PublicKey
from embit.hashes import tagged_hash

from simulator.venue_scripts import xonly
from tests.wallet.attacks.offer_changes import (
    OFF_CURVE,
    Attack,
    Change,
    adding_to,
    more_pay,
    of_change,
    of_draft,
    of_escrow,
    put,
)
from tests.wallet.listings import ORDINALS, PAYMENT, STRANGER, STRANGER_SCRIPT, VAULT, VENUE, Pay, script_by, with_size
from tests.wallet.offers import PAYMENT_SCRIPT, PRICE, STRANGER_PAYMENT, VAULT_SCRIPT, Offer

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)

attack("no outputs", "escrow", of_draft(pays=[]))
attack("no escrow", "escrow", lambda offer: offer.draft.pays.pop(0))
attack("the change alone", "escrow", lambda offer: put(offer.draft, pays=[offer.change]))
attack("two escrows", "escrow", lambda offer: put(offer.change, script=offer.escrow.script))
attack(
    "two escrows that are the price together",
    "escrow",
    lambda offer: (offer.draft.pays.append(Pay(1, offer.escrow.script)), put(offer.escrow, value=PRICE - 1)),
)
attack("another taproot output in place of the change", "outputs-known", of_change(script=script_by("p2tr", ORDINALS)))
attack("an output more", "outputs-known", more_pay(1, STRANGER_SCRIPT))
attack("a second change", "outputs-known", more_pay(1, PAYMENT_SCRIPT))
attack("an output of nothing more", "outputs-known", more_pay(0, STRANGER_PAYMENT))
attack("a runestone", "escrow", more_pay(0, b"\x6a\x5d\x02\x00\x00"))
attack("a note in an OP_RETURN", "escrow", more_pay(0, b"\x6a\x04note"))
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
attack("the change as an escrow", "escrow", lambda offer: put(offer.draft, pays=[offer.announcement, offer.change]))
attack("no announcement", "escrow", lambda offer: offer.draft.pays.pop(1))
attack("two announcements", "escrow", lambda offer: offer.draft.pays.append(offer.announcement))
attack("an escrow that anyone can spend", "outputs-known", of_escrow(script=b"\x51"))
attack("an escrow to a stranger's P2WPKH", "outputs-known", of_escrow(script=STRANGER_PAYMENT))
attack("an escrow to a legacy script", "outputs-known", of_escrow(script=b"\x76\xa9\x14" + b"\x11" * 20 + b"\x88\xac"))
attack("an escrow to P2SH", "outputs-known", of_escrow(script=b"\xa9\x14" + b"\x11" * 20 + b"\x87"))
attack("an escrow to a script hash", "outputs-known", of_escrow(script=b"\x00\x20" + b"\x3c" * 32))
attack("an escrow in an OP_RETURN", "escrow", of_escrow(script=b"\x6a\x20" + b"\x11" * 32))
attack("an escrow that is our vault", "outputs-known", of_escrow(script=VAULT_SCRIPT))
attack("an escrow that is our payment address", "outputs-known", of_escrow(script=PAYMENT_SCRIPT))
attack("an escrow at no point of the curve", "outputs-known", of_escrow(script=OFF_CURVE))
attack("an escrow of the venue's alone", "outputs-known", of_escrow(script=script_by("p2tr", VENUE)))
attack("an escrow of another leaf", "outputs-known", lambda offer: put(offer.leaf, secret=b"\x55" * 32))


def of_its_script(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: put(offer.escrow, script=change(offer.escrow.script))


attack("an escrow of a later witness version", "outputs-known", of_its_script(lambda script: b"\x52" + script[1:]))
attack("an escrow with a byte more", "outputs-known", of_its_script(lambda script: script + b"\0"))
attack("an escrow with a byte less", "outputs-known", of_its_script(lambda script: script[:-1]))


def of_announcement(change: Callable[[bytes], bytes]) -> Change:
    return lambda offer: put(offer.announcement, script=change(offer.announcement.script))


attack("an announcement that burns a sat", "escrow", lambda offer: put(offer.announcement, value=1))
attack("an announcement with a byte more", "escrow", of_announcement(lambda script: script + b"\0"))
attack("an announcement with a byte less", "escrow", of_announcement(lambda script: script[:-1]))
attack("an announcement pushed the long way", "escrow", of_announcement(lambda script: b"\x6a\x4c" + script[1:]))
attack("a runestone in its place", "escrow", of_announcement(lambda script: b"\x6a\x5d" + script[2:]))
attack("a note in its place", "escrow", of_announcement(lambda script: b"\x6a\x04note"))
attack("another merkle root than the escrow's", "escrow", of_announcement(lambda script: script[:-1] + b"\0"))
attack("another key than the escrow's", "escrow", of_announcement(lambda script: b"\x6a\x40" + bytes(32) + script[34:]))
attack("an announcement of no point of the curve", "escrow", of_announcement(lambda script: b"\x6a\x40" + b"\xff" * 64))
for _name, _taker in {"a stranger": STRANGER, "the venue": VENUE, "our ordinals wallet": ORDINALS}.items():
    attack(
        f"an escrow that {_name} could take back alone",
        "outputs-known",
        lambda offer, taker=_taker: offer.fund(xonly(taker)),
    )


def by_the_other(offer: Offer) -> None:
    """Our other key could take it back, which is not the leaf's buyer."""
    [other] = {xonly(PAYMENT), xonly(VAULT)} - {offer.leaf.buyer}
    offer.fund(other)


attack("an escrow that another key of ours could take back than the leaf says", "outputs-known", by_the_other)


def a_second_leaf(offer: Offer) -> None:
    """All as it should be, but another leaf beside the one that is told."""
    beside = tagged_hash("TapLeaf", b"\xc0\x01\x51")
    root = tagged_hash("TapBranch", b"".join(sorted([beside, offer.leaf.root()])))
    key = PublicKey.from_xonly(offer.leaf.buyer)
    offer.escrow.script = b"\x51\x20" + key.taproot_tweak(root).xonly()
    offer.announcement.script = b"\x6a\x40" + offer.leaf.buyer + root


attack("a second leaf that anyone can spend by", "outputs-known", a_second_leaf)


def of_leaf_version(offer: Offer) -> None:
    """The same leaf of a later version, by which anyone can spend."""
    root = tagged_hash("TapLeaf", b"\xc2" + with_size(offer.leaf.script()))
    key = PublicKey.from_xonly(offer.leaf.buyer)
    offer.escrow.script = b"\x51\x20" + key.taproot_tweak(root).xonly()
    offer.announcement.script = b"\x6a\x40" + offer.leaf.buyer + root


attack("a leaf of a later version", "outputs-known", of_leaf_version)
