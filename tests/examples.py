"""How many examples a property test tries: all in `make test`, a sixteenth in `make test-fast`, always the same."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

# `make test-fast` sets it to 16; whoever runs pytest by hand gets all.
_PART = int(os.environ.get("EXAMPLES_PART", "1"))

T = TypeVar("T")


def part_of(examples: int) -> int:
    """Returns how many of `examples` this run tries."""
    return max(1, examples // _PART)


def some_of(examples: Iterable[T], seed: str) -> list[T]:
    """Those of `examples` that this run tries; tests with other seeds try others."""
    found = list(examples)
    return random.Random(seed).sample(found, part_of(len(found))) if found and _PART > 1 else found
