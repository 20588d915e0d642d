"""What tries only some of its examples is marked, so that `make faults` finds it and tries all."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
OURS = ("examples.py", "test_examples.py")


def test_every_file_with_dear_examples_has_the_mark() -> None:
    texts = {path: path.read_text() for path in TESTS.rglob("*.py") if path.name not in OURS}
    dear = {path.name for path, text in texts.items() if "dear=True" in text}
    marked = {path.name for path, text in texts.items() if re.search(r"mark\.sampled\b", text)}

    assert dear, "the search finds nothing any more"
    assert dear == marked
