"""The place of a bid beside others' where a level of the book has own ones, too, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.javascript import Modules, modules

READ = "2026-11-23T07:23:10Z"
NOW_S = 1_795_418_600  # ten seconds later


@pytest.fixture(scope="module")
def javascript() -> Iterator[Modules]:
    with modules() as made:
        yield made


def book(price: float, quantity: float, orders: int, own: float, own_orders: int) -> dict[str, Any]:
    level = {"unitPrice": price, "quantity": quantity, "orders": orders, "own": own, "ownOrders": own_orders}
    return {"asks": None, "bids": {"takenAt": READ, "levels": [level]}}


ONE_ORDER_OF_MANY = book(2, 1_300, 2, 1_000, 1)
ONE_OF_HALF_A_TOKEN = book(2, 1.5, 2, 0.5, 1)
TWO_ORDERS = book(2, 3, 3, 2, 2)
ALL_OURS = book(2, 3, 2, 3, 2)


@pytest.mark.parametrize(
    ("found", "place"), [(ONE_ORDER_OF_MANY, 2), (ONE_OF_HALF_A_TOKEN, 2), (TWO_ORDERS, 2), (ALL_OURS, 1)]
)
def test_a_rival_at_the_own_price_is_ahead_whatever_quantity_each_has(
    javascript: Modules, found: dict[str, Any], place: int
) -> None:
    order = {"id": 1, "state": "live", "price": 2_000, "quantity": "1000"}
    moment = {"cycle": None, "orders": [order]}

    standing = javascript.call("standing.js", "standingOf", {"type": "rune", "config": {}}, moment, found, NOW_S)

    assert (standing["place"], len(standing["rivals"])) == (place, place - 1)


@pytest.mark.parametrize(
    ("found", "others"),
    [
        (ONE_ORDER_OF_MANY, [{"price": 2, "quantity": 300, "orders": 1}]),
        (ONE_OF_HALF_A_TOKEN, [{"price": 2, "quantity": 1, "orders": 1}]),
        (TWO_ORDERS, [{"price": 2, "quantity": 1, "orders": 1}]),
        (ALL_OURS, []),
    ],
)
def test_the_ladder_draws_others_orders_only(javascript: Modules, found: dict[str, Any], others: Any) -> None:
    assert javascript.call("decision.js", "bookOf", found)["bids"] == others


def test_the_plan_counts_one_rival_once_beside_two_own_bids(javascript: Modules) -> None:
    rung = {"price": 2, "quantity": 1, "reason": "kept", "detail": "", "order": None}
    plan = {"book": TWO_ORDERS, "reference": 4, "rawReference": 4, "rungs": [rung | {"rung": each} for each in (0, 1)]}
    values = {"type": "ordinals", "bidMode": "percent", "bidPercentLow": 0.5, "bidPercentHigh": 0.5, "hardcapSats": 3}

    frame = javascript.call("screens/edit/plan_frame.js", "frameOf", plan, values, {"book": None})

    assert [each["rank"] for each in frame["rungs"]] == [2, 3]
