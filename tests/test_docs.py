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
