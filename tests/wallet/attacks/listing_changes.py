"""Changes of an honest listing's PSBT, and which attacks among them lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.shapes import replace
from tests.wallet.attacks.attack import Change, put
from tests.wallet.listings import KINDS, STRANGER, Case, Form, Pairs, Pay, Spend, honest
from wallet.psbt.script import OwnKind

PLAIN: tuple[Form, ...] = ("listing", "secure")
SEGWIT_V0: tuple[OwnKind, ...] = ("p2wpkh", "p2sh-p2wpkh")
TAPROOT: tuple[OwnKind, ...] = ("p2tr",)
OTHER_TXID = b"\x5a" * 32
STRANGER_X = STRANGER.get_public_key().xonly()
OFF_CURVE_X = b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32)


def of_intent(**values: Any) -> Change:
    return lambda case: put(case, intent=replace(case.intent, **values))


def of_facts(**values: Any) -> Change:
    return lambda case: put(case, facts=replace(case.facts, **values))  # type: ignore[type-var]


def of_draft(**values: Any) -> Change:
    return lambda case: put(case.draft, **values)


def of_own(**values: Any) -> Change:
    return lambda case: put(case.own, **values)


def own_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.own.put(key, value)


def no_own_field(*keys: bytes) -> Change:
    return lambda case: [case.own.drop(key) for key in keys]


def top_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.draft.fields.append((key, value))


def out_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.payout.fields.append((key, value))


def on_raw(change: Callable[[bytes], bytes]) -> Change:
    return lambda case: put(case.draft, raw=change(case.draft.encode()))


def on_transaction(change: Callable[[bytes], bytes]) -> Change:
    return lambda case: put(case.draft, transaction=change(case.draft.unsigned()))


def payout_of(value: int) -> Change:
    return lambda case: put(case.payout, value=value)


def payout_less(sats: int) -> Change:
    return lambda case: put(case.payout, value=case.payout.value - sats)


def pay_script(script: bytes) -> Change:
    return lambda case: put(case.payout, script=script)


def more_pay(value: int, script: bytes) -> Change:
    return lambda case: case.draft.pays.append(Pay(value, script))


def first_pay(value: int, script: bytes) -> Change:
    return lambda case: case.draft.pays.insert(0, Pay(value, script))


def more_spend(fields: Pairs, at: int = 1, txid: bytes = OTHER_TXID) -> Change:
    return lambda case: case.draft.spends.insert(at, Spend(txid, 0, fields=list(fields)))


def other_spend(fields: Pairs) -> Change:
    """In place of a placeholder."""

    def change(case: Case) -> None:
        case.draft.spends[1 - case.draft.spends.index(case.own) % 2].fields = list(fields)

    return change


def of(*forms: Form, kinds: Sequence[OwnKind] = KINDS) -> list[Callable[[], Case]]:
    """Makers of honest listings of these kinds of key and these forms, or of both plain forms."""
    return [partial(honest, kind, form) for kind in kinds for form in forms or PLAIN]


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
