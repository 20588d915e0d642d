"""Plain words: docstrings begin with a verb or a noun, riddles become fewer, commit subjects are imperative."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests import english
from tests.ordering import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = tuple(
    sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in FOLDERS),
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


def is_operation(node: Named) -> bool:
    """Tells whether the docstring is an operation's summary, which callers of the API read."""
    return any(ast.unparse(mark).startswith("route(") for mark in getattr(node, "decorator_list", []))


def place(path: Path, node: Named) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def riddles(path: Path) -> list[str]:
    """Returns the places whose docstring begins with a question word; a property may say whether something holds."""
    return [
        place(path, node)
        for node, word in named(path)
        if word in QUESTIONS and not (word == "whether" and is_property(node)) and not is_operation(node)
    ]


def without_verb(path: Path) -> list[str]:
    """Returns the functions whose docstring begins with a noun's article; a property is a value and may."""
    return [
        place(path, node)
        for node, word in named(path)
        if word in NOUNS
        and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not is_property(node)
        and not is_operation(node)
    ]


@pytest.mark.parametrize("package", PRODUCT)
def test_a_docstring_is_no_riddle(package: str) -> None:
    found = [each for path in sorted((ROOT / package).rglob("*.py")) for each in riddles(path)]
    assert not found, f"say what it is or does: {found}"


@pytest.mark.parametrize("package", PRODUCT)
def test_a_functions_docstring_starts_with_a_verb(package: str) -> None:
    found = [each for path in sorted((ROOT / package).rglob("*.py")) for each in without_verb(path)]
    assert not found, f"begin with a verb: {found}"


@pytest.mark.thorough
@pytest.mark.slow
def test_tests_ask_no_riddles_either() -> None:
    counts = [
        (len(riddles(path)), len(named(path))) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    asked, described = map(sum, zip(*counts, strict=True))
    assert asked * 25 < described, f"{asked} of {described} docstrings of tests begin with a question word"


@pytest.mark.slow
def test_no_folder_has_more_riddles_than_before() -> None:
    """A merge of several changes may need `python -m tests.english --write` once more."""
    allowed = json.loads(english.COUNTS.read_text())
    more = {folder: (count, allowed.get(folder, 0)) for folder, count in english.counts().items()}
    assert {folder: pair for folder, pair in more.items() if pair[0] > pair[1]} == {}, (
        "a folder has more riddles (found, allowed): `python -m tests.english FOLDER` names them, "
        "and tests/english.py has plain words for each"
    )


def test_a_riddle_is_found_in_a_comment_a_text_and_a_tests_name(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        'x = 1  # nobody\n"""One.\n\nIt is told."""\ndef test_it_goes_on() -> None:\n    told = "at once"\n'
    )
    assert sorted(english.riddles(file)) == [(1, "nobody"), (4, "told"), (5, "goes on"), (6, "at once")]


SINCE = "5c2b9fa7"  # subjects before it are as they are
VERBS_IN_ED_ING_OR_S = frozenset(
    {"Address", "Bring", "Bypass", "Embed", "Feed", "Focus", "Need", "Pass", "Process", "Seed"}
)
NO_VERBS = frozenset(
    {"A", "All", "An", "Each", "Every", "How", "In", "It", "No", "Of", "On", "One", "The", "What", "Who"}
)


def faults_of_subject(subject: str) -> list[str]:
    """Returns the faults of a commit's subject; one word and a colon may stand before it, as in `Drill: kill it`."""
    area, colon, rest = subject.partition(": ")
    first = (rest if colon and " " not in area else subject).split(" ")[0]
    is_verb = first.capitalize() in VERBS_IN_ED_ING_OR_S or not re.search(r"(?:ed|ing|s)$", first)
    faults = {
        "longer than 72 characters": len(subject) > 72,
        "ends with a full stop": subject.endswith("."),
        "begins with a small letter": not subject[:1].isupper(),
        "begins with no imperative": not is_verb or first in NO_VERBS,
    }
    return [fault for fault, is_so in faults.items() if is_so]


def test_commit_subjects_are_short_and_imperative() -> None:
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "merge-base", "--is-ancestor", SINCE, "HEAD"], capture_output=True).returncode:
        pytest.skip(f"no git history with {SINCE}")
    log = subprocess.run([*git, "log", "--no-merges", "--format=%s", f"{SINCE}.."], capture_output=True, check=True)
    subjects = log.stdout.decode().splitlines()
    assert {subject: faults for subject in subjects if (faults := faults_of_subject(subject))} == {}


@pytest.mark.parametrize(
    ("subject", "count"),
    [
        ("Run repeat checks in CI only", 0),
        ("Drill: kill or isolate the database primary", 0),
        ("Process each event once", 0),
        ("What was last found of listings", 1),
        ("Fixed the ledger.", 2),
        ("a wheel that runs", 1),
        ("The bench of streams waits for as many events as it demanded before, on every machine", 2),
    ],
)
def test_a_subject_that_is_no_imperative_is_found(subject: str, count: int) -> None:
    assert len(faults_of_subject(subject)) == count
