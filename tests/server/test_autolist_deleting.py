"""Delete auto-list tasks: what becomes of the listing, and of what only the marketplace knows."""

from __future__ import annotations

import pytest

from markets.orders import OwnListing, OwnListings
from models.ledger.states import CANCELLED, CLOSED, GONE, LOST, REFUSED, REPLACED, SOLD, UNKNOWN, Listing
from models.tasks.tasks import Task
from tests.server.api import START_MS
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
from tests.server.conftest import OWNER, Service


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


async def test_a_delete_that_cannot_be_carried_out_is_taken_back(service: Service) -> None:
    task_id = await started(service)
    service.manager.refuse = ("internal", "failed; the log has the reason")

    answer = await call(service, "DELETE", task_id)

    assert answer.status == 503
    assert (await call(service, "GET", task_id)).json["isRunning"] is True
