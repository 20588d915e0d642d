"""The geometry of a task's screen, its decision and its book, without a browser."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import part_of
from tests.web.javascript import Modules

EXAMPLES = settings(max_examples=part_of(60), deadline=None)
WIDTH, HEIGHT = 760, 430
TIME = 1_795_418_590


def level(price: float, quantity: float = 1, orders: int = 1) -> dict[str, float]:
    return {"price": price, "quantity": quantity, "orders": orders}


def rung(unit: float, *, is_live: bool = True) -> dict[str, Any]:
    return {"key": f"rung {unit}", "unit": unit, "isLive": is_live, "reason": "kept"}


def picture(**more: Any) -> dict[str, Any]:
    given = {"asks": [level(1_000), level(1_100)], "bids": [level(850), level(700)], "floor": 1_000, "low": 600}
    return given | {"high": 900, "cap": 950, "rungs": [rung(900), rung(750), rung(600, is_live=False)]} | more


def test_a_higher_price_stands_higher_and_the_free_stretch_below_the_floor_is_found(javascript: Modules) -> None:
    shape = javascript.call("ladder_shape.js", "ladderShape", picture(), WIDTH, HEIGHT, False)

    heights = [shape["floorY"], *(each["y"] for each in shape["rungs"])]
    assert heights == sorted(heights)
    assert shape["band"]["y"] == pytest.approx(shape["rungs"][0]["y"])
    # Between the best bid and the floor, in no line's way.
    assert shape["spread"]["share"] == pytest.approx(0.1)
    assert shape["floorY"] < shape["spread"]["y"] < shape["rungs"][0]["y"]


def test_a_book_without_any_price_is_no_picture(javascript: Modules) -> None:
    nothing = {"asks": None, "bids": None, "floor": None, "low": None, "high": None, "cap": None, "rungs": []}

    assert javascript.call("ladder_shape.js", "ladderShape", nothing, WIDTH, HEIGHT, False) is None


@EXAMPLES
@given(units=st.lists(st.integers(1, 3_000), max_size=25), is_narrow=st.booleans())
def test_no_label_covers_another_or_leaves_the_picture(javascript: Modules, units: list[int], is_narrow: bool) -> None:
    rungs = [rung(unit) | {"key": i} for i, unit in enumerate(units)]
    height = javascript.call("ladder_shape.js", "heightOf", len(rungs) + 1, is_narrow)
    shape = javascript.call("ladder_shape.js", "ladderShape", picture(rungs=rungs), WIDTH, height, is_narrow)

    labels = shape["labels"]
    if not is_narrow:
        assert len(labels) == len(rungs) + 1
        assert all(each["tall"] / 2 <= each["at"] <= height - each["tall"] / 2 for each in labels)
    for above, below in pairwise(labels):
        free = 30 if is_narrow else (above["tall"] + below["tall"]) / 2
        assert below["at"] - above["at"] >= free - 1e-6


@EXAMPLES
@given(low=st.floats(0, 1e7), span=st.floats(1e-4, 1e7), count=st.integers(2, 9))
def test_ticks_are_round_and_within(javascript: Modules, low: float, span: float, count: int) -> None:
    ticks = javascript.call("ladder_shape.js", "ticksOf", low, low + span, count)

    assert len(ticks) <= 2 * count + 2
    room = 1e-9 * (low + span)
    assert all(low - room <= tick <= low + span + room for tick in ticks)


def series(times: list[int], **more: Any) -> dict[str, Any]:
    prices = [1_000 + i for i in range(len(times))]
    return {
        "step": "minute",
        "time": times,
        "floor": prices,
        "reference": prices,
        "ownTop": prices,
        "ownLow": prices,
    } | more


def test_where_nothing_ran_the_chart_has_a_gap_and_the_last_value_holds_until_now(javascript: Modules) -> None:
    times = [TIME, TIME + 60, TIME + 3_600]

    columns = javascript.call("timeline_shape.js", "columnsOf", series(times), [], TIME, TIME + 3_700, 300)

    assert columns["time"] == [TIME, TIME + 60, TIME + 120, TIME + 3_600, TIME + 3_700]
    assert columns["floor"] == [1_000, 1_001, None, 1_002, 1_002]


def test_cycles_are_finer_than_samples_where_both_are_known(javascript: Modules) -> None:
    cycles = [{"time": TIME + 65, "detail": {"seen": {"lowestAsk": "990.5", "reference": "980"}}}]

    columns = javascript.call("timeline_shape.js", "columnsOf", series([TIME, TIME + 60]), cycles, TIME, TIME + 65, 300)

    assert columns["time"] == [TIME, TIME + 60, TIME + 65]
    assert columns["floor"][-1] == 990.5


def order(number: int, price: int, **more: Any) -> dict[str, Any]:
    given = {"id": number, "price": price, "quantity": 1, "state": "live", "closeReason": None, "reason": None}
    times = {"createdAt": "2026-11-23T07:23:10Z", "closedAt": None, "expiresAt": "2026-11-23T08:23:10Z"}
    return given | times | {"dryRun": False} | more


CONFIG = {"type": "ordinals", "bidMode": "percent", "bidPercentLow": 0.6, "bidPercentHigh": 0.9, "hardcapSats": 950}


def moment(rungs: list[dict[str, Any]], orders: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    book = {
        "asks": {
            "takenAt": "2026-11-23T07:23:10Z",
            "levels": [{"unitPrice": 1_000, "quantity": 2, "orders": 2, "own": 1, "ownOrders": 1}],
        }
    }
    cycle = {
        "time": "2026-11-23T07:23:10Z",
        "config": CONFIG,
        "reference": 1_000,
        "rungs": rungs,
        "cancels": [],
        "marks": [],
    }
    return {
        "time": "2026-11-23T07:23:20Z",
        "orders": orders,
        "cycle": cycle | {"book": book} | more,
        "cycleUnknown": None,
    }


def decided(javascript: Modules, told: dict[str, Any], records: list[dict[str, Any]], *, is_now: bool = True) -> Any:
    return javascript.call("decision.js", "decisionOf", {"config": CONFIG}, told, records, is_now)


def note(number: int, price: int | None, reason: str, **more: Any) -> dict[str, Any]:
    return {"rung": number, "price": price, "quantity": 1, "reason": reason, "detail": "", "order": None} | more


def test_a_rung_that_was_not_signed_is_no_bid(javascript: Modules) -> None:
    told = moment([note(0, 900, "place"), note(1, 750, "place")], [order(7, 900)])
    rungs = [
        {"rung": 0, "priceSats": 900, "reason": "place", "fate": "placed", "placedOrder": 7},
        {"rung": 1, "priceSats": 750, "reason": "place", "fate": "not_signed", "placedOrder": 8},
    ]

    found = decided(javascript, told, [{"time": TIME + 3, "detail": {"rungs": rungs}}])

    assert [(each["price"], each["isLive"], each["reason"]) for each in found["rungs"]] == [
        (900, True, "place"),
        (750, False, "not_signed"),
    ]


def test_a_bid_that_ended_since_is_neither_shown_nor_called_missing(javascript: Modules) -> None:
    ended = order(7, 900, state="closed", closeReason="filled")
    told = moment([note(0, 900, "kept", order=7), note(1, 750, "kept", order=8)], [ended, order(8, 750)])

    now, then = decided(javascript, told, []), decided(javascript, told, [], is_now=False)

    assert [each["price"] for each in now["rungs"]] == [750]
    assert [each["price"] for each in then["rungs"]] == [900, 750], "at that moment it stood"


def test_a_filled_bid_has_the_price_that_earlier_cycles_knew(javascript: Modules) -> None:
    before = {"time": TIME - 30, "detail": {"bids": [{"order": 7, "priceSats": 900, "reason": "kept"}]}}
    record = {"time": TIME + 1, "detail": {"rungs": [], "bids": [], "cancelled": [], "filled": [{"order": 7}]}}

    found = decided(javascript, moment([], []), [before, record])

    assert found["filled"] == [{"order": 7, "price": 900, "unit": 900}]


def test_own_listings_are_no_floor_and_rungs_without_a_price_are_counted(javascript: Modules) -> None:
    found = decided(javascript, moment([note(0, None, "halt"), note(1, None, "halt")], []), [])

    assert found["book"]["asks"] == [level(1_000)]
    assert found["unpriced"] == [{"reason": "halt", "detail": "", "count": 2}]
    assert (found["low"], found["high"], found["cap"]) == (600, 900, 950)


def test_a_runes_prices_are_of_a_token_by_each_orders_own_quantity(javascript: Modules) -> None:
    config = CONFIG | {"type": "rune", "quantityMode": "sats"}
    told = moment([], [order(1, 100_000, quantity=50_000), order(2, 100_000, quantity=40_000)], config=config)

    found = decided(javascript, told, [])

    assert [each["unit"] for each in found["rungs"]] == [2.5, 2]
    assert found["cap"] is None, "an order's cap is no price of a token where each buys another quantity"


READ = "2026-11-23T07:23:10Z"


def book(price: float, quantity: float, orders: int, own: float, own_orders: int) -> dict[str, Any]:
    level = {"unitPrice": price, "quantity": quantity, "orders": orders, "own": own, "ownOrders": own_orders}
    return {"asks": None, "bids": {"takenAt": READ, "levels": [level]}}


ONE_ORDER_OF_MANY = book(2, 1_300, 2, 1_000, 1)
ONE_OF_HALF_A_TOKEN = book(2, 1.5, 2, 0.5, 1)
TWO_ORDERS = book(2, 3, 3, 2, 2)
ALL_OURS = book(2, 3, 2, 3, 2)


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


@pytest.fixture(scope="module", autouse=True)
def known_texts(javascript: Modules) -> None:
    """Makes the texts of this module known to the others."""
    javascript.value("texts/market.js", "none")


@pytest.mark.parametrize("detail", [{"rungs": {"kept": 1}}, {"planned": {"reason": "unchanged"}}])
def test_rows_that_were_left_out_are_one_tag_in_plain_words(javascript: Modules, detail: dict[str, object]) -> None:
    rows = {"asks": 2, "ownBids": 1, "more": 1}
    tag, _ = javascript.call("parts/said.js", "tagsOf", detail | {"unreadRows": rows})
    assert (tag["kind"], tag["words"]) == ("limit", "4 rows not understood")
    assert "rows in an unknown format: 2 of the asks, 1 of your bids, 1 of more." in tag["why"]
    for none in ({}, {"unreadRows": {}}):
        assert len(javascript.call("parts/said.js", "tagsOf", detail | none)) == 1


def entry(slug: str, state: str = "on", look: str | None = None, **row: Any) -> dict[str, Any]:
    """A task of a table with its row; a row that is not read yet is given as `read=False`."""
    numbers = {"floor": None, "place": None, "bids": [{}], "exposure": 0, "gain": None, "said": {}} | row
    of_task = {"slug": slug, "id": len(slug), "type": row.get("type", "ordinals"), "tags": row.get("tags", [])}
    task = of_task | {"config": {"dryRun": state == "dry"}, "fills": {"last": None}}
    return {"task": task, "row": None if row.get("read") is False else numbers, "state": state, "look": look}


TABLE = [
    entry("ape", floor=300, place=2, exposure=10, gain=-5),
    entry("bear", "off", read=False),
    entry("cats", "dry", floor=100, exposure=99, gain=7),
    entry("dogs", look="empty", bids=[], floor=200, tags=["core"]),
    entry("eels", "fault", "fault", place=1, exposure=20, type="rune"),
]


@pytest.mark.parametrize(
    ("sort", "slugs"),
    [
        ("", "eels dogs ape cats bear"),
        ("nonsense", "eels dogs ape cats bear"),
        ("-state", "bear cats ape dogs eels"),
        ("-name", "eels dogs cats bear ape"),
        ("floor", "ape dogs cats bear eels"),
        ("-floor", "cats dogs ape bear eels"),
        ("place", "eels ape bear cats dogs"),
        ("exposure", "eels ape bear cats dogs"),
        ("gain", "cats ape bear dogs eels"),
    ],
)
def test_a_table_is_sorted_with_the_unknown_last_either_way(javascript: Modules, sort: str, slugs: str) -> None:
    found = javascript.call("task_order.js", "sorted", TABLE, sort)
    assert " ".join(each["task"]["slug"] for each in found) == slugs


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ({"state": "look"}, "dogs eels"),
        ({"state": "empty"}, "dogs"),
        ({"state": "on"}, "ape dogs"),
        ({"type": "rune"}, "eels"),
        ({"tag": "core"}, "dogs"),
        ({"q": "CORE"}, "dogs"),
        ({"q": "e", "state": "off"}, "bear"),
    ],
)
def test_a_table_is_filtered_by_words_state_kind_and_tag(
    javascript: Modules, query: dict[str, str], slugs: str
) -> None:
    found = javascript.call("task_order.js", "found", TABLE, query)
    assert " ".join(each["task"]["slug"] for each in found) == slugs


def test_a_head_sorts_its_usual_way_first_and_then_the_other(javascript: Modules) -> None:
    pressed = [javascript.call("task_order.js", "pressed", sort, "floor") for sort in ("name", "floor", "-floor", "")]
    assert pressed == ["floor", "-floor", "floor", "floor"]


def test_a_running_task_without_a_bid_needs_a_look_once_a_cycle_is_known(javascript: Modules) -> None:
    def look(state: str, row: dict[str, Any] | None) -> Any:
        return javascript.call("task_order.js", "lookOf", {}, row, state)

    assert look("on", {"said": {}, "bids": []}) == "empty"
    assert [look("on", row) for row in (None, {"said": None, "bids": []}, {"said": {}, "bids": [{}]})] == [None] * 3
    assert [look(state, {"said": {}, "bids": []}) for state in ("dry", "off", "held", "fault")] == [
        None,
        None,
        "held",
        "fault",
    ]
