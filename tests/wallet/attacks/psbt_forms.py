"""Attacks that knowing the venue's form would have ruled out."""

from __future__ import annotations

from tests.wallet.attacks import psbt_changes as ch
from tests.wallet.listings import PAYOUT_SCRIPT, PRICE, VAULT, Case, Pay, output, script_by

ATTACKS: list[ch.Attack] = []
attack = ch.adding_to(ATTACKS)

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
    lambda case: ch.put(case.draft.spends[0], txid=case.own.txid, vout=case.own.vout),
    forms=("OKX",),
)
attack("the listed output nowhere", "inputs-reserved", lambda case: case.draft.spends.pop(2), forms=("OKX",))
attack(
    "an input of ours among OKX's",
    "inputs-reserved",
    lambda case: case.draft.spends[0].put(b"\x01", output(50_000, PAYOUT_SCRIPT)),
    forms=("OKX",),
)
attack("a fee that nobody declared", "payout", ch.of_intent(seller_fee_ppm=0), forms=("secure with fee",))
attack(
    "a fee deducted from the price alone that nobody declared",
    "payout",
    ch.payout_of(245_000),
    forms=("price alone", "OKX"),
)
attack("a fee deducted twice", "payout", ch.payout_of(240_000), forms=("fee deducted", "secure with fee"))
attack(
    "the price paid, a part of it to the vault",
    "payout",
    lambda case: (ch.payout_less(1_000)(case), ch.more_pay(1_000, script_by("p2tr", VAULT))(case)),
    forms=("price alone",),
)
attack(
    "the payout in two halves",
    "outputs-known",
    lambda case: ch.put(case.draft, pays=[Pay(PRICE, PAYOUT_SCRIPT)] * 2),
    forms=("secure",),
)
attack(
    "a second payout that another signature could count as its own",
    "outputs-known",
    ch.more_pay(90_000, PAYOUT_SCRIPT),
    forms=("secure", "secure with fee"),
)


def holds(value: int) -> ch.Change:
    """The listed output holds so many sats, by facts and PSBT alike."""

    def change(case: Case) -> None:
        ch.of_facts(value_sats=value)(case)
        case.own.put(b"\x01", output(value, script_by("p2tr", VAULT)))

    return change


attack(
    "an output that holds a sat too much to give away",
    "payout",
    holds(20_001),
    kinds=ch.TAPROOT,
    forms=("price alone", "OKX", "listing", "secure"),
)
attack(
    "a fortune in the listed output, the price alone paid",
    "payout",
    holds(5_000_000),
    kinds=ch.TAPROOT,
    forms=("price alone", "fee deducted"),
)
