"""UniSat: one odd row in an answer, by verb, and what is left of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import responses

from markets.adapter import AskAgain
from markets.base import NotUnderstood
from markets.parse import Page
from markets.unisat.index import Unisat
from tests.markets.unisat_examples import (
    BASE,
    INSCRIPTION,
    LISTING,
    RECORDED_MS,
    SOLD,
    STATISTIC,
    VAULT,
    answers,
    as_page,
    market,
)

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
        responses.post(f"{BASE}/v3/market/{self.path}", json={"code": 0, "msg": "ok", "data": as_page(*rows)})
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
        LISTING,
        "collection/auction/list",
        lambda: market().asks("puppets", None),
        {"time": "onSaleTime", "about": "collectionId", "kind": "marketType"},
    ),
    "own listings": Verb(
        LISTING,
        "collection/auction/list",
        lambda: market().own_listings(VAULT, None),
        {"time": "onSaleTime", "about": "address", "kind": "marketType"},
    ),
    "sales": Verb(
        SOLD,
        "collection/auction/actions",
        lambda: market().sales("puppets", "ordinals", None),
        {"time": "timestamp", "about": "collectionId", "kind": "event", "address": "from"},
    ),
    "rune lots": Verb(
        LOT,
        "runes/auction/list",
        lambda: Unisat(BASE, None).rune_book("A•B", 0),
        {"time": "onSaleTime", "about": "tick", "kind": "marketType"},
    ),
}
# An odd row behind good ones is kept, left out and counted, counted as foreign, or passed over.
TABLE: dict[str, dict[str, str]] = {
    "listings": {
        "null": "left",
        "list": "left",
        "epoch zero": "kept",
        "foreign": "foreign",
        "unknown enum": "left",
        "known other kind": "passed",
        "bundle": "foreign",
        "huge price": "left",
        "no price": "left",
        "price of letters": "left",
        "negative price": "left",
        "no id": "left",
        "no inscription": "kept",
        "seller a number": "left",
        "buyer a number": "kept",
        "not on sale": "passed",
    },
    "own listings": {
        "null": "left",
        "list": "left",
        "epoch zero": "kept",
        "foreign": "foreign",
        "unknown enum": "left",
        "known other kind": "passed",
        "bundle": "kept",
        "huge price": "left",
        "no price": "left",
        "price of letters": "left",
        "negative price": "left",
        "no id": "left",
        "no inscription": "left",
        "seller a number": "left",
        "buyer a number": "kept",
        "not on sale": "passed",
    },
    "sales": {
        "null": "left",
        "list": "left",
        "epoch zero": "left",
        "foreign": "foreign",
        "unknown enum": "left",
        "known other kind": "left",
        "bundle": "left",
        "huge price": "left",
        "no price": "left",
        "price of letters": "left",
        "negative price": "left",
        "no id": "left",
        "no inscription": "left",
        "seller a number": "kept",
        "buyer a number": "left",
        "not on sale": "kept",
    },
    "rune lots": {
        "null": "left",
        "list": "left",
        "epoch zero": "kept",
        "foreign": "foreign",
        "unknown enum": "kept",
        "known other kind": "kept",
        "bundle": "left",
        "huge price": "left",
        "no price": "left",
        "price of letters": "left",
        "negative price": "left",
        "no id": "left",
        "no inscription": "kept",
        "seller a number": "left",
        "buyer a number": "kept",
        "not on sale": "kept",
    },
}
# A book whose first row, at the best price, is odd in one of these ways may have its best price there.
REFUSED_AS_FIRST = {
    "listings": {"unknown enum", "price of letters", "negative price", "no id", "seller a number"},
    "rune lots": {"bundle", "price of letters", "negative price", "no id", "seller a number"},
}
CASES = [pytest.param(verb, odd, id=f"{verb}-{odd}") for verb, row in TABLE.items() for odd in row]


def test_table_has_every_odd_row_of_every_verb() -> None:
    assert set(TABLE) == set(VERBS)
    assert all(set(row) == {"null", "list", *ODD} for row in TABLE.values())


@responses.activate
@pytest.mark.parametrize(("name", "odd"), CASES)
def test_odd_row_leaves_the_rest_of_the_answer(name: str, odd: str) -> None:
    verb = VERBS[name]
    good, row = verb.rows(odd)
    alone = verb.read(good).entries
    page = verb.read(good, good, row, good)
    unread = {"kept": 0, "passed": 0}.get(TABLE[name][odd], 1)
    assert len(page.entries) == (4 if TABLE[name][odd] == "kept" else 3)
    assert page.entries[0] == alone[0] == page.entries[-1]
    assert [each.is_foreign for each in page.unread] == [TABLE[name][odd] == "foreign"] * unread


@responses.activate
@pytest.mark.parametrize(("name", "odd"), [case for case in CASES if case.values[0] in REFUSED_AS_FIRST])
def test_book_is_refused_only_where_the_best_price_may_be_in_the_odd_row(name: str, odd: str) -> None:
    verb = VERBS[name]
    good, row = verb.rows(odd)
    if isinstance(row, dict):
        unit = {"price": 100, "unitPrice": 1} if name == "rune lots" else {"price": 100}
        row |= {field: value for field, value in unit.items() if row.get(field) == good[field]}
    if odd in REFUSED_AS_FIRST[name]:
        with pytest.raises(NotUnderstood, match="best price may be"):
            verb.read(row, good, good, good)
    else:
        assert len(verb.read(row, good, good, good).entries) >= 3


@responses.activate
@pytest.mark.parametrize("name", VERBS)
def test_answer_of_odd_rows_or_of_mostly_odd_ones_is_not_understood(name: str) -> None:
    verb = VERBS[name]
    good, foreign = verb.rows("foreign")
    for rows in ([None], [foreign, foreign], [good, None, None]):
        with pytest.raises(NotUnderstood):
            verb.read(*rows)


@responses.activate
def test_own_listing_that_is_left_out_is_named_by_its_inscription() -> None:
    good, odd = VERBS["own listings"].rows("price of letters")
    page = VERBS["own listings"].read(good, odd, None, good)
    assert [each.key for each in page.unread] == ["cd" * 32 + "i0", ""]
    assert [each.inscription_id for each in page.entries] == [INSCRIPTION] * 2


@responses.activate
def test_sale_that_is_left_out_has_its_time_where_that_can_be_read() -> None:
    good, odd = VERBS["sales"].rows("no price")
    _, timeless = VERBS["sales"].rows("epoch zero")
    page = VERBS["sales"].read(good, odd, timeless, None, good, good)
    assert [each.at_ms for each in page.unread] == [SOLD["timestamp"], None, None]


@responses.activate
@pytest.mark.parametrize("event", ["Listed", "Cancel", "Claim", "Updated"])
def test_action_that_is_no_sale_is_foreign(event: str) -> None:
    page = VERBS["sales"].read(SOLD, {**SOLD, "event": event})
    assert (len(page.entries), [each.is_foreign for each in page.unread]) == (1, [True])


@responses.activate
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
    whole = {**STATISTIC, **changed} if isinstance(changed, dict) else changed
    row = {name: each for name, each in whole.items() if each is not GONE} if isinstance(whole, dict) else whole
    answers("collection_statistic", row)
    if left == "ask again":
        with pytest.raises(AskAgain):
            market().floors(["puppets"], "ordinals")
        return
    found = market().floors(["puppets"], "ordinals")
    assert [floor.floor for floor in found.values()] == ([50_000] if left == "floor" else [])


@responses.activate
@pytest.mark.parametrize(
    "odd", [None, [], 7, {}, {"collectionId": None}, {**STATISTIC, "collectionId": "others", "floorPrice": "6e4x"}]
)
def test_odd_row_in_the_list_of_statistics_hides_no_other(odd: Any) -> None:
    venue = market()
    answers("collection_statistic", None, status=500)
    answers("collection_statistic_list", as_page(odd, STATISTIC))
    with pytest.raises(AskAgain):
        venue.floors(["puppets"], "ordinals")
    assert venue.floors(["puppets"], "ordinals")["puppets"].floor == 50_000


@responses.activate
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"marketType": "Dutch"}, {"listed": False, "listing_price": None, "seller": None}),
        ({"notOnSale": True}, {"listed": False, "listing_price": None}),
        ({"notOnSale": "perhaps"}, {"listed": False}),
        ({"auctionId": None}, {"listed": False, "owner": VAULT}),
        ({"price": None}, {"listed": True, "listing_price": None}),
        ({"price": "6e4x"}, {"listed": True, "listing_price": None}),
        ({"price": 10**30}, {"listed": True, "listing_price": None}),
        ({"address": 7}, {"owner": None, "seller": None}),
        ({"address": 7, "utxo": {"address": VAULT}}, {"owner": VAULT, "seller": None}),
        ({"utxo": []}, {"owner": VAULT, "output": None}),
        ({"utxo": {"txid": "\ud800", "vout": 1}}, {"owner": VAULT, "output": None}),
        ({"collectionId": 7}, {"collection_id": None}),
        ({"attrs": [None, {"traitType": "Hat", "value": "Red"}]}, {"traits": (("Hat", "Red"),)}),
        ({"attrs": []}, {"traits": None}),
        ({"onSaleTime": 0}, {"listed": True, "listing_price": 60_000}),
    ],
)
def test_odd_detail_of_an_item_hides_no_other(changed: Any, told: dict[str, Any]) -> None:
    answers("inscription_info", {**LISTING, **changed})
    found = market(RECORDED_MS).item(INSCRIPTION)
    assert {name: getattr(found, name) for name in told} == told
    assert found.number == 7


RUNE = {"rune": "AB", "spacedRune": "A•B", "divisibility": 2}


@responses.activate
@pytest.mark.parametrize("odd", [None, [], {}, {**RUNE, "spacedRune": 7}])
def test_odd_row_of_a_rune_search_hides_no_other_and_is_not_taken_for_absence(odd: Any) -> None:
    def find(*rows: Any) -> tuple[str, int]:
        responses.reset()
        data = {"total": len(rows), "detail": list(rows)}
        responses.get(f"{BASE}/v1/indexer/runes/info-list", json={"code": 0, "msg": "ok", "data": data})
        return Unisat(BASE, None).rune("AB")

    assert find(odd, RUNE) == ("A•B", 2)
    with pytest.raises(NotUnderstood, match="may be in a row"):
        find(odd, {**RUNE, "spacedRune": "A•B•C"})
