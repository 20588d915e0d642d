"""GET /api/shapes: what it says of each field holds where the field is given."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from server.http.shapes import camel
from server.task_config import FIELDS as BID_FIELDS
from server.task_config import LISTING_FIELDS
from strategy.config.bid import BidConfig
from strategy.config.bid import problems as problems_of_bids
from strategy.config.listing import ListingConfig
from strategy.config.listing import problems as problems_of_listing
from strategy.config.table import Field, table_of
from tests.server.conftest import Service
from tests.web.test_texts import FORBIDDEN

BID = BidConfig("cats", hardcap_sats=1000)
TABLES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bidding": (BID, problems_of_bids, BID_FIELDS),
    "autolist": (ListingConfig(), problems_of_listing, LISTING_FIELDS),
}
MARKS = [(kind, name, mark) for kind, (config, _, _) in TABLES.items() for name, mark in table_of(type(config)).items()]


async def shapes(service: Service) -> dict[str, Any]:
    answer = await service.ask("GET", "/api/shapes")
    assert answer.status == 200
    return dict(answer.json)


async def test_every_field_of_a_new_task_is_there_with_its_default(service: Service) -> None:
    found = await shapes(service)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1000})
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "5" * 64 + "i0"})

    for kind, made, given in (("bidding", task, {"slug", "hardcapSats"}), ("autolist", listing, set())):
        config = made.json["config"]
        assert [field["name"] for field in found[kind]] == list(config)
        defaults = {field["name"]: field["default"] for field in found[kind]}
        assert {name: value for name, value in config.items() if name not in given} == {
            name: value for name, value in defaults.items() if name not in given
        }
    assert [field["name"] for field in found["bidding"] if field["isRequired"]] == ["slug"]


async def test_a_field_matters_by_values_that_another_field_can_have(service: Service) -> None:
    for fields in (await shapes(service)).values():
        by_name = {field["name"]: field for field in fields}
        for name, values in ((name, values) for field in fields for name, values in field["when"].items()):
            choices = [choice["value"] for choice in by_name[name]["choices"]]
            if choices:
                assert set(values) <= set(choices)
            else:
                assert values in ([True], [None])


@pytest.mark.parametrize(("kind", "name", "mark"), MARKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_bound_is_the_last_value_that_is_taken(kind: str, name: str, mark: Field) -> None:
    config, problems, _ = TABLES[kind]

    def is_refused(value: Any) -> bool:
        made = type(config)(**{each: getattr(config, each) for each in table_of(type(config))} | {name: value})
        return any(problem.field == name and problem.text == mark.fault for problem in problems(made))

    if mark.most is not None:
        assert not is_refused(mark.most) and is_refused(mark.most * 2)
        low = mark.least if mark.least is not None else mark.above
        assert low is not None and is_refused(low - 1)
        assert is_refused(low) == (mark.above is not None)
    for choice in mark.choices:
        assert not is_refused(choice)
    if mark.choices:
        assert is_refused("none of these")
    if mark.longest is not None:
        assert not is_refused("x" * mark.longest) and is_refused("x" * (mark.longest + 1))
    is_bound = mark.most is not None or mark.longest is not None or bool(mark.choices)
    assert bool(mark.fault) == is_bound


@pytest.mark.parametrize(("kind", "name", "mark"), MARKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_field_has_words_for_a_trader_and_for_programs(kind: str, name: str, mark: Field) -> None:
    spoken = [mark.label, mark.hint, *mark.choices.values()]
    assert [text for text in spoken if FORBIDDEN.search(text)] == []
    assert mark.label and mark.words.endswith(".")
    assert not mark.hint or (mark.hint.endswith(".") and len(mark.hint) <= 90)
    assert name in TABLES[kind][2] and camel(name).isalnum()


def test_decimals_have_as_many_places_as_their_field() -> None:
    assert table_of(BidConfig)["fee_rate"].takes(Decimal("1.234"))
    assert not table_of(BidConfig)["fee_rate"].takes(Decimal("1.2345"))
