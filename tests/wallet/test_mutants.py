"""The table of `make mutants` names files that exist, and every file that `make coverage` holds to each branch."""

from __future__ import annotations

import tomllib

from tests.wallet.mutants import ROOT, TESTS


def test_each_row_names_a_file_of_wallet_and_its_tests() -> None:
    files = [f"wallet/{name.replace('.', '/')}.py" for name in TESTS]
    tests = {f"tests/wallet/test_{name}.py" for names in TESTS.values() for name in names}

    assert [file for file in (*files, *sorted(tests)) if not (ROOT / file).is_file()] == []


def test_each_file_whose_every_branch_is_covered_has_mutants() -> None:
    covered = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["include"]

    named = {f"wallet/{name.replace('.', '/')}.py" for name in TESTS}
    assert [file for file in covered if file.startswith("wallet/") and file not in named] == []
