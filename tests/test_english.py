"""A docstring says at once what a thing is or does: no riddle at the head of a function, a class or a module."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(
    sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"),
)
# A question is no description: "Counts the orders", not "How many orders there are".
QUESTIONS = frozenset({"how", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why"})
NOUNS = frozenset({"a", "all", "an", "each", "every", "its", "one", "our", "the", "those"})
Named = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def named(path: Path) -> list[tuple[Named, str]]:
    """Returns each module, class and function of a file that has a docstring, with the docstring's first word."""
    return [
        (node, text.split()[0].strip("`,.:;").lower())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Named) and (text := ast.get_docstring(node))
    ]


def is_property(node: Named) -> bool:
    return any("property" in ast.unparse(mark) for mark in getattr(node, "decorator_list", []))


def place(path: Path, node: Named) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def riddles(path: Path) -> list[str]:
    """Returns the places whose docstring begins with a question word; a property may say whether something holds."""
    return [
        place(path, node)
        for node, word in named(path)
        if word in QUESTIONS and not (word == "whether" and is_property(node))
    ]


def without_verb(path: Path) -> list[str]:
    """Returns the functions whose docstring begins with a noun's article; a property is a value and may."""
    return [
        place(path, node)
        for node, word in named(path)
        if word in NOUNS and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node)
    ]


@pytest.mark.parametrize("package", PRODUCT)
def test_a_docstring_is_no_riddle(package: str) -> None:
    found = [each for path in sorted((ROOT / package).rglob("*.py")) for each in riddles(path)]
    assert not found, f"say what it is or does: {found}"


@pytest.mark.parametrize("package", PRODUCT)
def test_a_functions_docstring_starts_with_a_verb(package: str) -> None:
    found = [each for path in sorted((ROOT / package).rglob("*.py")) for each in without_verb(path)]
    assert not found, f"begin with a verb: {found}"


@pytest.mark.slow
def test_tests_ask_no_riddles_either() -> None:
    counts = [(len(riddles(path)), len(named(path))) for path in sorted((ROOT / "tests").rglob("*.py"))]
    asked, described = map(sum, zip(*counts, strict=True))
    assert asked * 25 < described, f"{asked} of {described} docstrings of tests begin with a question word"
