"""Draws the imports between the product's folders in docs/architecture.md: `python -m tools.diagram --write`.

Without `--write` it prints the diagram. tests/test_docs.py fails if the page has a different one.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_BEGIN, _END = "<!-- imports: begin -->", "<!-- imports: end -->"
# Packages of the checkout that are not installed.
_NOT_PRODUCT = frozenset({"bench", "tests", "tools"})

Graph = dict[str, set[str]]


def folders(root: Path = ROOT) -> Graph:
    """Returns each folder of the product with the folders that it imports."""
    names = {path.parent.name for path in root.glob("*/__init__.py")} - _NOT_PRODUCT
    return {
        name: {top for file in (root / name).rglob("*.py") for top in _imported(file)} & names - {name}
        for name in sorted(names)
    }


def _imported(file: Path) -> Iterator[str]:
    """Yields the top-level packages of a file's imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def direct(graph: Graph) -> Graph:
    """Returns the imports without those that a longer path implies. `graph` must have no cycles."""
    return {name: below - {far for near in below for far in reached(graph, near)} for name, below in graph.items()}


def reached(graph: Graph, start: str) -> set[str]:
    """Returns every folder that `start` imports, directly or indirectly."""
    return graph[start].union(*(reached(graph, below) for below in graph[start]))


def diagram(root: Path = ROOT) -> str:
    """Returns the Mermaid block."""
    arrows = [f"    {name} --> {below}" for name, found in direct(folders(root)).items() for below in sorted(found)]
    return "\n".join(["```mermaid", "graph TD", *arrows, "```"])


def renewed(page: str) -> str:
    """Returns the page with a new diagram between its markers. Raises ValueError if a marker is missing."""
    begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    return f"{page[:begin]}\n{diagram()}\n{page[end:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the page")
    if parser.parse_args().write:
        PAGE.write_text(renewed(PAGE.read_text()))
    else:
        print(diagram())


if __name__ == "__main__":
    main()
