"""Changes of an honest listing in escrow, and an attack, which is one of them under a name.

An attack names itself, the tag it must be refused with, and the forms of escrow that it is tried on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.shapes import replace
from tests.wallet.escrows import FORMS, POSTAGE, VAULT_SCRIPT, Case, Tree, honest, of_facts
from tests.wallet.listings import PAYMENT, STRANGER, Draft, Spend, output
from wallet.terms import EscrowForm

Change = Callable[[Case], object]

ORDNET: tuple[EscrowForm, ...] = ("ordnet",)
ORDINALSWALLET: tuple[EscrowForm, ...] = ("ordinalswallet",)
STRANGER_X, PAYMENT_X = (key.get_public_key().xonly() for key in (STRANGER, PAYMENT))
SIGHASH, LEAF, INTERNAL, ROOT = b"\x03", b"\x15", b"\x17", b"\x18"


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    forms: Sequence[EscrowForm] = FORMS

    def cases(self) -> list[Case]:
        made = [honest(form) for form in self.forms]
        for case in made:
            self.change(case)
        return made


def adding_to(attacks: list[Attack]) -> Callable[..., None]:
    """Returns the function by which a module adds an attack to its own."""

    def attack(name: str, tag: str, change: Change, forms: Sequence[EscrowForm] = FORMS) -> None:
        attacks.append(Attack(name, tag, change, forms))

    return attack


def put(part: object, **values: Any) -> None:
    for name, value in values.items():
        setattr(part, name, value)


def intent(**values: Any) -> Change:
    return lambda case: put(case, intent=replace(case.intent, **values))


def facts(**values: Any) -> Change:
    return lambda case: of_facts(case, **values)


def item(**values: Any) -> Change:
    return lambda case: put(case.transfer.spends[0], **values)


def item_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.transfer.spends[0].put(key, value)


def sale_field(key: bytes, value: bytes) -> Change:
    return lambda case: case.sale.spends[0].put(key, value)


def no_sale_field(key: bytes) -> Change:
    return lambda case: case.sale.spends[0].drop(key)


def sale_input(**values: Any) -> Change:
    return lambda case: put(case.sale.spends[0], **values)


def payout(**values: Any) -> Change:
    return lambda case: put(case.sale.pays[0], **values)


def escrow(script: bytes) -> Change:
    """The transfer pays this, and nothing else says so."""
    return lambda case: put(case.transfer.pays[0], script=script)


def whole(tree: Callable[[Case], Tree]) -> Change:
    """All three PSBTs are of another escrow than ours, and agree on it."""

    def change(case: Case) -> None:
        other = tree(case)
        case.transfer.pays[0].script = other.script
        for each in (case.sale, case.recovery):
            if each is not None:
                spend = each.spends[0]
                spend.put(b"\x01", output(POSTAGE, other.script))
                spend.put(INTERNAL, other.internal)
                spend.put(ROOT, other.root)
        sold = case.sale.spends[0]
        sold.fields = [pair for pair in sold.fields if pair[0][:1] != LEAF]
        sold.fields.append((LEAF + other.block(0), other.leaves[0] + b"\xc0"))

    return change


def recovered(change: Callable[[Draft], object]) -> Change:
    def changed(case: Case) -> None:
        assert case.recovery is not None
        change(case.recovery)

    return changed


def other_leaf(block: Callable[[Tree], bytes], script: Callable[[Tree], bytes]) -> Change:
    def change(case: Case) -> None:
        sold = case.sale.spends[0]
        sold.fields = [pair for pair in sold.fields if pair[0][:1] != LEAF]
        sold.fields.append((LEAF + block(case.tree), script(case.tree)))

    return change


def more_leaves(case: Case) -> None:
    tree = case.tree
    case.sale.spends[0].fields.append(
        (LEAF + bytes([tree.block(0)[0] ^ 1]) + tree.block(0)[1:], tree.leaves[0] + b"\xc0")
    )


def insert_input(at: int, fields: list[tuple[bytes, bytes]]) -> Change:
    return lambda case: case.transfer.spends.insert(at, Spend(b"\x5a" * 32, 3, fields=list(fields)))


def small(postage: int, held: int) -> Change:
    """Of an item on so few sats."""

    def change(case: Case) -> None:
        case.hold(held)
        case.transfer.spends[0].put(b"\x01", output(postage, VAULT_SCRIPT))
        of_facts(case, value_sats=postage)

    return change
