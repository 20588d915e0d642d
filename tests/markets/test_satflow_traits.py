"""Traits in Satflow's listings, bids and catalogue: documented and observed shapes, and hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
import responses

from markets.base import NotFound, NotSupported, NotUnderstood, Unavailable, VenueError
from markets.satflow.adapter import Satflow
from tests.markets.satflow_examples import ID, answers

pytestmark = pytest.mark.usefixtures("no_network")

RED_HAT = {"trait_type": "Hat", "value": "Red"}
HAT = frozenset({("Hat", "Red")})


def _listed(satflow: Satflow, **entry: Any) -> frozenset[tuple[str, str]] | None:
    answers("/activity/listings", {"data": {"items": [{"_id": ID, "price": 900, **entry}]}})
    return satflow.asks("goosinals", 1).entries[0].traits


@pytest.mark.parametrize(
    "entry",
    [
        {"attributes": [RED_HAT]},
        {"traits": [{"type": "Hat", "value": "Red"}]},
        {"traits": {"Hat": "Red"}},
        {"attributes": [{"traitType": "Hat", "value": "Red"}]},
        {"attributes": [{"key": "Hat", "value": "Red"}]},
        {"token": {"attributes": [RED_HAT]}},
        {"token": {"meta": {"name": "Goose 1", "attributes": [RED_HAT]}}},
        {"metadata": {"token": {"attributes": [RED_HAT]}}},
        {"inscription_metadata": {"attributes": [RED_HAT], "collection": {"id": "goosinals"}}},
        {"ask": {"price": 900, "attributes": [RED_HAT]}},
        {"attributes": None, "item": {"traits": [RED_HAT]}},
    ],
)
def test_a_listings_traits_in_every_known_shape(satflow: Satflow, entry: Any) -> None:
    assert _listed(satflow, **entry) == HAT


def test_numbers_are_traits_as_they_are_printed(satflow: Satflow) -> None:
    given = [
        {"trait_type": "Level", "value": 7},
        {"trait_type": "Weight", "value": 1.50},
        {"trait_type": 3, "value": "x"},
    ]
    assert _listed(satflow, attributes=given) == {("Level", "7"), ("Weight", "1.5"), ("3", "x")}


@pytest.mark.parametrize("entry", [{}, {"attributes": None}, {"attributes": "Hat: Red"}, {"traits": 7}, {"token": "x"}])
def test_a_listing_that_says_nothing_of_traits_is_not_one_without_any(satflow: Satflow, entry: Any) -> None:
    assert _listed(satflow, **entry) is None


def test_a_listing_with_an_empty_list_has_no_traits(satflow: Satflow) -> None:
    assert _listed(satflow, attributes=[]) == frozenset()


@pytest.mark.parametrize(
    "strange",
    [
        None,
        7,
        "Hat",
        [],
        [RED_HAT],
        {},
        {"trait_type": "Eyes"},
        {"trait_type": "Eyes", "value": None},
        {"trait_type": "Eyes", "value": True},
        {"trait_type": "Eyes", "value": {"a": "b"}},
        {"trait_type": "Eyes", "value": ["Red"]},
        {"trait_type": "Eyes", "value": "x" * 201},
        {"trait_type": "Eyes", "value": "a\nb"},
        {"trait_type": "", "value": "Red"},
        {"trait_type": ["Eyes"], "value": "Red"},
    ],
)
def test_a_strange_trait_hides_neither_the_others_nor_the_book(satflow: Satflow, strange: Any) -> None:
    assert _listed(satflow, attributes=[strange, RED_HAT]) == HAT


@pytest.mark.parametrize(
    ("entry", "traits"),
    [
        ({}, frozenset()),
        ({"attribute": None}, frozenset()),
        ({"attributes": []}, frozenset()),
        ({"attribute": {}}, frozenset()),
        ({"attribute": RED_HAT}, HAT),
        ({"bid": {"attribute": RED_HAT}}, HAT),
        ({"attributes": [RED_HAT]}, HAT),
        ({"trait": {"type": "Hat", "value": "Red"}}, HAT),
        ({"type": "trait", "attribute": RED_HAT}, HAT),
        ({"attributes": [RED_HAT, {"trait_type": "Eyes", "value": 2}]}, HAT | {("Eyes", "2")}),
    ],
)
def test_what_a_bid_asks_for(satflow: Satflow, entry: Any, traits: Any) -> None:
    answers("/activity/bids", {"data": {"bids": [{"_id": ID, "price": 5000, **entry}]}})
    (offer,) = satflow.bids("goosinals", "ordinals", 1).entries
    assert (offer.bid.price, offer.traits) == (5000, traits)


@pytest.mark.parametrize(
    "entry",
    [
        {"attribute": "Hat"},
        {"attribute": {"trait_type": "Hat"}},
        {"attribute": {"trait_type": "Hat", "value": None}},
        {"attributes": [7]},
        {"type": "trait"},
    ],
)
def test_a_bid_on_some_trait_or_other_is_taken_for_none_on_the_collection(satflow: Satflow, entry: Any) -> None:
    plain = {"_id": ID, "price": 5000}
    answers("/activity/bids", {"data": {"bids": [{"_id": ID, "price": 9000, **entry}, plain]}})
    assert [offer.bid.price for offer in satflow.bids("goosinals", "ordinals", 1).entries] == [5000]


def _collection(**fields: Any) -> dict[str, Any]:
    return {"success": True, "data": {"collection": [{"id": "goosinals", "name": "Goosinals", **fields}]}}


def test_the_catalogue_as_documented(satflow: Satflow) -> None:
    hats = {"key": "Hat", "values": [{"value": "Red", "count": 12}, {"value": 7, "count": "3"}]}
    answers("/collection", _collection(category_attributes=[hats, {"key": "Eyes", "values": []}]))
    assert satflow.traits("Goosinals") == {"Hat": {"Red": 12, "7": 3}, "Eyes": {}}
    assert responses.calls[0].request.params == {"collection_id": "Goosinals", "categoryAttributes": "true"}


@pytest.mark.parametrize("nothing", [None, []])
def test_a_collection_without_traits(satflow: Satflow, nothing: Any) -> None:
    answers("/collection", {"data": {"collection": {"slug": "goosinals", "category_attributes": nothing}}})
    assert satflow.traits("goosinals") == {}


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        ({"error": "not found", "code": "NOT_FOUND"}, 404, NotFound),
        ({"success": True, "data": {"collection": []}}, 200, NotFound),
        (_collection(), 200, NotSupported),
        ("<html>", 404, Unavailable),
        ({"data": {}}, 200, NotUnderstood),
        ({"data": {"collection": "goosinals"}}, 200, NotUnderstood),
        ({"data": {"collection": [None]}}, 200, NotUnderstood),
        ({"data": {"collection": [{"id": "another", "category_attributes": []}]}}, 200, NotUnderstood),
        (_collection(category_attributes={"Hat": {"Red": 12}}), 200, NotUnderstood),
        (_collection(category_attributes=[7]), 200, NotUnderstood),
        (_collection(category_attributes=[{"key": "Hat"}]), 200, NotUnderstood),
        (_collection(category_attributes=[{"key": "Hat", "values": ["Red"]}]), 200, NotUnderstood),
        (
            _collection(category_attributes=[{"key": "Hat", "values": [{"value": "Red", "count": -1}]}]),
            200,
            NotUnderstood,
        ),
        (
            _collection(category_attributes=[{"key": "Hat", "values": [{"value": "Red", "count": 1.5}]}]),
            200,
            NotUnderstood,
        ),
        (json.dumps(_collection(category_attributes=[{"key": float("nan"), "values": []}])), 200, Unavailable),
    ],
)
def test_what_is_no_catalogue(satflow: Satflow, answer: Any, status: int, error: type[VenueError]) -> None:
    answers("/collection", answer, status)
    with pytest.raises(VenueError) as raised:
        satflow.traits("goosinals")
    assert type(raised.value) is error


def test_a_value_that_nobody_can_write_hides_no_other(satflow: Satflow) -> None:
    values = [{"value": None, "count": 1}, {"value": "a\x00b", "count": 1}, {"value": "Red", "count": None}]
    answers("/collection", _collection(category_attributes=[{"key": "Hat", "values": values}]))
    assert satflow.traits("goosinals") == {"Hat": {"Red": 0}}
