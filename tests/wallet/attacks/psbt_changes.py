"""Changes of an honest listing's PSBT, and an attack, which is one of them under a name.

An attack names itself, the tag it must be refused with, and the kinds of key and forms of listing it is tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.shapes import replace
from tests.wallet import listings
from tests.wallet.listings import KINDS, STRANGER, Case, Form, Pay, Spend
from wallet.psbt.script import OwnKind

Change = Callable[[Case], object]

PLAIN: tuple[Form, ...] = ("listing", "secure")
SEGWIT_V0: tuple[OwnKind, ...] = ("p2wpkh", "p2sh-p2wpkh")
TAPROOT: tuple[OwnKind, ...] = ("p2tr",)

OTHER_TXID = b"\x5a" * 32
STRANGER_X = STRANGER.get_public_key().xonly()
OFF_CURVE_X = b"\xff" * 32
DER = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32)


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    kinds: Sequence[OwnKind] = KINDS
    forms: Sequence[Form] = PLAIN

    def cases(self) -> list[Case]:
        made = []
        for kind in self.kinds:
            for form in self.forms:
                case = listings.honest(kind, form)
                self.change(case)
                made.append(case)
        return made


def adding_to(attacks: list[Attack]) -> Callable[..., None]:
    """Returns the function by which a module adds an attack to its own."""

    def attack(name: str, tag: str, change: Change, **where: Any) -> None:
        attacks.append(Attack(name, tag, change, **where))

    return attack


def put(part: object, **values: Any) -> None:
    for name, value in values.items():
        setattr(part, name, value)


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


def more_spend(fields: listings.Pairs, at: int = 1, txid: bytes = OTHER_TXID) -> Change:
    return lambda case: case.draft.spends.insert(at, Spend(txid, 0, fields=list(fields)))


def other_spend(fields: listings.Pairs) -> Change:
    """In place of a placeholder."""

    def change(case: Case) -> None:
        case.draft.spends[1 - case.draft.spends.index(case.own) % 2].fields = list(fields)

    return change
