"""Start, stop, change and delete auto-list tasks: what is refused, what the manager is asked, what the caller hears."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from markets.base import Item, NotFound, Unavailable
from markets.listings import OwnListing, OwnListings
from markets.outpoint_facts import Whereabouts
from models import users
from models.ledger.listing_table import CANCELLED, CLOSED, GONE, LIVE, LOST, REFUSED, REPLACED, SOLD, UNKNOWN, Listing
from models.tasks import cycles, tasks
from models.tasks.table import Task
from tests.server.api import START_MS, Answer
from tests.server.conftest import OWNER, Service
from tests.server.driver import check
from tests.server.peers import keys_of

INSCRIPTION = "c" * 64 + "i0"
OUTPOINT = "d" * 64 + ":0"
VAULT = keys_of(OWNER)["vault"]


def row(task_id: int) -> Task:
    return Task.get_by_id(task_id)


async def new_task(service: Service, **fields: Any) -> int:
    body = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals", "minPriceSats": 10_000} | fields
    answer = await service.ask("POST", "/api/autolist", body)
    assert answer.status == 201, answer.text
    return int(answer.json["id"])


async def call(service: Service, method: str, task_id: int, more: str = "", body: Any = None) -> Answer:
    answer: Answer = await service.ask(method, f"/api/autolist/{task_id}{more}", body)
    names = {"POST/start": "startAutolistTask", "POST/stop": "stopAutolistTask", "DELETE": "deleteAutolistTask"}
    name = names.get(method + more) or {"GET": "getAutolistTask", "PUT": "changeAutolistTask"}[method]
    check(name, answer)
    return answer


async def started(service: Service, **fields: Any) -> int:
    task_id = await new_task(service, **fields)
    answer = await call(service, "POST", task_id, "/start")
    assert answer.status == 200, answer.text
    return task_id


def lies_at(service: Service, address: str | None) -> None:
    found = Whereabouts(INSCRIPTION, OUTPOINT, address, 546, START_MS)
    service.gateway.answers["whereabouts"] = found


def listed(service: Service, task_id: int, price: int = 100_000, state: str = LIVE, number: int = 1) -> Listing:
    """Returns the task's listing as its worker has it in the ledger; `state` closed has the reason cancelled."""
    return Listing.create(
        intent=f"{number:064x}",
        task_id=task_id,
        user_id=service.user_id,
        venue="simulator",
        wallet=VAULT,
        inscription_id=INSCRIPTION,
        slug="goosinals",
        outpoint=OUTPOINT,
        price_sats=price,
        token=row(task_id).token,
        revision=1,
        state=state,
        close_reason=CANCELLED if state == CLOSED else None,
        created_ms=START_MS,
        updated_ms=START_MS,
        signed_ms=START_MS - 60_000,
        listed_ms=START_MS - 60_000,
    )


def cancels_listings(service: Service) -> None:
    """Does the drain worker's part for deleted tasks."""

    def cancel() -> None:
        hidden = Task.select(Task.id).where(Task.deleted_ms.is_null(False))
        ended = {"state": CLOSED, "close_reason": CANCELLED, "closed_ms": START_MS + 1}
        Listing.update(ended).where(Listing.task_id.in_(hidden), Listing.state == LIVE).execute()

    service.manager.before_settling = cancel


@pytest.mark.gen_test
async def test_start_answers_the_running_task_once_the_manager_settled_it(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, VAULT)

    answer = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.json["id"], answer.json["isRunning"]) == (200, task_id, True)
    assert service.manager.settled == [task_id]
    assert (row(task_id).desired, row(task_id).observed) == ("running", "running")


@pytest.mark.gen_test
async def test_starting_twice_and_stopping_twice_does_nothing_twice(service: Service) -> None:
    task_id = await started(service)

    again = await call(service, "POST", task_id, "/start")
    stops = [await call(service, "POST", task_id, "/stop") for _ in range(2)]

    assert (again.status, again.json["isRunning"]) == (200, True)
    assert [(stop.status, stop.json["isRunning"]) for stop in stops] == [(200, False)] * 2
    assert service.manager.settled == [task_id] * 2


@pytest.mark.gen_test
async def test_parallel_starts_ask_the_manager_once(service: Service) -> None:
    task_id = await new_task(service)

    answers = await asyncio.gather(*(call(service, "POST", task_id, "/start") for _ in range(10)))

    assert {answer.status for answer in answers} == {200}
    assert service.manager.settled == [task_id]


@pytest.mark.gen_test
async def test_a_bidding_task_runs_and_stops_by_itself(service: Service) -> None:
    bidding_id = await service.new_task()
    task_id = await started(service)

    assert (await service.ask("GET", f"/api/tasks/{bidding_id}")).json["isRunning"] is False
    stop = await service.ask("POST", f"/api/tasks/{bidding_id}/stop")

    assert stop.status == 200
    assert (await call(service, "GET", task_id)).json["isRunning"] is True


@pytest.mark.gen_test
async def test_an_inscription_in_its_escrow_is_as_good_as_in_the_vault(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.more_keys = {"escrows": {"simulator-ordnet": OWNER}}
    lies_at(service, OWNER)
    assert (await call(service, "POST", task_id, "/start")).status == 200


@pytest.mark.gen_test
async def test_an_inscription_elsewhere_is_409_and_says_where_to_send_it(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, OWNER)

    answer = await call(service, "POST", task_id, "/start")
    shown = await call(service, "GET", task_id)
    lies_at(service, VAULT)
    arrived = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.json["error"]) == (409, "The inscription is not in the vault")
    assert OWNER in answer.json["message"] and VAULT in answer.json["message"]
    assert VAULT in shown.json["lastError"] and shown.json["isRunning"] is False
    assert (arrived.status, arrived.json["lastError"]) == (200, None)
    assert service.manager.settled == [task_id]


@pytest.mark.gen_test
async def test_what_left_the_vault_while_listed_is_its_workers_to_find_out(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, "bc1qbuyer")
    assert (await call(service, "POST", task_id, "/start")).status == 409
    listed(service, task_id)
    assert (await call(service, "POST", task_id, "/start")).status == 200


@pytest.mark.gen_test
async def test_a_user_has_no_more_tasks_than_a_wallet_shows_inscriptions(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_AUTOLIST_TASKS", 1)
    task_id = await new_task(service)
    body = {"inscriptionId": "e" * 64 + "i0"}
    answer = await service.ask("POST", "/api/autolist", body)
    assert (answer.status, answer.json["error"]) == (403, "Task limit reached")
    await call(service, "DELETE", task_id)
    assert (await service.ask("POST", "/api/autolist", body)).status == 201


@pytest.mark.gen_test
async def test_an_inscription_that_is_nowhere_is_400(service: Service) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = NotFound()

    answer = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.names()) == (400, {"inscriptionId"})
    assert (await call(service, "GET", task_id)).json["lastError"] == answer.details[0]


@pytest.mark.gen_test
@pytest.mark.parametrize("said", [Unavailable("away"), Whereabouts(INSCRIPTION, OUTPOINT, None, None, START_MS)])
async def test_who_cannot_say_where_it_is_says_nothing_against_a_start(service: Service, said: Any) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = said

    assert (await call(service, "POST", task_id, "/start")).status == 200


@pytest.mark.gen_test
async def test_a_start_with_the_market_away_needs_manager_and_signer_only(service: Service) -> None:
    task_id = await new_task(service, collectionId=None)
    service.gateway.down = True

    assert (await call(service, "POST", task_id, "/start")).status == 200


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"reference": "purchase"}, {"costSats"}),
        ({"reference": "traitFloor"}, {"traitType", "traitValue"}),
        ({"reference": "traitFloor", "traitType": "Hat"}, {"traitValue"}),
        ({"reference": "traitFloor", "traitType": "Hat", "traitValue": "Green"}, {"traitValue"}),
        ({"reference": "traitFloor", "traitType": "Shoes", "traitValue": "Red"}, {"traitType"}),
    ],
)
async def test_what_a_config_leaves_open_is_400_at_start_and_at_a_running_tasks_put(
    service: Service, fields: dict[str, Any], named: set[str]
) -> None:
    stopped = await new_task(service, **fields)
    running = await started(service, inscriptionId="e" * 64 + "i0")

    start = await call(service, "POST", stopped, "/start")
    put = await call(service, "PUT", running, "", fields)

    assert (start.status, start.names()) == (400, named)
    assert (put.status, put.names()) == (400, named)
    assert row(stopped).last_error == "; ".join(start.details)
    assert row(running).revision == 1


@pytest.mark.gen_test
async def test_the_collection_is_looked_up_where_the_price_hangs_on_it(service: Service) -> None:
    priced = await new_task(service, collectionId=None)
    fixed = await new_task(
        service, inscriptionId="e" * 64 + "i0", collectionId=None, priceMode="fixed", priceSats=50_000
    )
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    unknown = await call(service, "POST", priced, "/start")
    alone = await call(service, "POST", fixed, "/start")
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, collection_id="goosinals")
    found = await call(service, "POST", priced, "/start")
    green = {"reference": "traitFloor", "traitType": "Hat", "traitValue": "Green"}
    traited = await new_task(service, inscriptionId="b" * 64 + "i0", collectionId=None, **green)
    untold = await call(service, "POST", traited, "/start")
    other = await new_task(service, inscriptionId="f" * 64 + "i0", collectionId=None)
    service.gateway.answers["item"] = NotFound()
    nowhere = await call(service, "POST", other, "/start")
    await call(service, "PUT", other, "", {"reference": "lastSale"})
    by_sales = await call(service, "POST", other, "/start")

    assert (unknown.status, unknown.names()) == (400, {"collectionId"})
    assert (alone.status, alone.json["collectionId"]) == (200, None)
    assert (found.status, found.json["collectionId"]) == (200, "goosinals")
    assert (untold.status, untold.names()) == (400, {"traitValue"})
    assert (nowhere.status, nowhere.names()) == (by_sales.status, by_sales.names()) == (400, {"collectionId"})


@pytest.mark.gen_test
async def test_a_locked_signer_an_ended_plan_and_a_manager_that_is_away(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.state = "locked"
    locked = await call(service, "POST", task_id, "/start")
    service.signer.state = "ready"
    users.set_plan(service.user_id, "beta", START_MS, START_MS)
    over = await call(service, "POST", task_id, "/start")
    users.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    service.manager.refuse = ("not_entitled", "plan expired")
    refused = await call(service, "POST", task_id, "/start")
    service.manager.refuse = None
    await service.manager.stop()
    away = await call(service, "POST", task_id, "/start")

    assert (locked.status, locked.json["error"]) == (503, "The signer is locked")
    assert (over.status, refused.status) == (403, 403)
    assert (away.status, away.json["error"]) == (503, "The manager is away")
    assert (row(task_id).desired, row(task_id).last_error) == ("stopped", None)


@pytest.mark.gen_test
async def test_the_checks_come_in_their_order(service: Service) -> None:
    """404, 400, 409, 403: each is only told where those before it have nothing to say."""
    task_id = await new_task(service, reference="purchase")
    lies_at(service, OWNER)
    users.set_plan(service.user_id, "beta", START_MS, START_MS)

    foreign = await service.api("POST", f"/api/autolist/{task_id}/start", token=service.other_token)
    open_config = await call(service, "POST", task_id, "/start")
    await call(service, "PUT", task_id, "", {"costSats": 10_000})
    elsewhere = await call(service, "POST", task_id, "/start")
    lies_at(service, VAULT)
    over = await call(service, "POST", task_id, "/start")

    assert [each.status for each in (foreign, open_config, elsewhere, over)] == [404, 400, 409, 403]


@pytest.mark.gen_test
async def test_stop_leaves_the_listing_and_says_so(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)

    answer = await call(service, "POST", task_id, "/stop")

    assert (answer.status, answer.json["isRunning"], answer.json["listingCancelled"]) == (200, False, False)
    assert "stays" in answer.json["message"]
    assert answer.json["listing"]["state"] == "live"


@pytest.mark.gen_test
async def test_stop_without_a_manager_is_503_and_holds(service: Service) -> None:
    task_id = await started(service)
    await service.manager.stop()

    answer = await call(service, "POST", task_id, "/stop")

    assert (answer.status, answer.json["error"]) == (503, "The manager is away")
    assert "will be stopped" in answer.json["message"]
    assert row(task_id).desired == "stopped"


@pytest.mark.gen_test
async def test_put_on_a_running_task_restarts_it_with_the_new_config(service: Service) -> None:
    task_id = await started(service)

    answer = await call(service, "PUT", task_id, "", {"pricePercent": 1.2})
    same = await call(service, "PUT", task_id, "", {"pricePercent": 1.2})

    assert (answer.status, answer.json["isRunning"]) == (200, True)
    assert '"pricePercent": 1.2,' in answer.text
    assert same.status == 200
    assert service.manager.settled == [task_id] * 2
    assert row(task_id).revision == 2


@pytest.mark.gen_test
async def test_a_put_that_cannot_be_carried_out_is_taken_back(service: Service) -> None:
    task_id = await started(service)
    before = (await call(service, "GET", task_id)).json
    service.manager.refuse = ("signer_locked", "no passphrase yet")

    answer = await call(service, "PUT", task_id, "", {"pricePercent": 2, "collectionId": "others"})

    assert (answer.status, answer.json) == (503, {"error": "The signer is locked", "message": "no passphrase yet"})
    assert (await call(service, "GET", task_id)).json == before
    assert row(task_id).revision == 3


@pytest.mark.gen_test
async def test_delete_cancels_the_listing(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert (answer.status, answer.json) == (200, {"success": True, "listingCancelled": True})
    assert Task.select().count() == 0
    assert (await call(service, "GET", task_id)).status == 404


@pytest.mark.gen_test
async def test_a_stopped_task_with_a_listing_is_deleted_through_the_manager_too(service: Service) -> None:
    task_id = await new_task(service)
    listed(service, task_id)
    cancels_listings(service)

    answer = await call(service, "DELETE", task_id)

    assert answer.json["listingCancelled"] is True
    assert service.manager.settled == [task_id]


@pytest.mark.gen_test
async def test_a_new_price_that_was_refused_does_not_hide_that_the_listing_is_cancelled(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)
    refused = listed(service, task_id, 120_000, state=CLOSED, number=2)
    Listing.update(close_reason=REFUSED, closed_ms=START_MS).where(Listing.id == refused.id).execute()
    cancels_listings(service)

    assert (await call(service, "DELETE", task_id)).json == {"success": True, "listingCancelled": True}


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_a_listing_that_was_cancelled_before_is_not_cancelled_by_the_delete(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id, state=CLOSED)

    answer = await call(service, "DELETE", task_id)

    assert answer.json == {"success": True, "listingCancelled": False}


def shows(service: Service, price: int, owner: str = VAULT, inscription_id: str = INSCRIPTION) -> None:
    """The marketplace shows a listing of this address."""
    shown = OwnListing("x", inscription_id, None, price, owner)
    service.gateway.answers["own_listings"] = OwnListings((shown,), START_MS)


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_what_the_marketplace_shows_of_others_and_of_other_items_is_theirs(service: Service) -> None:
    for owner, inscription_id in ((OWNER, INSCRIPTION), (VAULT, "e" * 64 + "i0")):
        task_id = await new_task(service)
        lies_at(service, VAULT)
        shows(service, 77_000, owner, inscription_id)
        assert (await call(service, "DELETE", task_id)).json == {"success": True, "listingCancelled": False}
    assert Listing.select().count() == 0
    assert [each["args"]["wallet"] for each in service.gateway.asked if each["verb"] == "own_listings"] == [VAULT] * 2


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_a_listing_that_a_deleted_task_is_about_to_cancel_is_left_to_it(service: Service) -> None:
    first = await started(service)
    listed(service, first)
    await call(service, "DELETE", first)
    second = await new_task(service)
    lies_at(service, VAULT)
    shows(service, 100_000)

    assert (await call(service, "DELETE", second)).json == {"success": True, "listingCancelled": False}
    assert [each.id for each in Task.select()] == [first]


@pytest.mark.gen_test
async def test_a_delete_that_cannot_be_carried_out_is_taken_back(service: Service) -> None:
    task_id = await started(service)
    service.manager.refuse = ("internal", "failed; the log has the reason")

    answer = await call(service, "DELETE", task_id)

    assert answer.status == 503
    assert (await call(service, "GET", task_id)).json["isRunning"] is True


@pytest.mark.gen_test
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
    }
    assert (sold["state"], sold["closeReason"], sold["proceeds"]) == ("closed", "sold", 107_800)
    assert sold["lowestOutstanding"] is None
    assert (await service.ask("GET", "/api/autolist")).json[0]["listing"] == sold


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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
