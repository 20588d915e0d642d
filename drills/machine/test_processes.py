"""The same against a whole installation: no disagreement between venue, ledger, audit log and task logs."""

from __future__ import annotations

import pytest

from drills.machine.processes import Processes
from drills.machine.running import SEED, run

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def storm(examples: int, steps: int) -> str:
    tally = run(Processes, examples, steps, shrinks=False).tally
    assert tally["bids"] >= 5 * (examples - 1), "the run is void: next to nothing was placed"
    assert tally["workers"] >= examples - 1, "the run is void: next to no worker was killed"
    counts = ", ".join(f"{count} {name}" for name, count in sorted(tally.items()))
    return f"seed {SEED}: {counts}; 0 disagreements"


def test_two_installations() -> None:
    """The first example is always one in which next to nothing happens."""
    print(storm(examples=2, steps=30))


@pytest.mark.faults
def test_ten_installations() -> None:
    print(storm(examples=10, steps=120))
