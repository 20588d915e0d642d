"""The rows of all bidding tasks: what they say is what each task's own answers say."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from models.database import base
from models.ledger.states import Order
from models.tasks.cycles import Sample, add_sample, record_cycle
from models.tasks.tasks import Task
from server.task_rows import LONG, SHORT, SPARK_POINTS
from tests.server.driver import check
from tests.server.ledger_rows import MINUTE_MS, bought, open_order, row, sold
from tests.worlds.service import START_MS, Service

ITEM = "7" * 64 + "i0"


def cycle(task_id: int, detail: dict[str, Any], *, error: str | None = None, floor: int | None = None) -> None:
    """A cycle of now, as a worker leaves it."""
    sample = None if floor is None else Sample(floor=Decimal(floor))
    kept: dict[str, Any] = {"action": "kept 2", "error": error, "detail": json.dumps(detail), "sample": sample}
    record_cycle(task_id, row(task_id).token, time_ms=START_MS, memory="{}", **kept)


def detail(*ranked: tuple[Order, int | None], **more: Any) -> dict[str, Any]:
    rungs: list[Any] = [
        {"rung": at, "price_sats": order.price_sats, "quantity": "1", "reason": "kept", "order": order.id, "rank": rank}
        for at, (order, rank) in enumerate(ranked)
    ]
    seen = {"lowest_ask": "100000", "best_bid": {"price_sats": 45_000, "unit_price": "45000", "placed_ms": None}}
    return {"seen": seen, "rungs": rungs, "bids": [], "cancelled": [], "filled": [], "marks": [], **more}


async def rows(service: Service, query: str = "") -> Any:
    answer = await service.ask("GET", f"/api/tasks/rows{query}")
    check("listTaskRows", answer)
    return answer.json


async def test_a_row_says_what_the_answers_of_its_task_say(service: Service) -> None:
    task = await service.new_task()
    top, low = open_order(service, task, 5), open_order(service, task, 3)
    Task.update(desired="running", observed="running").where(Task.id == task).execute()
    bought(service.user_id, 40_000, task_id=task, inscription_id=ITEM, network_fee_sats=500)
    sold(service.user_id, 50_000, minute=9, inscription_id=ITEM, venue_fee_sats=1_000)
    gone = {"order": 77, "price_sats": 1, "state": "live", "reason": "outbid"}
    empty = {"rung": 2, "price_sats": 20_000, "quantity": "1", "reason": "exposure", "fate": None}
    record = detail((top, 2), (low, 3), bids=[gone], cancelled=[77], marks=["floor_spike"], unread_rows={"own_bids": 2})
    record["rungs"] += [empty, {**empty, "rung": 3, "reason": "place", "fate": "refused", "price_sats": None}]
    cycle(task, record, error="the venue is away", floor=100_000)

    [found] = (await rows(service))["rows"]
    own = (await service.ask("GET", f"/api/tasks/{task}")).json
    newest = (await service.ask("GET", f"/api/tasks/{task}/cycles?limit=1")).json[0]["detail"]
    ledger = (await service.ask("GET", f"/api/tasks/{task}/orders")).json["orders"]
    gains = (await service.ask("GET", "/api/pnl?groupBy=task")).json["rows"]

    for name in ("isRunning", "lastCycle", "lastError", "lastErrorCode", "lastErrorParams"):
        assert found[name] == own[name], name
    assert [found["floor"], found["bestBid"]] == [int(newest["seen"]["lowestAsk"]), 45_000]
    assert not found["isFloorOld"]
    open_bids = sorted((each for each in ledger if each["state"] == "live"), key=lambda each: -each["price"])
    assert [(bid["id"], bid["unitPrice"]) for bid in found["bids"]] == [
        (each["id"], each["price"]) for each in open_bids
    ]
    assert found["exposure"] == sum(each["price"] for each in open_bids) == 80_000
    ranks = {rung.get("order"): rung.get("rank") for rung in newest["rungs"]}
    assert [bid["rank"] for bid in found["bids"]] == [ranks[bid["id"]] for bid in found["bids"]] == [2, 3]
    assert (found["place"], found["low"], found["high"]) == (2, 20_000, 50_000)
    assert {each["key"]: each["realizedSats"] for each in gains}[task] == found["gain"] == 50_000 - 1_000 - 40_500
    assert found["said"] == {
        "rungs": {"kept": 2, "exposure": 1, "refused": 1},
        "gone": {"outbid": 1},
        "filled": 0,
        "marks": newest["marks"],
        "unreadRows": newest["unreadRows"],
    }


async def test_what_is_not_known_is_null_and_not_nought(service: Service) -> None:
    fresh, failed = await service.new_task(), await service.new_task(slug="dogs")
    Task.update(desired="running", observed="running").where(Task.id == failed).execute()
    open_order(service, failed)
    with base.transaction():
        add_sample(failed, Sample(Decimal(90_000)), START_MS - 60 * MINUTE_MS)
    cycle(failed, {"errors": ["the venue is away"]}, error="the venue is away")

    found = (await rows(service))["rows"]

    known = ("floor", "bestBid", "place", "gain", "low", "high", "said", "lastCycle")
    assert {found[0][name] for name in known} == {None}
    assert (found[0]["id"], found[0]["spark"], found[0]["bids"], found[0]["exposure"]) == (fresh, [], [], 0)
    assert (found[1]["floor"], found[1]["isFloorOld"]) == (90_000, True)
    assert (found[1]["place"], [bid["rank"] for bid in found[1]["bids"]]) == (None, [None])


async def test_a_spark_is_of_a_day_or_of_the_last_hours_of_a_young_task(service: Service) -> None:
    old, young = await service.new_task(), await service.new_task(slug="dogs")
    floors = {0: 300, 1: 100, 2: 250, SPARK_POINTS - 1: 200, SPARK_POINTS: 999}
    for task, minutes in ((old, LONG), (young, SHORT)):
        begin = START_MS // MINUTE_MS // minutes * minutes
        with base.transaction():
            for ago in range(SPARK_POINTS, -1, -1):
                floor = floors.get(ago)
                if floor:
                    add_sample(task, Sample(Decimal(floor)), (begin - ago * minutes) * MINUTE_MS)

    [of_old, of_young] = (await rows(service))["rows"]

    assert of_old["spark"] == of_young["spark"] == [50, *[None] * (SPARK_POINTS - 4), 74, 0, 99]
    assert (of_old["sparkMinutes"], of_young["sparkMinutes"]) == (LONG, SHORT)


async def test_first_counts_all_tasks_whichever_rows_are_asked_for(service: Service) -> None:
    ids = [await service.new_task(slug=f"cats-{number}") for number in range(5)]
    others = {2: {"dryRun": True}}
    for number, task in enumerate(ids):
        if number in others:
            await service.ask("PUT", f"/api/tasks/{task}", others[number])
        order = open_order(service, task, number + 1)
        Task.update(desired="running" if number != 3 else "stopped", observed="running").where(
            Task.id == task
        ).execute()
        cycle(task, detail((order, [1, 2, 1, 1, None][number])))

    all_rows, some = await rows(service), await rows(service, f"?ids={ids[1]},{ids[4]},999999")

    # Of one on paper, of one that is stopped, and of one that did not read the bids of others nothing is counted.
    assert all_rows["places"] == some["places"] == {"first": 1, "known": 2}
    assert [each["id"] for each in some["rows"]] == [ids[1], ids[4]]
    assert some["rows"] == [all_rows["rows"][1], all_rows["rows"][4]]


async def test_rows_of_others_stay_hidden_and_unchanged_ones_are_not_sent(service: Service) -> None:
    task = await service.new_task()
    theirs = await service.api("GET", f"/api/tasks/rows?ids={task}", token=service.other_token)
    assert theirs.json == {"rows": [], "places": {"first": 0, "known": 0}}

    first = await service.ask("GET", "/api/tasks/rows")
    tag = {"If-None-Match": first.headers["ETag"]}
    same = await service.api("GET", "/api/tasks/rows", token=service.token, headers=tag)
    cycle(task, detail())
    other = await service.api("GET", "/api/tasks/rows", token=service.token, headers=tag)
    assert (same.status, other.status) == (304, 200)


async def test_a_gain_follows_the_fills(service: Service) -> None:
    task = await service.new_task()
    order = bought(service.user_id, 40_000, task_id=task, inscription_id=ITEM)
    assert [(await rows(service))["rows"][0]["gain"] for _ in range(2)] == [None, None]
    sold(service.user_id, 50_000, minute=9, inscription_id=ITEM, venue_fee_sats=0)
    assert (await rows(service))["rows"][0]["gain"] == 10_000
    Order.update(network_fee_sats=700).where(Order.id == order.id).execute()
    assert (await rows(service))["rows"][0]["gain"] == 9_300


async def test_malformed_ids_are_refused(service: Service) -> None:
    for wrong in ("", "1,", "one", "-1", ",".join(map(str, range(201)))):
        answer = await service.ask("GET", f"/api/tasks/rows?ids={wrong}")
        assert (answer.status, answer.names()) == (400, {"ids"}), wrong
