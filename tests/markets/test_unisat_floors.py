"""UniSat's floors: of one collection's statistic, else of the list of statistics, else of the cheapest listing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import responses

from markets.adapter import AskAgain
from markets.base import AuthFailed, NotSupported, NotUnderstood, RateLimited, Refused, Unavailable, VenueError
from markets.unisat.adapter import UnisatMarket
from tests.markets import unisat_examples as ex

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.fixture
def now_ms() -> list[int]:
    return [ex.RECORDED_MS]


@pytest.fixture
def venue(now_ms: list[int]) -> UnisatMarket:
    return UnisatMarket(ex.BASE, "key", "unisat", now_ms=lambda: now_ms[0])


@pytest.mark.parametrize(
    ("changed", "floor", "count"),
    [
        ({}, Decimal(50_000), 7),
        ({"floorPrice": "50000", "listed": "7"}, Decimal(50_000), 7),
        ({"floorPrice": 50_000.0}, Decimal(50_000), 7),
        ({"floorPrice": 0, "listed": 0}, None, 0),
        ({"floorPrice": None, "listed": None}, None, 0),
        ({"collectionId": "Puppets"}, Decimal(50_000), 7),
    ],
)
def test_a_floor(venue: UnisatMarket, changed: Any, floor: Decimal | None, count: int) -> None:
    ex.answers("collection_statistic", {**ex.STATISTIC, **changed})
    found = venue.floors(["puppets"], "ordinals")["puppets"]
    assert (found.slug, found.floor, found.listed_count) == ("puppets", floor, count)
    assert ex.sent() == {"collectionId": "puppets"}
    assert responses.calls[0].request.headers["Authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("data", "code", "msg"),
    [
        (None, 0, "ok"),
        ({}, 0, "ok"),
        ([], 0, "ok"),
        ({**ex.STATISTIC, "collectionId": None}, 0, "ok"),
        (None, -109, "not found"),
    ],
)
def test_an_unknown_collection_has_no_floor(venue: UnisatMarket, data: Any, code: int, msg: str) -> None:
    ex.answers("collection_statistic", data, code, msg)
    assert venue.floors(["puppets"], "ordinals") == {}


@pytest.mark.parametrize(
    ("data", "code", "status", "leaf"),
    [
        ({**ex.STATISTIC, "floorPrice": 1.5}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": "cheap"}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": -1}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "floorPrice": True}, 0, 200, Unavailable),
        ({**ex.STATISTIC, "collectionId": "others"}, 0, 200, Unavailable),
        ({"collectionId": "puppets", "listed": 7}, 0, 200, Unavailable),
        ("puppets", 0, 200, Unavailable),
        (ex.STATISTIC, None, 200, Unavailable),
        (None, -106, 200, Unavailable),
        (None, -119, 200, Unavailable),
        (None, -161, 200, Unavailable),
        (None, -156, 200, Refused),
        (None, 0, 429, RateLimited),
        (None, 0, 401, AuthFailed),
        (None, 0, 502, Unavailable),
    ],
)
def test_what_is_not_understood_is_no_floor(venue: UnisatMarket, data: Any, code: Any, status: int, leaf: Any) -> None:
    ex.answers("collection_statistic", data, code, "said", status)
    with pytest.raises(leaf):
        venue.floors(["puppets"], "ordinals")


def test_floor_whose_statistic_fails_is_asked_of_the_list_and_remembered(
    venue: UnisatMarket, now_ms: list[int]
) -> None:
    ex.answers("collection_statistic", None, -1, "Internal Server Error", 500)
    ex.answers("collection_statistic_list", ex.STATISTICS)
    with pytest.raises(AskAgain):
        venue.floors(["puppets"], "ordinals")
    for _ in range(2):
        assert venue.floors(["puppets"], "ordinals")["puppets"].floor == 50_000
    assert ex.sent() == {"filter": {"timeType": "7d", "collections": ["puppets"]}, "start": 0, "limit": 20}
    with pytest.raises(AskAgain):
        venue.floors(["frogs"], "ordinals")  # every collection by itself
    now_ms[0] += 3_600_000
    with pytest.raises(AskAgain):
        venue.floors(["puppets"], "ordinals")
    first, again = "collection_statistic", "collection_statistic_list"
    assert ex.steps() == [first, again, again, first, first]


@pytest.mark.parametrize(
    ("listed", "status"),
    [
        ({"list": [], "total": 0}, 200),
        ({"list": [{**ex.STATISTIC, "collectionId": "frogs"}], "total": 1988}, 200),
        ({"list": [{**ex.STATISTIC, "floorPrice": "x"}], "total": 1}, 200),
        (None, 500),
    ],
)
def test_floor_that_the_list_does_not_have_is_the_cheapest_listing(
    venue: UnisatMarket, listed: Any, status: int
) -> None:
    ex.answers("collection_statistic", None, -1, "Internal Server Error", 500)
    ex.answers("collection_statistic_list", listed, status=status)
    ex.answers("list", ex.as_page(ex.RECORDED[0], ex.FOR_SALE))
    for _ in range(2):
        with pytest.raises(AskAgain):
            venue.floors(["puppets"], "ordinals")
    for _ in range(2):
        found = venue.floors(["puppets"], "ordinals")["puppets"]
        assert (found.floor, found.listed_count) == (5_000_000, 2)
    assert ex.steps() == ["collection_statistic", "collection_statistic_list", "list", "list"]


@pytest.mark.parametrize(
    ("listings", "status", "leaf"),
    [
        (ex.as_page(*ex.RECORDED, total=126), 200, NotUnderstood),
        (ex.as_page("x"), 200, NotUnderstood),
        (None, 500, Unavailable),
    ],
)
def test_floor_that_no_source_has_is_unavailable(
    venue: UnisatMarket, listings: Any, status: int, leaf: type[Unavailable]
) -> None:
    ex.answers("collection_statistic", None, status=500)
    ex.answers("collection_statistic_list", None, status=500)
    ex.answers("list", listings, status=status)
    for wanted in (AskAgain, AskAgain, leaf, leaf):
        with pytest.raises(Unavailable) as raised:
            venue.floors(["puppets"], "ordinals")
        assert type(raised.value) is wanted


def test_collection_without_listings_has_no_floor(venue: UnisatMarket) -> None:
    ex.answers("collection_statistic", None, status=500)
    ex.answers("collection_statistic_list", None, status=500)
    ex.answers("list", ex.as_page())
    for _ in range(2):
        with pytest.raises(AskAgain):
            venue.floors(["puppets"], "ordinals")
    assert venue.floors(["puppets"], "ordinals")["puppets"].floor is None


@pytest.mark.parametrize("status", [429, 502, 503, 401])
def test_other_fault_of_the_statistic_is_not_asked_elsewhere(venue: UnisatMarket, status: int) -> None:
    ex.answers("collection_statistic", None, status=status)
    for _ in range(2):
        with pytest.raises(VenueError) as raised:
            venue.floors(["puppets"], "ordinals")
        assert not isinstance(raised.value, AskAgain)
    assert ex.steps() == ["collection_statistic"] * 2


def test_floors_of_runes_and_of_several_are_not_asked_for(venue: UnisatMarket) -> None:
    with pytest.raises(NotSupported):
        venue.floors(["A•B"], "runes")
    with pytest.raises(ValueError):
        venue.floors(["a", "b"], "ordinals")
