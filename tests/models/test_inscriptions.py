"""The cache of what venues tell of inscriptions: what is dropped of it, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from models import venue_memory
from models.database import base
from models.venue_memory import Told
from tests import postgresql

OLD, NEW, SEEN = "a" * 64 + "i0", "b" * 64 + "i0", "c" * 64 + "i0"
CATS = Told("cats", "https://example.org/1.png")


def test_old_details_go_and_what_does_not_change_stays(database: str) -> None:
    venue_memory.store_wallet("bc1p", "{}", {SEEN: CATS}, 1)
    venue_memory.store_inscription(OLD, "old", CATS, 100)
    venue_memory.store_inscription(NEW, "new", CATS, 101)

    venue_memory.forget_details(100)

    assert [venue_memory.cached_inscription(each, 0, 200) for each in (OLD, NEW, SEEN)] == [None, "new", None]
    assert [venue_memory.told_of(each) for each in (OLD, NEW, SEEN)] == [CATS, CATS, CATS]
    assert venue_memory.cached_wallet("bc1p", 0, 200) == "{}"  # the search of slugs reads it, however old
    venue_memory.store_inscription(OLD, "again", CATS, 200)
    assert venue_memory.cached_inscription(OLD, 199, 200) == "again"


def test_what_a_clock_that_was_ahead_stored_is_fetched_anew(database: str) -> None:
    venue_memory.store_wallet("bc1p", "{}", {}, 3_600_000)
    venue_memory.store_inscription(OLD, "old", CATS, 3_600_000)
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
