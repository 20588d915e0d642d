"""An attack: one change of an honest case, under a name, with the rule that must refuse it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Change = Callable[[Any], object]
Makers = Sequence[Callable[[], Any]]


@dataclass(frozen=True)
class Attack:
    name: str
    tag: str
    change: Change
    honest: Makers  # makes the cases that it is tried on

    def cases(self) -> list[Any]:
        made = [make() for make in self.honest]
        for case in made:
            self.change(case)
        return made


def adding_to(attacks: list[Attack], honest: Makers) -> Callable[..., Callable[[str, Change], None]]:
    """Returns a function that takes a rule's tag and gives the one that adds attacks which this rule refuses.

    They are tried on all that `honest` makes, unless it is told to try them on others.
    """

    def refused(tag: str, makers: Makers = honest) -> Callable[[str, Change], None]:
        return lambda name, change: attacks.append(Attack(name, tag, change, makers))

    return refused


def put(part: object, **values: object) -> None:
    for name, value in values.items():
        setattr(part, name, value)
