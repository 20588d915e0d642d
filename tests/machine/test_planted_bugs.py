"""The machine itself: it finds every bug that is planted in the code that it runs, with less than it is given."""

from __future__ import annotations

import pytest

from tests.examples import some_of
from tests.machine.bugs import BUGS
from tests.machine.findings import RARE, Findings, hunt, is_named, noted

pytestmark = pytest.mark.slow
# What nobody has noted takes its whole search.
DEAR = [bug for bug in RARE if not noted(bug).is_known()]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=pytest.mark.faults) if bug in DEAR else bug
        for bug in some_of(BUGS, "planted bugs", dear=True)
    ],
)
def test_a_planted_bug_is_found_again(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the example in which it was found once; should that have become another one, by a search as below."""
    findings = noted(bug)
    BUGS[bug][0](monkeypatch)
    with pytest.raises(AssertionError) as found:
        hunt(bug, findings)
    assert is_named(bug, found.value), found.value
    if not findings.is_known():
        print(f"what is noted of {bug!r} finds it no more: python -m tests.machine.findings {bug!r}")


@pytest.mark.faults
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug][0](monkeypatch)
    with pytest.raises(AssertionError) as found:
        hunt(bug, Findings())
    assert is_named(bug, found.value), found.value
