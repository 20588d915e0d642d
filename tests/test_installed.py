"""Of the installed distributions none but ours owns a top-level name of ours."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tests.distributions import ROOT, TOP_LEVEL

OURS = {*TOP_LEVEL, *(path.parent.name for path in ROOT.glob("*/__init__.py"))}


def intruders(found: Iterable[Distribution]) -> list[str]:
    """Returns what each of them owns of our names; such a distribution would be imported in our place."""
    return sorted(
        f"{each.name} owns {name}"
        for each in found
        if each.name != "bidkeeper"
        for name in {file.parts[0].removesuffix(".py") for file in each.files or ()} & OURS
    )


def test_no_other_distribution_owns_a_name_of_ours() -> None:
    found = list(distributions())
    assert {"bidkeeper", "tornado", "pytest"} <= {each.name for each in found}
    assert {"cli", "core", "tests", "drills", "tools", "bench"} <= OURS
    assert intruders(found) == []


def test_one_that_does_would_be_seen(tmp_path: Path) -> None:
    texts = {
        "parser/__init__.py": "",
        "cli/__init__.py": "",
        "core.py": "",
        "some_parser-8.dist-info/METADATA": "Name: some-parser\n",
        "some_parser-8.dist-info/RECORD": "parser/__init__.py,,\ncli/__init__.py,,\ncore.py,,\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert intruders(distributions(path=[str(tmp_path)])) == ["some-parser owns cli", "some-parser owns core"]
