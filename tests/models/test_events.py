"""The outbox: every fact once and in its own transaction, nobody else's, bounded, and with its end remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core import event_words
from core.subscription_plans import DEFAULT_PLANS
from models import accounts, outbox, summaries, users
from models.database.base import transaction
from models.ledger import listings, orders, states
from models.ledger.listings import SoldFor
from models.ledger.orders import ExposureLimits, Part, SoldInto
from models.ledger.states import CANCELLED, CLOSED, LIVE, SIGNED, SOLD, SUBMITTED, Order
from models.outbox import EVENTS, PASSING, Event
from models.tasks import cycles, tasks
from models.tasks.tasks import Task
from models.users import DAY_MS
from tests.models import test_listings as listing_rows
from tests.models.test_orders import new, running_task

NO_LIMITS = ExposureLimits(0, 10**12, 0)
AN_HOUR_MS = 3_600_000


def told(user_id: int = 1, *names: str) -> list[tuple[str, dict[str, Any]]]:
    rows = outbox.of_user_after(user_id, 0, 500, names or EVENTS)
    assert all(event_words.words(row.event, row.data) for row in rows)  # each can be said
    return [(row.event, json.loads(row.data)) for row in rows]


def cycle(task: Task, at_ms: int, error: str | None = None, **conditions: dict[str, Any]) -> None:
    written = {"time_ms": at_ms, "action": "placed 0", "error": error, "detail": "{}", "memory": "{}"}
    cycles.record_cycle(task.id, task.token, **written, conditions=conditions)


def live_order(task: Task) -> Order:
    order = orders.reserve(new(task, 75_000), NO_LIMITS, 10)
    for state in (SIGNED, SUBMITTED, LIVE):
        orders.move(order, state, 11)
    return order


def test_a_fill_is_told_with_its_sale_and_a_cancel_with_its_reason(database: str) -> None:
    task = running_task()
    bought, gone = live_order(task), live_order(task)
    orders.fill(bought, 20, SoldInto("sale-1", "ab" * 32 + "i0", 15))
    orders.move(gone, CLOSED, 21, reason="cancelled")

    [(_, fill)] = told(1, "fill")
    assert (fill["fill"], fill["order"], fill["price"]) == (f"buy-{bought.id}", bought.id, 75_000)
    assert (fill["sale_id"], fill["inscription_id"], fill["filled_ms"]) == ("sale-1", "ab" * 32 + "i0", 15)
    assert [(d["order"], d["state"], d["close_reason"]) for _, d in told(1, "order")] == [
        (bought.id, "live", None),
        (gone.id, "live", None),
        (gone.id, "closed", "cancelled"),
    ]


def test_a_move_that_fails_tells_nothing(database: str) -> None:
    task = running_task()
    first, second, stale = live_order(task), live_order(task), None
    orders.fill(first, 20, SoldInto("sale-1"))
    stale = Order.get_by_id(second.id)
    before = told()
    assert not orders.fill(second, 21, SoldInto("sale-1"))  # the sale is another order's
    orders.move(second, CLOSED, 22, reason="expired")
    with pytest.raises(states.IllegalMove):
        orders.fill(stale, 23, SoldInto("sale-2"))
    assert [name for name, _ in told()[len(before) :]] == ["order"]


def test_listings_are_told_when_they_are_first_live_when_they_end_and_when_they_are_sold(database: str) -> None:
    task = listing_rows.task()
    row = listings.reserve(listing_rows.new(task, 100_000), None, 10)
    for state in (SIGNED, SUBMITTED, LIVE):
        listings.move(row, state, 11)
    listings.move(row, CLOSED, 12, reason=CANCELLED)
    listings.note_late_sale(row, SoldFor(100_000, "s", 13, 2_000, "ab" * 32), 14)
    listings.note_late_sale(row, SoldFor(100_000, "s", 13, 2_000, "ab" * 32), 15)  # known by now

    found = told(1, "listed", "listing", "sold")
    assert [name for name, _ in found] == ["listed", "listing", "sold"]
    assert found[-1][1]["price"] == 100_000 and found[-1][1]["venue_fee"] == 2_000
    assert found[-1][1]["fill"] == f"sell-{row.id}"


def test_an_adopted_or_sold_listing_of_somebody_else_is_not_mine(database: str) -> None:
    listings.adopt(listing_rows.new(listing_rows.task(), 5), 10)
    assert told(2) == []


def test_an_error_is_told_when_it_has_stood_for_three_cycles_and_its_end_once(database: str) -> None:
    task = running_task()
    for at, error in enumerate((None, "a", "a", None, "a", "b", "c", "c", None, None)):
        cycle(task, at, error)
    assert told(1, "error", "recovered") == [("error", {"error": "c", "cycles": 3}), ("recovered", {"cycles": 4})]


def test_failed_tries_to_start_count_as_errors_and_a_crash_is_told(database: str) -> None:
    task = running_task()
    for _ in range(3):
        tasks.observe(task.id, "starting", 5)
        tasks.observe(task.id, "backoff", 5, last_error="the signer is locked")
    Task.update(last_error="gave up").where(Task.id == task.id).execute()
    tasks.observe(task.id, "crashed", 6)
    found = told(1, "error", "worker_dead")
    assert found == [("error", {"error": "the signer is locked", "cycles": 3}), ("worker_dead", {"error": "gave up"})]


def test_a_condition_is_told_when_it_begins_and_at_most_once_an_hour(database: str) -> None:
    task, limited = running_task(), {"slug": "cats", "rungs": 1}
    for minute, holds in enumerate([True, True, False, True] + [True] * 70 + [False, True, False]):
        cycle(task, minute * 60_000, outbid_limited=limited) if holds else cycle(task, minute * 60_000)
    assert [row.at_ms for row in outbox.of_user_after(1, 0, 500, ["outbid_limited"])] == [0, 75 * 60_000]


def test_a_short_month_is_told_once_a_day_for_all_tasks_of_a_user(database: str) -> None:
    short = {"venue": "satflow", "every_s": 120}
    for task in (running_task(), running_task("dogs")):
        for at_ms in (0, 1, DAY_MS):
            cycle(task, at_ms, quota=short)
            cycle(task, at_ms + AN_HOUR_MS)
    assert [row.at_ms for row in outbox.of_user_after(1, 0, 500, ["quota"])] == [0, DAY_MS]


def test_a_worker_that_was_overtaken_tells_nothing(database: str) -> None:
    task = running_task()
    tasks.raise_token(task.id)
    before = told()
    cycle(task, 5, "x")
    assert told() == before


def test_control_is_told_to_those_whom_it_concerns(database: str) -> None:
    mine, other = running_task(), running_task("dogs", "bc1qb")
    users.put_control("task", mine.id, "halt", mine.user_id, 5)
    users.put_control("user", other.user_id, "reduce", other.user_id, 6)
    users.put_control("user", other.user_id, "reduce", other.user_id, 7)  # no change
    users.put_control("global", 0, "halt", None, 8)
    both = {"scope": "global", "state": "halt", "by": "operator"}
    assert told(1, "halted", "control") == [
        ("halted", {"scope": "task", "state": "halt", "by": "you"}),
        ("halted", both),
    ]
    assert told(2, "halted", "control") == [
        ("control", {"scope": "user", "state": "reduce", "by": "you"}),
        ("halted", both),
    ]


def test_a_fact_that_is_rolled_back_was_never_told(database: str) -> None:
    with pytest.raises(RuntimeError, match="transaction of its fact"):
        outbox.tell("fill", 1, None, 1, {})
    with pytest.raises(ZeroDivisionError), transaction():
        outbox.tell("fill", 1, None, 1, {})
        raise ZeroDivisionError
    assert Event.select().count() == 0


def fill_up(user_id: int, event: str, count: int, at_ms: int = 1, fact: str | None = None) -> None:
    with transaction():
        for _ in range(count):
            outbox.tell(event, user_id, None, at_ms, {}, fact=fact)


def test_what_is_kept_is_bounded_by_number_and_the_end_is_known(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "KEPT_PASSING", 10)
    monkeypatch.setattr(outbox, "KEPT_LASTING", 20)
    fill_up(1, "daily", 1, fact="daily:1")
    fill_up(2, "fill", 3)
    fill_up(1, "fill", 30)
    fill_up(1, "cycle", 500)

    outbox.forget_old(2)

    mine = outbox.of_user_after(1, 0, 500)
    assert [sum(row.event == name for row in mine) for name in ("daily", "fill", "cycle")] == [1, 20, 10]
    assert len(outbox.of_user_after(2, 0, 500)) == 3 and outbox.can_go_on(2, 0)
    first_fill = next(row.id for row in mine if row.event == "fill")
    assert not outbox.can_go_on(1, first_fill) and outbox.can_go_on(1, first_fill, ["fill"])
    assert not outbox.can_go_on(1, first_fill - 2, ["fill"]) and outbox.can_go_on(1, mine[-1].id)
    assert not outbox.can_go_on(1, mine[-1].id + 1)  # of another database


def test_what_is_kept_is_bounded_by_age_and_between_the_sweeps(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "KEPT_PASSING", 10)
    fill_up(1, "cycle", 64 * 10)
    assert Event.select().count() <= 10 + 64
    fill_up(1, "fill", 3, at_ms=5)
    outbox.forget_old(outbox.KEPT_MS + 2)
    assert [row.event for row in outbox.of_user_after(1, 0, 500)] == ["fill"] * 3
    outbox.forget_old(outbox.KEPT_MS + 5)
    assert outbox.of_user_after(1, 0, 500) == [] and not outbox.can_go_on(1, 0)
    assert outbox.can_go_on(1, outbox.newest_id())


def test_the_calendar_tells_a_day_and_the_end_of_a_plan_once(database: str) -> None:
    task = running_task()
    order = live_order(task)
    orders.fill(order, 1000, SoldInto("s", None, DAY_MS + 5))
    live_order(task)
    accounts.set_plan(1, "beta", 20 * DAY_MS, 1)
    users.find_or_create("bc1qidle", DEFAULT_PLANS, 1)

    for now_ms in (DAY_MS - 1, DAY_MS, DAY_MS + 1, 12 * DAY_MS, 13 * DAY_MS, 19 * DAY_MS, 19 * DAY_MS + 5):
        summaries.tell_dates(now_ms)

    days = [data["day"] for _, data in told(1, "daily")]
    assert days == ["1970-01-01", "1970-01-12", "1970-01-13", "1970-01-19"]
    first = told(1, "daily")[0][1]
    assert (first["bought"], first["bought_sats"], first["open_bids"], first["running"]) == (1, 75_000, 1, 1)
    assert [row.at_ms // DAY_MS for row in outbox.of_user_after(1, 0, 500, ["plan_expiring"])] == [13, 19]
    assert told(2, "daily") == []


def test_names_are_of_one_kind_and_data_goes_out_under_the_interfaces_names() -> None:
    assert set(PASSING) < set(EVENTS) and len(set(EVENTS)) == len(EVENTS)
    stored = json.dumps({"sale_id": None, "sold_ms": 0, "every_s": 5, "price": 7, "signed_ms": None})
    assert event_words.outward(stored) == {
        "saleId": None,
        "soldAt": "1970-01-01T00:00:00.000Z",
        "everySeconds": 5,
        "price": 7,
        "signedAt": None,
    }


def test_sold_by_a_move_is_told_too(database: str) -> None:
    task = listing_rows.task()
    row = listings.adopt(listing_rows.new(task, 100_000), 10)
    listings.move(row, CLOSED, 12, reason=SOLD, sale=SoldFor(100_000))
    assert [name for name, _ in told(1, "sold", "listed", "listing")] == ["listing", "sold"]


def test_a_drain_that_cannot_cancel_is_told_of(database: str) -> None:
    task = running_task()
    for text in ("venue away", "venue away", "venue away", None):
        tasks.note_trouble(task, text, 5)
    assert told(1, "error", "recovered") == [
        ("error", {"error": "venue away", "cycles": 3}),
        ("recovered", {"cycles": 3}),
    ]
    assert Task.get_by_id(task.id).last_error is None


def test_the_days_summary_has_the_sats_of_the_parts_that_were_sold(database: str) -> None:
    task = running_task()
    orders.fill(live_order(task), 1_000, SoldInto("part", None, 5, Part(30_000, "400")))
    orders.fill(live_order(task), 1_000, SoldInto("whole", None, 5))
    summaries.tell_dates(DAY_MS)
    [(_, day)] = told(1, "daily")
    assert (day["bought"], day["bought_sats"]) == (2, 105_000)


def test_cycles_that_an_exception_ends_are_counted_like_those_with_an_error(database: str) -> None:
    task = running_task()
    tasks.report_error(task.id, task.token, "given up")
    for _ in range(2):
        tasks.report_error(task.id, task.token, "KeyError: 1", failed_ms=5)
    tasks.report_error(task.id, task.token - 1, "another worker's", failed_ms=5)
    assert told(1, "error") == []
    tasks.report_error(task.id, task.token, "KeyError: 1", failed_ms=5)
    assert told(1, "error") == [("error", {"error": "KeyError: 1", "cycles": 3})]
    cycle(task, 6)
    assert told(1, "recovered") == [("recovered", {"cycles": 3})]
