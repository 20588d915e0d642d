"""Of the installed distributions none but ours owns a top-level name of ours."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, distributions

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
    assert {"cli", "core", "tests", "tools", "bench"} <= OURS
    assert intruders(found) == []


def test_one_that_does_would_be_seen() -> None:
    class Intruder(Distribution):
        def read_text(self, filename: str) -> str | None:
            texts = {"METADATA": "Name: python-hcl2\n", "RECORD": "hcl2/__init__.py,,\ncli/__init__.py,,\ncore.py,,\n"}
            return texts.get(filename)

        def locate_file(self, path: object) -> object:  # type: ignore[override]
            raise NotImplementedError

    assert intruders([Intruder()]) == ["python-hcl2 owns cli", "python-hcl2 owns core"]
