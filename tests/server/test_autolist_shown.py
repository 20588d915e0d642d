"""An auto-list task as it is shown: its listing, the lowest price outstanding, its log and its cycles."""

from __future__ import annotations

import json

from models.ledger.states import Listing
from models.tasks import cycles
from models.tasks.tasks import Task
from tests.server.api import START_MS
from tests.server.autolist_tasks import OUTPOINT, call, listed, new_task
from tests.server.conftest import Service


async def test_a_task_shows_its_listing(service: Service) -> None:
    task_id = await new_task(service)
    assert (await call(service, "GET", task_id)).json["listing"] is None
    first = listed(service, task_id, 100_000, number=1)
    Listing.update(state="closed", close_reason="replaced").where(Listing.id == first.id).execute()
    second = listed(service, task_id, 110_000, number=2)

    shown = (await call(service, "GET", task_id)).json["listing"]
    Listing.update(state="closed", close_reason="sold", proceeds_sats=107_800).where(Listing.id == second.id).execute()
    sold = (await call(service, "GET", task_id)).json["listing"]

    assert shown == {
        "price": 110_000,
        "state": "live",
        "closeReason": None,
        "outpoint": OUTPOINT,
        "listedAt": "2025-11-20T11:59:00.000Z",
        "lowestOutstanding": 100_000,
        "lowestNote": None,
        "proceeds": None,
        "proceedsNote": None,
    }
    assert (sold["state"], sold["closeReason"], sold["proceeds"]) == ("closed", "sold", 107_800)
    assert sold["lowestOutstanding"] is None
    assert "payment address" in sold["proceedsNote"] and '{"from": "payment"}' in sold["proceedsNote"]
    assert (await service.ask("GET", "/api/autolist")).json[0]["listing"] == sold


async def test_the_lowest_price_outstanding_is_the_lower_of_ours_and_the_signers(service: Service) -> None:
    task_id = await new_task(service)
    row_of_it = listed(service, task_id, 100_000)

    async def lowest() -> list[object]:
        one = (await call(service, "GET", task_id)).json["listing"]
        [of_all] = (await service.ask("GET", "/api/autolist")).json
        assert of_all["listing"] == one
        return [one["lowestOutstanding"], one["lowestNote"]]

    assert await lowest() == [100_000, None]
    service.signer.lowest[OUTPOINT] = 120_000
    assert await lowest() == [100_000, None]
    service.signer.lowest[OUTPOINT] = 70_000
    assert await lowest() == [70_000, None]
    service.signer.state = "locked"
    assert await lowest() == [70_000, None], "that needs no keys"
    await service.signer.stop()
    price, note = await lowest()
    assert price == 100_000 and "signer cannot be asked" in str(note)
    Listing.update(state="closed", close_reason="gone").where(Listing.id == row_of_it.id).execute()
    assert await lowest() == [None, None], "its output is spent"


async def test_log_and_cycles_are_the_listings_own(service: Service) -> None:
    bidding_id = await service.new_task()
    task_id = await new_task(service)
    service.settings.log_dir.mkdir(parents=True, exist_ok=True)
    (service.settings.log_dir / f"task-{bidding_id}.log").write_text("of the bidding task\n")
    (service.settings.log_dir / f"task-{task_id}.log").write_text("one\ntwo\n")
    Task.update(token=1).where(Task.id == task_id).execute()
    detail = json.dumps({"errors": [], "decision": {"reason": "list"}})
    cycles.record_cycle(
        task_id,
        1,
        time_ms=START_MS,
        action="listed at 105,000",
        error=None,
        detail=detail,
        memory="{}",
    )

    log = await service.ask("GET", f"/api/autolist/{task_id}/log?lines=1")
    found = await service.ask("GET", f"/api/autolist/{task_id}/cycles")
    others = await service.ask("GET", f"/api/tasks/{bidding_id}/cycles")
    shown = await call(service, "GET", task_id)

    assert log.json == {"lines": ["two"]}
    assert [cycle["action"] for cycle in found.json] == ["listed at 105,000"]
    assert others.json == []
    assert shown.json["lastCycle"] == {"time": START_MS // 1000, "action": "listed at 105,000"}
