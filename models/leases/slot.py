"""A slot: the users whose tasks one manager keeps, where several share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from peewee import SQL


@dataclass(frozen=True, slots=True)
class Slot:
    """The part `number` of all users, who are divided into `of` parts by their numbers."""

    number: int = 0
    of: int = 1

    def has(self, user_id: Any) -> Any:
        """Makes the expression that is true of this slot's users; `user_id` is a column."""
        if self.of == 1:
            return SQL("1 = 1")
        ahead = user_id - self.number  # a whole multiple; peewee takes % for LIKE
        return ahead / self.of * self.of == ahead

    def __str__(self) -> str:
        return f"slot {self.number}"


def slot_of(user_id: int, slots: int) -> int:
    """Returns the number of the user's slot, of so many."""
    return user_id % slots


EVERYBODY = Slot()
