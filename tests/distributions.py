"""Our distribution: the names that it owns, and its files."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _top_level() -> list[str]:
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TOP_LEVEL":
            return list(ast.literal_eval(node.value))
    raise AssertionError("setup.py has no TOP_LEVEL")


TOP_LEVEL = _top_level()


def files() -> set[str]:
    """Returns the paths of all files in our packages, as they are in a checkout."""
    found = [path for name in TOP_LEVEL for path in (ROOT / name).rglob("*") if path.is_file()]
    return {path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts}
