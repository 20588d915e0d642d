"""Auto-list tasks over HTTP: created, shown and deleted."""

from __future__ import annotations

import json

import pytest

from markets.orders import OwnListing, OwnListings
from models.ledger.states import CANCELLED, CLOSED, GONE, LOST, REFUSED, REPLACED, SOLD, UNKNOWN, Listing
from models.tasks import cycles
from models.tasks.tasks import Task
from tests.server.autolist_tasks import (
    INSCRIPTION,
    OUTPOINT,
    VAULT,
    call,
    cancels_listings,
    lies_at,
    listed,
    new_task,
    row,
    started,
)
from tests.worlds.service import OWNER, START_MS, Service


async def test_a_price_over_time_comes_back_as_given(service: Service) -> None:
    steps = [{"afterHours": 0, "pricePercent": 1.3}, {"afterHours": 48, "priceSats": 115_000}]
    body = {"inscriptionId": INSCRIPTION, "priceSchedule": steps, "ignoreAddresses": ["BC1Q" + "Q" * 38]}
    made = await service.ask("POST", "/api/autolist", body)
    assert made.status == 201, made.text
    assert (
        '"priceSchedule": [{"afterHours": 0, "pricePercent": 1.3}, {"afterHours": 48, "priceSats": 115000}]'
        in made.text
    )
    assert made.json["config"]["ignoreAddresses"] == ["bc1q" + "q" * 38]
    path = f"/api/autolist/{made.json['id']}"
    below = await service.ask("PUT", path, {"priceSchedule": [{"afterHours": 0, "pricePercent": 0.9}]})
    text = "priceSchedule: has a pricePercent below 1, the reference price: set allowBelowReference to allow that"
    assert (below.status, below.json["details"]) == (400, [text])
    none = await service.ask("PUT", path, {"priceSchedule": [], "ignoreAddresses": []})
    assert (none.json["config"]["priceSchedule"], none.json["config"]["ignoreAddresses"]) == ([], [])


async def test_create_without_an_inscription_says_so(service: Service) -> None:
    for given in ({}, {"inscriptionId": None}, {"inscriptionId": ""}):
        answer = await service.ask("POST", "/api/autolist", {**given, "priceMode": "fixed", "x": 1})

        assert (answer.status, answer.json["error"]) == (400, "inscriptionId is required")
        assert answer.names() == {"inscriptionId", "priceSats", "x"}
        assert "inscriptionId: is required" in answer.json["details"]


async def test_an_inscription_has_one_task_of_its_user(service: Service) -> None:
    body = {"inscriptionId": INSCRIPTION}
    first = await service.ask("POST", "/api/autolist", body)

    second = await service.ask("POST", "/api/autolist", body)
    others = await service.api("POST", "/api/autolist", body, token=service.other_token)
    await service.ask("DELETE", f"/api/autolist/{first.json['id']}")
    again = await service.ask("POST", "/api/autolist", body)

    assert (second.status, second.json) == (409, {"error": "Task already exists for this inscription"})
    assert (others.status, again.status) == (201, 201)
    assert again.json["id"] > others.json["id"]


async def test_put_changes_only_what_is_given_and_checks_the_whole(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION, "minMargin": 0.1})
    path = f"/api/autolist/{task.json['id']}"

    fixed = await service.ask("PUT", path, {"priceMode": "fixed", "priceSats": 5000, "collectionId": "goosinals"})
    contradiction = await service.ask("PUT", path, {"minPriceSats": 5001})
    moved = await service.ask("PUT", path, {"inscriptionId": "d" * 64 + "i0"})
    same = await service.ask("PUT", path, {"inscriptionId": INSCRIPTION, "costSats": 4000})

    assert (fixed.status, fixed.json["collectionId"]) == (200, "goosinals")
    assert (contradiction.status, contradiction.names()) == (400, {"priceSats"})
    assert (moved.status, moved.names()) == (400, {"inscriptionId"})
    assert same.status == 200
    config = same.json["config"]
    assert (config["priceMode"], config["priceSats"], config["costSats"]) == ("fixed", 5000, 4000)
    assert '"minMargin": 0.1,' in same.text


@pytest.mark.parametrize("mode", ["percent", "undercut"])
@pytest.mark.parametrize("reference", ["floor", "traitFloor", "purchase", "lastSale"])
async def test_modes_and_references_come_back_as_given(service: Service, mode: str, reference: str) -> None:
    body = {"inscriptionId": INSCRIPTION, "priceMode": mode, "reference": reference}

    answer = await service.ask("POST", "/api/autolist", body)

    assert (answer.json["config"]["priceMode"], answer.json["config"]["reference"]) == (mode, reference)


async def test_a_multiple_below_one_has_to_be_meant(service: Service) -> None:
    body = {"inscriptionId": INSCRIPTION, "pricePercent": 0.9}
    refused = await service.ask("POST", "/api/autolist", body)
    meant = await service.ask("POST", "/api/autolist", body | {"allowBelowReference": True})
    path = f"/api/autolist/{meant.json['id']}"
    taken_back = await service.ask("PUT", path, {"allowBelowReference": False})
    raised = await service.ask("PUT", path, {"allowBelowReference": False, "pricePercent": 1})

    assert (refused.status, refused.names()) == (400, {"pricePercent"})
    assert "allowBelowReference" in refused.details[0]
    assert meant.status == 201
    assert (taken_back.status, taken_back.names()) == (400, {"pricePercent"})
    assert raised.status == 200


async def test_a_price_without_a_guard_is_warned_of_where_it_is_written(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})
    path = f"/api/autolist/{task.json['id']}"
    guarded = await service.ask("PUT", path, {"minPriceSats": 50_000})
    unguarded = await service.ask("PUT", path, {"minPriceSats": 0})
    read = await service.ask("GET", path)

    assert len(task.json["warnings"]) == len(unguarded.json["warnings"]) == 1
    assert "warnings" not in guarded.json and "warnings" not in read.json


async def test_create_and_put_need_nobody_but_the_database(service: Service) -> None:
    service.gateway.down = True
    await service.manager.stop()
    await service.signer.stop()
    body = {"inscriptionId": INSCRIPTION, "reference": "traitFloor", "traitType": "Hat", "traitValue": "Any"}
    task = await service.ask("POST", "/api/autolist", body)
    path = f"/api/autolist/{task.json['id']}"

    assert task.status == 201
    assert (await service.ask("PUT", path, {"pricePercent": 2})).status == 200
    assert (await service.ask("DELETE", path)).status == 200


async def test_delete_of_an_idle_task_removes_the_row(service: Service) -> None:
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})

    answer = await service.ask("DELETE", f"/api/autolist/{task.json['id']}")

    assert (answer.status, answer.json) == (200, {"success": True, "listingCancelled": False})
    assert Task.select().count() == 0
    assert service.manager.settled == []


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


async def test_delete_cancels_the_listing(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert (answer.status, answer.json) == (200, {"success": True, "listingCancelled": True})
    assert Task.select().count() == 0
    assert (await call(service, "GET", task_id)).status == 404


async def test_a_stopped_task_with_a_listing_is_deleted_through_the_manager_too(service: Service) -> None:
    task_id = await new_task(service)
    listed(service, task_id)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert answer.json["listingCancelled"] is True
    assert service.manager.settled == [task_id]


async def test_a_new_price_that_was_refused_does_not_hide_that_the_listing_is_cancelled(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)
    refused = listed(service, task_id, 120_000, state=CLOSED, number=2)
    Listing.update(close_reason=REFUSED, closed_ms=START_MS).where(Listing.id == refused.id).execute()
    cancels_listings(service)

    assert (await call(service, "DELETE", task_id)).json == {"success": True, "listingCancelled": True}


async def test_a_listing_that_the_market_does_not_cancel_hides_the_task_and_is_told(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)

    answer = await call(service, "DELETE", task_id)
    again = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})

    assert (answer.status, answer.json["success"], answer.json["listingCancelled"]) == (200, True, False)
    assert "tried again" in answer.json["message"]
    assert (await call(service, "GET", task_id)).status == 404
    assert (row(task_id).desired, row(task_id).deleted_ms) == ("stopped", START_MS)
    assert again.status == 201


async def test_a_listing_that_was_cancelled_before_is_not_cancelled_by_the_delete(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id, state=CLOSED)

    answer = await call(service, "DELETE", task_id)

    assert answer.json == {"success": True, "listingCancelled": False}


def shows(service: Service, price: int, owner: str = VAULT, inscription_id: str = INSCRIPTION) -> None:
    """The marketplace shows a listing of this address."""
    shown = OwnListing("x", inscription_id, None, price, owner)
    service.gateway.answers["own_listings"] = OwnListings((shown,), START_MS)


@pytest.mark.parametrize("is_running", [False, True])
async def test_what_only_the_marketplace_knows_is_cancelled_too(service: Service, is_running: bool) -> None:
    task_id = await (started if is_running else new_task)(service)
    lies_at(service, VAULT)
    shows(service, 77_000)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert answer.json == {"success": True, "listingCancelled": True}
    [row_of_it] = Listing.select()
    assert (row_of_it.price_sats, row_of_it.outpoint, row_of_it.wallet) == (77_000, OUTPOINT, VAULT)
    assert Task.select().count() == 0


@pytest.mark.parametrize("reason", [CANCELLED, LOST, REPLACED])
async def test_a_listing_that_the_ledger_closed_too_early_is_cancelled(service: Service, reason: str) -> None:
    task_id = await new_task(service)
    listed(service, task_id, state=CLOSED)
    Listing.update(close_reason=reason, closed_ms=START_MS).execute()
    shows(service, 90_000)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert answer.json == {"success": True, "listingCancelled": True}, "also when nobody says where it lies"
    assert [row_of_it.price_sats for row_of_it in Listing.select()] == [100_000, 90_000]


async def test_what_the_marketplace_shows_of_others_and_of_other_items_is_theirs(service: Service) -> None:
    for owner, inscription_id in ((OWNER, INSCRIPTION), (VAULT, "e" * 64 + "i0")):
        task_id = await new_task(service)
        lies_at(service, VAULT)
        shows(service, 77_000, owner, inscription_id)
        assert (await call(service, "DELETE", task_id)).json == {"success": True, "listingCancelled": False}
    assert Listing.select().count() == 0
    assert [each["args"]["wallet"] for each in service.gateway.asked if each["verb"] == "own_listings"] == [VAULT] * 2


async def test_what_may_still_be_listed_is_looked_for_until_that_is_known(service: Service) -> None:
    task_id = await new_task(service)
    listed(service, task_id, state=CLOSED)
    service.gateway.down = True

    answer = await call(service, "DELETE", task_id)

    assert (answer.json["listingCancelled"], "tried again" in answer.json["message"]) == (False, True)
    [doubted] = Listing.select().where(Listing.state == UNKNOWN)
    assert (doubted.price_sats, doubted.outpoint, doubted.listed_ms) == (100_000, OUTPOINT, None)
    assert row(task_id).deleted_ms == START_MS
    assert service.manager.settled == [task_id]


@pytest.mark.parametrize("key", [INSCRIPTION, ""])
async def test_listing_that_may_be_in_an_unread_row_is_looked_for_after_the_delete(service: Service, key: str) -> None:
    task_id = await new_task(service)
    listed(service, task_id, state=CLOSED)
    service.gateway.answers["own_listings"] = OwnListings((), START_MS, (key,))

    answer = await call(service, "DELETE", task_id)

    assert (answer.json["listingCancelled"], "tried again" in answer.json["message"]) == (False, True)
    assert [each.price_sats for each in Listing.select().where(Listing.state == UNKNOWN)] == [100_000]


async def test_unread_row_of_another_inscription_delays_no_delete(service: Service) -> None:
    task_id = await new_task(service)
    service.gateway.answers["own_listings"] = OwnListings((), START_MS, ("9" * 64 + "i0",))
    assert (await call(service, "DELETE", task_id)).json == {"success": True, "listingCancelled": False}


@pytest.mark.parametrize("reason", [SOLD, GONE])
async def test_of_an_output_that_is_spent_nothing_is_left(service: Service, reason: str) -> None:
    """A leftover on the market cannot be bought then."""
    for is_down in (True, False):
        task_id = await new_task(service)
        listed(service, task_id, state=CLOSED, number=1 + is_down)
        Listing.update(close_reason=reason, closed_ms=START_MS).execute()
        shows(service, 90_000)
        service.gateway.down = is_down

        answer = await call(service, "DELETE", task_id)

        assert (answer.json["success"], answer.json["listingCancelled"]) == (True, False)
        assert Task.select().count() == 0
        assert not Listing.select().where(Listing.state != CLOSED).exists()


async def test_whoever_cannot_be_asked_at_a_delete_is_named(service: Service) -> None:
    service.gateway.down = True
    unread = await call(service, "DELETE", await new_task(service))
    service.gateway.down, service.signer.state = False, "locked"
    locked = await call(service, "DELETE", await new_task(service))
    service.signer.state = "ready"
    shows(service, 77_000)
    untraced = await call(service, "DELETE", await new_task(service))

    for answer, words in (
        (unread, "could not be asked"),
        (locked, "could not be asked"),
        (untraced, "cancel it there"),
    ):
        assert (answer.json["success"], answer.json["listingCancelled"]) == (True, False)
        assert words in answer.json["message"]
    assert Task.select().count() == 0


async def test_a_listing_that_a_deleted_task_is_about_to_cancel_is_left_to_it(service: Service) -> None:
    first = await started(service)
    listed(service, first)
    await call(service, "DELETE", first)
    second = await new_task(service)
    lies_at(service, VAULT)
    shows(service, 100_000)

    assert (await call(service, "DELETE", second)).json == {"success": True, "listingCancelled": False}
    assert [each.id for each in Task.select()] == [first]
