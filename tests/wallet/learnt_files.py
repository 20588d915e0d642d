"""Files of learnt forms, and changes that nobody noted."""

from __future__ import annotations

from pathlib import Path

from tests.wallet.listings import PRICE
from wallet.learnt.form import LearntForm
from wallet.learnt.store import LearntForms

PRICES = (PRICE, PRICE + 1_000, 2 * PRICE)


def a_form(venue: str = "simulator", kind: str = "plain") -> LearntForm:
    return LearntForm(venue, kind, 0x83, 0, 2, 0, (), (), PRICES, (), 5)


def stored(path: Path, *forms: LearntForm, key: bytes = b"k" * 32) -> str:
    """Stores the forms and returns the digest that the audit log would have."""
    told = ["none"]
    store = LearntForms(path, key, "none")
    for form in forms:
        store.put(form, told.append)
    return told[-1]


def change_stored(path: Path) -> None:
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
