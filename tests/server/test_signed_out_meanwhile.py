"""Tokens that are ended while a request of theirs waits, or is about to write: it has no effect any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from models import accounts, users
from models.accounts import ApiToken
from models.ledger.withdrawals import Withdrawal
from models.tasks.tasks import RUNNING, Task
from models.users import Control, Session
from server import task_handler
from server.autolist import AutolistTasks
from server.http.services import ManagerClient
from server.withdrawal_plan import WithdrawalPlanner
from tests.server.conftest import OWNER, Service
from tests.server.peers import keys_of
from tests.server.test_sign_in import challenge_for, proof_of
from tests.server.withdrawals.chain import Chain, coin

UNAUTHORIZED = (401, {"error": "Unauthorized"})
TRAIT = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
LISTING = {"inscriptionId": "6" * 64 + "i0", "collectionId": "dogs"}


def then_ends(monkeypatch: pytest.MonkeyPatch, service: Service, of: Any, name: str) -> None:
    """Has the owner sign out everywhere right after the wait in `of.name`, as another server process may do it."""
    waited: Callable[..., Any] = getattr(of, name)

    async def wait(*given: Any, **more: Any) -> Any:
        found = await waited(*given, **more)
        accounts.end_sessions(service.user_id)
        return found

    monkeypatch.setattr(of, name, wait)


def everything() -> list[Any]:
    return [list(table.select().dicts()) for table in (Task, Control, Withdrawal)]


@pytest.mark.parametrize(
    ("method", "path", "body", "is_running"),
    [
        ("POST", "/api/tasks/{}/start", None, False),
        ("PUT", "/api/tasks/{}", {"hardcapSats": 5_000_000}, True),
        ("DELETE", "/api/tasks/{}", None, True),
        ("PUT", "/api/autolist/{}", {"priceSats": 5}, True),
    ],
)
async def test_no_worker_is_started_changed_or_deleted_after_a_wait_for_the_manager(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any, is_running: bool
) -> None:
    is_listing = "autolist" in path
    made = await service.ask("POST", "/api/autolist", LISTING) if is_listing else None
    task_id = made.json["id"] if made else await service.new_task()
    if is_running:
        Task.update(desired=RUNNING, observed=RUNNING).execute()
    before = everything()
    then_ends(monkeypatch, service, ManagerClient, "ready")
    if is_listing:
        monkeypatch.setattr("server.autolist.startable_collection", same_collection)

    answer = await service.ask(method, path.format(task_id), body)

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert (everything(), service.manager.settled) == (before, [])


async def test_a_listing_that_rests_is_not_deleted_after_its_look_at_the_market(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = (await service.ask("POST", "/api/autolist", LISTING)).json["id"]
    before = everything()
    then_ends(monkeypatch, service, AutolistTasks, "before_hiding")

    answer = await service.ask("DELETE", f"/api/autolist/{task_id}")

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before


async def same_collection(handler: Any, task: Any, config: Any, collection_id: str | None) -> str | None:
    return collection_id


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/tasks"), ("PUT", "/api/tasks/{}")])
async def test_no_task_is_made_or_changed_after_a_wait_for_the_market(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    async def known(*given: Any) -> None:
        accounts.end_sessions(service.user_id)

    task_id = await service.new_task()
    before = everything()
    monkeypatch.setattr(task_handler, "refuse_unknown_trait", known)

    body = TRAIT | ({"slug": "hats", "hardcapSats": 5} if method == "POST" else {})
    answer = await service.ask(method, path.format(task_id), body)

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before


async def test_no_state_is_loosened_after_a_wait_for_the_signer(service: Service) -> None:
    await service.ask("PUT", "/api/control", {"scope": "user", "state": "halt"})
    before, told = everything(), []

    def end(state: str) -> None:
        told.append(state)
        accounts.end_sessions(service.user_id)

    service.signer.before_control = end
    answer = await service.ask("PUT", "/api/control", {"scope": "user", "state": "run"})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert everything() == before
    assert told == ["run", "halt"], "the signer is back to the stricter state"


async def test_nothing_is_withdrawn_after_a_wait_for_the_chain(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain(service)
    chain.put(keys_of(OWNER)["payment"], coin(1))
    then_ends(monkeypatch, service, WithdrawalPlanner, "plan")

    answer = await service.ask("POST", "/api/wallet/withdraw", {"from": "payment"})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert (Withdrawal.select().count(), chain.sent) == (0, [])


async def test_no_token_is_made_while_the_owner_signs_out_everywhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thief's request was let in; another process ends everything before it writes."""
    add = accounts.add_token

    def late(*given: Any, **more: Any) -> Any:
        accounts.end_sessions(service.user_id)
        return add(*given, **more)

    monkeypatch.setattr(accounts, "add_token", late)
    answer = await service.ask("POST", "/api/tokens", {"name": "bot", "scopes": ["trade"]})

    assert (answer.status, answer.json) == UNAUTHORIZED
    assert ApiToken.select().count() == 0


async def test_no_session_is_opened_while_the_owner_signs_out_everywhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, find = proof_of(await challenge_for(service)), users.find_or_create

    def late(*given: Any) -> Any:
        accounts.end_sessions(service.user_id)
        return find(*given)

    monkeypatch.setattr(users, "find_or_create", late)
    answer = await service.api("POST", "/api/auth/verify", proof)

    assert answer.status == 401
    assert Session.select().where(Session.user == service.user_id).count() == 0
