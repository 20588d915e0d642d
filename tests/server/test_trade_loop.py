"""The trade loop through HTTP: where goods go, what becomes of a fill, and a cost that nobody types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.ledger import purchases
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import Task
from server.autolist_preview import UNPROVED
from strategy.config.bid import load_bid_config
from tests.server.api import Answer
from tests.server.autolist_tasks import INSCRIPTION, VAULT, lies_at
from tests.server.conftest import OWNER, Service, with_settings
from tests.server.driver import check
from tests.server.running_tasks import open_order, row, started
from tests.server.test_autolist_running import market, new
from tests.server.trades import bought, proved

RULE = {"autolist": {"minMargin": 0.1}, "start": True}
LISTING = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals"}
TO_VAULT = {"slug": "goosinals", "hardcapSats": 100_000, "deliverTo": "vault"}
PERCENTS = {"minMargin": 0.1, "pricePercent": 1.05}


async def created(service: Service, **body: Any) -> Answer:
    answer: Answer = await service.ask("POST", "/api/tasks", TO_VAULT | body)
    check("createTask", answer)
    return answer


async def test_the_rule_comes_back_with_every_field_and_can_be_sent_again(service: Service) -> None:
    answer = await created(service, onFill=RULE)
    rule = answer.json["config"]["onFill"]
    assert answer.status == 201 and (rule["start"], rule["maxOpen"]) == (True, 10)
    assert (rule["autolist"]["priceMode"], float(rule["autolist"]["minMargin"])) == ("percent", 0.1)
    assert "costSats" not in rule["autolist"]
    stored = row(answer.json["id"]).config
    again = await service.ask("PUT", f"/api/tasks/{answer.json['id']}", json.loads(answer.text)["config"])
    assert (again.status, row(answer.json["id"]).config) == (200, stored)
    gone = await service.ask("PUT", f"/api/tasks/{answer.json['id']}", {"onFill": None})
    assert gone.json["config"]["onFill"] is None


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"deliverTo": "me"}, "deliverTo: must be ordinalsAddress or vault"),
        (
            {"type": "rune", "slug": "DOG"},
            "deliverTo: must be ordinalsAddress for runes: they cannot be got out of the vault yet",
        ),
        (
            {"deliverTo": "ordinalsAddress", "onFill": RULE},
            'onFill: needs deliverTo "vault": only what is in the vault can be listed',
        ),
        ({"onFill": {"autolist": {}}}, "onFill: start is required"),
        ({"onFill": {"start": True}}, "onFill: autolist is required"),
        ({"onFill": RULE | {"maxOpen": 0}}, "onFill: maxOpen must be a whole number from 1 to 500"),
        ({"onFill": RULE | {"autolist": {"costSats": 1}}}, "onFill: autolist.costSats unknown field"),
        (
            {"onFill": RULE | {"autolist": {"pricePercent": 0.5}}},
            "onFill: autolist.pricePercent: is below 1, the reference price: set allowBelowReference if that is meant",
        ),
        (
            {"onFill": RULE | {"autolist": {"reference": "traitFloor", "traitType": "Hat"}}},
            "onFill: autolist.traitValue: is required when the reference is traitFloor",
        ),
    ],
)
async def test_bad_wishes_are_refused_in_words(service: Service, body: dict[str, Any], detail: str) -> None:
    answer = await created(service, **body)
    assert (answer.status, answer.json["details"]) == (400, [detail])


async def test_a_rule_that_needs_no_start_may_have_gaps(service: Service) -> None:
    rule = {"autolist": {"reference": "traitFloor"}, "start": False}
    assert (await created(service, onFill=rule)).status == 201


async def test_ord_net_delivers_to_the_vault_whatever_is_left_out(service: Service) -> None:
    body = {"slug": "goosinals", "hardcapSats": 100_000, "venue": "simulator-ordnet"}
    made = await service.ask("POST", "/api/tasks", body)
    assert made.json["config"]["deliverTo"] == "vault"
    said = await service.ask("POST", "/api/tasks", body | {"slug": "other", "deliverTo": "ordinalsAddress"})
    assert said.json["details"] == ["deliverTo: Practice market, ord.net's dialect delivers to the vault only"]
    assert (await service.ask("POST", "/api/tasks/preview", {"taskId": made.json["id"]})).status != 400
    elsewhere = await service.new_task(slug="cloned")
    moved = {"slug": "again", "venue": "simulator-ordnet"}
    clone = await service.ask("POST", f"/api/tasks/{elsewhere}/clone", moved)
    assert (clone.status, clone.json["config"]["deliverTo"]) == (201, "vault")


async def test_the_place_of_delivery_stays_while_orders_are_open(service: Service) -> None:
    task_id = await started(service)
    order = open_order(service, task_id)
    answer = await service.ask("PUT", f"/api/tasks/{task_id}", {"deliverTo": "vault"})
    assert answer.status == 409 and "open bids deliver to the former address" in answer.json["message"]
    check("changeTask", answer)
    assert not load_bid_config(row(task_id).config).to_vault
    assert (await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 3})).status == 200
    Order.update(state="closed", close_reason="cancelled").where(Order.id == order.id).execute()
    assert (await service.ask("PUT", f"/api/tasks/{task_id}", {"deliverTo": "vault"})).status == 200


async def test_the_wallet_says_which_task_delivers_where(service: Service) -> None:
    first, second = await service.new_task(slug="one"), (await created(service)).json["id"]
    answer = await service.ask("GET", "/api/wallet")
    check("getWallet", answer)
    assert answer.json["receives"] == [
        {"deliverTo": "ordinalsAddress", "address": OWNER, "tasks": [first]},
        {"deliverTo": "vault", "address": VAULT, "tasks": [second]},
    ]


async def test_a_cost_that_is_left_out_is_the_purchases_and_starts_by_it(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    bought(service.user_id, 90_000, inscription_id="d" * 64 + "i0")
    bought(service.user_id, 1_000, inscription_id=INSCRIPTION, dry_run=True)
    bought(service.user_id + 1, 1_000, inscription_id=INSCRIPTION)
    lies_at(service, VAULT)

    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})

    check("createAutolistTask", answer)
    assert (answer.status, answer.json["config"]["costSats"]) == (201, 75_600)
    assert (answer.json["costSource"], answer.json["sourceFillId"]) == ("fill", f"buy-{order.id}")
    assert "warnings" not in answer.json
    task = f"/api/autolist/{answer.json['id']}"
    assert (await service.ask("POST", f"{task}/start")).status == 200
    changed = await service.ask("PUT", task, {"costSats": 80_000})
    assert (changed.json["costSource"], changed.json["sourceFillId"]) == ("given", f"buy-{order.id}")
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "given"


async def test_a_claimed_purchase_gives_no_cost_and_says_so(service: Service) -> None:
    """The second way of a lie: an item lies in the vault, a sale names it as what a bid of 75,000 bought, and its owner
    lists it by hand.
    """
    order = bought(service.user_id, 75_000, inscription_id=INSCRIPTION, network_fee_sats=600)
    lies_at(service, VAULT)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})
    check("createAutolistTask", answer)
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, "claimed")
    assert answer.json["sourceFillId"] == f"buy-{order.id}"
    assert UNPROVED in answer.json["warnings"]

    task = f"/api/autolist/{answer.json['id']}"
    start = await service.ask("POST", f"{task}/start")
    missing = "costSats: is required when the reference is purchase and no purchase of it is proved"
    assert (start.status, start.json["details"]) == (400, [missing])
    preview = await service.ask("POST", "/api/autolist/preview", LISTING | {"reference": "purchase"})
    assert (preview.status, preview.json["details"]) == (400, [missing])

    typed = await service.ask("PUT", task, {"costSats": 80_000})
    assert (typed.json["costSource"], typed.json["config"]["costSats"]) == ("given", 80_000)
    assert (await service.ask("POST", f"{task}/start")).status == 200


async def test_a_cost_of_a_purchase_that_is_void_is_called_claimed(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    answer = await service.ask("POST", "/api/autolist", LISTING)
    proof = purchases.of_order(order.id)
    assert answer.json["costSource"] == "fill" and proof is not None
    purchases.void(proof, "a reorganisation", 1)
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "claimed"
    purchases.drop(order, "it is with another", 2)
    assert (await service.ask("GET", "/api/autolist")).json[0]["costSource"] == "claimed"


async def test_a_stopped_task_gets_the_cost_of_the_new_proof(service: Service) -> None:
    order = proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    await service.ask("POST", "/api/autolist", LISTING)
    proof = purchases.of_order(order.id)
    assert proof is not None
    purchases.void(proof, "a reorganisation", 1)
    proved(order, 80_000)
    (listing,) = (await service.ask("GET", "/api/autolist")).json
    assert (listing["costSource"], listing["config"]["costSats"]) == ("fill", 80_000)


@pytest.mark.parametrize("count", [0, 2])
async def test_a_cost_that_is_not_known_for_sure_is_not_made_up(service: Service, count: int) -> None:
    for price in (75_000, 80_000)[:count]:
        proved(bought(service.user_id, price, inscription_id=INSCRIPTION), price)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"reference": "purchase"})
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, None)
    start = await service.ask("POST", f"/api/autolist/{answer.json['id']}/start")
    assert start.json["details"] == [
        "costSats: is required when the reference is purchase and no purchase of it is proved"
    ]


async def test_a_cost_of_null_or_of_ones_own_stays(service: Service) -> None:
    proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_000)
    answer = await service.ask("POST", "/api/autolist", LISTING | {"costSats": None})
    assert (answer.json["config"]["costSats"], answer.json["costSource"]) == (None, None)
    assert (await service.ask("DELETE", f"/api/autolist/{answer.json['id']}")).status == 200
    own = await service.ask("POST", "/api/autolist", LISTING | {"costSats": 5})
    assert (own.json["config"]["costSats"], own.json["costSource"], own.json["sourceFillId"]) == (5, "given", None)


async def test_a_fill_tells_what_becomes_of_it(service: Service) -> None:
    bought(service.user_id, 75_000, autolist_state="waiting", autolist_reason="so")
    bought(service.user_id, 75_000, minute=1, autolist_state="listed", autolist_task=7)
    answer = await service.ask("GET", "/api/fills")
    check("listFills", answer)
    assert [fill["autolist"] for fill in answer.json["fills"]] == [
        {"state": "listed", "reason": None, "taskId": 7},
        {"state": "waiting", "reason": "so", "taskId": None},
    ]


@with_settings(simulator_seller_fee_ppm=20_000)
@pytest.mark.parametrize(("floor", "price", "reason"), [(100_000, 105_000, "list"), (60_000, 85_000, "at_min")])
async def test_the_worked_example_of_the_price(service: Service, floor: int, price: int, reason: str) -> None:
    """Bought for 75,000 + 600 at a fee of 2 %: 75,600 x 1.1 / 0.98 is 84,858, on the grid 85,000."""
    proved(bought(service.user_id, 75_000, inscription_id=INSCRIPTION), 75_600)
    market(service, floor)
    found = await new(service, **PERCENTS)
    assert (found["price"], found["reason"], found["leastPrice"]) == (price, reason, 85_000)


async def test_no_two_tasks_are_of_one_fill(service: Service) -> None:
    order = bought(service.user_id, 75_000, inscription_id=INSCRIPTION)
    await service.ask("POST", "/api/autolist", LISTING)
    with pytest.raises(tasks.TaskExists):
        tasks.create_autolist_task(
            service.user_id, inscription_id="d" * 64 + "i0", collection_id=None, config="{}", venue="simulator",
            now_ms=1, source_order=order.id,
        )  # fmt: skip
    assert Task.select().where(Task.kind == "listing").count() == 1
