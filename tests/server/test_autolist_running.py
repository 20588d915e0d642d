"""Auto-list tasks over HTTP: previewed, started, stopped and changed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from markets.base import AskBook, Item, NotFound, OutpointFacts, Sale, Sales, Unavailable, Whereabouts
from markets.orders import ListingDraft, OwnListing, OwnListings
from models import accounts
from models.ledger.states import Listing
from models.tasks import tasks
from models.tasks.tasks import Task
from strategy.book import Ask
from tests.server.autolist_tasks import INSCRIPTION, OUTPOINT, VAULT, call, lies_at, listed, new_task, row, started
from tests.server.driver import check
from tests.worlds.service import OWNER, START_MS, Answer, Service, with_settings


async def test_a_bidding_task_runs_and_stops_by_itself(service: Service) -> None:
    bidding_id = await service.new_task()
    task_id = await started(service)

    assert (await service.ask("GET", f"/api/tasks/{bidding_id}")).json["isRunning"] is False
    stop = await service.ask("POST", f"/api/tasks/{bidding_id}/stop")

    assert stop.status == 200
    assert (await call(service, "GET", task_id)).json["isRunning"] is True


async def test_an_inscription_in_its_escrow_is_as_good_as_in_the_vault(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.more_keys = {"escrows": {OWNER: "simulator-ordnet"}}
    lies_at(service, OWNER)
    assert (await call(service, "POST", task_id, "/start")).status == 200


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


async def test_what_left_the_vault_while_listed_is_its_workers_to_find_out(service: Service) -> None:
    task_id = await new_task(service)
    lies_at(service, "bc1qbuyer")
    assert (await call(service, "POST", task_id, "/start")).status == 409
    listed(service, task_id)
    assert (await call(service, "POST", task_id, "/start")).status == 200


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


async def test_an_inscription_that_is_nowhere_is_400(service: Service) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = NotFound()

    answer = await call(service, "POST", task_id, "/start")

    assert (answer.status, answer.names()) == (400, {"inscriptionId"})
    assert (await call(service, "GET", task_id)).json["lastError"] == answer.details[0]


@pytest.mark.parametrize("said", [Unavailable("away"), Whereabouts(INSCRIPTION, OUTPOINT, None, None, START_MS)])
async def test_who_cannot_say_where_it_is_says_nothing_against_a_start(service: Service, said: Any) -> None:
    task_id = await new_task(service)
    service.gateway.answers["whereabouts"] = said

    assert (await call(service, "POST", task_id, "/start")).status == 200


async def test_a_start_with_the_market_away_needs_manager_and_signer_only(service: Service) -> None:
    task_id = await new_task(service, collectionId=None)
    service.gateway.down = True

    assert (await call(service, "POST", task_id, "/start")).status == 200


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


async def test_a_locked_signer_an_ended_plan_and_a_manager_that_is_away(service: Service) -> None:
    task_id = await new_task(service)
    service.signer.state = "locked"
    locked = await call(service, "POST", task_id, "/start")
    service.signer.state = "ready"
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)
    over = await call(service, "POST", task_id, "/start")
    accounts.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    service.manager.refuse = ("not_entitled", "plan expired")
    refused = await call(service, "POST", task_id, "/start")
    service.manager.refuse = None
    await service.manager.stop()
    away = await call(service, "POST", task_id, "/start")

    assert (locked.status, locked.json["error"]) == (503, "The signer is locked")
    assert (over.status, refused.status) == (403, 403)
    assert (away.status, away.json["error"]) == (503, "The manager is away")
    assert (row(task_id).desired, row(task_id).last_error) == ("stopped", None)


async def test_the_checks_come_in_their_order(service: Service) -> None:
    """404, 400, 409, 403: each is only told where those before it have nothing to say."""
    task_id = await new_task(service, reference="purchase")
    lies_at(service, OWNER)
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)

    foreign = await service.api("POST", f"/api/autolist/{task_id}/start", token=service.other_token)
    open_config = await call(service, "POST", task_id, "/start")
    await call(service, "PUT", task_id, "", {"costSats": 10_000})
    elsewhere = await call(service, "POST", task_id, "/start")
    lies_at(service, VAULT)
    over = await call(service, "POST", task_id, "/start")

    assert [each.status for each in (foreign, open_config, elsewhere, over)] == [404, 400, 409, 403]


async def test_stop_leaves_the_listing_and_says_so(service: Service) -> None:
    task_id = await started(service)
    listed(service, task_id)

    answer = await call(service, "POST", task_id, "/stop")

    assert (answer.status, answer.json["isRunning"], answer.json["listingCancelled"]) == (200, False, False)
    assert "stays" in answer.json["message"]
    assert answer.json["listing"]["state"] == "live"


ELSEWHERE = "bc1pelsewhere"


def market(service: Service, *prices: int, drafted: str = "draft at {}") -> None:
    """The inscription lies in the vault, and others list at these prices."""
    asks = tuple(Ask(str(price), price, Decimal(1), Decimal(price), "bc1qother") for price in prices)
    service.gateway.answers |= {
        "whereabouts": Whereabouts(INSCRIPTION, OUTPOINT, VAULT, 546, START_MS),
        "outpoint": OutpointFacts(OUTPOINT, 546, "5120", True, True, (INSCRIPTION,), (), 9, 9, None),
        "asks": AskBook(asks, START_MS),
        "draft_listing": lambda ask: ListingDraft(drafted.format(ask["price"]), ()),
    }


async def preview(service: Service, **body: Any) -> Answer:
    answer: Answer = await service.ask("POST", "/api/autolist/preview", body)
    check("previewAutolistTask", answer)
    return answer


async def new(service: Service, **body: Any) -> dict[str, Any]:
    answer = await preview(service, inscriptionId=INSCRIPTION, collectionId="goosinals", **body)
    assert answer.status == 200, answer.text
    return dict(answer.json)


async def test_it_tells_the_price_its_basis_and_the_judged_draft(service: Service) -> None:
    market(service, 100_000, 120_000)
    found = await new(service, pricePercent=1.1, minPriceSats=20_000)

    assert (found["action"], found["price"], found["reason"]) == ("list", 110_000, "list")
    assert (found["note"], found["leastPrice"]) == ("at 110,000: 1.1 x floor 100,000", 20_000)
    assert (found["holding"], found["outpoint"], found["taskId"]) == ("held", OUTPOINT, None)
    assert found["market"] == {"asks": 2, "lowestAsk": 100_000, "lastSales": None, "median": None, "samples": 0}
    assert (found["draft"]["isSigned"], found["draft"]["verdict"]) == (True, "the signer would sign it")
    [form] = found["draft"]["forms"]
    assert (form["form"], form["payout"], form["words"][0]) == (
        "plain",
        110_000,
        "plain listing (SINGLE|ANYONECANPAY 0x83)",
    )
    [asked] = service.signer.judged
    assert (asked["venue"], asked["min_price_sats"], asked["listing"]["outpoint"]) == ("simulator", 20_000, OUTPOINT)
    assert found["errors"] == [] and Task.select().count() == Listing.select().count() == 0


async def test_a_draft_that_pays_too_little_is_told(service: Service) -> None:
    market(service, 100_000, drafted="draft at less than {}")
    found = await new(service)
    assert found["draft"]["verdict"] == "the signer would refuse it (payout: the seller is paid too little)"
    assert found["draft"]["isSigned"] is False
    assert found["draft"]["forms"][0]["findings"] == [
        {"rule": "payout", "holds": False, "why": "the seller is paid too little"}
    ]


async def test_of_a_task_its_config_and_its_listing_count(service: Service) -> None:
    market(service, 100_000)
    task_id = await new_task(service, minPriceSats=150_000)
    assert (await preview(service, taskId=task_id)).json["reason"] == "at_min"
    by_inscription = (await new(service))["taskId"]
    listed(service, task_id, price=150_000)
    kept = (await preview(service, taskId=task_id)).json
    raised = (await preview(service, taskId=task_id, pricePercent=2)).json

    assert by_inscription == task_id
    assert (kept["action"], kept["price"], kept["draft"]) == ("keep", 150_000, None)
    assert (raised["action"], raised["price"]) == ("reprice", 200_000)
    assert (await service.ask("GET", f"/api/autolist/{task_id}")).json["config"]["pricePercent"] == Decimal("1.05")


async def test_a_price_over_time_counts_from_the_first_listing(service: Service) -> None:
    steps = [{"afterHours": hours, "pricePercent": percent} for hours, percent in ((0, 1.3), (48, 1.15), (96, 1))]
    config = {"costSats": 80_000, "minMargin": 0.1, "priceSchedule": steps}
    market(service, 100_000)
    assert ((await new(service, **config))["price"], (await new(service))["price"]) == (130_000, 105_000)
    task_id = await new_task(service, **config)
    listed(service, task_id, price=130_000)
    for hours, floor, price, least in (
        (48, 100_000, 115_000, 88_000),
        (96, 100_000, 100_000, 88_000),
        (96, 85_000, 88_000, 88_000),
    ):
        market(service, floor)
        Listing.update(listed_ms=service.clock.now_ms - hours * 3_600_000, price_sats=price + 2_000).execute()
        found = (await preview(service, taskId=task_id)).json
        assert (found["price"], found["leastPrice"]) == (price, least), found


async def test_sellers_to_ignore_set_no_price(service: Service) -> None:
    market(service, 100_000)
    bait = "bc1q" + "z" * 38
    asks = (Ask("x", 80_000, Decimal(1), Decimal(80_000), bait), *service.gateway.answers["asks"].asks)
    service.gateway.answers["asks"] = AskBook(asks, START_MS)
    assert ((await new(service))["price"], (await new(service, ignoreAddresses=[bait]))["price"]) == (84_000, 105_000)


async def test_a_listing_that_a_worker_would_adopt_counts(service: Service) -> None:
    market(service, 100_000)
    service.gateway.answers["own_listings"] = OwnListings(
        (
            OwnListing("a", INSCRIPTION, "goosinals", 104_000, VAULT),
            OwnListing("b", "9" * 64 + "i0", "goosinals", 1_000, VAULT),
            OwnListing("c", INSCRIPTION, "goosinals", 1_000, ELSEWHERE),
        ),
        START_MS,
    )
    found = await new(service)
    assert (found["action"], found["price"], found["reason"]) == ("keep", 104_000, "unchanged")


async def test_what_cannot_be_read_is_told_and_nothing_is_drafted_in_doubt(service: Service) -> None:
    market(service, 100_000)
    service.gateway.answers["own_listings"] = Unavailable("the venue is away")
    unread = await new(service)
    service.gateway.answers["own_listings"] = OwnListings((), START_MS, (INSCRIPTION,))
    odd = await new(service)
    service.gateway.answers["own_listings"] = OwnListings((), START_MS)
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, OUTPOINT, ELSEWHERE, 546, START_MS)
    away = await new(service)
    market(service)
    service.gateway.answers["asks"] = Unavailable("the venue is away")
    blind = await new(service)
    market(service, 100_000)
    service.gateway.answers["draft_listing"] = Unavailable("no drafts today")
    undrafted = await new(service)

    for each in (unread, odd):
        assert (each["action"], each["draft"]) == ("keep", None) and "read our own listings" in each["errors"][0]
    assert (away["action"], away["holding"], away["draft"]) == ("ended", "spent", None)
    assert (blind["action"], blind["reason"]) == ("wait", "no_reference") and "read the asks" in blind["errors"][0]
    assert (undrafted["action"], undrafted["draft"]) == ("list", None) and "no drafts today" in undrafted["errors"][0]
    assert len(service.signer.judged) == 0


async def test_the_collection_is_asked_for_where_the_price_needs_it(service: Service) -> None:
    market(service, 100_000)
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, collection_id="goosinals")
    service.gateway.answers["sales"] = Sales(
        tuple(Sale(str(n), "goosinals", 50_000, Decimal(1), "b", None, "i", START_MS - 1) for n in range(4)),
        START_MS,
        0,
    )
    told = (await preview(service, inscriptionId=INSCRIPTION)).json
    by_sales = (await preview(service, inscriptionId=INSCRIPTION, reference="lastSale")).json
    service.gateway.answers["item"] = Unavailable("away")
    untold = (await preview(service, inscriptionId=INSCRIPTION)).json
    fixed = (await preview(service, inscriptionId=INSCRIPTION, priceMode="fixed", priceSats=60_000)).json

    assert (told["price"], by_sales["price"], by_sales["market"]["lastSales"]) == (105_000, 53_000, [50_000] * 4)
    assert untold["price"] is None and any("collection" in each for each in untold["errors"])
    assert (fixed["price"], fixed["errors"]) == (60_000, [])


@with_settings(unisat_url="http://127.0.0.1:9")
async def test_where_a_draft_is_an_order_none_is_asked_for(service: Service) -> None:
    market(service, 100_000)
    found = await new(service, venue="simulator-unisat")
    assert (found["action"], found["draft"]) == ("list", None)
    assert found["errors"] == [
        "no draft was asked for: each one stays at this marketplace as an order; a dry run asks for one a price"
    ]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, {"inscriptionId"}),
        ({"inscriptionId": "x"}, {"inscriptionId"}),
        ({"inscriptionId": INSCRIPTION, "priceMode": "fixed"}, {"priceSats"}),
        ({"inscriptionId": INSCRIPTION, "reference": "purchase"}, {"costSats"}),
        ({"inscriptionId": INSCRIPTION, "venue": "nowhere"}, {"venue"}),
        ({"inscriptionId": INSCRIPTION, "taskId": "1"}, {"taskId"}),
        ({"inscriptionId": INSCRIPTION, "taskId": True}, {"taskId"}),
    ],
)
async def test_a_body_with_faults_is_told_all_of_them(service: Service, body: dict[str, Any], named: set[str]) -> None:
    answer = await preview(service, **body)
    assert (answer.status, answer.names()) == (400, named)


async def test_others_tasks_are_not_there(service: Service) -> None:
    task_id = await new_task(service)
    answer = await service.api("POST", "/api/autolist/preview", {"taskId": task_id}, token=service.other_token)
    moved = await preview(service, taskId=task_id, inscriptionId="9" * 64 + "i0")
    assert (answer.status, moved.status, moved.names()) == (404, 400, {"inscriptionId"})


async def test_a_dry_run_is_stored_and_shown(service: Service) -> None:
    task_id = await new_task(service, dryRun=True)
    assert (await service.ask("GET", f"/api/autolist/{task_id}")).json["config"]["dryRun"] is True
    assert (await service.ask("PUT", f"/api/autolist/{task_id}", {"dryRun": False})).json["config"]["dryRun"] is False
    assert (await service.ask("PUT", f"/api/autolist/{task_id}", {"dryRun": 1})).status == 400
