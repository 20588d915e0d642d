"""Fills and orders over HTTP: the whole record, page by page, and nobody else's."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import Any
from urllib.parse import quote

from core.fields import iso
from tests.server.ledger_rows import INSCRIPTION, MINUTE_MS, bought, open_order, sold
from tests.worlds.service import START_MS, Service


async def pages(service: Service, path: str, name: str, most: int) -> list[list[Any]]:
    """Returns the ids of all pages, and checks that the last one says that it is."""
    found, following = [], None
    while True:
        query = f"limit={most}" + (f"&before={following}" if following else "")
        answer = await service.ask("GET", f"{path}{'&' if '?' in path else '?'}{query}")
        assert answer.status == 200, answer.text
        found.append([row["id"] for row in answer.json[name]])
        following = answer.json["next"]
        if following is None:
            return found


async def test_what_is_not_known_is_null_and_never_0(service: Service) -> None:
    bought(service.user_id, 2_500, slug="DOG", quantity="1000")
    sold(service.user_id, 105_000, minute=1, slug=None)

    sale, purchase = (await service.ask("GET", "/api/fills")).json["fills"]

    unknown = ("inscriptionId", "txid", "networkFee", "venueFee", "floorAtFill")
    assert [purchase[name] for name in unknown] == [None] * 5
    assert (purchase["type"], purchase["unitPrice"], purchase["quantity"]) == ("rune", Decimal("2.5"), 1000)
    assert [sale[name] for name in ("slug", "txid", "networkFee", "venueFee", "floorAtFill")] == [None] * 5
    assert (sale["type"], sale["taskKind"], sale["side"], sale["price"]) == ("ordinals", "autolist", "sell", 105_000)


async def test_pages_stay_as_they_are_while_fills_come_in(service: Service) -> None:
    for minute in (1, 2, 2, 3, 3, 3):
        bought(service.user_id, 1_000, minute=minute)
        sold(service.user_id, 2_000, minute=minute)
    whole = (await pages(service, "/api/fills", "fills", 100))[0]
    assert len(whole) == len(set(whole)) == 12
    for most in (1, 5, 6):
        assert list(chain(*await pages(service, "/api/fills", "fills", most))) == whole

    first = (await service.ask("GET", "/api/fills?limit=5")).json
    bought(service.user_id, 9_000, minute=4)  # newer
    sold(service.user_id, 9_000, minute=0)  # learnt of late
    second = (await service.ask("GET", f"/api/fills?limit=100&before={first['next']}")).json
    assert [row["id"] for row in first["fills"]] == whole[:5]
    assert [row["id"] for row in second["fills"]][:-1] == whole[5:]


async def test_fills_are_chosen_by_task_slug_side_and_time(service: Service) -> None:
    first = bought(service.user_id, 1_000, minute=1, task_id=5)
    second = bought(service.user_id, 1_000, minute=2, slug="DOG•GO")
    third = sold(service.user_id, 1_000, minute=3, task_id=5)

    async def chosen(query: str) -> list[str]:
        answer = await service.ask("GET", f"/api/fills?{query}")
        assert answer.status == 200, answer.text
        return [row["id"] for row in answer.json["fills"]]

    buys, sale = [f"buy-{first.id}", f"buy-{second.id}"], f"sell-{third.id}"
    assert await chosen("taskId=5") == [sale, buys[0]]
    assert await chosen(f"slug={quote('DOG•GO')}") == [buys[1]]
    capital = sold(service.user_id, 1_000, minute=2, slug="NodeMonkes")
    assert await chosen("slug=NodeMonkes") == [f"sell-{capital.id}"]
    capital.delete_instance()
    assert await chosen("side=sell") == [sale]
    assert await chosen("from=2025-11-20T12:02:00Z&to=2025-11-20T12:03:00Z") == [buys[1]]
    assert await chosen("from=2025-11-20T13:02:00%2B01:00") == [sale, buys[1]]
    assert await chosen("to=2025-11-20") == []
    assert await chosen("from=2025-11-20&taskId=99") == []


async def test_wrong_questions_are_refused_with_all_their_faults(service: Service) -> None:
    answer = await service.ask("GET", "/api/fills?taskId=0&side=both&from=yesterday&to=&limit=501&slug=")
    assert answer.status == 400
    assert answer.names() == {"taskId", "side", "from", "to", "limit", "slug"}
    for before in ("buy-99", "sell-1", "17", f"buy-{2**63}", "x"):
        assert (await service.ask("GET", f"/api/fills?before={before}")).names() == {"before"}
    assert (await service.ask("GET", "/api/orders?since=x&limit=0&before=-1")).names() == {"since", "limit", "before"}
    assert (await service.ask("GET", "/api/orders?limit=1&limit=2")).status == 400


async def test_anothers_trades_are_not_there(service: Service) -> None:
    task_id = await service.new_task()
    theirs = bought(service.user_id, 75_000, task_id=task_id, minute=1)
    sold(service.user_id, 105_000, minute=2)

    async def asked(path: str) -> Any:
        return await service.api("GET", path, token=service.other_token)

    assert (await asked("/api/fills")).json == {"fills": [], "next": None}
    assert (await asked(f"/api/fills?taskId={task_id}")).json == {"fills": [], "next": None}
    assert (await asked(f"/api/fills?before=buy-{theirs.id}")).status == 400
    assert (await asked("/api/orders")).json == {"orders": [], "next": None}
    assert (await asked(f"/api/tasks/{task_id}/orders")).status == 404


async def test_orders_are_paged_of_all_tasks_and_of_one(service: Service) -> None:
    one, other = await service.new_task(), await service.new_task(slug="dogs")
    mine = [open_order(service, task_id, number).id for number, task_id in enumerate((one, other, one, one), 1)]
    done = bought(service.user_id, 75_000, task_id=one, created_ms=START_MS + MINUTE_MS, inscription_id=INSCRIPTION)
    bought(service.user_id + 1, 1, task_id=one)

    assert await pages(service, "/api/orders", "orders", 2) == [[done.id, mine[3]], [mine[2], mine[1]], [mine[0]]]
    of_one = await pages(service, f"/api/tasks/{one}/orders", "orders", 3)
    assert of_one == [[done.id, mine[3], mine[2]], [mine[0]]]
    since = quote(iso(START_MS + MINUTE_MS))
    (row,) = (await service.ask("GET", f"/api/orders?since={since}")).json["orders"]
    assert row == {
        "id": done.id,
        "taskId": one,
        "venue": "simulator",
        "slug": "goosinals",
        "type": "ordinals",
        "trait": None,
        "price": 75_000,
        "quantity": 1,
        "state": "closed",
        "closeReason": "filled",
        "createdAt": "2025-11-20T12:01:00.000Z",
        "closedAt": "2025-11-20T12:00:00.000Z",
        "expiresAt": iso(done.expires_ms),
        "saleId": done.sale_id,
        "inscriptionId": INSCRIPTION,
        "dryRun": False,
    }


async def test_a_task_tells_its_fills_in_short(service: Service) -> None:
    task_id, unfilled = await service.new_task(), await service.new_task(slug="dogs")
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["fills"] == {
        "count": 0,
        "spentSats": 0,
        "last": None,
    }
    for minute, price in ((1, 75_000), (7, 60_000)):
        bought(service.user_id, price, task_id=task_id, minute=minute)
    bought(service.user_id, 5, task_id=task_id, minute=9, dry_run=True)
    expected = {"count": 2, "spentSats": 135_000, "last": "2025-11-20T12:07:00.000Z"}

    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json["fills"] == expected
    listed = {task["id"]: task["fills"] for task in (await service.ask("GET", "/api/tasks")).json}
    assert listed == {task_id: expected, unfilled: {"count": 0, "spentSats": 0, "last": None}}
    assert [row["dryRun"] for row in (await service.ask("GET", "/api/fills")).json["fills"]] == [True, False, False]


async def test_a_deleted_tasks_fills_and_orders_stay(service: Service) -> None:
    task_id = await service.new_task()
    order = bought(service.user_id, 75_000, task_id=task_id)
    assert (await service.ask("DELETE", f"/api/tasks/{task_id}")).status == 200

    assert [row["id"] for row in (await service.ask("GET", f"/api/fills?taskId={task_id}")).json["fills"]] == [
        f"buy-{order.id}"
    ]
    assert [row["id"] for row in (await service.ask("GET", "/api/orders")).json["orders"]] == [order.id]
    assert (await service.ask("GET", f"/api/tasks/{task_id}/orders")).status == 404
