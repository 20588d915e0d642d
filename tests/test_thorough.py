"""The list of what `make test` leaves to CI and `make faults`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.thorough import THOROUGH, is_thorough


@cache
def functions_of(file: str) -> set[str]:
    found = ast.walk(ast.parse(Path(file).read_text()))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("entry", sorted(THOROUGH))
def test_each_entry_names_a_test_that_is_there(entry: str) -> None:
    file, _, name = entry.partition("::")
    assert Path(file).is_file()
    assert not name or name.partition("[")[0] in functions_of(file)


def test_a_file_a_test_and_a_case_can_stand_there() -> None:
    assert is_thorough("tests/e2e/test_gone_back.py::test_anything[a case]")
    assert is_thorough(
        "drills/machine/test_quiet.py::test_twenty_plain_tasks_ask_for_their_floors_in_one_call[home0-10]"
    )
    assert is_thorough("tests/web/test_screens.py::test_a_screen[bids]")
    assert not is_thorough("tests/web/test_screens.py::test_a_screen[overview]")


def test_it_is_marked_so(request: pytest.FixtureRequest) -> None:
    """By the hook of conftest.py, as each test is that is read in."""
    others = [item for item in request.session.items if is_thorough(item.nodeid)]
    assert all(item.get_closest_marker("thorough") for item in others)
    assert not request.node.get_closest_marker("thorough")
