"""Every fault of a cycle has a code and a step that are in the lists, whatever its words."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from markets.base import PriceGrid, RateLimited, Refused, Unavailable, Unknown
from models.tasks.errors import error_columns
from strategy.fault_codes import FaultCode, Step, price_of, step_of
from wallet.signer_client import SignerRefused, SignerUnavailable
from workers.faults import Faults

ROOT = Path(__file__).resolve().parents[2]
NOTERS = {"add", "add_write", "add_unsigned"}


def words_in(tree: ast.AST) -> Iterator[str]:
    """Yields the words of each fault that is noted, and of each variable that holds such words; numbers are 7."""
    for node in ast.walk(tree):
        found: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOTERS:
            found = node.args[:1] if len(node.args) == 2 else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_try":
            found = node.args[1:2]
        elif isinstance(node, ast.Assign):
            names = {name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)}
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found = list(values) if names & {"failed_to", "WAY_HOME"} else []
        for each in found:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
            elif isinstance(each, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in each.values)


def test_all_words_that_are_ever_noted_are_of_a_step() -> None:
    files = [*(ROOT / "workers").rglob("*.py"), *(ROOT / "markets").rglob("*.py")]
    noted = {words for file in files for words in words_in(ast.parse(file.read_text()))}
    assert len(noted) > 30
    assert {words for words in noted if step_of(words) is Step.OTHER} - {"7"} == set()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RateLimited(4.0), FaultCode.VENUE_RATE_LIMITED),
        (Unavailable("away"), FaultCode.VENUE_UNAVAILABLE),
        (Unknown("late"), FaultCode.VENUE_UNKNOWN),
        (PriceGrid("odd"), FaultCode.PRICE_GRID),
        (Refused("quota", "short"), FaultCode.QUOTA),
        (Refused("a code of the venue's own", "no"), FaultCode.VENUE_REFUSED),
        (SignerRefused("price-cap", "no"), FaultCode.SIGNER_REFUSED),
        (SignerUnavailable("away"), FaultCode.SIGNER_AWAY),
        ("in words", FaultCode.OTHER),
    ],
)
def test_an_error_has_its_code(error: Exception, code: FaultCode) -> None:
    faults = Faults()
    faults.add("place 75000", error)  # type: ignore[arg-type]
    assert faults.first is not None and faults.first.code is code
    assert faults.first.params.items() >= {"step": "place", "priceSats": 75_000}.items()


def test_the_first_fault_stands_for_all_and_counts_the_others() -> None:
    faults = Faults()
    faults.add("read the asks", RateLimited(4.2))
    faults.add("read the asks", RateLimited(4.2))
    faults.add("place", "spent", code=FaultCode.SPEND_CAP, mostSats=5)
    assert faults.first == (FaultCode.VENUE_RATE_LIMITED, {"step": "read_asks", "retryAfterSeconds": 4, "more": 1})
    assert faults.as_values[1] == {"code": "spend_cap", "step": "place", "mostSats": 5}


def test_only_the_price_of_one_bid_is_told() -> None:
    assert [price_of(words) for words in ("cancel 5 (order 3)", "sign a listing at 84000")] == [5, 84_000]
    assert price_of("cancel 5 (order 3), 6 (order 4)") is None
    assert price_of("cancel a stray bid (77)") is None


def test_words_without_a_code_are_of_another_kind_and_a_strange_code_is_refused() -> None:
    assert error_columns("no") == {"last_error": "no", "last_error_code": "other", "last_error_params": "{}"}
    assert set(error_columns(None).values()) == {None}
    assert json.loads(error_columns("no", ("spend_cap", {"mostSats": 5}))["last_error_params"] or "") == {"mostSats": 5}
    with pytest.raises(ValueError, match="strange"):
        error_columns("no", ("strange", {}))
