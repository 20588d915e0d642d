"""Rights: every operation of the route table for every kind of caller."""

from __future__ import annotations

import re
import secrets

import pytest

from markets.base import Item
from models.accounts import ApiToken
from models.presets import Preset
from models.tasks.tasks import Task
from models.users import IDLE_MS
from tests.server.driver import OPERATIONS
from tests.server.matrix import CALLERS, INSCRIPTION, MATRIX, OPEN, C, R, T, api_token, call, operations, row_of
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Service, new_user, token_of, with_settings


def test_the_matrix_lists_exactly_the_route_table() -> None:
    assert sorted(MATRIX) == sorted(operations())
    assert len(MATRIX) == 24 + 72


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
