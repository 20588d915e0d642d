"""Rights: every operation for every kind of caller, and field by field for API tokens."""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from markets.base import Item
from models.accounts import ApiToken
from models.presets import Preset
from models.tasks.tasks import Task
from models.users import IDLE_MS
from tests.databases import dump
from tests.server.driver import OPERATIONS
from tests.server.matrix import (
    BY_NAME,
    CALLERS,
    INSCRIPTION,
    MATRIX,
    OPEN,
    C,
    R,
    T,
    api_token,
    asked,
    body_of,
    call,
    operations,
    row_of,
)
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Service, new_user, token_of, with_settings


def test_the_matrix_lists_exactly_the_route_table() -> None:
    assert sorted(MATRIX) == sorted(operations())
    assert len(MATRIX) == 24 + 78


def test_the_matrix_lists_exactly_what_the_description_does() -> None:
    listed = {(method, re.sub(r"\(.*?\)", "{}", path)) for method, path in MATRIX}
    assert listed == {(method, re.sub(r"\{.*?\}", "{}", path)) for method, path, _ in OPERATIONS.values()}


def test_nothing_but_this_is_open_to_everybody() -> None:
    """A path that asks for no token, by its own description."""
    without = {name for name, (_, _, operation) in OPERATIONS.items() if operation["security"] != [{"bearer": []}]}
    public = {"isAlive", "isReady", "getMetrics", "readReference", "getDescription", "openChallenge", "signIn"}
    public |= {"getPlayWallet", "signAsPlayWallet"}  # on a practice market
    assert without == public
    assert len(public) == sum(scopes == OPEN for _, _, scopes in MATRIX.values())


@with_settings(admins=frozenset({ADMIN}), play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_each_caller_gets_the_status_of_the_matrix(service: Service, operation: tuple[str, str]) -> None:
    path, statuses = operation[1], MATRIX[operation][1]
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    tokens = {
        "anonymous": "",
        "owner": service.token,
        "other": service.other_token,
        "expired": token_of(new_user(OWNER), START_MS - IDLE_MS),
        "admin": token_of(new_user(ADMIN)),
    }
    row_id = await row_of(service, path)

    # The owner goes last: its call may delete the row that the others must not even see.
    for caller, status in sorted(zip(CALLERS, statuses, strict=True), key=lambda pair: pair[0] == "owner"):
        answer = await call(service, operation, row_id, tokens[caller])
        assert answer.status == status, f"{caller}: {answer.text}"
        if status == 401 and path != "/api/auth/verify":
            assert answer.json == {"error": "Unauthorized"}
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        if status == 404:
            assert answer.json == {"error": "Not found"}


@with_settings(play_wallet=True)
@pytest.mark.parametrize("operation", MATRIX, ids=lambda operation: " ".join(operation))
async def test_an_api_token_may_do_what_its_scopes_say_to_its_own_task(
    service: Service, operation: tuple[str, str]
) -> None:
    path, (_, statuses, scopes) = operation[1], MATRIX[operation]
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False)
    elsewhere, stranger = await service.new_task(slug="elsewhere"), new_user(OTHER).id
    one_task = path.startswith(("/api/tasks/([0-9]+)", "/api/autolist/([0-9]+)")) and not path.endswith("/clone")
    names_task = path == "/api/control" or one_task

    everything = R + T + C
    kinds = (None, R), (None, T), (None, C), ("own", everything), ("other", everything)
    for limit, letters in (*kinds, ("over", everything), ("a stranger's", everything)):
        row_id = await row_of(service, path)
        task_id = {"own": row_id, "other": elsewhere}.get(limit or "")
        if limit in ("own", "other") and not (names_task and scopes):
            task_id = elsewhere
        token = api_token(stranger if limit == "a stranger's" else service.user_id, letters, task_id)
        if limit == "over":
            ApiToken.update(expires_ms=START_MS).where(ApiToken.name == "bot").execute()
        answer = await call(service, operation, row_id, token)

        if scopes == OPEN:
            expected = statuses[CALLERS.index("anonymous")]
        elif limit == "over":
            expected = 401
        elif limit == "a stranger's":
            expected = statuses[CALLERS.index("other")] if scopes else 403
        elif not set(scopes) & set(letters) or (task_id and not names_task):
            expected = 403
        elif limit == "other" and path != "/api/control":
            expected = 404
        else:
            expected = statuses[CALLERS.index("owner")]
        assert answer.status == expected, f"{letters} {limit}: {answer.text}"
        if expected == 403 and path != "/api/control":
            assert answer.json["error"] == "Not allowed to this token"
        # What this one made or ended is not to be in the next one's way.
        Task.delete().where(Task.id != elsewhere).execute()
        Preset.delete().execute()


@pytest.mark.parametrize(
    "operation",
    [each for each in MATRIX if "tasks/([0-9]" in each[1] or "autolist/([0-9]" in each[1]],
    ids=lambda operation: " ".join(operation),
)
async def test_a_task_of_the_other_kind_is_not_found(service: Service, operation: tuple[str, str]) -> None:
    method, path = operation
    body = MATRIX[operation][0]
    bidding_id = await service.new_task(slug="matrix")
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"})
    before = list(Task.select().order_by(Task.id).dicts())
    others_id = bidding_id if "autolist" in path else listing.json["id"]

    query = body if isinstance(body, str) else ""
    answer = await service.ask(method, path.replace("([0-9]+)", str(others_id)) + query, None if query else body)

    assert (answer.status, answer.json) == (404, {"error": "Not found"})
    assert (list(Task.select().order_by(Task.id).dicts()), service.manager.settled) == (before, [])


async def test_only_a_well_formed_header_carries_a_token(service: Service) -> None:
    token = service.token
    refused = [
        {},
        {"Authorization": token},
        {"Authorization": f"Basic {token}"},
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": f"Bearer {token[:-1]}"},
        {"Authorization": f"Bearer {token} {token}"},
        {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer ' OR 1=1 --"},
        {"Cookie": f"token={token}"},
        {"X-Access-Token": token},
    ]
    for headers in refused:
        assert (await service.api("GET", "/api/tasks", headers=headers)).status == 401, headers
    for name in ("token", "access_token", "Authorization"):
        assert (await service.api("GET", f"/api/tasks?{name}={token}")).status == 401
    for scheme in ("bearer", "BEARER"):
        answer = await service.api("GET", "/api/tasks", headers={"Authorization": f"{scheme} {token}"})
        assert answer.status == 200, scheme


async def test_the_order_of_checks_is_401_404_400_409_403(service: Service) -> None:
    foreign = await service.new_task()
    bad = {"bidCount": 0}

    anonymous = await service.api("PUT", f"/api/tasks/{foreign}", bad)
    other = await service.api("PUT", f"/api/tasks/{foreign}", bad, token=service.other_token)
    owner = await service.ask("PUT", f"/api/tasks/{foreign}", bad)

    assert (anonymous.status, other.status, owner.status) == (401, 404, 400)


# What a task's own token gets for a change of the field: 200, 403 because the field reaches beyond the task, or the
# 400 or 404 that its owner gets as well.
OWN, BEYOND, FIXED, MISSING = 200, 403, 400, 404
HOURS = {"tz": "UTC", "from": "08:00", "to": "09:00"}
DROP = {"percent": 0.1, "windowMinutes": 60, "forMinutes": 120}
RULE = {"autolist": {"pricePercent": 1.1}, "start": True}
TRAIT = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
Decision = tuple[int, dict[str, Any]]

BIDDING: dict[str, Decision] = {
    "slug": (OWN, {"slug": "cats"}),
    "type": (OWN, {"type": "rune", "slug": "DOG"}),
    "bidMode": (OWN, {"bidMode": "fixed"}),
    "bidPercentLow": (OWN, {"bidPercentLow": 0.2}),
    "bidPercentHigh": (OWN, {"bidPercentHigh": 0.8}),
    "bidFixedLow": (OWN, {"bidFixedLow": 20_000}),
    "bidFixedHigh": (OWN, {"bidFixedHigh": 60_000}),
    "bidCount": (OWN, {"bidCount": 2}),
    "hardcapSats": (OWN, {"hardcapSats": 200_000}),
    "maxBidTotal": (OWN, {"maxBidTotal": 900_000}),
    "bidExpiryMinutes": (OWN, {"bidExpiryMinutes": 20}),
    "loopSeconds": (OWN, {"loopSeconds": 60}),
    "outbidEnabled": (OWN, {"outbidEnabled": True}),
    "outbidMode": (OWN, {"outbidMode": "percent"}),
    "outbidAmount": (OWN, {"outbidAmount": 2_000}),
    "outbidPercent": (OWN, {"outbidPercent": 0.02}),
    "updateBidEnabled": (OWN, {"updateBidEnabled": False}),
    "onlyBidIfHighest": (OWN, {"onlyBidIfHighest": True}),
    "bidType": (OWN, TRAIT),
    "traitType": (OWN, {"traitType": "Hat"}),
    "traitValue": (OWN, {"traitValue": "Red"}),
    "quantity": (OWN, {"quantity": 2}),
    "quantityMode": (OWN, {"quantityMode": "sats", "satsPerOrder": 5_000, "type": "rune", "slug": "DOG"}),
    "satsPerOrder": (OWN, {"satsPerOrder": 5_000}),
    "useVwap": (OWN, {"useVwap": True, "type": "rune", "slug": "DOG"}),
    "depthSats": (OWN, {"depthSats": 5_000}),
    "feeRate": (OWN, {"feeRate": 5}),
    "cancelOnStop": (OWN, {"cancelOnStop": False}),
    "maxFills": (OWN, {"maxFills": 3}),
    "spendCapSats": (OWN, {"spendCapSats": 900_000}),
    "dryRun": (OWN, {"dryRun": True}),
    "updateTolerance": (OWN, {"updateTolerance": 0.01}),
    "keepWithinGap": (OWN, {"keepWithinGap": 0.1}),
    "minAgeSeconds": (OWN, {"minAgeSeconds": 5}),
    "replaceMode": (OWN, {"replaceMode": "makeFirst"}),
    "bidLevels": (OWN, {"bidLevels": [{"at": 0.5, "count": 2}]}),
    "ladderShape": (OWN, {"ladderShape": "top"}),
    "pauseAfterFillSeconds": (OWN, {"pauseAfterFillSeconds": 5}),
    "maxFillsPerDay": (OWN, {"maxFillsPerDay": 2}),
    "spendCapPerDaySats": (OWN, {"spendCapPerDaySats": 900_000}),
    "onlyWhileFloorBetween": (OWN, {"onlyWhileFloorBetween": [1, 5]}),
    "pauseOnFloorDrop": (OWN, {"pauseOnFloorDrop": DROP}),
    "activeHours": (OWN, {"activeHours": HOURS}),
    "ignoreAddresses": (OWN, {"ignoreAddresses": [OWNER]}),
    "deliverTo": (BEYOND, {"deliverTo": "vault"}),  # the address that gets the goods
    "onFill": (BEYOND, {"onFill": RULE, "deliverTo": "vault"}),  # other tasks
    "budgetId": (BEYOND, {"budgetId": 1}),  # other tasks' limits
    "tags": (BEYOND, {"tags": ["all"]}),  # the tasks that their owner stops together
    "venue": (FIXED, {"venue": "ordnet"}),
}
LISTING: dict[str, Decision] = {
    "inscriptionId": (FIXED, {"inscriptionId": "7" * 64 + "i0"}),
    "collectionId": (OWN, {"collectionId": "cats"}),
    "priceMode": (OWN, {"priceMode": "undercut"}),
    "pricePercent": (OWN, {"pricePercent": 1.2}),
    "priceSats": (OWN, {"priceSats": 9_000}),
    "undercutSats": (OWN, {"undercutSats": 9}),
    "minPriceSats": (OWN, {"minPriceSats": 9_000}),
    "costSats": (OWN, {"costSats": 9_000}),
    "minMargin": (OWN, {"minMargin": 0.2}),
    "reference": (OWN, {"reference": "lastSale"}),
    "allowBelowReference": (OWN, {"allowBelowReference": True}),
    "traitType": (OWN, {"traitType": "Hat"}),
    "traitValue": (OWN, {"traitValue": "Red"}),
    "loopSeconds": (OWN, {"loopSeconds": 60}),
    "dryRun": (OWN, {"dryRun": True}),
    "priceSchedule": (OWN, {"priceSchedule": [{"afterHours": 1, "pricePercent": 1.1}]}),
    "ignoreAddresses": (OWN, {"ignoreAddresses": [OWNER]}),
    "venue": (FIXED, {"venue": "ordnet"}),
    "tags": (BEYOND, {"tags": ["all"]}),
}
# By scope: the two wider ones, another task's, and the task's own.
CONTROL: dict[str, Decision] = {
    "scope": (BEYOND, {"scope": "user", "state": "run"}),
    "taskId": (MISSING, {"scope": "task", "taskId": 999, "state": "halt"}),
    "state": (OWN, {"scope": "task", "state": "halt"}),
}
REACHED = {"changeTask": BIDDING, "changeAutolistTask": LISTING, "setControl": CONTROL}
CHANGING = [name for name, (method, _, _) in OPERATIONS.items() if method in ("PUT", "PATCH")]


def fields_of(name: str) -> set[str]:
    schema = body_of(name)
    assert schema is not None
    return set(schema["properties"])


def test_each_field_that_a_token_for_one_task_may_reach_has_a_decision() -> None:
    assert {name: set(decisions) for name, decisions in REACHED.items()} == {name: fields_of(name) for name in REACHED}
    for name, (_, path, _) in OPERATIONS.items():
        is_of_one_task = path.startswith(("/api/tasks/{id}", "/api/autolist/{id}", "/api/control"))
        assert (name in REACHED) == (is_of_one_task and name in CHANGING), name


async def new_row(service: Service, name: str) -> tuple[int, str, str]:
    """Returns a new task of the owner's, its address for this operation, and a token for it with every scope."""
    Task.delete().execute()
    row_id = await row_of(service, BY_NAME[name][1])
    return row_id, asked(BY_NAME[name], row_id)[0], api_token(service.user_id, "rtc", row_id)


@pytest.mark.parametrize("name", REACHED)
async def test_each_field_is_changed_or_refused_as_decided(service: Service, name: str) -> None:
    assert (await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"] == 1
    for field, (expected, body) in REACHED[name].items():
        row_id, url, token = await new_row(service, name)
        given = {"taskId": row_id} | body if name == "setControl" and field == "state" else body
        await service.api("GET", "/api/control", token=token)  # so that the token's use is noted already
        before = dump(service.settings.database_url)

        answer = await service.api("PUT", url, given, token=token)

        assert answer.status == expected, f"{field}: {answer.text}"
        assert (dump(service.settings.database_url) == before) == (expected != OWN), field
        if expected == BEYOND:
            assert answer.json["error"] == "Not allowed to this token"
            assert field in answer.names()
            assert (await service.ask("PUT", url, given)).status == 200, f"{field}: its owner may"


@pytest.mark.parametrize("name", [name for name in CHANGING if name not in REACHED])
async def test_no_field_of_another_operation_is_open_to_a_token_for_one_task(service: Service, name: str) -> None:
    row_id = await row_of(service, BY_NAME[name][1])
    (url, _), task_id = asked(BY_NAME[name], row_id), await service.new_task(slug="own")
    token = api_token(service.user_id, "rtc", task_id)
    await service.api("GET", "/api/control", token=token)
    before = dump(service.settings.database_url)

    for field in fields_of(name):
        answer = await service.api(BY_NAME[name][0], url, {field: None}, token=token)
        assert (answer.status, answer.json["error"]) == (403, "Not allowed to this token"), field
    assert dump(service.settings.database_url) == before


async def test_a_token_may_repeat_what_its_owner_set_and_start_that(service: Service) -> None:
    budget = (await service.ask("POST", "/api/budgets", {"name": "both"})).json["id"]
    owners = {"deliverTo": "vault", "onFill": RULE, "budgetId": budget, "tags": ["all"]}
    task_id = await service.new_task(**owners)
    token = api_token(service.user_id, "t", task_id)

    answer = await service.api("PUT", f"/api/tasks/{task_id}", owners | {"bidCount": 2}, token=token)

    assert answer.status == 200, answer.text
    assert (answer.json["config"]["bidCount"], answer.json["tags"]) == (2, ["all"])
    assert (await service.api("POST", f"/api/tasks/{task_id}/start", token=token)).status == 200
    nulls = {"onFill": None, "budgetId": None, "tags": [], "deliverTo": "ordinalsAddress"}
    for field, value in nulls.items():
        body = {"onFill": None, field: value} if field == "deliverTo" else {field: value}
        answer = await service.api("PUT", f"/api/tasks/{task_id}", body, token=token)
        assert (answer.status, field in answer.names()) == (403, True), answer.text


async def test_a_token_for_all_tasks_changes_what_one_for_a_task_may_not(service: Service) -> None:
    task_id = await service.new_task(deliverTo="vault")
    token = api_token(service.user_id, "t", None)
    for body in ({"onFill": RULE}, {"tags": ["all"]}, {"onFill": None, "deliverTo": "ordinalsAddress"}):
        assert (await service.api("PUT", f"/api/tasks/{task_id}", body, token=token)).status == 200
