"""The planted bugs that take long to be found: in a file of their own, since files are what runs side by side."""

from __future__ import annotations

import pytest

from drills.machine.running import RARE, Findings, find

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.mark.parametrize("bug", RARE)
def test_a_rare_bug_is_found(bug: str) -> None:
    find(bug, Findings())
