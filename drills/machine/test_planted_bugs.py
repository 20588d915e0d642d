"""The machine itself: it finds every bug that is planted in the code that it runs, with less than it is given."""

from __future__ import annotations

import pytest

from drills.machine.bugs import BUGS
from drills.machine.running import RARE, Findings, find, noted
from tests.examples import some_of

pytestmark = pytest.mark.slow


@pytest.mark.sampled
@pytest.mark.parametrize("bug", some_of(BUGS, "planted bugs", dear=True))
def test_a_planted_bug_is_found_again(bug: str) -> None:
    """By the example in which it was found once; should that have become another one, by a search as below."""
    findings = noted(bug)
    find(bug, findings)
    if not findings.is_known():
        print(f"what is noted of {bug!r} finds it no more: python -m drills.machine.running {bug!r}")


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_can_be_planted_and_an_example_of_it_is_noted(bug: str) -> None:
    """`python -m drills.machine.running BUG` notes one."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[bug][0](patch)
    assert noted(bug).is_known()


@pytest.mark.faults
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug not in RARE])
def test_a_planted_bug_is_found(bug: str) -> None:
    find(bug, Findings())
