"""The documentation's promises are kept, and every part is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.main import VERBS
from strategy.reasons import Reason

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_reason_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "reasons.md").read_text(), re.M)
    assert sorted(documented) == sorted(reason.value for reason in Reason)


def test_every_verb_is_mentioned() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [verb for verb in VERBS if f"`bidkeeper {verb}" not in text and f"`{verb}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


CUSTODY = (ROOT / "docs" / "custody.md").read_text()
TAKEN_OVER = CUSTODY.partition("## If a part is taken over\n")[2].partition("\n## ")[0]
NAMED = re.compile(r"`(\w[\w/]*\.py)::(test_\w+)`")


def test_every_line_about_a_part_that_was_taken_over_names_its_test() -> None:
    items = re.findall(r"^- .*(?:\n  .*)*", TAKEN_OVER, re.M)
    rows = re.findall(r"^\| .*", TAKEN_OVER, re.M)[1:]  # without the table's head
    assert len(items) > 15 and len(rows) > 10
    assert [line for line in items + rows if not NAMED.search(line)] == []


def test_every_test_that_custody_names_is_there() -> None:
    named = set(NAMED.findall(CUSTODY))
    assert len(named) > 25
    missing = {
        (file, name)
        for file, name in named
        if not (ROOT / "tests" / file).is_file()
        or not re.search(rf"^(?:async )?def {name}\(", (ROOT / "tests" / file).read_text(), re.M)
    }
    assert missing == set()
    # None is named that the pattern does not see.
    assert CUSTODY.count("::test_") == len(NAMED.findall(CUSTODY))
