"""The core decides and does nothing else: standard library only, no clock, no I/O, no logger, no random, no floats."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strategy.decision import Memory
from tests.worlds.market import book, carry_out, ladder_config, plan, rivals

MODULES = sorted((Path(__file__).parents[2] / "strategy").rglob("*.py"))
ALLOWED = {
    "__future__", "bisect", "collections", "core.fields", "dataclasses", "decimal", "enum", "fractions", "functools",
    "itertools", "json", "math", "msgspec", "operator", "re", "strategy", "typing",
}  # fmt: skip


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(_known(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(_known(node.module or ""))
    return names


def _known(module: str) -> str:
    return module if module == "core.fields" else module.split(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_only_what_cannot_look_at_the_world(path: Path) -> None:
    assert imports(path) <= ALLOWED


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_floats(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), node.lineno
        assert not (isinstance(node, ast.Name) and node.id in {"float", "open", "print"}), node.lineno
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)), node.lineno


def test_loads_no_heavy_module() -> None:
    code = "import sys, strategy.plan_bids, strategy.decision; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"asyncio", "socket", "logging", "random", "ssl", "requests", "tornado"} & set(loaded)


def test_decides_a_book_of_200_orders_at_once() -> None:
    """The aim is 100 us; a shared machine gets ten times that."""
    config = ladder_config(outbid_enabled=True)
    market = rivals(book(*range(100_000, 150_000, 500)), *range(10_000, 80_000, 700))
    own = carry_out(config, [], plan(config, market))

    def once() -> float:
        started = time.thread_time()
        plan(config, market, own)
        return time.thread_time() - started

    assert market.bids is not None
    assert (len(market.asks), len(market.bids)) == (100, 100)
    assert min(once() for _ in range(200)) < 0.001


def test_memory_survives_storage_and_what_is_none_is_forgotten() -> None:
    assert Memory.loads(Memory(5, (7, 8)).dumps()) == Memory(5, (7, 8))
    for text in ("", "{}", "[]", "7", '{"raises_ms": 5}', '{"no_reference_since_ms": "soon", "of_another_version": 1}'):
        assert Memory.loads(text) == Memory()
    assert Memory.loads('{"raises_ms": [5, true, "6", null, 7.5]}') == Memory(raises_ms=(5,))
