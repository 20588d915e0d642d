"""What is remembered of markets: floors by the minute, and what venues tell of inscriptions."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest

from models import venue_memory
from models.database import base
from models.tasks import cycles
from models.tasks.cycles import FloorSample
from models.venue_memory import Told
from strategy.book import History
from tests import postgresql

MINUTE = 60_000
NOW = 1_800_000_000_000 // MINUTE * MINUTE
CATS = ("ordinals", "cats", "floor")


def record(*prices: str, start_ms: int = NOW) -> None:
    """One sample a minute."""
    for number, price in enumerate(prices):
        cycles.record_reference(*CATS, Decimal(price), start_ms + number * MINUTE)


@pytest.mark.parametrize(
    ("prices", "median"),
    [
        (["7"], "7"),
        (["9", "1", "5"], "5"),
        (["9", "10", "100000", "2"], "9.5"),
        (
            ["1.0000000000000000000000000000000000001", "1.0000000000000000000000000000000000002"],
            "1." + "0" * 36 + "15",
        ),
        (["123456789012345678901234567890123456789", "1"], "61728394506172839450617283945061728395"),
    ],
)
def test_the_median_is_exact(database: str, prices: list[str], median: str) -> None:
    record(*prices)
    with localcontext(prec=3):
        found = cycles.history(*CATS, NOW + 10 * MINUTE)
    assert found == History(Decimal(median), len(prices))


def test_no_samples_are_no_median(database: str) -> None:
    assert cycles.history(*CATS, NOW) == History(None, 0)


def test_a_minute_has_one_sample_and_the_first_stays(database: str) -> None:
    for late_ms, price in ((0, 5), (1, 6), (MINUTE - 1, 7), (MINUTE, 8)):
        cycles.record_reference(*CATS, Decimal(price), NOW + late_ms)
    assert cycles.history(*CATS, NOW + MINUTE) == History(Decimal("6.5"), 2)


def test_two_who_see_no_sample_at_once_write_one(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cycles._IN_MINUTE.row
    seen = iter([None])  # the first look of the second one comes before the first one's sample
    record("5")
    monkeypatch.setattr(cycles._IN_MINUTE, "row", lambda **values: next(seen, real(**values)))
    record("6")
    assert cycles.history(*CATS, NOW) == History(Decimal(5), 1)


@pytest.mark.parametrize("other", [("rune", "cats", "floor"), ("ordinals", "dogs", "floor"), ("ordinals", "cats", "x")])
def test_each_measure_of_each_slug_has_its_own(database: str, other: tuple[str, str, str]) -> None:
    record("5")
    cycles.record_reference(*other, Decimal(9), NOW)
    assert cycles.history(*CATS, NOW) == History(Decimal(5), 1)
    assert cycles.history(*other, NOW) == History(Decimal(9), 1)


def test_the_window_is_sixty_minutes_with_the_present_one(database: str) -> None:
    record("5", "6")
    end = NOW + 59 * MINUTE
    assert cycles.history(*CATS, end + MINUTE - 1).samples == 2
    assert cycles.history(*CATS, end + MINUTE) == History(Decimal(6), 1)
    assert cycles.history(*CATS, end + 2 * MINUTE) == History(None, 0)


def test_samples_of_a_clock_that_was_ahead_do_not_count(database: str) -> None:
    record("5", start_ms=NOW + 2 * MINUTE)
    assert cycles.history(*CATS, NOW) == History(None, 0)


def test_what_is_older_than_the_window_is_deleted_of_every_slug(database: str) -> None:
    cycles.record_reference("rune", "DOGS", "floor", Decimal(1), NOW - 1_311 * MINUTE)
    record(*map(str, range(1, 130)))
    assert FloorSample.select().count() == 130
    cycles.record_reference(*CATS, Decimal(130), NOW + 129 * MINUTE)
    assert FloorSample.select().count() == 130
    assert cycles.history(*CATS, NOW + 129 * MINUTE) == History(Decimal("100.5"), 60)


def test_a_minutes_lowest_price_is_kept_beside_its_first(database: str) -> None:
    for price, late_ms in ((100, 0), (90, 1_000), (89, 2_000), (95, 3_000), (89, 4_000)):
        cycles.record_reference(*CATS, Decimal(price), NOW + late_ms)
    [found] = cycles.samples(*CATS, 60, NOW)
    assert (found.reference, found.low, found.low_ms, found.high) == (100, 89, NOW + 2_000, 100)
    assert cycles.history(*CATS, NOW) == History(Decimal(100), 1)


def test_a_minutes_highest_price_is_kept_as_it_was_before_the_clamp(database: str) -> None:
    for raw, late_ms in ((None, 0), (Decimal(180), 1_000), (Decimal(170), 2_000), (None, 3_000)):
        cycles.record_reference(*CATS, Decimal(125), NOW + late_ms, raw)
    [found] = cycles.samples(*CATS, 60, NOW)
    assert (found.reference, found.low, found.low_ms, found.high) == (125, 125, NOW, 180)


def test_samples_of_so_many_minutes_and_the_present_one_oldest_first(database: str) -> None:
    record(*map(str, range(1, 11)))
    found = cycles.samples(*CATS, 3, NOW + 9 * MINUTE)
    assert [sample.reference for sample in found] == [7, 8, 9, 10]


def test_samples_survive_a_restart(database: str) -> None:
    record("0.1", "0.30")
    base.close()
    base.connect(database)
    assert cycles.history(*CATS, NOW + MINUTE) == History(Decimal("0.20"), 2)


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "Infinity"])
def test_what_is_no_price_is_not_recorded(database: str, price: str) -> None:
    with pytest.raises(ValueError, match="no reference price"):
        record(price)


OLD, NEW, SEEN = "a" * 64 + "i0", "b" * 64 + "i0", "c" * 64 + "i0"
TOLD_CATS = Told("cats", "https://example.org/1.png")


def test_old_details_go_and_what_does_not_change_stays(database: str) -> None:
    venue_memory.store_wallet("bc1p", "{}", {SEEN: TOLD_CATS}, 1)
    venue_memory.store_inscription(OLD, "old", TOLD_CATS, 100)
    venue_memory.store_inscription(NEW, "new", TOLD_CATS, 101)

    venue_memory.forget_details(100)

    assert [venue_memory.cached_inscription(each, 0, 200) for each in (OLD, NEW, SEEN)] == [None, "new", None]
    assert [venue_memory.told_of(each) for each in (OLD, NEW, SEEN)] == [TOLD_CATS, TOLD_CATS, TOLD_CATS]
    assert venue_memory.cached_wallet("bc1p", 0, 200) == "{}"  # the search of slugs reads it, however old
    venue_memory.store_inscription(OLD, "again", TOLD_CATS, 200)
    assert venue_memory.cached_inscription(OLD, 199, 200) == "again"


def test_what_a_clock_that_was_ahead_stored_is_fetched_anew(database: str) -> None:
    venue_memory.store_wallet("bc1p", "{}", {}, 3_600_000)
    venue_memory.store_inscription(OLD, "old", TOLD_CATS, 3_600_000)
    assert venue_memory.cached_wallet("bc1p", 0, 3_599_999) is None
    assert venue_memory.cached_inscription(OLD, 0, 3_599_999) is None


@postgresql.left_out("its plan of a query depends on how many rows there are")
def test_what_has_no_details_any_more_is_not_looked_through(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def explained(sql: str, values: Any = ()) -> Any:
        said.extend(row[3] for row in ask(f"EXPLAIN QUERY PLAN {sql}", values))
        return ask(sql, values)

    ask = base.database.execute_sql
    monkeypatch.setattr(base.database.obj, "execute_sql", explained)
    venue_memory.forget_details(100)
    assert said == ["SEARCH inscriptions USING INDEX inscriptions_detailed (fetched_ms<?)"]
