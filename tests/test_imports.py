"""The house's one rule: imports only point downwards, siblings do not know one another, there is no circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

BELOW = {
    "core": set(),
    "web": set(),
    "strategy": {"core"},
    "models": {"strategy", "core"},
    "wallet": {"strategy", "core"},
    "markets": {"strategy", "core"},
    "gateway": {"models", "wallet", "markets", "strategy", "core"},
    "workers": {"models", "wallet", "markets", "strategy", "core"},
    "hooks": {"models", "strategy", "core"},
    "server": {"web", "models", "wallet", "markets", "strategy", "core"},
    # The practice marketplace checks signatures as a venue would, and shares nothing with the adapters.
    "simulator": {"wallet", "core"},
    "cli": {"server", "hooks", "workers", "gateway", "simulator", "models", "wallet", "markets", "strategy", "core"},
}
# What would make a worker, of which there may be hundreds, heavy. asyncio alone is 4 MiB.
HEAVY = {"requests", "tornado", "asyncio", "embit", "bip322", "cryptography", "ssl", "urllib3"}

MOST_MODULES, MOST_LINES = 32, 600


def modules() -> list[Path]:
    return sorted(path for package in BELOW for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> frozenset[str]:
    """Returns what a file imports: modules, and of `from package import name` both the package and `package.name`."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_only_point_down() -> None:
    for path in modules():
        package = path.relative_to(ROOT).parts[0]
        for name in imported(path):
            top = name.split(".")[0]
            assert top not in BELOW or top == package or top in BELOW[package], f"{path} must not import {name}"


def test_servers_and_workers_know_no_venue() -> None:
    """An adapter's knowledge of its venue reaches the others as our types, through the gateway."""
    markets = ROOT / "markets"
    files = [path for path in markets.rglob("*.py") if "(Adapter)" in path.read_text()]
    adapters = {path.relative_to(markets).parts[0].removesuffix(".py") for path in files}
    venues = adapters | {"mempool", "ord"}
    assert len(venues) >= 6
    for path in [*(ROOT / "server").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]:
        for name in imported(path):
            package, _, module = name.partition(".")
            assert package != "markets" or module.split(".")[0] not in venues, f"{path} imports {name}"


def test_names_are_imported_from_where_they_live() -> None:
    """mypy refuses the import of a name that a module only imports, unless the module lists it in `__all__`."""
    for path in modules():
        assert "__all__" not in path.read_text(), path


def test_no_circle_between_modules() -> None:
    assert circle({name_of(path): set(imported(path)) for path in modules()}) == ()


@pytest.mark.parametrize("package", BELOW)
def test_no_circle_between_the_rooms_of_a_package(package: str) -> None:
    """A room is a folder or a file right in the package's own."""
    graph: dict[str, set[str]] = {}
    for path in (path for path in modules() if path.relative_to(ROOT).parts[0] == package):
        room = ".".join(name_of(path).split(".")[:2])
        graph.setdefault(room, set()).update(".".join(name.split(".")[:2]) for name in imported(path))
    assert circle({room: names - {room, package} for room, names in graph.items()}) == ()


def circle(graph: dict[str, set[str]]) -> tuple[str, ...]:
    """Returns the way round a circle; () where there is none."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> tuple[str, ...]:
        if name in above:
            return (*above[above.index(name) :], name)
        for other in () if name in done else sorted(graph[name] & graph.keys()):
            if found := visit(other, (*above, name)):
                return found
        done.add(name)
        return ()

    return next((found for name in graph if (found := visit(name, ()))), ())


def test_a_folder_is_taken_in_at_a_glance() -> None:
    folders = Counter(path.parent for path in modules() if path.name != "__init__.py")
    assert {str(folder): count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_a_file_is_read_in_one_sitting() -> None:
    paths = [*modules(), *(path for folder in ("tests", "drills", "bench") for path in (ROOT / folder).rglob("*.py"))]
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in paths}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_three_files_know_the_kinds_of_database() -> None:
    kinds = {f"peewee.{name}" for name in ("SqliteDatabase", "PostgresqlDatabase", "MySQLDatabase")}
    kinds |= {"psycopg", "psycopg2", "playhouse.sqlite_ext", "playhouse.postgres_ext"}
    knowing = {path.relative_to(ROOT).as_posix() for path in modules() if kinds & imported(path)}
    assert knowing == {f"models/database/{name}.py" for name in ("damage", "postgresql", "servers")}


def test_strategy_is_pure() -> None:
    forbidden = {"time", "random", "socket", "logging", "os", "pathlib", "threading", "datetime", "secrets", "uuid"}
    for path in (ROOT / "strategy").rglob("*.py"):
        for name in imported(path):
            top = name.split(".")[0]
            is_known = top in sys.stdlib_module_names or top in ("strategy", "msgspec")
            assert is_known or name.startswith("core.fields") or name == "core", f"{path.name} imports {name}"
            assert top not in forbidden, f"{path.name} imports {name}"


@pytest.mark.parametrize("module", ["workers.process.main", "markets.client", "wallet.signer_client"])
def test_what_a_worker_imports_is_light(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set(name.split('.')[0] for name in sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert HEAVY.isdisjoint(loaded.stdout.split()), sorted(HEAVY & set(loaded.stdout.split()))


@pytest.mark.slow
def test_every_module_can_be_imported() -> None:
    """In one process, which is enough since nothing is in a circle: what comes first cannot matter."""
    names = [name_of(path) for path in modules() if path.parent.name != "migrations" and path.name != "__main__.py"]
    program = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
