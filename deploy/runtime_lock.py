"""Prints the part of the lock that is needed to run, without the tools of the tests.

Standard library only: it runs before anything is installed. `python deploy/runtime_lock.py > requirements.txt`; with
the word `postgresql` PostgreSQL's driver is among them, with `ray` Ray.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILDS = "setuptools"  # builds embit, which has no wheels, and Bidkeeper itself
# What each word adds, and the lock that has it; the first lock has all that the second one has.
WORDS = {"ray": ("ray", "requirements-ray.lock"), "postgresql": ("psycopg", "requirements-postgresql.lock")}


def runtime_names(setup: str) -> set[str]:
    """Returns the names in `install_requires` of a setup.py."""
    for node in ast.walk(ast.parse(setup)):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            return {re.split(r"[^\w.-]", text)[0].lower() for text in ast.literal_eval(node.value)}
    raise ValueError("setup.py has no install_requires")


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
    words = set(sys.argv[1:])
    if not words <= WORDS.keys():
        sys.exit(f"usage: {sys.argv[0]} [{'] ['.join(sorted(WORDS))}]")
    names = runtime_names((ROOT / "setup.py").read_text()) | {BUILDS} | {WORDS[word][0] for word in words}
    lock = next((file for word, (_, file) in WORDS.items() if word in words), "requirements.lock")
    print(subset((ROOT / lock).read_text(), names), end="")
