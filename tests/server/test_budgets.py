"""Budgets and presets over HTTP."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from markets.base import OwnBid, OwnBids
from models import presets
from models.ledger import orders
from models.ledger.orders import ExposureLimits, LimitReached, NewOrder, SoldInto
from models.ledger.states import Order
from models.presets import Preset
from models.tasks.tasks import Task
from tests.server.driver import check
from tests.server.test_preview import preview, prices, with_floor
from tests.worlds.service import START_MS, Answer, Service

NO_LIMITS = {"maxOpenSats": 0, "maxFills": 0, "spendCapSats": 0, "spendCapPerDaySats": 0}
NO_USE = {"openBids": 0, "openSats": 0, "fills": 0, "spentSats": 0, "spentTodaySats": 0}


async def new_budget(service: Service, **limits: int) -> int:
    answer = await service.ask("POST", "/api/budgets", {"name": "both"} | limits)
    assert answer.status == 201, answer.text
    assert answer.headers["Location"] == f"/api/budgets/{answer.json['id']}"
    return int(answer.json["id"])


async def of(service: Service, budget_id: int) -> dict[str, Any]:
    return dict((await service.ask("GET", f"/api/budgets/{budget_id}")).json)


def bid(service: Service, task_id: int, price: int) -> Order:
    """Reserves a bid as the task's worker does."""
    Task.update(desired="running").where(Task.id == task_id).execute()
    new = NewOrder(
        intent=f"{task_id}-{price}", task_id=task_id, user_id=service.user_id, venue="simulator", wallet="bc1qpayment",
        slug="goosinals", price_sats=price, quantity="1", expires_ms=START_MS + 900_000, token=0,
    )  # fmt: skip
    order = orders.reserve(new, ExposureLimits(0, 10**9, 0), START_MS)
    Order.update(state="live", venue_id=f"bid-{price}").where(Order.id == order.id).execute()
    return Order.get_by_id(order.id)


async def test_a_budget_comes_back_as_given_and_is_changed_in_parts(service: Service) -> None:
    budget_id = await new_budget(service, maxOpenSats=150_000)
    plain = {"id": budget_id, "name": "both", "taskIds": [], "freeSats": 150_000, "freeFills": None}
    first = await of(service, budget_id)
    assert first == NO_LIMITS | NO_USE | plain | {"maxOpenSats": 150_000, "createdAt": first["createdAt"]}
    changed = await service.ask("PUT", f"/api/budgets/{budget_id}", {"name": " all ", "maxFills": 3, "maxOpenSats": 0})
    limits = {"name": "all", "maxFills": 3, "maxOpenSats": 0, "freeFills": 3, "freeSats": None}
    assert changed.json == first | limits
    assert (await service.ask("GET", "/api/budgets")).json == [changed.json]


async def test_anothers_budget_is_not_there(service: Service) -> None:
    theirs = (await service.api("POST", "/api/budgets", {"name": "theirs"}, token=service.other_token)).json["id"]
    task_id = await service.new_task()

    async def refused(answer: Answer) -> bool:
        return (answer.status, answer.json["details"]) == (400, ["budgetId: is no budget of yours"])

    for budget_id in (theirs, 999):
        config = {"slug": "cats", "hardcapSats": 5, "budgetId": budget_id}
        assert await refused(await service.ask("POST", "/api/tasks", config))
        assert await refused(await service.ask("PUT", f"/api/tasks/{task_id}", {"budgetId": budget_id}))
        assert await refused(await preview(service, **config))
        for method in ("GET", "DELETE"):
            assert (await service.ask(method, f"/api/budgets/{budget_id}")).status == 404
        assert (await service.ask("PUT", f"/api/budgets/{budget_id}", {"maxFills": 1})).status == 404
    assert (await service.ask("GET", "/api/budgets")).json == []


async def test_the_worked_example(service: Service) -> None:
    """Of 150,000, A holds 75,000 + 60,000: B's 45,000 would be 180,000, its 15,000 fits exactly."""
    budget_id = await new_budget(service, maxOpenSats=150_000)
    fixed = {"bidMode": "fixed", "bidFixedLow": 15_000, "bidFixedHigh": 45_000, "bidCount": 2, "budgetId": budget_id}
    first = await service.new_task(budgetId=budget_id)
    second = await service.new_task(slug="cats", **fixed)
    for price in (75_000, 60_000):
        bid(service, first, price)
    shown = await of(service, budget_id)
    assert (shown["taskIds"], shown["openBids"], shown["openSats"]) == ([first, second], 2, 135_000)
    assert shown["freeSats"] == 15_000

    with_floor(service, 100_000)
    for config in ({"taskId": second}, {"slug": "dogs"} | fixed):
        planned = await preview(service, **config)
        assert prices(planned) == [(45_000, "budget"), (15_000, "place")]
        limits = planned.json["limits"]["budget"]
        assert limits == {"id": budget_id, "name": "both", "sats": 15_000, "fills": None}
    with pytest.raises(LimitReached, match="budget: room for 15000"):
        bid(service, second, 45_000)
    bid(service, second, 15_000)
    assert (await of(service, budget_id))["freeSats"] == 0

    shown_bid = OwnBid("bid-15000", "goosinals", "ordinals", 15_000, Decimal(1), START_MS + 900_000, None)
    service.gateway.answers["own_bids"] = OwnBids((shown_bid,), START_MS)
    [live] = (await service.ask("GET", f"/api/tasks/{second}/bids")).json
    assert (live["price"], live["budgetId"]) == (15_000, budget_id)


async def test_the_worked_example_of_a_fill(service: Service) -> None:
    """After a fill of 75,000 of a spendCapSats of 100,000 all its tasks together may open 25,000 more."""
    budget_id = await new_budget(service, spendCapSats=100_000)
    first = await service.new_task(budgetId=budget_id)
    second = await service.new_task(slug="cats", budgetId=budget_id)
    assert orders.fill(bid(service, first, 75_000), START_MS, SoldInto("sale"))
    shown = await of(service, budget_id)
    assert (shown["fills"], shown["spentSats"], shown["spentTodaySats"]) == (1, 75_000, 75_000)
    assert shown["freeSats"] == 25_000
    with pytest.raises(LimitReached, match="budget: room for 25000"):
        bid(service, second, 25_001)
    bid(service, second, 20_000)
    with pytest.raises(LimitReached, match="budget: room for 5000"):
        bid(service, first, 5_001)
    bid(service, first, 5_000)


async def test_a_put_takes_the_tasks_open_bids_along_and_delete_waits_for_the_last_task(service: Service) -> None:
    budget_id, other = await new_budget(service, maxOpenSats=150_000), await new_budget(service)
    task_id = await service.new_task(budgetId=budget_id)
    bid(service, task_id, 60_000)
    Task.update(desired="stopped").where(Task.id == task_id).execute()
    used = await service.ask("DELETE", f"/api/budgets/{budget_id}")
    assert (used.status, used.json["error"]) == (409, "Tasks share this budget")
    assert str(task_id) in used.json["message"]

    moved = await service.ask("PUT", f"/api/tasks/{task_id}", {"budgetId": other})
    assert (moved.status, moved.json["config"]["budgetId"]) == (200, other)
    assert [(await of(service, each))["openSats"] for each in (budget_id, other)] == [0, 60_000]
    assert (await service.ask("DELETE", f"/api/budgets/{budget_id}")).json == {"success": True}
    gone = await service.ask("PUT", f"/api/tasks/{task_id}", {"budgetId": None})
    assert gone.json["config"]["budgetId"] is None
    assert (await of(service, other))["openSats"] == 0


async def test_a_limit_below_what_stands_is_taken_and_leaves_no_room(service: Service) -> None:
    budget_id = await new_budget(service, maxOpenSats=150_000)
    task_id = await service.new_task(budgetId=budget_id)
    order = bid(service, task_id, 60_000)
    lowered = await service.ask("PUT", f"/api/budgets/{budget_id}", {"maxOpenSats": 50_000})
    assert (lowered.status, lowered.json["openSats"], lowered.json["freeSats"]) == (200, 60_000, 0)
    assert Order.get_by_id(order.id).state == "live"


async def test_a_token_for_one_task_moves_it_to_no_other_budget(service: Service) -> None:
    budget_id = await new_budget(service, maxOpenSats=5)
    task_id = await service.new_task(budgetId=budget_id)
    body = {"name": "bot", "scopes": ["trade"], "taskId": task_id}
    token = (await service.ask("POST", "/api/tokens", body)).json["token"]
    moved = await service.api("PUT", f"/api/tasks/{task_id}", {"budgetId": None}, token=token)
    assert (moved.status, moved.json["error"]) == (403, "Not allowed to this token")
    kept = await service.api("PUT", f"/api/tasks/{task_id}", {"bidCount": 2, "budgetId": budget_id}, token=token)
    assert kept.status == 200


CAREFUL = {"hardcapSats": 90_000, "bidPercentHigh": 0.7, "bidLevels": [{"at": 0.5, "count": 2}], "tags": ["a"]}


def exactly(answer: Any) -> Any:
    """The answer's values as any program reads them; the test's own client makes Decimals of fractions."""
    return json.loads(answer.text)


async def made(service: Service, name: str = "careful", config: dict[str, Any] | None = None) -> int:
    answer = await service.ask("POST", "/api/presets", {"name": name, "config": config or CAREFUL})
    assert answer.status == 201, answer.text
    check("createPreset", answer)
    return int(answer.json["id"])


async def test_a_preset_keeps_what_was_given_and_makes_a_task(service: Service) -> None:
    preset = await made(service)
    (shown,) = exactly(await service.ask("GET", "/api/presets"))
    assert (shown["id"], shown["name"], shown["config"]) == (preset, "careful", CAREFUL)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", **shown["config"]})
    assert (task.status, task.json["config"]["bidCount"], task.json["tags"]) == (201, 2, ["a"])


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({}, "hardcapSats: is required"),
        ({"hardcapSats": 1, "bidCount": 0}, "bidCount:"),
        ({"hardcapSats": 1, "colour": "red"}, "colour: unknown field"),
        ({"hardcapSats": 1, "slug": "a/b"}, "slug:"),
        ({"hardcapSats": 1, "bidType": "trait"}, "traitType:"),
        ({"hardcapSats": 1, "venue": "nowhere"}, "venue:"),
        ({"hardcapSats": 1, "type": "rune", "bidType": "trait", "traitType": "a", "traitValue": "b"}, "bidType:"),
        ({"hardcapSats": 1, "budgetId": 999}, "budgetId:"),
        ({"hardcapSats": 1.5}, "hardcapSats: must be a whole number"),
    ],
)
async def test_a_config_is_judged_as_a_tasks_is(service: Service, config: dict[str, Any], fault: str) -> None:
    preset = await made(service)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", **config})
    file = {"version": 1, "presets": [{"name": "new", "config": config}]}
    answers = [
        await service.ask("POST", "/api/presets", {"name": "new", "config": config}),
        await service.ask("PUT", f"/api/presets/{preset}", {"config": config}),
        await service.ask("POST", "/api/presets/import", file),
    ]
    assert task.status == 400
    for answer in answers:
        assert answer.status == 400
        assert any(fault in detail for detail in answer.json["details"]), answer.text
    assert [each.name for each in presets.of_user(service.user_id)] == ["careful"]


async def test_a_rune_needs_no_slug_either(service: Service) -> None:
    await made(service, "runes", {"type": "rune", "hardcapSats": 1})


async def test_a_name_is_there_once(service: Service) -> None:
    first, second = await made(service), await made(service, "bold")
    again = await service.ask("POST", "/api/presets", {"name": " careful ", "config": CAREFUL})
    moved = await service.ask("PUT", f"/api/presets/{second}", {"name": "careful"})
    assert (again.status, moved.status) == (409, 409)
    renamed = await service.ask("PUT", f"/api/presets/{first}", {"name": "calm"})
    assert (renamed.json["name"], exactly(renamed)["config"]) == ("calm", CAREFUL)


async def test_a_file_goes_to_another_user_whole_or_not_at_all(service: Service) -> None:
    await made(service)
    await made(service, "bold", {"hardcapSats": 5})
    file = exactly(await service.ask("GET", "/api/presets/export"))
    spoilt = file | {"presets": [*file["presets"], {"name": "bad", "config": {"bidCount": 0}}]}

    refused = await service.api("POST", "/api/presets/import", spoilt, token=service.other_token)
    assert (refused.status, refused.json["details"][0].split(" ")[:2]) == (400, ["presets:", "2.config"])
    assert (await service.api("GET", "/api/presets", token=service.other_token)).json == []

    stored = await service.api("POST", "/api/presets/import", file, token=service.other_token)
    check("importPresets", stored)
    assert exactly(await service.api("GET", "/api/presets/export", token=service.other_token)) == file
    assert Preset.select().count() == 4


async def test_a_file_replaces_only_when_told_to(service: Service) -> None:
    preset = await made(service)
    named = [{"name": "careful", "config": {"hardcapSats": 7}}, {"name": "b", "config": CAREFUL}]
    file = {"version": 1, "presets": named}
    assert (await service.ask("POST", "/api/presets/import", file)).status == 409
    assert Preset.select().count() == 1
    assert (await service.ask("POST", "/api/presets/import", file | {"replace": True})).status == 200
    assert (await service.ask("GET", f"/api/presets/{preset}")).json["config"] == {"hardcapSats": 7}


async def test_there_is_an_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "MOST_PRESETS", 1)
    await made(service)
    assert (await service.ask("POST", "/api/presets", {"name": "two", "config": CAREFUL})).status == 403
    one = {"version": 1, "replace": True, "presets": [{"name": "careful", "config": {"hardcapSats": 7}}]}
    assert (await service.ask("POST", "/api/presets/import", one)).status == 200
