"""Attacks with the outputs of a listing's PSBT: the payout, the fee and what comes beside them."""

from __future__ import annotations

from tests.wallet import listings as ls
from tests.wallet.attacks import psbt_changes as ch

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

attack("the payout swapped to a stranger", "outputs-known", ch.pay_script(ls.STRANGER_SCRIPT), forms=ls.FORMS)
attack("the payout to the venue", "outputs-known", ch.pay_script(ls.VENUE_SCRIPT))
attack("the payout to our ordinals address", "outputs-known", ch.pay_script(ls.script_by("p2tr", ls.ORDINALS)))
attack(
    "the payout back to the listed script",
    "outputs-known",
    lambda case: ch.put(case.payout, script=ls.script_by(case.kind, ls.VAULT)),
)
attack(
    "the payout to our untweaked key", "outputs-known", ch.pay_script(b"\x51\x20" + ls.VAULT.get_public_key().xonly())
)
attack("the payout to anyone", "outputs-known", ch.pay_script(b"\x51"))
attack("the payout to nobody", "outputs-known", ch.pay_script(b""))
attack("the payout burnt in an OP_RETURN", "outputs-known", ch.pay_script(b"\x6a" + ls.PAYOUT_SCRIPT))
attack(
    "the payout's program under another witness version", "outputs-known", ch.pay_script(b"\x52" + ls.PAYOUT_SCRIPT[1:])
)
attack(
    "the payout's hash in a legacy script",
    "outputs-known",
    ch.pay_script(b"\x76\xa9" + ls.PAYOUT_SCRIPT[1:] + b"\x88\xac"),
)
attack("the payout's script with an opcode more", "outputs-known", ch.pay_script(ls.PAYOUT_SCRIPT + b"\x75"))
attack("the payout's script without its last byte", "outputs-known", ch.pay_script(ls.PAYOUT_SCRIPT[:-1]))
attack(
    "the payout's script with its hash reversed",
    "outputs-known",
    ch.pay_script(ls.PAYOUT_SCRIPT[:2] + ls.PAYOUT_SCRIPT[:1:-1]),
)
attack("the payout short by a sat", "payout", ch.payout_less(1), forms=ls.FORMS)
attack("the payout without the postage", "payout", ch.payout_less(ls.POSTAGE))
attack("the payout halved", "payout", ch.payout_of((ls.PRICE + ls.POSTAGE) // 2), forms=ls.FORMS)
attack("the payout at the minimum price instead of the price", "payout", ch.payout_of(200_000 + ls.POSTAGE))
attack("the payout in another unit", "payout", ch.payout_of((ls.PRICE + ls.POSTAGE) // 100))
attack("a payout of nothing", "payout", ch.payout_of(0), forms=ls.FORMS)
attack("a payout of one sat", "payout", ch.payout_of(1), forms=ls.FORMS)
attack("a payout of dust", "payout", ch.payout_of(546), forms=ls.FORMS)
attack("a payout cut to 16 bits", "payout", ch.payout_of((ls.PRICE + ls.POSTAGE) & 0xFFFF))
attack("a negative payout", "outputs-known", ch.payout_of(-ls.PRICE), forms=ls.FORMS)
attack("a payout of -1", "outputs-known", ch.payout_of(-1))
attack("a payout of -2^63", "outputs-known", ch.payout_of(2**63))
attack("a payout a sat above all bitcoin", "outputs-known", ch.payout_of(21 * 10**14 + 1))
attack(
    "an unknown output more",
    "outputs-known",
    ch.more_pay(1_000, ls.STRANGER_SCRIPT),
    forms=("listing", "secure", "secure with fee"),
)
attack("an output of ours more", "outputs-known", ch.more_pay(1_000, ls.PAYOUT_SCRIPT))
attack("an undeclared fee output", "outputs-known", ch.more_pay(5_000, ls.VENUE_SCRIPT))
attack("a runestone more", "outputs-known", ch.more_pay(0, bytes.fromhex("6a5d0814021600")))
attack("a free OP_RETURN more", "outputs-known", ch.more_pay(0, b"\x6a"))
attack(
    "a stranger's output before the payout", "outputs-known", ch.first_pay(ls.PRICE + ls.POSTAGE, ls.STRANGER_SCRIPT)
)
attack(
    "the payout split in two",
    "outputs-known",
    lambda case: (ch.payout_less(5_000)(case), ch.more_pay(5_000, ls.PAYOUT_SCRIPT)(case)),
)
attack("the payout paid twice", "outputs-known", ch.more_pay(ls.PRICE + ls.POSTAGE, ls.PAYOUT_SCRIPT))
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
    lambda case: (ch.put(case.draft.pays[0], script=ls.PAYOUT_SCRIPT), ch.pay_script(ls.STRANGER_SCRIPT)(case)),
    forms=("paired at 2",),
)
attack(
    "the fee a sat above the declared",
    "venue-fee",
    lambda case: ch.put(case.draft.pays[1], value=case.draft.pays[1].value + 1),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the fee as high as the price",
    "venue-fee",
    lambda case: ch.put(case.draft.pays[1], value=ls.PRICE),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "a negative fee",
    "outputs-known",
    lambda case: ch.put(case.draft.pays[1], value=-1),
    forms=("paired at 2", "secure with fee"),
)
attack(
    "the fee to a stranger",
    "outputs-known",
    lambda case: ch.put(case.draft.pays[1], script=ls.STRANGER_SCRIPT),
    forms=("paired at 2", "secure with fee"),
)
attack("the fee output missing", "outputs-known", lambda case: case.draft.pays.pop(), forms=("secure with fee",))
attack(
    "two outputs that overflow 64 bits together",
    "outputs-known",
    lambda case: [ch.put(pay, value=2**63 + ls.PRICE) for pay in case.draft.pays],
    forms=("secure with fee",),
)
