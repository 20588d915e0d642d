"""The join of several sources' facts of an output: anything missing or doubtful is None."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.reads.chain import OnChain, joined
from markets.base import Confirmation, Indexed, OutpointFacts, Spending
from tests.gateway.listing_examples import INSCRIPTION, MADE, OUTPOINT, SCRIPT

CHAIN = OnChain(MADE.outputs[1], Confirmation(True, 864_000), Spending(False, None), 864_351)
INDEX = Indexed(546, SCRIPT.hex(), True, False, (INSCRIPTION,), (), 864_351)
SURE = OutpointFacts(
    OUTPOINT, 546, SCRIPT.hex(), True, True, (INSCRIPTION,), (), 864_351, 864_351, None, height=864_000
)
SILENT = OnChain(None, None, None, None)


@pytest.mark.parametrize("indexes", [[INDEX], [INDEX, INDEX], [INDEX, Indexed(*[None] * 7)]])
def test_sources_that_agree(indexes: list[Indexed]) -> None:
    assert joined(OUTPOINT, CHAIN, indexes) == SURE


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({"value": 547}, {"value": None}),
        ({"script": "51"}, {"script": None}),
        ({"is_spent": True}, {"is_unspent": None}),
        ({"is_confirmed": False}, {"is_confirmed": None, "height": None}),
        ({"inscriptions": ()}, {"inscriptions": None}),
        ({"inscriptions": (INSCRIPTION, "x")}, {"inscriptions": None}),
        ({"runes": ("A•B",)}, {"runes": None}),
        ({"height": 864_352}, {}),
        ({"height": 864_353}, {"tip_height": None}),
        ({"height": 864_000}, {"index_height": 864_000}),
    ],
)
def test_a_second_index_that_says_otherwise_is_a_doubt(changed: dict[str, Any], lost: dict[str, Any]) -> None:
    for indexes in ([INDEX, replace(INDEX, **changed)], [replace(INDEX, **changed), INDEX]):
        assert joined(OUTPOINT, CHAIN, indexes) == replace(SURE, **lost)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"value": 547}, {"value": None}),
        ({"script": "51"}, {"script": None}),
        ({"is_spent": True}, {"is_unspent": None}),
        ({"is_confirmed": False}, {"is_confirmed": None, "height": None}),
    ],
)
def test_the_only_index_against_the_chain_is_a_doubt(changed: dict[str, Any], expected: dict[str, Any]) -> None:
    assert joined(OUTPOINT, CHAIN, [replace(INDEX, **changed)]) == replace(SURE, **expected)


def test_a_spend_in_the_mempool_is_one_before_an_index_sees_it() -> None:
    spent = replace(CHAIN, spending=Spending(True, "cd" * 32))
    assert joined(OUTPOINT, spent, [INDEX]) == replace(SURE, is_unspent=False, spent_by="cd" * 32)
    gone = replace(CHAIN, spending=Spending(True, "cd" * 32, True))
    assert joined(OUTPOINT, gone, [INDEX]).is_spent_in_block


def test_an_unknown_output_is_not_unspent_but_may_be_spent() -> None:
    unknown = replace(CHAIN, made=None)
    nothing = {"value": None, "script": None, "is_unspent": None}
    assert joined(OUTPOINT, unknown, [INDEX]) == replace(SURE, **nothing)
    spent = replace(unknown, spending=Spending(True, "cd" * 32))
    assert joined(OUTPOINT, spent, [INDEX]).is_unspent is False


def test_without_an_index_nothing_is_known_of_what_lies_there() -> None:
    assert joined(OUTPOINT, CHAIN, []) == replace(SURE, inscriptions=None, runes=None, index_height=None)


def test_an_index_alone_vouches_for_nothing_but_what_lies_there() -> None:
    nothing = {"value": None, "script": None, "is_unspent": None, "is_confirmed": None, "tip_height": None}
    nothing["height"] = None
    assert joined(OUTPOINT, SILENT, [INDEX]) == replace(SURE, **nothing)


def test_nobody_says_anything() -> None:
    assert joined(OUTPOINT, SILENT, []) == OutpointFacts(OUTPOINT, *[None] * 9)


def test_the_lowest_height_of_two_indexes_is_told() -> None:
    assert joined(OUTPOINT, CHAIN, [replace(INDEX, height=864_349), INDEX]).index_height == 864_349
