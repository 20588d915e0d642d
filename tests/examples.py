"""How many random examples a property test tries: all in `make test`, an eighth in `make test-fast`."""

from __future__ import annotations

import os

# `make test-fast` sets it to 8; whoever runs pytest by hand gets all.
_PART = int(os.environ.get("EXAMPLES_PART", "1"))


def part_of(examples: int) -> int:
    """How many of `examples` this run tries."""
    return max(1, examples // _PART)
