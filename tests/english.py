"""Counts the words that give a riddle away, by top-level folder, for the ratchet in `test_english.py`.

`python -m tests.english FOLDER` prints each place of a folder, `python -m tests.english --write` the counts to
`english.json`. Files of the top level and `docs/` count as folders, too.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = Path(__file__).with_name("english.json")
# Plain words for each: nobody = no user, no caller; told = sent, shown, known; at once = immediately, or at the same
# time; beside = next to, in addition to; the least = the minimum; goes on = continues; dear = slow, expensive.
RIDDLES = re.compile(
    r"\b(?:(?i:nobody|somebody|everybody|anybody|whoever|of (?:yours|ours|theirs)"
    r"|tells?(?! whether)|told|hears? of|(?:is|are|was|were|be) gone"
    r"|stand(?:s|ing)? by|stands|go(?:es)? on|looks? again|a look|at once|beside|so many"
    r"|the least|at the (?:least|most)|as good as|but for|ways? out|errands?|forgets?|forgotten|dear(?:er|est|ly)?)"
    r"|(?:is|are|be) (?:none|no))\b"  # `is None` is code
)
SUFFIXES = frozenset({".py", ".md", ".js", ".css", ".html", ".sh", ".toml", ".conf", ".service", ".yaml"})
# Of others: files of vendor/, builds, and the data of a demo.
_LEFT_OUT = re.compile(r"^(?:web/vendor|build|dist|data|\.[^/]*|[^/]*\.egg-info|tests/english\.py)(?:/|$)")
_COMMENT = re.compile(r"(?:^|\s)#\s.*")
Found = tuple[str, int, str]


def found() -> dict[str, list[Found]]:
    """Returns each folder's riddles as file, line and word."""
    places: dict[str, list[Found]] = {}
    tops = [top for top in sorted(ROOT.iterdir()) if not _LEFT_OUT.match(top.name)]
    for path in (path for top in tops for path in (sorted(top.rglob("*")) if top.is_dir() else [top])):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in SUFFIXES and not _LEFT_OUT.match(name):
            folder = name.partition("/")[0]
            places.setdefault(folder, []).extend((name, line, word) for line, word in riddles(path))
    return places


def riddles(path: Path) -> Iterator[tuple[int, str]]:
    """Yields each riddle of a file with its line."""
    text = path.read_text(encoding="utf-8")
    for first_line, words in _python(text) if path.suffix == ".py" else [(1, text)]:
        for riddle in RIDDLES.finditer(words):
            yield first_line + words.count("\n", 0, riddle.start()), riddle[0]


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Yields the comments, the texts and the tests' names, with the line that each begins on."""
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line and (comment := _COMMENT.search(line)):
            yield number, comment[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def counts() -> dict[str, int]:
    """Returns the number of riddles by folder."""
    return {folder: len(places) for folder, places in found().items()}


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        COUNTS.write_text(json.dumps(counts(), indent=1) + "\n")
    for folder in sys.argv[1:]:
        for name, line, word in found().get(folder, []):
            print(f"{name}:{line}: {word}")
