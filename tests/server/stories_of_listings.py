"""What is done with auto-list tasks until each described status was answered."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import OutpointFacts, Whereabouts
from markets.orders import ListingDraft
from models import accounts
from models.tasks import tasks
from tests.server.api import START_MS
from tests.server.autolist_tasks import listed
from tests.server.conftest import OWNER, Service
from tests.server.driver import Driver
from tests.server.peers import keys_of
from tests.server.stories_of_tasks import Full
from tests.server.wallet_items import INSCRIPTION
from tests.shapes import replace


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
