"""Random requests, within the description's reach or beside it: every answer is a described one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tornado.ioloop import IOLoop

from markets.base import Item
from models import accounts, budgets, presets
from models.accounts import ApiToken
from models.budgets import Budget
from models.hooks import queue
from models.hooks.table import Hook
from models.presets import Preset
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import Challenge, User
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.examples import part_of
from tests.server.api import START_MS
from tests.server.conftest import OWNER, Service, with_settings
from tests.server.driver import DOCUMENT, OPERATIONS, Driver
from tests.server.json_schema import Shapes
from tests.server.stories_of_tasks import recorded
from tests.server.wallet_items import INSCRIPTION

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
