"""Every operation is driven for real until each status that is described of it was answered, as described."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable
from decimal import Decimal
from typing import Any

import pytest

from core.subscription_plans import DEFAULT_PLANS
from markets.base import (
    AskBook,
    Balance,
    BidBook,
    Item,
    NotFound,
    OwnBid,
    OwnBids,
    SignInNeeded,
    TooManyLookups,
    Unavailable,
    Unknown,
)
from markets.listings import ListingDraft
from markets.outpoint_facts import OutpointFacts, Whereabouts
from models import budgets, controls, presets, users
from models.budgets import MAX_BUDGETS
from models.entitlements import Entitlements
from models.hooks import queue
from models.hooks.hooks import MOST_HOOKS
from models.hooks.table import Delivery
from models.tasks import cycles, tasks
from models.tasks.table import Task
from server.events.feed import MOST_OF_USER, Feed
from server.http.user_market import Seats
from strategy.book import Ask
from tests.server.api import START_MS, new_user, token_of
from tests.server.autolist_tasks import listed
from tests.server.conftest import OTHER, OWNER, Service
from tests.server.driver import OPERATIONS, Driver, responses
from tests.server.peers import keys_of
from tests.server.running_tasks import open_order
from tests.server.test_health import PORT, facts, hooks, simulator  # noqa: F401
from tests.server.test_profile import approval
from tests.server.trades import bought, sold
from tests.server.wallet_items import INSCRIPTION, item
from tests.server.withdrawals.chain import Chain, coin
from tests.wallet import proofs
from wallet.signer.signing import sign_message

ABSENT = {"id": 999, "deliveryId": 999, "inscriptionId": "x"}
BIG, MULTIPART = b" " * 70_000, {"Content-Type": "multipart/form-data; boundary=x"}


async def refused_of_anybody(drive: Driver) -> None:
    """Checks the refusals that every operation has."""
    bot = {"name": "bot", "scopes": ["read"]}
    reader = (await drive("createApiToken", bot)).json["token"]
    stopper = (await drive("createApiToken", bot | {"scopes": ["trade"]})).json["token"]
    for name, (method, path, operation) in OPERATIONS.items():
        given = {key: value for key, value in ABSENT.items() if f"{{{key}}}" in path}
        if operation["security"] == [{"bearer": []}]:
            await drive(name, path=given, token="")
            await drive(name, path=given, token="x" * 43)
            for weak in (reader, stopper):
                await drive(name, path=given, token=weak)
        if given:
            await drive(name, {}, path=given)
        if "400" in operation["responses"] and method == "GET" and not operation["security"]:
            await drive(name, path=given, headers={"Transfer-Encoding": "identity"})
        if method != "GET":
            await drive(name, BIG, path=given)
            await drive(name, b"x", path=given, headers=MULTIPART)


async def signing_in(service: Service, drive: Driver) -> None:
    tokens = [token_of(new_user(OWNER)) for _ in range(2)]
    await drive("openChallenge", {"address": "x"})
    opened = (await drive("openChallenge", {"address": OWNER})).json
    signature = sign_message(proofs.OWNER, "p2wpkh", opened["message"])
    proof = {"challengeId": opened["challengeId"], "address": OWNER, "signature": signature}
    await drive("signIn", {"publicKey": "no"})
    await drive("signIn", proof | {"signature": "AA=="})
    await drive("signIn", proof, token="")
    services = service.app.settings["services"]
    nobody = Entitlements(dataclasses.replace(services.settings, whitelist=frozenset()))
    service.app.settings["services"] = dataclasses.replace(services, entitlements=nobody)
    await drive("openChallenge", {"address": proofs.nested_address(proofs.OWNER)}, token="")
    await drive("openChallenge", {"address": OTHER})
    service.app.settings["services"] = services
    opened = (await drive("openChallenge", {"address": OTHER}, token="")).json
    service.app.settings["services"] = dataclasses.replace(services, entitlements=nobody)
    signature = sign_message(proofs.STRANGER, "p2tr", opened["message"])
    proof = {"challengeId": opened["challengeId"], "address": OTHER, "signature": signature}
    await drive("signIn", proof, token="")
    service.app.settings["services"] = dataclasses.replace(services, budget=Spent())
    await drive("openChallenge", {"address": OTHER}, token="")
    await drive("signIn", proof)
    await drive("openApproval", {"maxExposure": 5})
    service.app.settings["services"] = services
    await drive("openApproval", {"maxExposure": 5})
    await drive("signOut", token=tokens[0])


async def sessions_and_tokens(service: Service, drive: Driver) -> None:
    await drive("openApproval", {})
    await drive("getCeilings")
    await drive("setCeilings", {"maxExposure": 40_000_000})
    await drive("setCeilings", {"maxExposure": 50_000_000})
    await drive("createApiToken", {"name": ""})
    await drive("createApiToken", {"name": "bot", "scopes": ["read"], "taskId": 999})
    made = (await drive("createApiToken", {"name": "bot", "scopes": ["control"]})).json
    await drive("listApiTokens")
    await drive("endApiToken", path={"id": made["id"]})
    token_of(new_user(OWNER))
    listed = (await drive("listSessions")).json
    await drive("endSession", path={"id": next(row["id"] for row in listed if not row["isCurrent"])})
    await drive("signOutEverywhere", token=token_of(new_user(OTHER)))


async def spent(service: Service, asked: Awaitable[Any]) -> None:
    """Asks while the user's look-ups are used up."""
    service.gateway.spent = True
    assert (await asked).headers["Retry-After"] == "4"
    service.gateway.spent = False


class Full(Seats):
    """Places at the marketplaces that are all taken."""

    async def ask(self, user: int, by_hand: Any, question: Any) -> Any:
        raise TooManyLookups(2.0, "all taken")


class Spent:
    """A limit of calls that is used up."""

    def take(self, key: str) -> int:
        return 7


async def the_profile(service: Service, drive: Driver) -> None:
    await drive("getProfile")
    await drive("changeProfile", {"displayName": 5, "unknown": True})
    await drive("changeProfile", {"displayName": "Ann"})
    address = proofs.p2tr_address(proofs.OWNER)
    opened = (await drive("openChallenge", {"address": address})).json
    move = {
        "ordinalsAddress": address,
        "challengeId": opened["challengeId"],
        "signature": sign_message(proofs.OWNER, "p2tr", opened["message"]),
    } | await approval(service, {"ordinalsAddress": address})
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 1, 1)
    await drive("changeProfile", move)
    await spent(service, drive("changeProfile", move))
    service.gateway.down = True
    await drive("changeProfile", move)
    service.signer.state = "locked"
    await drive("changeProfile", move)
    service.gateway.down, service.signer.state = False, "ready"


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
    users.set_plan(service.user_id, "beta", START_MS, START_MS)
    await drive("startTask", path=one)
    users.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
    await what_it_would_do(service, drive, one)
    await what_it_did(service, drive, one)
    await drive("stopTask", path=one)
    await many_at_once(drive, one)
    await drive("deleteTask", path=other)
    services = service.app.settings["services"]
    none = dataclasses.replace(DEFAULT_PLANS["beta"], max_tasks=0)
    settings = dataclasses.replace(services.settings, plans={"beta": none})
    service.app.settings["services"] = dataclasses.replace(services, settings=settings)
    await drive("createTask", right | {"slug": "birds"})
    await drive("cloneTask", {"slug": "birds"}, path=one)
    service.app.settings["services"] = services


async def what_it_would_do(service: Service, drive: Driver, one: dict[str, int]) -> None:
    task = {"taskId": one["id"]}
    asks = (Ask("x", 100_000, Decimal(1), Decimal(100_000), "seller"),)
    service.gateway.answers["asks"] = AskBook(asks, START_MS)
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
    service.signer.before_control = lambda state: controls.put("user", service.user_id, "reduce", None, START_MS)
    await drive("setControl", {"scope": "user", "state": "run"})
    assert (await drive("getControl")).json["effective"] == {"state": "reduce", "scope": "user"}
    services = service.app.settings["services"]
    service.app.settings["services"] = dataclasses.replace(services, loosened=Spent())
    await drive("setControl", {"scope": "user", "state": "run"})
    service.app.settings["services"] = services
    await service.signer.stop()
    await drive("setControl", {"scope": "user", "state": "run"})
    await drive("setControl", {"scope": "user", "state": "halt"})
    await drive("getControl")
    await service.signer.start()


async def what_it_did(service: Service, drive: Driver, one: dict[str, int]) -> None:
    order = open_order(service, one["id"])
    bid = OwnBid("mine", "goosinals", "ordinals", 10_000, None, order.expires_ms, ("Hat", "Red"))
    service.gateway.answers["own_bids"] = OwnBids((bid,), 1)
    assert len((await drive("listBids", path=one)).json) == 1
    service.gateway.answers["bids"] = NotFound()
    await drive("listBids", path=one)
    service.gateway.answers["bids"] = BidBook((), 1)
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
    await drive("readTaskSeries", path=one)
    await drive("readTaskSeries", path=one, query={"step": "x"})


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


async def what_was_traded(service: Service, drive: Driver) -> None:
    sold(service.user_id, 20_000)
    assert len((await drive("listFills", query={"limit": 1})).json["fills"]) == 1
    await drive("listFills", query={"side": "x"})
    await drive("getProfit", query={"groupBy": "month"})
    await drive("getProfit", query={"groupBy": "week"})
    await drive("exportTrades", query={"format": "koinly"})
    await drive("exportTrades", query={"format": "pdf"})
    await drive("listOrders")
    await drive("listOrders", query={"since": "x"})


async def hooks_and_deliveries(service: Service, drive: Driver) -> None:
    given = {"url": "https://hooks.example/in", "events": ["fill", "error"]}
    await drive("createHook", given | {"url": "http://127.0.0.1/", "events": []})
    one = {"id": (await drive("createHook", given)).json["id"]}
    await drive("listHooks")
    await drive("getHook", path=one)
    await drive("changeHook", {"minIntervalSeconds": 60}, path=one)
    await drive("changeHook", {"minIntervalSeconds": -1}, path=one)
    tried = (await drive("testHook", path=one)).json
    both = one | {"deliveryId": tried["id"]}
    await drive("redeliver", path=both)
    queue.sent(Delivery.get_by_id(tried["id"]), 200, START_MS)
    await drive("redeliver", path=both)
    await drive("listDeliveries", path=one)
    await drive("listDeliveries", path=one, query={"limit": 0})
    services = service.app.settings["services"]
    service.app.settings["services"] = dataclasses.replace(services, sent_by_hand=Spent())
    await drive("testHook", path=one)
    await drive("redeliver", path=both)
    service.app.settings["services"] = services
    for _ in range(MOST_HOOKS):
        await drive("createHook", given)
    await drive("deleteHook", path=one)


async def what_happened(service: Service, drive: Driver) -> None:
    assert (await drive("listEvents")).json["events"]
    await drive("listEvents", query={"after": 10**12})
    await drive("listEvents", query={"events": "fill,nothing"})
    feed: Feed = service.app.settings["services"].feed
    waiters = [feed.join(service.user_id) for _ in range(MOST_OF_USER)]
    await drive("listEvents", query={"after": feed.newest_id, "wait": 1})
    for waiter in waiters:
        feed.leave(waiter)


async def without_a_session(service: Service, drive: Driver, one: dict[str, int]) -> None:
    answers = service.gateway.answers
    before = {verb: answers[verb] for verb in ("asks", "own_bids")}
    answers.update(dict.fromkeys(before, SignInNeeded()))
    await drive("previewTask", {"taskId": one["id"], "outbidEnabled": True})
    await drive("listBids", path=one)
    answers.update(before)


async def the_market(service: Service, drive: Driver) -> None:
    service.gateway.answers["rune_asks"] = AskBook((Ask("x", 1, 3, "1.25", "seller"),), 1)  # type: ignore[arg-type]
    for name, known, unknown in (
        ("getFloor", {"slug": "goosinals"}, {"slug": "nobody-knows"}),
        ("getRuneMarket", {"ticker": "DOG"}, {"ticker": "NONE"}),
    ):
        await drive(name)
        await drive(name, query=known)
        await spent(service, drive(name, query=known))
        service.gateway.down = True
        await drive(name, query=known)
        service.gateway.down = False
        service.gateway.answers["rune_asks"] = AskBook((), 1)
        await drive(name, query=unknown)
        await drive(name, query=known)
    await the_book(service, drive)
    await drive("getFloor", query={"slug": "empty"})
    floors, service.gateway.answers["floors"] = service.gateway.answers["floors"], SignInNeeded()
    await drive("getFloor", query={"slug": "goosinals"})
    service.gateway.answers["floors"] = floors


async def the_book(service: Service, drive: Driver) -> None:
    answers, query = service.gateway.answers, {"slug": "goosinals"}
    there = {verb: answers[verb] for verb in ("asks", "bids")}
    answers |= {"asks": AskBook((), 1), "bids": BidBook((), 1)}
    await drive("getBook")
    await drive("getBook", query=query)
    await drive("getBook", query={"slug": "nobody-knows"})
    await spent(service, drive("getBook", query=query))
    answers.update(dict.fromkeys(there, SignInNeeded()))
    await drive("getBook", query=query)
    answers.update(there)
    service.gateway.down = True
    await drive("getBook", query=query)
    service.gateway.down = False
    service.signer.state = "away"
    await drive("getBook", query=query)
    service.signer.state = "ready"


async def previewed(service: Service, drive: Driver, task_id: int) -> None:
    fixed = {"priceMode": "fixed", "priceSats": 150_000}
    vault = keys_of(OWNER)["vault"]
    kept = {name: service.gateway.answers.get(name) for name in ("whereabouts", "outpoint", "draft_listing")}
    service.gateway.answers |= {
        "whereabouts": Whereabouts(INSCRIPTION, "x:0", vault, 546, START_MS),
        "outpoint": OutpointFacts("x:0", 546, "5120", True, True, (INSCRIPTION,), (), 9, 9, None),
        "draft_listing": lambda ask: ListingDraft(f"draft at {ask[0]}", ()),
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
    service.app.settings["services"] = dataclasses.replace(services, seats=Full())
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
    users.set_plan(service.user_id, "beta", START_MS, START_MS)
    await drive("startAutolistTask", path=one)
    users.set_plan(service.user_id, "beta", 2 * START_MS, START_MS)
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
    await drive("readAutolistTaskSeries", path=one, query={"step": "x"})


async def withdrawals(service: Service, drive: Driver) -> None:
    chain, payment = Chain(service), keys_of(OWNER)["payment"]
    await drive("withdraw", {"sats": 5})
    await drive("withdraw", {"from": "payment"})
    chain.put(payment, coin(1), coin(2, confirmed=False), coin(3))
    await drive("withdraw", {"from": "payment", "dryRun": True})
    await drive("withdraw", {"from": "payment", "amountSats": 5_000})
    await drive("getWallet")
    service.gateway.answers["broadcast"] = Unknown("cut")
    assert (await drive("withdraw", {"from": "payment"})).status == 202
    await spent(service, drive("withdraw", {"from": "payment"}))
    service.gateway.answers["coins"] = Unavailable("away")
    await drive("withdraw", {"from": "payment"})
    service.signer.state = "locked"
    await drive("withdraw", {"from": "payment"})
    service.signer.state = "ready"


async def inscriptions_and_wallet(service: Service, drive: Driver) -> None:
    one = {"inscriptionId": INSCRIPTION}
    fresh = {"refresh": "1"}
    service.gateway.answers["wallet_contents"] = (item(), item(name="", listing_price=None))
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=True, number=7, listing_price=9)
    await drive("listInscriptions")
    await drive("getInscription", path=one)
    await drive("getWallet")
    await drive("listVenues")
    await withdrawals(service, drive)
    service.gateway.answers["balance"] = NotFound()
    await drive("getWallet")
    service.gateway.answers["wallet_contents"] = NotFound()
    service.clock.now_ms += 20_001
    await drive("listInscriptions", query=fresh)
    await spent(service, drive("listInscriptions", query=fresh))
    await spent(service, drive("getInscription", path=one, query=fresh))
    service.gateway.down = True
    await drive("listInscriptions", query=fresh)
    await drive("getInscription", path=one, query=fresh)
    service.gateway.down = False
    service.signer.state = "locked"
    await drive("listInscriptions", query=fresh)
    await drive("getWallet")
    await drive("isReady")
    service.signer.state = "ready"
    for name, path in (("listInscriptions", "wallet/ordinals"), ("getInscription", f"item/{INSCRIPTION}")):
        answer = await service.ask("GET", f"/api/autolist/{path}?refresh=1&refresh=1")
        assert answer.status == 400
        drive.seen.add((name, 400))


@pytest.mark.slow
@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("service", [{"simulator_port": PORT}], indirect=True, ids=[""])
@pytest.mark.usefixtures("simulator", "facts", "hooks")
async def test_every_status_of_every_operation_is_answered_as_described(service: Service) -> None:
    drive = Driver(service)

    await refused_of_anybody(drive)
    await signing_in(service, drive)
    await sessions_and_tokens(service, drive)
    await the_profile(service, drive)
    await bidding(service, drive)
    await the_budgets(service, drive)
    await the_market(service, drive)
    await the_control(service, drive)
    await auto_listing(service, drive)
    await what_was_traded(service, drive)
    await what_happened(service, drive)
    await hooks_and_deliveries(service, drive)
    await named_configs(service, drive)
    await inscriptions_and_wallet(service, drive)
    for name in ("getDescription", "readReference", "isAlive", "isReady", "getMetrics"):
        await drive(name, token="")
    await drive("getMetrics", headers={"X-Forwarded-For": "127.0.0.1"})

    told = {(name, status) for name in OPERATIONS for status in responses(name)}
    assert sorted(told - drive.seen) == []
