"""Goldens: what callers see of Bidkeeper, kept as text of one fact a line, while its inside changes.

A golden that fails names the lines that differ. Either you mend the product, or you want the difference. Then

    RENEW_GOLDENS=1 .venv/bin/python -m pytest tests/server/test_openapi.py

writes the goldens anew. Commit what `git diff tests/goldens` shows alone, and say what changed for callers and why.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from tests.needs import is_ci

HERE = Path(__file__).resolve().parent
_RENEW = "RENEW_GOLDENS"
_MOST_SHOWN = 60


def hold(name: str, lines: Iterable[str]) -> None:
    """Fails unless the golden `name` has exactly these lines; with RENEW_GOLDENS it writes them instead."""
    path, found = HERE / name, list(lines)
    assert [line for line in found if len(line.splitlines()) > 1] == [], "a fact is one line"
    if os.environ.get(_RENEW) and not is_ci():
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
        return
    kept = path.read_text(encoding="utf-8").split("\n")[:-1]
    if kept == found:
        return
    told = [line for line in difflib.unified_diff(kept, found, name, "now", n=0, lineterm="") if line[:2] != "@@"]
    if len(told) > _MOST_SHOWN:
        told[_MOST_SHOWN:] = [f"... and {len(told) - _MOST_SHOWN} lines more"]
    raise AssertionError("\n".join([f"{name} differs; tests/goldens/__init__.py says what to do.", *told]))
