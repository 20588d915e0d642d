"""Auto-list tasks under test: made, started, asked, and with a listing in the ledger."""

from __future__ import annotations

from typing import Any

from markets.base import Whereabouts
from models.ledger.states import CANCELLED, CLOSED, LIVE, Listing
from models.tasks.tasks import Task
from tests.server.driver import check
from tests.worlds.service import OWNER, START_MS, Answer, Service, keys_of

INSCRIPTION = "c" * 64 + "i0"
OUTPOINT = "d" * 64 + ":0"
VAULT = keys_of(OWNER)["vault"]


def row(task_id: int) -> Task:
    return Task.get_by_id(task_id)


async def new_task(service: Service, **fields: Any) -> int:
    body = {"inscriptionId": INSCRIPTION, "collectionId": "goosinals", "minPriceSats": 10_000} | fields
    answer = await service.ask("POST", "/api/autolist", body)
    assert answer.status == 201, answer.text
    return int(answer.json["id"])


async def call(service: Service, method: str, task_id: int, more: str = "", body: Any = None) -> Answer:
    answer: Answer = await service.ask(method, f"/api/autolist/{task_id}{more}", body)
    names = {"POST/start": "startAutolistTask", "POST/stop": "stopAutolistTask", "DELETE": "deleteAutolistTask"}
    name = names.get(method + more) or {"GET": "getAutolistTask", "PUT": "changeAutolistTask"}[method]
    check(name, answer)
    return answer


async def started(service: Service, **fields: Any) -> int:
    task_id = await new_task(service, **fields)
    answer = await call(service, "POST", task_id, "/start")
    assert answer.status == 200, answer.text
    return task_id


def lies_at(service: Service, address: str | None) -> None:
    found = Whereabouts(INSCRIPTION, OUTPOINT, address, 546, START_MS)
    service.gateway.answers["whereabouts"] = found


def listed(service: Service, task_id: int, price: int = 100_000, state: str = LIVE, number: int = 1) -> Listing:
    """Returns the task's listing as its worker has it in the ledger; `state` closed has the reason cancelled."""
    return Listing.create(
        intent=f"{number:064x}",
        task_id=task_id,
        user_id=service.user_id,
        venue="simulator",
        wallet=VAULT,
        inscription_id=INSCRIPTION,
        slug="goosinals",
        outpoint=OUTPOINT,
        price_sats=price,
        token=row(task_id).token,
        revision=1,
        state=state,
        close_reason=CANCELLED if state == CLOSED else None,
        created_ms=START_MS,
        updated_ms=START_MS,
        signed_ms=START_MS - 60_000,
        listed_ms=START_MS - 60_000,
    )


def cancels_listings(service: Service) -> None:
    """Does the drain worker's part for deleted tasks."""

    def cancel() -> None:
        hidden = Task.select(Task.id).where(Task.deleted_ms.is_null(False))
        ended = {"state": CLOSED, "close_reason": CANCELLED, "closed_ms": START_MS + 1}
        Listing.update(ended).where(Listing.task_id.in_(hidden), Listing.state == LIVE).execute()

    service.manager.before_settling = cancel
