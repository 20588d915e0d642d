"""Attacks with a listing PSBT, by a venue or another in its place: small changes to an honest one.

Where an attack changes nothing that a signature covers, or pays us no less than was asked, it is no attack: `HARMLESS`
says why, and there the change is signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.wallet.attacks import (
    psbt_amounts,
    psbt_encoding,
    psbt_forms,
    psbt_inputs,
    psbt_keys,
    psbt_outputs,
    psbt_terms,
)
from tests.wallet.attacks.psbt_changes import PLAIN, SEGWIT_V0, Attack
from tests.wallet.listings import KINDS, Case, Form
from wallet.psbt.script import OwnKind

_SUBJECTS = (psbt_encoding, psbt_inputs, psbt_amounts, psbt_outputs, psbt_terms, psbt_keys, psbt_forms)
ATTACKS: list[Attack] = [attack for subject in _SUBJECTS for attack in subject.ATTACKS]


@dataclass(frozen=True)
class Harmless:
    """The reason that signing it loses nothing, and the forms and keys where that is so."""

    why: str
    forms: Sequence[Form]
    kinds: Sequence[OwnKind] = KINDS


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
    """Tells whether the listing that this attack makes of an honest one is signed, since it does no harm."""
    found = HARMLESS.get(name)
    return found is not None and case.form in found.forms and case.kind in found.kinds
