"""The history: numbered, exact, bounded, and never a part for the whole."""

from __future__ import annotations

from decimal import Decimal

import pytest

from simulator import engine
from simulator.engine import History, Order, Origin
from simulator.wire import ApiError
from tests.simulator.desk import Desk


def _order(price: int, origin: Origin = "dialect") -> Order:
    unit = Decimal(price)
    return Order("0" * 24, 1, "ordinals", "bid", "puppets", "m", "r", price, Decimal(1), unit, 0, origin=origin)


@pytest.mark.gen_test
async def test_who_asks_since_the_last_number_misses_nothing(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    seen, since = [], 0
    for price in (20_000, 30_000, 40_000, 50_000):
        await desk.placed(price=price)
        if price != 30_000:
            news = await desk.sim("GET", f"history?since={since}")
            seen += [event["price"] for event in news]
            since = news[-1]["number"]

    assert seen == [20_000, 30_000, 40_000, 50_000]
    assert await desk.sim("GET", f"history?since={since}") == []


def test_events_that_are_no_longer_kept_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KEPT", 3)
    kept = History()
    for price in range(5):
        kept.record("accepted", _order(price), 0)

    assert [row["number"] for row in kept.rows()] == [row["number"] for row in kept.rows(since=2)] == [3, 4, 5]
    with pytest.raises(ApiError) as gone:
        kept.rows(since=1)
    assert gone.value.status == 410
    again = History()
    again.load(kept.dump())
    with pytest.raises(ApiError):
        again.rows(since=1)


def test_traders_do_not_push_out_what_others_did() -> None:
    kept = History()
    kept.record("accepted", _order(7), 0)
    for price in range(engine.KEPT_OF_TRADERS + 5):
        kept.record("accepted", _order(price, "trader"), 0)

    rows = kept.rows(since=0)

    assert (rows[0]["price"], len(rows)) == (7, 1 + engine.KEPT_OF_TRADERS)
