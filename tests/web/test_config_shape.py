"""The form's fields: each that the server declares has a place, a way to be drawn, and words for its value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from server.http.shapes import dumps
from server.web import shapes
from tests.web.javascript import WEB, Modules, modules

OF = ("bidding", "autolist")
PLACES = {"bidding": ("OWN_GROUPS", "MAIN_GROUPS", "MORE_GROUPS"), "autolist": ("LISTING_GROUPS",)}


@pytest.fixture(scope="module")
def page() -> Iterator[Modules]:
    with modules() as made:
        made.value("texts/edit.js", "")
        made.call("config_shape.js", "take", json.loads(dumps(shapes())))
        yield made


def declared(of: str) -> list[dict[str, Any]]:
    return list(json.loads(dumps(getattr(shapes(), of))))


@pytest.mark.parametrize("of", OF)
def test_every_declared_field_has_a_place_in_the_form(page: Modules, of: str) -> None:
    groups = [group for name in PLACES[of] for group in page.value("config_shape.js", name)]
    placed = [field["name"] for group in groups for field in page.call("config_shape.js", "groupOf", group, of)]

    assert sorted(set(placed) - {"venue", "tags"}) == sorted(field["name"] for field in declared(of))
    assert len(placed) == len(set(placed))


def test_a_field_comes_behind_the_one_that_makes_it_matter(page: Modules) -> None:
    size = [field["name"] for field in page.call("config_shape.js", "groupOf", "size")]
    assert size == ["quantityMode", "quantity", "satsPerOrder"]


@pytest.mark.parametrize("of", OF)
def test_every_kind_of_field_can_be_drawn(of: str) -> None:
    inputs = (WEB / "js" / "screens" / "edit" / "inputs.js").read_text()
    assert [field["kind"] for field in declared(of) if f"  {field['kind']}: (" not in inputs] in ([], ["onFill"])


def test_a_field_matters_only_in_its_modes(page: Modules) -> None:
    fields = {field["name"]: field for field in declared("bidding")}
    defaults = page.call("config_shape.js", "defaultsOf")

    def matters(name: str, **changes: Any) -> bool:
        return bool(page.call("config_shape.js", "matters", fields[name], {**defaults, **changes}))

    assert matters("bidCount") and not matters("bidCount", bidLevels=[{"at": 0.5, "count": 1}])
    assert matters("traitType", bidType="trait") and not matters("traitType")
    assert not matters("traitType", bidType="trait", type="rune")
    assert matters("outbidPercent", outbidEnabled=True, outbidMode="percent") and not matters("outbidPercent")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bidExpiryMinutes", None, "16 min"),
        ("bidExpiryMinutes", 20, "20 min"),
        ("minAgeSeconds", None, "the default"),
        ("maxFills", 0, "no limit"),
        ("maxFills", 7, "7"),
        ("feeRate", "hourFee", "Within an hour"),
        ("feeRate", 2.5, "2.5 sat/vB"),
        ("deliverTo", "vault", "The vault"),
        ("outbidEnabled", True, "on"),
        ("traitType", "", "none"),
        ("bidPercentHigh", 0.75, "75%"),
    ],
)
def test_a_value_is_said_in_words(page: Modules, name: str, value: Any, words: str) -> None:
    config = page.call("config_shape.js", "defaultsOf")
    assert page.call("screens/edit/words.js", "valueWords", name, value, config) == words


def test_bounds_of_a_runes_floor_are_prices_of_a_token(page: Modules) -> None:
    def bounds(kind: str, *ends: float) -> str:
        config = {"type": kind}
        return str(page.call("screens/edit/words.js", "valueWords", "onlyWhileFloorBetween", ends, config))

    assert bounds("rune", 0.35, 0.95) == "0.35 – 0.95"
    assert bounds("ordinals", 35_000, 95_000) == "35,000 – 95,000"


def test_a_fault_names_fields_by_their_labels(page: Modules) -> None:
    said = {
        "slug: must not be empty": "Name: must not be empty",
        "url: must begin with https://": "Address: must begin with https://",
        "bidCount: must be 3, the bids of bidLevels": "Bids at a time: must be 3, the bids of “Custom levels”",
        "priceSats: must not be below minPriceSats": "Price: must not be below “Never below”",
        "hardly: a slug": "hardly: a slug",
    }
    assert {text: page.call("page.js", "withLabels", text) for text in said} == said
