"""How many examples a property test tries: a sixteenth in `make test-fast`, of dear ones a twelfth in `make test`.

They are always the same. Tests with dear examples have the mark `sampled`, by which `make faults` tries all of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

# `make test-fast` sets it to 16 and `make test` to 12; whoever runs pytest by hand gets all.
_PART = int(os.environ.get("EXAMPLES_PART", "1"))
_AT_SAVE = 16

T = TypeVar("T")


def part_of(examples: int, *, dear: bool = False) -> int:
    """Returns how many of `examples` this run tries; `dear` ones take seconds."""
    return max(1, examples // _PART) if dear or _PART >= _AT_SAVE else examples


def some_of(examples: Iterable[T], seed: str, *, dear: bool = False) -> list[T]:
    """Those of `examples` that this run tries; tests with other seeds try others."""
    found = list(examples)
    count = part_of(len(found), dear=dear)
    return random.Random(seed).sample(found, count) if count < len(found) else found
