"""Tasks that go on for hours and weeks of simulated time keep their ladders, and nothing but what is a record grows.

`make test` has an hour of two courses, `make faults` of every one, and a day; `make soak-month`
has the month.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from drills.endurance.month import FORECAST_WITHIN, HEAD, soak, stages
from drills.endurance.stage import NAMES, Ladder, Stage, sell_to_best

pytestmark = pytest.mark.slow

SHORT_H = 1
SHORTLY = ("calm", "crash")  # what the forecast is held against, and the hardest
SHORT = {"calm": (Ladder(1), Ladder(5, outbids=True), Ladder(20)), "crash": (Ladder(1), Ladder(5, outbids=True))}
SHORT_WITHIN = 0.06  # of the forecast: in an hour a single round more or less of twenty bids is some per cent
DAY_H = 24


@pytest.mark.thorough_cases("crash")
@pytest.mark.parametrize(
    "name", [name if name in SHORTLY else pytest.param(name, marks=pytest.mark.faults) for name in NAMES]
)
def test_hours_of_a_course(name: str) -> None:
    for course, ladders in stages([name], SHORT.get(name, SHORT["calm"])):
        found = soak(course, ladders, SHORT_H, parts=1)
        print(HEAD, *(line.text() for line in found.lines), sep="\n")
        assert not found.problems
        assert all(line.places >= line.rungs for line in found.lines)
        if course == "calm":
            assert abs(found.off) < SHORT_WITHIN, f"sent {found.sent}, foretold {found.told:.0f}"


def test_a_seller_finds_no_bid_that_ends_in_this_moment() -> None:
    with Stage("duel", (Ladder(1),)) as stage:
        engine = stage.house.world.engine
        market = engine.open_market("ordinals", "elsewhere")
        engine.add(market, "bid", engine.new_address(), 500, expires_ms=engine.now_ms())
        sell_to_best(engine, market, 100)
        assert not market.bids


@pytest.mark.faults
def test_a_day_of_every_course() -> None:
    problems: list[str] = []
    print(HEAD)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        asked = [(name, pool.submit(soak, name, ladders, DAY_H)) for name, ladders in stages(NAMES)]
        for name, each in asked:
            found = each.result()
            print(*(line.text() for line in found.lines), sep="\n", flush=True)
            problems += [f"{name}: {text}" for text in found.problems]  # what levels off, a month shows
            if name == "calm" and abs(found.off) > FORECAST_WITHIN:
                problems.append(f"calm: sent {found.sent:,}, foretold {found.told:,.0f}")
    assert not problems
