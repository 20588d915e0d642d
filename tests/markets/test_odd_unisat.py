"""UniSat: one odd row in an answer, by verb, and what is left of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
import responses

from markets.adapter import AskAgain
from markets.base import NotUnderstood
from markets.parse import Page
from markets.unisat.index import Unisat
from tests.markets import unisat_examples as ex
from tests.markets.odd_rows import Cell, cells, named

pytestmark = pytest.mark.usefixtures("no_network")

LOT = {"auctionId": "z1", "price": 150, "tick": "A•B", "amount": 100, "unitPrice": 1.5, "address": "bc1pseller"}


@dataclass(frozen=True)
class Verb:
    """One verb: its good row, its route, its call; `fields` are the names that the rows of the table change."""

    row: dict[str, Any]
    path: str
    call: Callable[[], Page[Any]]
    fields: dict[str, str]

    def read(self, *rows: Any) -> Page[Any]:
        """Returns the page read from these rows."""
        responses.reset()
        responses.post(f"{ex.BASE}/v3/market/{self.path}", json={"code": 0, "msg": "ok", "data": ex.as_page(*rows)})
        return self.call()

    def rows(self, odd: str) -> tuple[dict[str, Any], Any]:
        """Returns the good row and the odd one."""
        if odd in ("null", "list"):
            return self.row, None if odd == "null" else []
        field, value = ODD[odd]
        changed = {
            **self.row,
            "auctionId": "odd",
            "inscriptionId": f"{'cd' * 32}i0",
            self.fields.get(field, field): value,
        }
        return self.row, {name: each for name, each in changed.items() if each is not GONE}


GONE = object()
ODD: dict[str, tuple[str, Any]] = {
    "epoch zero": ("time", 0),
    "foreign": ("about", "others"),
    "unknown enum": ("kind", "Dutch"),
    "known other kind": ("kind", "auction"),
    "bundle": ("amount", 3),
    "huge price": ("price", 10**30),
    "no price": ("price", GONE),
    "price of letters": ("price", "6e4x"),
    "negative price": ("price", -5),
    "no id": ("auctionId", GONE),
    "no inscription": ("inscriptionId", None),
    "seller a number": ("address", 7),
    "buyer a number": ("to", 7),
    "not on sale": ("notOnSale", True),
}
VERBS = {
    "listings": Verb(
        ex.LISTING,
        "collection/auction/list",
        lambda: ex.market().asks("puppets", None),
        {"time": "onSaleTime", "about": "collectionId", "kind": "marketType"},
    ),
    "own listings": Verb(
        ex.LISTING,
        "collection/auction/list",
        lambda: ex.market().own_listings(ex.VAULT, None),
        {"time": "onSaleTime", "about": "address", "kind": "marketType"},
    ),
    "sales": Verb(
        ex.SOLD,
        "collection/auction/actions",
        lambda: ex.market().sales("puppets", "ordinals", None),
        {"time": "timestamp", "about": "collectionId", "kind": "event", "address": "from"},
    ),
    "rune lots": Verb(
        LOT,
        "runes/auction/list",
        lambda: Unisat(ex.BASE, None).rune_book("A•B", 0),
        {"time": "onSaleTime", "about": "tick", "kind": "marketType"},
    ),
}
# What is left of an answer with the odd row behind good ones; odd_rows.py has the words.
TABLE = """
                 | listings | own listings | sales | rune lots
null             | left     | left         | left  | left
list             | left     | left         | left  | left
epoch zero       | kept     | kept         | left  | kept
foreign          | foreign  | foreign      | foreign | foreign
unknown enum     | left     | left         | left  | kept
known other kind | none     | none         | left  | kept
bundle           | foreign  | kept         | left  | left
huge price       | left     | left         | left  | left
no price         | left     | left         | left  | left
price of letters | left     | left         | left  | left
negative price   | left     | left         | left  | left
no id            | left     | left         | left  | left
no inscription   | kept     | left         | left  | kept
seller a number  | left     | left         | kept  | left
buyer a number   | kept     | kept         | left  | kept
not on sale      | none     | none         | kept  | kept
"""
# A book whose first row, at the best price, is odd in one of these ways may have its best price there.
REFUSED_AS_FIRST = {
    "listings": {"unknown enum", "price of letters", "negative price", "no id", "seller a number"},
    "rune lots": {"bundle", "price of letters", "negative price", "no id", "seller a number"},
}
CELLS = cells(TABLE)


def test_table_has_every_odd_row_of_every_verb() -> None:
    assert {(cell.verb, cell.odd) for cell in CELLS} == set(product(VERBS, ("null", "list", *ODD)))


@pytest.mark.parametrize("cell", CELLS, ids=named)
def test_odd_row_leaves_the_rest_of_the_answer(cell: Cell) -> None:
    verb = VERBS[cell.verb]
    good, row = verb.rows(cell.odd)
    alone = verb.read(good).entries
    page = verb.read(good, good, row, good)
    assert len(page.entries) == (4 if cell.left == "kept" else 3)
    assert page.entries[0] == alone[0] == page.entries[-1]
    assert [each.is_foreign for each in page.unread] == {"left": [False], "foreign": [True]}.get(cell.left, [])


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.verb in REFUSED_AS_FIRST], ids=named)
def test_book_is_refused_only_where_the_best_price_may_be_in_the_odd_row(cell: Cell) -> None:
    verb = VERBS[cell.verb]
    good, row = verb.rows(cell.odd)
    if isinstance(row, dict):
        unit = {"price": 100, "unitPrice": 1} if cell.verb == "rune lots" else {"price": 100}
        row |= {field: value for field, value in unit.items() if row.get(field) == good[field]}
    if cell.odd in REFUSED_AS_FIRST[cell.verb]:
        with pytest.raises(NotUnderstood, match="best price may be"):
            verb.read(row, good, good, good)
    else:
        assert len(verb.read(row, good, good, good).entries) >= 3


@pytest.mark.parametrize("name", VERBS)
def test_answer_of_odd_rows_or_of_mostly_odd_ones_is_not_understood(name: str) -> None:
    verb = VERBS[name]
    good, foreign = verb.rows("foreign")
    for rows in ([None], [foreign, foreign], [good, None, None]):
        with pytest.raises(NotUnderstood):
            verb.read(*rows)


def test_own_listing_that_is_left_out_is_named_by_its_inscription() -> None:
    good, odd = VERBS["own listings"].rows("price of letters")
    page = VERBS["own listings"].read(good, odd, None, good)
    assert [each.key for each in page.unread] == ["cd" * 32 + "i0", ""]
    assert [each.inscription_id for each in page.entries] == [ex.INSCRIPTION] * 2


def test_sale_that_is_left_out_has_its_time_where_that_can_be_read() -> None:
    good, odd = VERBS["sales"].rows("no price")
    _, timeless = VERBS["sales"].rows("epoch zero")
    page = VERBS["sales"].read(good, odd, timeless, None, good, good)
    assert [each.at_ms for each in page.unread] == [ex.SOLD["timestamp"], None, None]


@pytest.mark.parametrize("event", ["Listed", "Cancel", "Claim", "Updated"])
def test_action_that_is_no_sale_is_foreign(event: str) -> None:
    page = VERBS["sales"].read(ex.SOLD, {**ex.SOLD, "event": event})
    assert (len(page.entries), [each.is_foreign for each in page.unread]) == (1, [True])


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        (None, "none"),
        ([], "none"),
        ({"collectionId": "others"}, "ask again"),
        ({"floorPrice": 10**30}, "ask again"),
        ({"floorPrice": GONE}, "ask again"),
        ({"floorPrice": "6e4x"}, "ask again"),
        ({"floorPrice": -5}, "ask again"),
        ({"collectionId": GONE}, "none"),
        ({"listed": "many"}, "ask again"),
        ({"marketType": "Dutch"}, "floor"),
        ({"updateTime": 0}, "floor"),
    ],
)
def test_odd_statistic_is_asked_of_the_next_source_and_is_never_a_floor(changed: Any, left: str) -> None:
    whole = {**ex.STATISTIC, **changed} if isinstance(changed, dict) else changed
    row = {name: each for name, each in whole.items() if each is not GONE} if isinstance(whole, dict) else whole
    ex.answers("collection_statistic", row)
    if left == "ask again":
        with pytest.raises(AskAgain):
            ex.market().floors(["puppets"], "ordinals")
        return
    found = ex.market().floors(["puppets"], "ordinals")
    assert [floor.floor for floor in found.values()] == ([50_000] if left == "floor" else [])


@pytest.mark.parametrize(
    "odd", [None, [], 7, {}, {"collectionId": None}, {**ex.STATISTIC, "collectionId": "others", "floorPrice": "6e4x"}]
)
def test_odd_row_in_the_list_of_statistics_hides_no_other(odd: Any) -> None:
    venue = ex.market()
    ex.answers("collection_statistic", None, status=500)
    ex.answers("collection_statistic_list", ex.as_page(odd, ex.STATISTIC))
    with pytest.raises(AskAgain):
        venue.floors(["puppets"], "ordinals")
    assert venue.floors(["puppets"], "ordinals")["puppets"].floor == 50_000


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"marketType": "Dutch"}, {"listed": False, "listing_price": None, "seller": None}),
        ({"notOnSale": True}, {"listed": False, "listing_price": None}),
        ({"notOnSale": "perhaps"}, {"listed": False}),
        ({"auctionId": None}, {"listed": False, "owner": ex.VAULT}),
        ({"price": None}, {"listed": True, "listing_price": None}),
        ({"price": "6e4x"}, {"listed": True, "listing_price": None}),
        ({"price": 10**30}, {"listed": True, "listing_price": None}),
        ({"address": 7}, {"owner": None, "seller": None}),
        ({"address": 7, "utxo": {"address": ex.VAULT}}, {"owner": ex.VAULT, "seller": None}),
        ({"utxo": []}, {"owner": ex.VAULT, "output": None}),
        ({"utxo": {"txid": "\ud800", "vout": 1}}, {"owner": ex.VAULT, "output": None}),
        ({"collectionId": 7}, {"collection_id": None}),
        ({"attrs": [None, {"traitType": "Hat", "value": "Red"}]}, {"traits": (("Hat", "Red"),)}),
        ({"attrs": []}, {"traits": None}),
        ({"onSaleTime": 0}, {"listed": True, "listing_price": 60_000}),
    ],
)
def test_odd_detail_of_an_item_hides_no_other(changed: Any, told: dict[str, Any]) -> None:
    ex.answers("inscription_info", {**ex.LISTING, **changed})
    found = ex.market(ex.RECORDED_MS).item(ex.INSCRIPTION)
    assert {name: getattr(found, name) for name in told} == told
    assert found.number == 7


RUNE = {"rune": "AB", "spacedRune": "A•B", "divisibility": 2}


@pytest.mark.parametrize("odd", [None, [], {}, {**RUNE, "spacedRune": 7}])
def test_odd_row_of_a_rune_search_hides_no_other_and_is_not_taken_for_absence(odd: Any) -> None:
    def find(*rows: Any) -> tuple[str, int]:
        responses.reset()
        data = {"total": len(rows), "detail": list(rows)}
        responses.get(f"{ex.BASE}/v1/indexer/runes/info-list", json={"code": 0, "msg": "ok", "data": data})
        return Unisat(ex.BASE, None).rune("AB")

    assert find(odd, RUNE) == ("A•B", 2)
    with pytest.raises(NotUnderstood, match="may be in a row"):
        find(odd, {**RUNE, "spacedRune": "A•B•C"})
