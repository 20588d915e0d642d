"""Prints the part of the locked requirements that is needed to run, without the tools of the tests.

Standard library only: it runs before anything is installed.
`python deploy/runtime_lock.py [EXTRA...] > requirements.txt`, an extra being `postgres` or `ray`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILDS = "setuptools"  # builds embit, which has no wheels, and Bidkeeper itself
LOCKS = {"ray": "requirements-ray.lock", "postgres": "requirements-postgresql.lock"}  # the first one holds the second


def runtime_names(setup: str, extras: Sequence[str] = ()) -> set[str]:
    """Returns the names in `install_requires` of a setup.py, and in these of its extras."""
    found = {node.arg: node.value for node in ast.walk(ast.parse(setup)) if isinstance(node, ast.keyword)}
    if "install_requires" not in found:
        raise ValueError("setup.py has no install_requires")
    texts = ast.literal_eval(found["install_requires"])
    for extra in extras:
        texts += _texts_of(found["extras_require"], extra)
    return {re.split(r"[^\w.-]", text)[0].lower() for text in texts}


def _texts_of(extras: ast.expr, extra: str) -> list[str]:
    if isinstance(extras, ast.Dict) and extra in LOCKS:
        for key, value in zip(extras.keys, extras.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == extra:
                return list(ast.literal_eval(value))
    raise ValueError(f"there is no extra {extra}, only {' and '.join(sorted(LOCKS))}")


def lock_of(extras: Sequence[str]) -> Path:
    """Returns the lock file that has all of these extras."""
    return ROOT / next((LOCKS[extra] for extra in LOCKS if extra in extras), "requirements.lock")


def subset(lock: str, names: set[str]) -> str:
    """Returns the blocks of `names` and of their dependencies, by the lock's own remarks."""
    blocks = {match[1].lower(): match[0] for match in re.finditer(r"^([\w.-]+)==.*\n(?:[ ].*\n?)*", lock, re.M)}
    if missing := names - blocks.keys():
        raise ValueError(f"the lock lacks {', '.join(sorted(missing))}")
    needed_by = {name: set(re.findall(r"^ +#(?: via)? +([\w.-]+)", block, re.M)) for name, block in blocks.items()}
    wanted = set(names)
    while more := {name for name, parents in needed_by.items() if parents & wanted} - wanted:
        wanted |= more
    return "".join(block for name, block in blocks.items() if name in wanted)


if __name__ == "__main__":
    extras = sys.argv[1:]
    names = runtime_names((ROOT / "setup.py").read_text(), extras) | {BUILDS}
    print(subset(lock_of(extras).read_text(), names), end="")
