"""The machine itself: it finds every bug that is planted in the code that it runs, with less than it is given."""

from __future__ import annotations

import pytest

from tests.machine.bugs import BUGS
from tests.machine.machine import Machine
from tests.machine.running import SEED, run

pytestmark = pytest.mark.slow
# Several seeds: with one alone what needs some luck may stay hidden for long.
SEEDS, EXAMPLES, STEPS = 4, 40, 50
# A quarter of a minute and more each, some of them several.
RARE = (
    "adoption skipped",
    "exposure counted late",
    "a shared budget is not counted",
    "forgotten at a restart",
    "a stop that is only a flag",
    "the cap is not last",
    "made first, past maxFills",
    "a batch is cancelled as one",
)


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=pytest.mark.faults) if bug in RARE else bug for bug in BUGS])
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, names = BUGS[bug]
    plant(monkeypatch)
    with pytest.raises(AssertionError) as found:
        for nth in range(SEEDS):
            run(Machine, 3 * EXAMPLES if bug in RARE else EXAMPLES, STEPS, shrinks=False, chosen_seed=SEED + nth)
    assert any(f"{name}: " in str(found.value) for name in names), found.value
