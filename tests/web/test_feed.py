"""The lines of what happens, without a browser: what belongs together is one of them, and how that is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.javascript import Modules

TOGETHER_S = 10
CLOSED = {"state": "closed", "closeReason": "cancelled"}


@pytest.fixture(scope="module", autouse=True)
def known_texts(javascript: Modules) -> None:
    """Makes the texts of this module known to the others."""
    javascript.value("texts/overview.js", "none")


def order(number: int, second: int, price: int, **more: Any) -> dict[str, Any]:
    """Makes the event that a bid went live, or with a state of its own ended."""
    data = {"slug": "plain-cats", "state": "live", "closeReason": None, "price": price, "dryRun": False} | more
    return {"id": number, "event": "order", "task": 7, "at": f"2026-11-23T07:23:{second:02}Z", "text": "", "data": data}


def lines(javascript: Modules, *events: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the lines of events that came in this order, the newest first."""
    found: list[dict[str, Any]] = javascript.call("feed.js", "linesOf", list(reversed(events)), 10)
    return found


def test_bids_that_went_live_together_are_one_line_with_the_range_of_their_prices(javascript: Modules) -> None:
    (line,) = lines(javascript, order(1, 10, 80_000), order(2, 10 + TOGETHER_S, 50_000))

    assert (line["name"], line["count"], line["prices"]) == ("placed", 2, [50_000, 80_000])
    told = line | {"low": "50,000 sats", "high": "80,000 sats"}
    words = javascript.call("page.js", "t", "feed.placed", told)
    assert words == "2 bids went live, between 50,000 sats and 80,000 sats"


def test_bids_that_went_live_far_apart_or_only_on_paper_have_lines_of_their_own(javascript: Modules) -> None:
    apart = lines(javascript, order(1, 10, 80_000), order(2, 11 + TOGETHER_S, 50_000))
    on_paper = lines(javascript, order(1, 10, 80_000), order(2, 10, 50_000, dryRun=True))

    for found in (apart, on_paper):
        assert [(line["name"], line["count"], line["prices"]) for line in found] == [
            ("placed", 1, [50_000, 50_000]),
            ("placed", 1, [80_000, 80_000]),
        ]
    assert [line["isPaper"] for line in on_paper] == [True, False]


@pytest.mark.parametrize("is_placed_first", [True, False])
def test_a_bid_that_took_the_place_of_another_is_one_line(javascript: Modules, is_placed_first: bool) -> None:
    first, last = 10, 10 + TOGETHER_S
    placed = order(1 if is_placed_first else 2, first if is_placed_first else last, 61_500)
    gone = order(2 if is_placed_first else 1, last if is_placed_first else first, 60_000, **CLOSED)

    (line,) = lines(javascript, *sorted([placed, gone], key=lambda each: int(each["id"])))

    assert (line["name"], line["was"], line["prices"]) == ("moved", 60_000, [61_500, 61_500])
    told = line | {"was": "60,000 sats", "high": "61,500 sats"}
    assert javascript.call("page.js", "t", "feed.moved", told) == "A bid moved from 60,000 sats to 61,500 sats"


def test_a_bid_that_ended_long_before_another_came_did_not_move(javascript: Modules) -> None:
    found = lines(javascript, order(1, 10, 60_000, **CLOSED), order(2, 11 + TOGETHER_S, 61_500))

    assert [line["name"] for line in found] == ["placed", "gone.cancelled"]
