"""`make mutants`: changes the signer's code one small slip at a time, and counts the slips that the tests notice.

    python -m tests.wallet.mutants [--most N] [--jobs N] [FILE ...]

Each mutant is a fork that imports the changed file in place of the right one and runs the fast tests named for it,
until one fails; one that hangs has failed, too. Those that survive are printed: a test is missing, or the change means
nothing. With `--most`, that many of each file, picked by a fixed seed. No tool of others: they start an interpreter for
each mutant, which takes ten times as long.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# Of the processor's time, and of the clock's: on a busy machine a mutant that is waited for has not hung.
MOST_CPU_S = 60
LONGEST_S = 900
SEED = 7

_PSBT = ("psbt_check", "psbt", "psbt_sign", "psbt_fuzz")
_SIGNER = (
    "sign_listings",
    "sign_offers",
    "signer",
    "ceilings",
    "ledger",
    "facts_client",
)
# The module of wallet/ under test: the tests that are to notice, the likeliest first.
TESTS: dict[str, tuple[str, ...]] = {
    "policy": ("policy", "ceilings", "signer", "sign_listings", "sign_offers"),
    "terms": ("ceilings", "policy", "sign_escrows", "escrow", "out_of_escrow", "sign_offers"),
    "messages": ("messages", "signer", "sign_offers"),
    "signer.ledger": (
        *("ledger", "signer", "ceilings", "sign_listings"),
        *("sign_withdrawals", "start_checks", "full_disk", "outputs_unique"),
    ),
    "signer.authority": ("signer", "ceilings", "sign_listings"),
    "signer.grants": (
        "signer",
        "ceilings",
        "sign_listings",
        "start_checks",
        "full_disk",
    ),
    "signer.bids": ("signer", "ceilings", "sign_offers", "sign_listings"),
    "signer.listings": (*_SIGNER, "outputs_unique", "judge", "practice_venues", "sign_escrows"),
    "psbt.check_listing": (*_PSBT, "practice_venues", "judge"),
    "signer_client": ("judge", "signer_process"),
    "signer.signer": _SIGNER,
    "protocol": ("protocol", "sign_withdrawals", "sign_listings", "sign_escrows", "ceilings"),
    "signer.reading": ("protocol", "facts_client"),
    "psbt.decode": _PSBT,
    "psbt.check_escrow": ("escrow", "sign_escrows"),
    "psbt.check_offer": ("offer_check",),
    "psbt.script": (*_PSBT, "offer_check", "withdrawal_psbt", "escrow", "out_of_escrow"),
    "psbt.fields": ("psbt_rules", *_PSBT),
    "withdrawal": ("withdrawal_rules", "out_of_escrow", "sign_withdrawals", "withdrawal_psbt"),
    "signer.withdrawals": ("sign_withdrawals", "out_of_escrow", "withdrawal_rules", "withdrawal_psbt"),
    "psbt.sign": (*_PSBT, "escrow"),
    "psbt.common": (*_PSBT, "practice_venues", "offer_check"),
    "psbt.transaction": _PSBT,
}

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
}

Change = Callable[[ast.AST], None]


class Mutant(NamedTuple):
    module: str
    what: str
    source: str


def mutants_of(name: str) -> list[Mutant]:
    """Returns every small change of one file of wallet/."""
    tree = ast.parse((ROOT / "wallet" / f"{name.replace('.', '/')}.py").read_text())
    found = []
    skipped = set(_meaningless(tree))
    for at, node in enumerate(ast.walk(tree)):
        if id(node) in skipped:
            continue
        for what, change in _changes(node):
            changed = copy.deepcopy(tree)
            change(list(ast.walk(changed))[at])
            source = ast.unparse(ast.fix_missing_locations(changed))
            line = getattr(node, "lineno", 0)
            found.append(Mutant(name, f"{name}.py:{line}: {what}: {ast.unparse(node).splitlines()[0][:90]}", source))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in _SWAPPED:
                yield (
                    f"{type(operator).__name__} swapped",
                    lambda new, place=place, operator=operator: new.ops.__setitem__(place, _SWAPPED[type(operator)]()),
                )
    if isinstance(node, ast.BoolOp):
        other = ast.And if isinstance(node.op, ast.Or) else ast.Or
        yield "and or or", lambda new: setattr(new, "op", other())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not left out", lambda new: (setattr(new, "op", ast.Not()), _negate(new, "operand"))[0]
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
        yield "other operator", lambda new: setattr(new, "op", _OTHER[type(node.op)]())
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "negated", lambda new: _negate(new, "test")
        yield "never", lambda new: setattr(new, "test", ast.Constant(False))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            yield f"{step:+}", lambda new, step=step: setattr(new, "value", new.value + step)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "other truth", lambda new: setattr(new, "value", not new.value)
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "returns None", lambda new: setattr(new, "value", ast.Constant(None))
    if hasattr(node, "body") and isinstance(node.body, list):
        for place, statement in enumerate(node.body):
            if _can_go(statement):
                yield (
                    f"without `{ast.unparse(statement).splitlines()[0][:60]}`",
                    lambda new, place=place: new.body.__setitem__(place, ast.Pass()),
                )


def _negate(node: ast.AST, name: str) -> None:
    setattr(node, name, ast.UnaryOp(ast.Not(), getattr(node, name)))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _can_go(statement: ast.stmt) -> bool:
    """Calls for what they do, raises and changes of what is there; not docstrings and not lines of the log."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call) and not ast.unparse(statement.value).startswith("log.")
    return isinstance(statement, ast.Raise | ast.AugAssign)


def _meaningless(tree: ast.AST) -> Iterator[int]:
    """Yields the lines that no test covers: annotations, texts for people, the log, `Literal`, slots and frozen."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]
            parts = [node.returns, *(argument.annotation for argument in every), *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            parts = [*node.decorator_list, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif _says_nothing(node):
            parts = [node]
        for part in parts:
            if part is not None:
                yield from (id(inner) for inner in ast.walk(part))


def _says_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).startswith("log.")
    if isinstance(node, ast.Assign):
        return "Literal[" in ast.unparse(node.value)
    return isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the mutant in place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = f"wallet.{mutant.module}"
        self._source = mutant.source

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self._name else None

    def exec_module(self, module: object) -> None:
        exec(compile(self._source, self._name, "exec"), vars(module))


def run_tests(mutant: Mutant | None, name: str) -> int:
    """In a fork of its own: pytest's exit code for the tests of one file, under the mutant if there is one."""
    import pytest

    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if mutant is not None:
        sys.meta_path.insert(0, Changed(mutant))
    files = dict.fromkeys(f"tests/wallet/test_{test}.py" for test in TESTS[name])
    with tempfile.TemporaryDirectory(prefix="mutant") as directory:
        options = [
            "-x",
            "-q",
            "-k",
            "not planted",
            "-p",
            "no:cacheprovider",
            f"--basetemp={directory}/t",
        ]
        return int(pytest.main([*options, "-W", "ignore", *files]))


def start(mutant: Mutant | None, name: str) -> int:
    """Forks; returns the pid."""
    pid = os.fork()
    if pid == 0:
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
        code = 1
        try:
            code = run_tests(mutant, name)
        except BaseException:
            code = 1
        finally:
            os._exit(min(code, 100))
    return pid


def outcomes(mutants: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Yields each mutant with whether it was killed, as they end."""
    waiting, running = list(reversed(mutants)), dict[int, tuple[Mutant, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[start(mutant, mutant.module)] = mutant, time.monotonic() + LONGEST_S
        for pid, (mutant, deadline) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                yield mutant, status != 0
            elif time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
        time.sleep(0.01)


def main(arguments: list[str]) -> int:
    """Prints the survivors and a line for each file. The exit code is 1 when the tests fail without any mutant."""
    parser = argparse.ArgumentParser(description="counts the slips in wallet/ that the tests notice")
    parser.add_argument("--most", type=int, default=0, help="mutants of each file; 0: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("files", nargs="*", default=list(TESTS), metavar="FILE", help=f"of {', '.join(TESTS)}")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    os.environ.setdefault("PSBT_MUTANTS", "4000")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    _import_what_never_changes()
    total = killed = 0
    for name in options.files:
        if os.waitpid(start(None, name), 0)[1] != 0:
            print(f"{name}: its tests fail as they are")
            return 1
        mutants = mutants_of(name)
        if options.most and len(mutants) > options.most:
            mutants = random.Random(SEED).sample(mutants, options.most)
        survivors = [mutant for mutant, was_killed in outcomes(mutants, options.jobs) if not was_killed]
        for mutant in sorted(survivors):
            print(f"  survived {mutant.what}")
        total, killed = total + len(mutants), killed + len(mutants) - len(survivors)
        print(f"{name}: {len(mutants) - len(survivors)} of {len(mutants)} killed", flush=True)
    print(f"{killed} of {total} killed, {100 * killed / max(1, total):.1f} %")
    return 0


def _import_what_never_changes() -> None:
    """So that no fork has to; nothing of wallet/ and none of its tests is among it."""
    import bip322  # noqa: F401
    import embit.psbt  # noqa: F401
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
