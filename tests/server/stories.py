"""Stories of tasks, budgets, presets and controls that reach each described status."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.layout import journal_path
from core.subscription_plans import DEFAULT_PLANS
from markets import base
from markets.base import OutpointFacts, Whereabouts
from markets.orders import ListingDraft
from models import accounts, budgets, presets, users
from models.budgets import MAX_BUDGETS
from models.tasks import cycles, tasks
from models.tasks.tasks import Task
from server.http import services as starter
from server.http.blocking import Seats, Turns
from strategy.book import Ask
from strategy.journal import Encoder
from tests.replay.recorded import carried_out, entry
from tests.server.autolist_tasks import listed
from tests.server.driver import Driver
from tests.server.ledger_rows import INSCRIPTION, bought, open_order
from tests.shapes import replace
from tests.worlds.service import OWNER, START_MS, Service, keys_of


async def spent(service: Service, asked: Awaitable[Any]) -> None:
    """Asks while the user's look-ups are used up."""
    service.gateway.spent = True
    assert (await asked).headers["Retry-After"] == "4"
    service.gateway.spent = False


class Full(Seats):
    """Places at the marketplaces that are all taken."""

    async def ask(self, user: int, purpose: Any, question: Any) -> Any:
        raise base.TooManyLookups(2.0, "all taken")


class Spent:
    """A limit of calls that is used up."""

    def take(self, key: str) -> int:
        return 7


async def bidding(service: Service, drive: Driver) -> None:
    wrong, right = {"slug": "a b", "bidCount": 0, "x": 1}, {"slug": "goosinals", "hardcapSats": 100_000}
    await drive("createTask", wrong)
    one = {"id": (await drive("createTask", right)).json["id"]}
    other = {"id": (await drive("createTask", right | {"slug": "dogs", "type": "ordinals"})).json["id"]}
    await drive("createTask", right)
    await drive("changeTask", wrong, path=one)
    await drive("changeTask", {"slug": "dogs"}, path=one)
    await drive("changeTask", {"bidPercentLow": 0.2, "feeRate": 12.5, "loopSeconds": 60}, path=one)
    await drive("getTask", path=one)
    await drive("startTask", path=one)
    await drive("listTasks")
    await drive("listTasks", query={"tag": ""})
    await drive("stopTask", path=one)
    service.manager.refuse = ("too_many_workers", "1000 tasks run")
    await drive("startTask", path=one)
    service.manager.refuse = None
    await drive("startTask", path=one)
    service.manager.refuse = ("too_many_workers", "1000 tasks run")
    await drive("changeTask", {"bidCount": 2}, path=one)
    service.manager.refuse = ("not_entitled", "plan expired")
    await drive("changeTask", {"bidCount": 2}, path=one)
    service.manager.refuse = ("signer_locked", "")
    await drive("changeTask", {"bidCount": 2}, path=one)
    await drive("deleteTask", path=one)
    await drive("stopTask", path=one)
    await drive("startTask", path=one)
    service.manager.refuse = None
    await drive("stopTask", path=one)
    await drive("changeTask", {"quantity": 2}, path=one)
    await drive("startTask", path=one)
    await drive("changeTask", {"quantity": 1}, path=one)
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)
    await drive("startTask", path=one)
    accounts.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    await what_it_would_do(service, drive, one)
    await what_it_did(service, drive, one)
    await drive("stopTask", path=one)
    await many_at_once(drive, one)
    await drive("deleteTask", path=other)
    services = service.app.settings["services"]
    none = replace(DEFAULT_PLANS["beta"], max_tasks=0)
    settings = replace(services.settings, plans={"beta": none})
    service.app.settings["services"] = replace(services, settings=settings)
    await drive("createTask", right | {"slug": "birds"})
    await drive("cloneTask", {"slug": "birds"}, path=one)
    service.app.settings["services"] = services


async def what_it_would_do(service: Service, drive: Driver, one: dict[str, int]) -> None:
    task = {"taskId": one["id"]}
    asks = (Ask("x", 100_000, Decimal(1), Decimal(100_000), "seller"),)
    service.gateway.answers["asks"] = base.AskBook(asks, START_MS)
    planned = (await drive("previewTask", task | {"outbidEnabled": True})).json
    assert planned["taskId"] == one["id"] and planned["rungs"] and planned["market"]["asks"] == 1
    await without_a_session(service, drive, one)
    trait = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
    await drive("previewTask", {"slug": "empty", "hardcapSats": 5} | trait)
    await drive("previewTask", {"slug": "a b"})
    await drive("previewTask", {"taskId": 999})
    await spent(service, drive("previewTask", task))
    service.gateway.down = True
    await drive("previewTask", task)
    service.gateway.down = False
    service.signer.state = "locked"
    await drive("previewTask", task)
    service.signer.state = "ready"


async def the_budgets(service: Service, drive: Driver) -> None:
    await drive("createBudget", {"name": ""})
    made = (await drive("createBudget", {"name": "both", "maxOpenSats": 150_000})).json
    one = {"id": made["id"]}
    await drive("createTask", {"slug": "shared", "hardcapSats": 5, "budgetId": made["id"]})
    assert [budget["name"] for budget in (await drive("listBudgets")).json] == ["both"]
    await drive("getBudget", path=one)
    await drive("changeBudget", {}, path=one)
    await drive("changeBudget", {"spendCapSats": 100_000}, path=one)
    await drive("deleteBudget", path=one)
    other = (await drive("createBudget", {"name": "other"})).json
    await drive("deleteBudget", path={"id": other["id"]})
    for number in range(MAX_BUDGETS - 1):
        budgets.create(service.user_id, START_MS, name=str(number))
    await drive("createBudget", {"name": "one more"})


async def the_control(service: Service, drive: Driver) -> None:
    task_id = (await drive("createTask", {"slug": "held", "hardcapSats": 5})).json["id"]
    await drive("setControl", {"scope": "task", "taskId": task_id, "state": "reduce"})
    await drive("setControl", {"scope": "user", "state": "halt"})
    await drive("setControl", {"scope": "global", "state": "run"})
    await drive("setControl", {"scope": "task", "taskId": 999, "state": "run"})
    listed = (await drive("createAutolistTask", {"inscriptionId": "c" * 64 + "i9"})).json["id"]
    await drive("setControl", {"scope": "autolist", "taskId": listed, "state": "reduce"})
    await drive("setControl", {"scope": "all"})
    service.signer.before_control = lambda state: users.put_control("user", service.user_id, "reduce", None, START_MS)
    await drive("setControl", {"scope": "user", "state": "run"})
    assert (await drive("getControl")).json["effective"] == {"state": "reduce", "scope": "user"}
    services = service.app.settings["services"]
    service.app.settings["services"] = replace(services, loosened=Spent())
    await drive("setControl", {"scope": "user", "state": "run"})
    service.app.settings["services"] = services
    await service.signer.stop()
    await drive("setControl", {"scope": "user", "state": "run"})
    await drive("setControl", {"scope": "user", "state": "halt"})
    await drive("getControl")
    await service.signer.start()


async def what_it_did(service: Service, drive: Driver, one: dict[str, int]) -> None:
    order = open_order(service, one["id"])
    bid = base.OwnBid("mine", "goosinals", "ordinals", 10_000, None, order.expires_ms, ("Hat", "Red"))
    service.gateway.answers["own_bids"] = base.OwnBids((bid,), 1)
    assert len((await drive("listBids", path=one)).json) == 1
    service.gateway.answers["bids"] = base.NotFound()
    await drive("listBids", path=one)
    service.gateway.answers["bids"] = base.BidBook((), 1)
    await spent(service, drive("listBids", path=one))
    service.gateway.down = True
    await drive("listBids", path=one)
    service.gateway.down = False
    type(order).update(state="closed").execute()
    service.signer.state = "locked"
    await drive("listBids", path=one)
    service.signer.state = "ready"
    path = service.settings.log_dir / f"task-{one['id']}.log"
    path.mkdir(parents=True)
    await drive("readLog", path=one)
    path.rmdir()
    path.write_text("one\ntwo\n")
    assert (await drive("readLog", path=one, query={"lines": 1})).json == {"lines": ["two"]}
    await drive("readLog", path=one, query={"lines": 0})
    detail = json.dumps({"errors": ["venue away"]})
    Task.update(token=1).where(Task.id == one["id"]).execute()
    kept = {"time_ms": START_MS, "action": "nothing done", "error": "venue away", "detail": detail, "memory": "{}"}
    cycles.record_cycle(one["id"], 1, **kept)
    assert len((await drive("listCycles", path=one, query={"limit": 5})).json) == 1
    await drive("listCycles", path=one, query={"limit": "x"})
    await drive("listTasks")
    await drive("listTasks", query={"tag": ""})
    bought(service.user_id, 10_000, task_id=one["id"])
    assert len((await drive("listTaskOrders", path=one)).json["orders"]) == 2
    await drive("listTaskOrders", path=one, query={"before": "x"})
    await drive("readTaskMoment", path=one, query={"time": "2025-01-01"})
    await drive("readTaskMoment", path=one)
    with pytest.MonkeyPatch.context() as crowded:
        crowded.setattr(service.app.settings["services"].long_reads, "_turns", Turns(0, 1, waiting=0))
        crowded.setattr(service.app.settings["services"].long_answers, "_waiting", 0)
        crowded.setattr(service.app.settings["services"].long_answers, "_each", 0)
        for name in ("listCycles", "listTaskOrders", "readTaskSeries"):
            await drive(name, path=one)
        await drive("readTaskMoment", path=one, query={"time": "2025-01-01"})
    await what_it_would_have_done(service, drive, one)
    await drive("readTaskSeries", path=one)
    await drive("readTaskSeries", path=one, query={"step": "x"})


async def what_it_would_have_done(service: Service, drive: Driver, one: dict[str, int]) -> None:
    await drive("replayTask", {}, path=one)
    recorded(service.settings.data_dir, one["id"])
    assert (await drive("replayTask", {"bidCount": 2}, path=one)).json["cycles"] == 3
    await drive("replayTask", {"bidCount": 0}, path=one)
    with pytest.MonkeyPatch.context() as hurried:
        hurried.setattr(starter, "WALL_S", 0.0)
        await drive("replayTask", {}, path=one)
        hurried.setattr(service.app.settings["services"].replays, "_turns", Turns(0, 1, patience_s=0.01))
        await drive("replayTask", {}, path=one)


def recorded(data_dir: Path, task_id: int) -> None:
    """Writes a short journal of a task on goosinals."""
    cycles, encoder = carried_out(entry(number, 100_000) for number in range(3)), Encoder()
    journal = journal_path(data_dir, task_id)
    journal.parent.mkdir(exist_ok=True)
    lines = [encoder.line(replace(each, config=replace(each.config, slug="goosinals"))) for each in cycles]
    journal.write_text("".join(f"{line}\n" for line in lines))


async def many_at_once(drive: Driver, one: dict[str, int]) -> None:
    assert (await drive("actOnTasks", {"action": "change", "ids": [one["id"]], "change": {}})).json["results"]
    await drive("actOnTasks", {"action": "burn"})
    await drive("cloneTask", {"slug": "copy"}, path=one)
    await drive("cloneTask", {"slug": "copy"}, path=one)
    await drive("cloneTask", {"slug": "copy", "bidCount": 0}, path=one)


async def named_configs(service: Service, drive: Driver) -> None:
    new = {"name": "careful", "config": {"hardcapSats": 5}}
    one = {"id": (await drive("createPreset", new)).json["id"]}
    await drive("createPreset", new)
    await drive("createPreset", {"name": ""})
    with pytest.MonkeyPatch.context() as few:
        few.setattr(presets, "MOST_PRESETS", 1)
        await drive("createPreset", new | {"name": "other"})
        await drive("importPresets", {"version": 1, "presets": [new | {"name": "other"}]})
    await drive("listPresets")
    await drive("getPreset", path=one)
    await drive("createPreset", new | {"name": "other"})
    await drive("changePreset", {"name": "calm"}, path=one)
    await drive("changePreset", {"name": "other"}, path=one)
    await drive("changePreset", {"name": 5}, path=one)
    file = (await drive("exportPresets")).json
    await drive("importPresets", file)
    await drive("importPresets", file | {"replace": True})
    await drive("importPresets", {"version": 2})
    await drive("deletePreset", path=one)


async def without_a_session(service: Service, drive: Driver, one: dict[str, int]) -> None:
    answers = service.gateway.answers
    before = {verb: answers[verb] for verb in ("asks", "own_bids")}
    answers.update(dict.fromkeys(before, base.SignInNeeded()))
    await drive("previewTask", {"taskId": one["id"], "outbidEnabled": True})
    await drive("listBids", path=one)
    answers.update(before)


async def previewed(service: Service, drive: Driver, task_id: int) -> None:
    fixed = {"priceMode": "fixed", "priceSats": 150_000}
    vault = keys_of(OWNER)["vault"]
    kept = {name: service.gateway.answers.get(name) for name in ("whereabouts", "outpoint", "draft_listing")}
    service.gateway.answers |= {
        "whereabouts": Whereabouts(INSCRIPTION, "x:0", vault, 546, START_MS),
        "outpoint": OutpointFacts("x:0", 546, "5120", True, True, (INSCRIPTION,), (), 9, 9, None),
        "draft_listing": lambda ask: ListingDraft(f"draft at {ask['price']}", ()),
    }
    found = (await drive("previewAutolistTask", {"taskId": task_id, **fixed})).json
    assert (found["taskId"], found["action"], found["price"], found["draft"]["isSigned"]) == (
        task_id,
        "list",
        150_000,
        True,
    )
    await drive("previewAutolistTask", {"priceMode": "no"})
    await drive("previewAutolistTask", {"taskId": 999})
    services = service.app.settings["services"]
    service.app.settings["services"] = replace(services, seats=Full())
    await drive("previewAutolistTask", {"taskId": task_id})
    service.app.settings["services"] = services
    service.signer.state = "locked"
    await drive("previewAutolistTask", {"taskId": task_id})
    service.signer.state = "ready"
    service.gateway.answers |= kept


async def auto_listing(service: Service, drive: Driver) -> None:
    await drive("createAutolistTask", {"priceSats": -1})
    fields: dict[str, Any] = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals"}
    one = {"id": (await drive("createAutolistTask", fields)).json["id"]}
    await drive("createAutolistTask", fields)
    with pytest.MonkeyPatch.context() as few:
        few.setattr(tasks, "MAX_AUTOLIST_TASKS", 1)
        await drive("createAutolistTask", {"inscriptionId": "9" * 64 + "i0"})
    await previewed(service, drive, one["id"])
    await drive("changeAutolistTask", {"priceMode": "no"}, path=one)
    await drive("changeAutolistTask", {"reference": "purchase"}, path=one)
    await drive("startAutolistTask", path=one)
    await drive("changeAutolistTask", {"costSats": 5}, path=one)
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, "x:0", OWNER, 546, START_MS)
    await drive("startAutolistTask", path=one)
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, "x:0", keys_of(OWNER)["vault"], 546, START_MS)
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)
    await drive("startAutolistTask", path=one)
    accounts.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    await drive("startAutolistTask", path=one)
    listed(service, one["id"])
    for name in ("getAutolistTask", "stopAutolistTask", "listAutolistTasks", "startAutolistTask"):
        await drive(name, path=one)
    await drive("stopAutolistTask", path=one)
    service.manager.refuse = ("too_many_workers", "1000 tasks run")
    await drive("startAutolistTask", path=one)
    service.manager.refuse = None
    await drive("startAutolistTask", path=one)
    service.manager.refuse = ("too_many_workers", "1000 tasks run")
    await drive("changeAutolistTask", {"costSats": 6}, path=one)
    service.manager.refuse = ("not_entitled", "plan expired")
    await drive("changeAutolistTask", {"costSats": 6}, path=one)
    service.manager.refuse = ("signer_locked", "")
    await drive("changeAutolistTask", {"costSats": 6}, path=one)
    await drive("deleteAutolistTask", path=one)
    await drive("stopAutolistTask", path=one)
    await drive("startAutolistTask", path=one)
    service.manager.refuse = None
    await what_it_listed(service, drive, one)
    assert not (await drive("deleteAutolistTask", path=one)).json["listingCancelled"]


async def what_it_listed(service: Service, drive: Driver, one: dict[str, int]) -> None:
    path = service.settings.log_dir / f"task-{one['id']}.log"
    path.mkdir(parents=True)
    await drive("readAutolistLog", path=one)
    path.rmdir()
    await drive("readAutolistLog", path=one)
    await drive("readAutolistLog", path=one, query={"lines": 0})
    await drive("listAutolistTasks", query={"tag": ""})
    await drive("listAutolistCycles", path=one)
    await drive("listAutolistCycles", path=one, query={"limit": "x"})
    await drive("readAutolistTaskSeries", path=one)
    with pytest.MonkeyPatch.context() as crowded:
        crowded.setattr(service.app.settings["services"].long_answers, "_waiting", 0)
        crowded.setattr(service.app.settings["services"].long_answers, "_each", 0)
        for name in ("listAutolistCycles", "readAutolistTaskSeries"):
            await drive(name, path=one)
    await drive("readAutolistTaskSeries", path=one, query={"step": "x"})
