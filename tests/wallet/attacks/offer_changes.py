"""Changes of an honest offer's funding PSBT, and an attack, which is one of them under a name.

An attack names itself, the tag it must be refused with, and the forms it is tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.shapes import replace
from tests.wallet.listings import PAYMENT, Pay, Spend
from tests.wallet.offers import FORMS, PAYMENT_SCRIPT, Form, Offer, honest, known, outpoint_of

Change = Callable[[Offer], object]

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


def adding_to(attacks: list[Attack]) -> Callable[..., None]:
    """Returns the function by which a module adds an attack to its own."""

    def attack(name: str, tag: str, change: Change, forms: Sequence[Form] = FORMS) -> None:
        attacks.append(Attack(name, tag, change, forms))

    return attack


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
