"""Traits that a collection does not have are refused where the marketplace says so, and only there."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from markets.base import NotFound, NotSupported, RateLimited, Unavailable
from markets.client import MarketClient
from server import task_handler
from server.task_handler import missing_trait
from tests.server.conftest import Service
from tests.server.running_tasks import row, started

RED_HAT = {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"}
CATALOGUE = {"Hat": {"Red": 3, "Reddish": 1, "Blue": 4}, "hat ": {"x": 1}, "Eyes": {"Laser": 1}}


def asked(service: Service) -> int:
    return [request["verb"] for request in service.gateway.asked].count("traits")


async def create(service: Service, **fields: Any) -> Any:
    return await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1_000} | fields)


@pytest.mark.parametrize(
    ("trait", "said"),
    [
        (("Hat", "Red"), None),
        (("Hta", "Red"), "traitType: the collection has no trait Hta; it has Hat, hat "),
        (("HAT", "Red"), "traitType: the collection has no trait HAT; it has Hat, hat "),
        (("Nose", "Red"), "traitType: the collection has no trait Nose"),
        (("Hat", "red"), "traitValue: the collection has no Hat red; it has Red, Reddish"),
        (("Hat", "Laser"), "traitValue: the collection has no Hat Laser"),
    ],
)
def test_a_detail_names_what_is_nearly_the_same(trait: tuple[str, str], said: str | None) -> None:
    assert missing_trait(trait, CATALOGUE) == said


async def test_an_unknown_trait_is_refused_at_create_put_start_and_preview(service: Service) -> None:
    wrong = RED_HAT | {"traitValue": "Redd"}
    task_id = await service.new_task(**RED_HAT)

    for answer in (
        await create(service, slug="other", **wrong),
        await create(service, **wrong),  # there is a task for this slug: 400 comes before 409
        await service.ask("PUT", f"/api/tasks/{task_id}", wrong),
        await service.ask("POST", "/api/tasks/preview", {"slug": "goosinals", "hardcapSats": 1_000} | wrong),
    ):
        assert (answer.status, answer.details) == (400, ["traitValue: the collection has no Hat Redd; it has Red"])
    service.gateway.answers["traits"] = {"Hat": {"Blue": 1}}
    start = await service.ask("POST", f"/api/tasks/{task_id}/start")

    assert (start.status, start.names()) == (400, {"traitValue"})
    assert (row(task_id).desired, row(task_id).last_error) == ("stopped", start.details[0])
    assert service.manager.settled == []


@pytest.mark.parametrize(
    "said", [NotFound(), NotSupported(), RateLimited(9), Unavailable(), {}], ids=lambda said: type(said).__name__
)
async def test_a_market_that_does_not_tell_refuses_nothing(service: Service, said: Any) -> None:
    service.gateway.answers["traits"] = said

    created = await create(service, **RED_HAT)
    start = await service.ask("POST", f"/api/tasks/{created.json['id']}/start")

    assert (created.status, start.status) == (201, 200)


async def test_a_market_that_hangs_refuses_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_handler, "PATIENCE_S", 0.05)
    over = threading.Event()

    def hang(self: MarketClient, slug: str, max_age_s: float) -> Any:
        over.wait(20)
        return {"Hat": {"Blue": 1}}

    monkeypatch.setattr(MarketClient, "traits", hang)
    try:
        assert (await create(service, **RED_HAT)).status == 201
    finally:
        over.set()


async def test_only_who_asks_for_a_trait_anew_is_checked(service: Service) -> None:
    await create(service, slug="plain")
    assert asked(service) == 0
    task_id = await started(service, **RED_HAT)
    before = asked(service)

    await service.ask("PUT", f"/api/tasks/{task_id}", {"bidCount": 2})
    unchanged = asked(service) - before
    await service.ask("PUT", f"/api/tasks/{task_id}", {"traitValue": "Blue"})
    await service.ask("PUT", f"/api/tasks/{task_id}", {"bidType": "collection", "traitValue": "None such"})

    assert (unchanged, asked(service) - before) == (0, 1)
