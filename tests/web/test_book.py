"""The page's picture of a book in which a level has own bids, too, without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.javascript import Modules

READ = "2026-11-23T07:23:10Z"
NOW_S = 1_795_418_600  # ten seconds later


def book(price: float, quantity: float, orders: int, own: float, own_orders: int) -> dict[str, Any]:
    level = {"unitPrice": price, "quantity": quantity, "orders": orders, "own": own, "ownOrders": own_orders}
    return {"asks": None, "bids": {"takenAt": READ, "levels": [level]}}


ONE_ORDER_OF_MANY = book(2, 1_300, 2, 1_000, 1)
ONE_OF_HALF_A_TOKEN = book(2, 1.5, 2, 0.5, 1)
TWO_ORDERS = book(2, 3, 3, 2, 2)
ALL_OURS = book(2, 3, 2, 3, 2)


@pytest.mark.parametrize(
    ("found", "rivals"), [(ONE_ORDER_OF_MANY, 1), (ONE_OF_HALF_A_TOKEN, 1), (TWO_ORDERS, 1), (ALL_OURS, 0)]
)
def test_the_place_is_the_best_known_rank_beside_others_only(
    javascript: Modules, found: dict[str, Any], rivals: int
) -> None:
    orders = [
        {"id": 1, "state": "live", "price": 2_000, "quantity": "1000", "rank": None},
        {"id": 2, "state": "live", "price": 1_900, "quantity": "1000", "rank": None},
    ]
    ranks = [{"order": 9, "rank": 1}, {"order": 1, "rank": 4}, {"order": 2, "rank": 5}]

    def standing(moment: dict[str, Any], book: dict[str, Any] | None) -> Any:
        return javascript.call("standing.js", "standingOf", {"type": "rune", "config": {}}, moment, book, NOW_S)

    looked = standing({"cycle": None, "orders": orders}, found | {"ranks": ranks})
    assert (looked["place"], len(looked["rivals"])) == (4, rivals)
    decided = {"cycle": {"book": found, "rungs": []}, "orders": [orders[0], orders[1] | {"rank": 3}]}
    read = standing(decided, {"asks": None, "bids": None, "ranks": None})
    assert (read["place"], len(read["rivals"])) == (3, rivals)
    blind = standing({"cycle": None, "orders": orders}, None)
    assert (blind["place"], blind["rivals"]) == (None, None)


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
