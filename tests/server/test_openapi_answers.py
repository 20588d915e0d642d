"""Every operation gives each status that is described of it, also to random requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from markets.base import (
    AskBook,
    Balance,
    BidBook,
    Item,
    Known,
    NotFound,
    Picture,
    SignInNeeded,
    TooManyLookups,
    Unavailable,
    Unknown,
)
from models import accounts, budgets, presets
from models.accounts import ApiToken
from models.budgets import Budget
from models.hooks import queue
from models.hooks.queue import MOST_HOOKS
from models.hooks.table import Delivery, Hook
from models.presets import Preset
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import Challenge, Entitlements, User
from server.http.blocking import Turns
from server.http.feed import MOST_OF_USER, Feed
from strategy.book import Ask
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.examples import part_of
from tests.server import stories
from tests.server.driver import DOCUMENT, OPERATIONS, Driver, Shapes, is_shared, responses
from tests.server.ledger_rows import INSCRIPTION, item, sold
from tests.server.stories import auto_listing, recorded
from tests.server.test_health import PORT, facts, hooks, simulator  # noqa: F401
from tests.server.test_metrics import SHORT
from tests.server.test_profile import approval
from tests.server.withdrawals.chain import Chain, coin
from tests.shapes import replace
from tests.wallet import proofs
from tests.worlds.service import OTHER, OWNER, START_MS, Service, keys_of, new_user, token_of, with_settings
from wallet.keystore.keys import sign_message

ABSENT = {"id": 999, "deliveryId": 999, "inscriptionId": "x", "address": "x"}
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
    nobody = Entitlements(replace(services.settings, whitelist=frozenset()))
    service.app.settings["services"] = replace(services, entitlements=nobody)
    await drive("openChallenge", {"address": proofs.nested_address(proofs.OWNER)}, token="")
    await drive("openChallenge", {"address": OTHER})
    service.app.settings["services"] = services
    opened = (await drive("openChallenge", {"address": OTHER}, token="")).json
    service.app.settings["services"] = replace(services, entitlements=nobody)
    signature = sign_message(proofs.STRANGER, "p2tr", opened["message"])
    proof = {"challengeId": opened["challengeId"], "address": OTHER, "signature": signature}
    await drive("signIn", proof, token="")
    service.app.settings["services"] = replace(services, budget=stories.Spent())
    await drive("openChallenge", {"address": OTHER}, token="")
    await drive("signIn", proof)
    await drive("openApproval", {"maxExposure": 5})
    await drive("getPlayWallet")
    await drive("signAsPlayWallet", {"challengeId": "x"})
    service.app.settings["services"] = services
    await drive("openApproval", {"maxExposure": 5})
    await drive("signOut", token=tokens[0])


async def the_play_wallet(service: Service, drive: Driver) -> None:
    answers = service.gateway.answers
    answers |= {"play_address": OTHER, "play_signature": lambda message: sign_message(proofs.STRANGER, "p2tr", message)}
    opened = (await drive("openChallenge", {"address": (await drive("getPlayWallet")).json["address"]}, token="")).json
    given = {"challengeId": opened["challengeId"]}
    proof = (await drive("signAsPlayWallet", given, token="")).json
    await drive("signIn", given | proof, token="")
    assert (await drive("signAsPlayWallet", given)).status == 400
    service.gateway.down = True
    await drive("getPlayWallet")
    await drive("signAsPlayWallet", given)
    service.gateway.down = False
    services = service.app.settings["services"]
    without = replace(services, settings=replace(services.settings, play_wallet=False))
    service.app.settings["services"] = without
    await drive("getPlayWallet")
    await drive("signAsPlayWallet", given)
    service.app.settings["services"] = services


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
    await stories.spent(service, drive("changeProfile", move))
    service.gateway.down = True
    await drive("changeProfile", move)
    service.signer.state = "locked"
    await drive("changeProfile", move)
    service.gateway.down, service.signer.state = False, "ready"


async def what_was_traded(service: Service, drive: Driver) -> None:
    sold(service.user_id, 20_000)
    assert len((await drive("listFills", query={"limit": 1})).json["fills"]) == 1
    await drive("listFills", query={"side": "x"})
    await drive("getProfit", query={"groupBy": "month"})
    await drive("getProfit", query={"groupBy": "week"})
    await drive("listTaskRows", query={"ids": "x"})
    await drive("readGain")
    await drive("readGain", query={"from": "2020-01-01", "to": "2026-01-01"})
    await drive("exportTrades", query={"format": "koinly"})
    await drive("exportTrades", query={"format": "pdf"})
    with pytest.MonkeyPatch.context() as crowded:
        crowded.setattr(service.app.settings["services"].long_reads, "_turns", Turns(0, 1, waiting=0))
        crowded.setattr(service.app.settings["services"].long_answers, "_waiting", 0)
        crowded.setattr(service.app.settings["services"].long_answers, "_each", 0)
        for name in ("exportTrades", "getProfit", "listFills", "listOrders", "readGain", "listTaskRows"):
            await drive(name)
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
    queue.sent([Delivery.get_by_id(tried["id"])], 200, START_MS)
    await drive("redeliver", path=both)
    await drive("listDeliveries", path=one)
    await drive("listDeliveries", path=one, query={"limit": 0})
    services = service.app.settings["services"]
    service.app.settings["services"] = replace(services, sent_by_hand=stories.Spent())
    await drive("testHook", path=one)
    await drive("redeliver", path=both)
    service.app.settings["services"] = services
    mail = replace(services.settings, smtp_url="smtps://mail.example", mail_from="a@b.example")
    service.app.settings["services"] = replace(services, settings=mail)
    new = given | {"kind": "mail", "url": "mailto:ann@mail.example"}
    mailed = {"id": (await drive("createHook", new)).json["id"]}
    await drive("testHook", path=mailed)
    await drive("sendHookCode", path=mailed)
    await drive("confirmHook", {"code": "wrong"}, path=mailed)
    hook = Hook.get_by_id(mailed["id"])
    queue.begin(hook, queue.next_due(hook, service.clock()), lambda: "K7QM-3XWP", service.clock())
    await drive("sendHookCode", path=mailed)
    assert not (await drive("confirmHook", {"code": "k7qm 3xwp"}, path=mailed)).json["waitsForCode"]
    await drive("confirmHook", {"code": "k7qm 3xwp"}, path=mailed)
    await drive("sendHookCode", path=mailed)
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


async def the_market(service: Service, drive: Driver) -> None:
    service.gateway.answers["rune_asks"] = AskBook((Ask("x", 1, 3, "1.25", "seller"),), 1)  # type: ignore[arg-type]
    for name, known, unknown in (
        ("getFloor", {"slug": "goosinals"}, {"slug": "nobody-knows"}),
        ("getRuneMarket", {"ticker": "DOG"}, {"ticker": "NONE"}),
    ):
        await drive(name)
        await drive(name, query=known)
        await stories.spent(service, drive(name, query=known))
        service.gateway.down = True
        await drive(name, query=known)
        service.gateway.down = False
        service.gateway.answers["rune_asks"] = AskBook((), 1)
        await drive(name, query=unknown)
        await drive(name, query=known)
    await the_book(service, drive)
    await the_choices(service, drive)
    await drive("searchSlugs", query={"q": "goo"})
    await drive("searchSlugs", query={"type": "cats"})
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
    await stories.spent(service, drive("getBook", query=query))
    answers.update(dict.fromkeys(there, SignInNeeded()))
    await drive("getBook", query=query)
    answers.update(there)
    service.gateway.down = True
    await drive("getBook", query=query)
    service.gateway.down = False
    service.signer.state = "away"
    await drive("getBook", query=query)
    service.signer.state = "ready"


async def the_choices(service: Service, drive: Driver) -> None:
    answers, query = service.gateway.answers, {"slug": "goosinals"}
    there = {verb: answers[verb] for verb in ("collections", "traits")}
    answers["collections"] = (Known("ordinals", "goosinals", "The Goosinals", item=INSCRIPTION),)
    await drive("searchCollections", query={"q": "goo"})
    await drive("searchCollections", query={"type": "cats"})
    await drive("listFaces")
    await drive("getCollectionPicture")
    await drive("getCollectionPicture", query=query)
    answers["picture"] = TooManyLookups(4, "ask again in 4 s")
    await drive("getCollectionPicture", query=query)
    answers["collections"] = ()
    await drive("getCollectionPicture", query=query)
    await drive("listTraits")
    await drive("listTraits", query=query)
    await stories.spent(service, drive("listTraits", query=query))
    answers["traits"] = NotFound()
    await drive("listTraits", query=query)
    service.gateway.down = True
    await drive("listTraits", query=query)
    service.gateway.down = False
    answers.update(there)


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
    await stories.spent(service, drive("withdraw", {"from": "payment"}))
    service.gateway.answers["coins"] = Unavailable("away")
    await drive("withdraw", {"from": "payment"})
    service.signer.state = "locked"
    await drive("withdraw", {"from": "payment"})
    service.signer.state = "ready"


async def inscriptions_and_wallet(service: Service, drive: Driver) -> None:
    one, another = {"inscriptionId": INSCRIPTION}, {"inscriptionId": "8" * 64 + "i0"}
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
    await stories.spent(service, drive("listInscriptions", query=fresh))
    await stories.spent(service, drive("getInscription", path=one, query=fresh))
    await drive("getInscriptionPicture", path=one)
    service.gateway.answers["picture"] = Picture("image/gif", b"GIF89a")
    await drive("getInscriptionPicture", path=one)
    await stories.spent(service, drive("getInscriptionPicture", path=another))
    service.gateway.down = True
    await drive("listInscriptions", query=fresh)
    await drive("getInscription", path=one, query=fresh)
    await drive("getInscriptionPicture", path=another)
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


async def administration(service: Service, drive: Driver) -> None:
    listed = {"address": OTHER}
    services = service.app.settings["services"]
    rights = Entitlements(replace(services.settings, admins=frozenset({OWNER})))
    service.app.settings["services"] = replace(services, entitlements=rights)
    await drive("addToWhitelist", {"address": "x"})
    await drive("addToWhitelist", listed)
    await drive("addToWhitelist", listed)
    await drive("listWhitelist", query={"limit": 1})
    await drive("listWhitelist", query={"limit": 0})
    await drive("removeFromWhitelist", path=listed)
    await drive("removeFromWhitelist", path=listed)
    accounts.put(OTHER, START_MS, is_admin=True)
    await drive("removeFromWhitelist", path=listed)
    await drive("listPlans")
    assert len((await drive("listUsers")).json["users"]) >= 2
    await drive("listUsers", query={"after": "x"})
    one = {"id": service.user_id}
    await drive("changeUser", {"plan": "gold"}, path=one)
    await drive("changeUser", {"plan": "beta", "endsAt": "2099-01-01"}, path=one)
    await drive("changeUser", {"plan": "beta"}, path={"id": 999})
    service.gateway.answers["status"] = {"venues": {"satflow": {"quota": SHORT["quota"] | {"ends_ms": START_MS}}}}
    assert (await drive("getReadiness")).json["venues"][0]["quota"]["used"] == 60_000
    await unknown_parameters(drive)
    service.app.settings["services"] = services


async def unknown_parameters(drive: Driver) -> None:
    anything = {"id": 1, "deliveryId": 1, "address": OWNER, "inscriptionId": "5" * 64 + "i0"}
    for name, (_, _, operation) in OPERATIONS.items():
        if "$ref" in operation["responses"]["400"]:
            await drive(name, path=anything, query={"noSuchName": 1})


@pytest.mark.slow
@pytest.mark.parametrize("service", [{"simulator_port": PORT, "play_wallet": True}], indirect=True, ids=[""])
@pytest.mark.usefixtures("simulator", "facts", "hooks")
async def test_every_status_of_every_operation_is_answered_as_described(service: Service) -> None:
    drive = Driver(service)

    await refused_of_anybody(drive)
    await signing_in(service, drive)
    await the_play_wallet(service, drive)
    await sessions_and_tokens(service, drive)
    await the_profile(service, drive)
    await stories.bidding(service, drive)
    await stories.the_budgets(service, drive)
    await the_market(service, drive)
    await stories.the_control(service, drive)
    await auto_listing(service, drive)
    await what_was_traded(service, drive)
    await what_happened(service, drive)
    await hooks_and_deliveries(service, drive)
    await stories.named_configs(service, drive)
    await inscriptions_and_wallet(service, drive)
    await administration(service, drive)
    for name in ("getDescription", "readReference", "isAlive", "isReady", "getMetrics"):
        await drive(name, token="")
    await drive("getMetrics", headers={"X-Forwarded-For": "127.0.0.1"})

    # Others ask every operation for what is described of all: test_full_disk.py, test_parts_away.py, and
    # test_slow_marketplaces.py.
    told = {(name, status) for name in OPERATIONS for status in responses(name) if not is_shared(name, status)}
    assert sorted(told - drive.seen) == []


SHAPES = Shapes(DOCUMENT["components"]["schemas"])
# Signing out would leave the rest without a token, and readiness looks for a simulator that is not there.
NAMES = sorted(OPERATIONS.keys() - {"signOut", "signOutEverywhere", "endSession", "isReady"})
CAN_SUCCEED = set(NAMES) - {"withdraw", "endApiToken"}  # nobody here has a coin, and an id is a task's
SENSIBLE = {"slug": "dogs", "hardcapSats": 100_000, "address": OWNER, "displayName": "Ann", "costSats": 5}
SENSIBLE |= {"action": "stop", "ids": [1], "name": "Bob", "config": {"hardcapSats": 5}, "version": 1, "presets": []}
NOUNS = ("autolist", "budgets", "hooks", "presets", "users")
WEATHER = ("fair", "fair", "venue away", "signer locked", "manager refuses")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def bodies(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Returns a body of the schema, one that is also sensible, one with some fields spoilt, or none at all."""
    body = draw(SHAPES.values(schema))
    spoilt = draw(st.sampled_from(["not", "sensible", "field", "unknown field", "object", "bytes"]))
    if spoilt == "sensible":
        shape = SHAPES.resolved(schema)
        body = {name: value for name, value in body.items() if name in shape.get("required", ())}
        body |= {name: value for name, value in SENSIBLE.items() if name in shape["properties"]}
    elif spoilt == "field":
        body |= draw(st.dictionaries(st.sampled_from(sorted(SHAPES.resolved(schema)["properties"])), anything))
    elif spoilt == "unknown field":
        body |= draw(st.dictionaries(st.text(max_size=10), anything, max_size=3))
    elif spoilt == "object":
        return draw(anything)
    elif spoilt == "bytes":
        return draw(st.binary(max_size=60))
    return body


@st.composite
def questions(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Draws a question for `Driver`, with ids by name: `mine` and `theirs` stand for existing tasks."""
    _, _, operation = OPERATIONS[name]
    ids = st.sampled_from(["mine", "mine", "theirs", 0, 2**63 - 1, 2**63, "x", "", "\x00", "../1", "٣"])
    items = st.sampled_from([INSCRIPTION, INSCRIPTION, "x"]) | st.text(min_size=1, max_size=10)
    path, query, body = {}, {}, None
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            path[parameter["name"]] = draw(ids if parameter["name"] == "id" else items)
        elif parameter["required"] or draw(st.booleans()):
            query[parameter["name"]] = draw(SHAPES.values(parameter["schema"]) | st.text(max_size=12))
    if "requestBody" in operation:
        body = draw(bodies(operation["requestBody"]["content"]["application/json"]["schema"]))
    weather, token = draw(st.sampled_from(WEATHER)), draw(st.sampled_from([None, None, None, ""]))
    return {"operation_id": name, "body": body, "path": path, "query": query, "token": token, "weather": weather}


Ids = dict[str, dict[str, int]]


def prepare(service: Service) -> Ids:
    """Returns the ids of the caller's things and of another user's, the same rows for every question."""
    for table in (Task, Challenge, ApiToken, Budget, Preset, Hook):
        table.delete().execute()
    User.update(max_exposure=None, max_hardcap=None).execute()
    config = BidConfig(slug="goosinals", hardcap_sats=100_000)
    row = {"type": "ordinals", "slug": config.slug, "slug_key": config.slug, "config": dump_bid_config(config)}
    item = {"inscription_id": INSCRIPTION, "collection_id": "goosinals", "config": dump_listing_config(ListingConfig())}
    ids: Ids = {}
    for whose, user in (("mine", service.user_id), ("theirs", service.user_id + 1)):
        bidding = tasks.create_bidding_task(user, **row, venue="simulator", max_tasks=20, now_ms=START_MS)
        autolist = tasks.create_autolist_task(user, **item, venue="simulator", now_ms=START_MS)
        shared = budgets.create(user, START_MS, name="both")
        (preset,) = presets.add(user, [("careful", '{"hardcapSats": 5}')], START_MS)
        told = {"kind": "webhook", "shown": "https://example.com", "has_secret": True, "receiver": "none"}
        hook = queue.add(user, ["fill"], may_still=lambda: True, created_ms=START_MS, min_interval_s=0, **told)
        ids[whose] = {"tasks": bidding.id, "autolist": autolist.id, "budgets": shared.id, "presets": preset.id}
        ids[whose] |= {"hooks": hook.id, "users": user}
        accounts.set_plan(user, "beta", 2 * START_MS, START_MS)
        recorded(service.settings.data_dir, bidding.id)
    return ids


def set_weather(service: Service, weather: str) -> None:
    service.gateway.down = weather == "venue away"
    service.signer.state = "locked" if weather == "signer locked" else "ready"
    service.manager.refuse = ("start_failed", "") if weather == "manager refuses" else None
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)


def text_of(body: Any) -> Any:
    """As JSON text, also what no JSON number can be."""
    return body if body is None or isinstance(body, bytes) else json.dumps(body)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.sampled
@with_settings(sign_in_per_minute=10**6, admins=frozenset({OWNER}), play_wallet=True)
def test_random_questions_get_described_answers(io_loop: IOLoop, service: Service) -> None:
    drive = Driver(service)
    untouched: Ids | None = None  # what was made for the question before, if that one only read

    @settings(
        max_examples=max(6, part_of(24, dear=True)),  # in fewer not every status comes about
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        nonlocal untouched
        question = data.draw(questions(asked_for))
        set_weather(service, question.pop("weather"))
        ids, untouched = untouched or prepare(service), None
        name, body = question["operation_id"], question["body"]
        noun = next((noun for noun in NOUNS if noun in OPERATIONS[name][1]), "tasks")
        mine = question["path"].get("id") in (None, "mine") and question["token"] is None
        path = {key: ids[value][noun] if value in ids else value for key, value in question["path"].items()}
        asked = question | {"body": text_of(body), "path": path}

        is_wrong = False
        if "requestBody" in OPERATIONS[name][2]:
            schema = OPERATIONS[name][2]["requestBody"]["content"]["application/json"]["schema"]
            is_wrong = isinstance(body, bytes) or bool(SHAPES.faults(body, schema))
        answer = io_loop.run_sync(lambda: drive(**asked))
        if OPERATIONS[name][0] == "GET":
            untouched = ids

        # Of many tasks each tells what is wrong with its change.
        if is_wrong and mine and name != "actOnTasks":
            # A body may name a task that is not the caller's, which is looked at first.
            names_a_task = isinstance(body, dict) and body.get("taskId") is not None
            assert answer.status in ((400, 404) if names_a_task else (400,)), (name, body, answer.text)
        assert answer.status not in (413, 415, 429)

    for asked_for in NAMES:  # noqa: B007
        ask()

    succeeded = {name for name, status in drive.seen if status < 300}
    assert len(succeeded) >= len(CAN_SUCCEED) * 3 / 4, sorted(CAN_SUCCEED - succeeded)
    statuses = {status for _, status in drive.seen}
    assert {name for name, _ in drive.seen} == set(NAMES)
    assert statuses >= {200, 201, 400, 401, 404, 502, 503}, statuses
