"""A rune is stored under the name that the marketplace knows it by, where it can be asked."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import NotFound, Rune, Unavailable
from tests.server.conftest import Service
from tests.server.running_tasks import row

BARE = {"slug": "examplerune", "type": "rune", "hardcapSats": 1_000}
KNOWN = Rune("EXAMPLE•RUNE", 0, 1)


async def slug_of_new(service: Service, **fields: Any) -> str:
    answer = await service.ask("POST", "/api/tasks", BARE | fields)
    assert answer.status == 201, answer.text
    return str(answer.json["slug"])


async def test_a_ticker_without_bullets_gets_them(service: Service) -> None:
    service.gateway.answers["rune"] = KNOWN
    assert await slug_of_new(service) == "EXAMPLE•RUNE"
    again = await service.ask("POST", "/api/tasks", BARE | {"slug": "EXAMPLE•RUNE"})
    assert again.status == 409


@pytest.mark.parametrize("answer", [NotFound(), Unavailable(), Rune("ANOTHER•RUNE", 0, 1), Rune("EXAMPLERUNE", 0, 1)])
async def test_what_nobody_can_say_stays_as_it_was_typed(service: Service, answer: Any) -> None:
    service.gateway.answers["rune"] = answer
    assert await slug_of_new(service) == "EXAMPLERUNE"


async def test_a_spelled_ticker_and_a_collection_ask_nobody(service: Service) -> None:
    await slug_of_new(service, slug="SPELLED•ALREADY")
    await slug_of_new(service, slug="cats", type="ordinals")
    assert [request["verb"] for request in service.gateway.asked] == []


async def test_a_start_asks_again(service: Service) -> None:
    service.gateway.answers["rune"] = Unavailable()
    task = await service.new_task(**BARE)
    service.gateway.answers["rune"] = KNOWN
    answer = await service.ask("POST", f"/api/tasks/{task}/start")
    assert answer.json["slug"] == answer.json["config"]["slug"] == "EXAMPLE•RUNE"
    assert (row(task).slug, row(task).slug_key) == ("EXAMPLE•RUNE", "EXAMPLERUNE")


async def test_a_change_of_slug_is_spelled(service: Service) -> None:
    task = await service.new_task(slug="FIRST•RUNE", type="rune")
    service.gateway.answers["rune"] = KNOWN
    changed = await service.ask("PUT", f"/api/tasks/{task}", {"slug": "examplerune"})
    assert changed.json["slug"] == changed.json["config"]["slug"] == "EXAMPLE•RUNE"
