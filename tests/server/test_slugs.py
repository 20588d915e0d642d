"""The search of what one has had to do with: from one's own matters only, and without a call."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from core.fields import iso
from models import venue_memory
from models.database import base
from models.tasks.cycles import Sample, add_sample
from server import market
from tests.server.api import START_MS, new_user
from tests.server.conftest import OWNER, Service
from tests.server.driver import check
from tests.server.trades import bought

MINUTE_MS = 60_000


async def search(service: Service, query: str = "", token: str | None = None) -> Any:
    answer = await service.api("GET", f"/api/tasks/slugs{query}", token=service.token if token is None else token)
    check("searchSlugs", answer)
    return answer.json


def names(found: Any) -> list[str]:
    return [each["slug"] for each in found["slugs"]]


def in_wallet(*collections: tuple[str, str]) -> None:
    lines = [json.dumps({"collectionId": slug, "collectionName": name}) for slug, name in collections]
    venue_memory.store_wallet(OWNER, "\n".join(lines), {}, START_MS)


async def test_everything_own_is_found_with_its_sources(service: Service) -> None:
    task = await service.new_task(slug="goosinals")
    await service.ask("POST", "/api/autolist", {"inscriptionId": "6" * 64 + "i0", "collectionId": "bitcoin-frogs"})
    preset = {"slug": "DOG•GO", "type": "rune", "hardcapSats": 5}
    await service.ask("POST", "/api/presets", {"name": "p", "config": preset})
    bought(service.user_id, 10_000, task_id=task)
    bought(service.user_id, 10_000, slug="omb")
    in_wallet(("goosinals", "The Goosinals"), ("nodemonkes", "NodeMonkes"), ("", ""))
    with base.transaction():
        add_sample(task, Sample(Decimal(87_300)), START_MS - 10 * MINUTE_MS)
        add_sample(task, Sample(Decimal(88_000)), START_MS - 5 * MINUTE_MS)
        add_sample(task, Sample(), START_MS)
    asked = len(service.gateway.asked)

    found = await search(service)

    by_slug = {each["slug"]: each for each in found["slugs"]}
    assert by_slug["goosinals"] == {
        "slug": "goosinals",
        "type": "ordinals",
        "name": "The Goosinals",
        "taskId": task,
        "sources": ["task", "order", "wallet"],
        "floor": 88_000,
        "floorAt": iso((START_MS - 5 * MINUTE_MS) // MINUTE_MS * MINUTE_MS),
    }
    assert {slug: each["sources"] for slug, each in by_slug.items() if slug != "goosinals"} == {
        "bitcoin-frogs": ["task"],
        "omb": ["order"],
        "DOG•GO": ["preset"],
        "nodemonkes": ["wallet"],
    }
    assert (by_slug["DOG•GO"]["type"], by_slug["nodemonkes"]["name"]) == ("rune", "NodeMonkes")
    assert len(service.gateway.asked) == asked and found["isWhole"] is True


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?q=frog", ["frogs-eve", "bitcoin-frogs"]),  # the one that begins with it first
        ("?q=FROG", ["frogs-eve", "bitcoin-frogs"]),
        ("?q=dogg", ["DOG•GO"]),
        ("?q=dog%E2%80%A2g", ["DOG•GO"]),
        ("?q=puppets", ["x-551"]),  # by its name
        ("?q=o&type=rune", ["DOG•GO"]),
        ("?q=o&type=ordinals", ["bitcoin-frogs", "frogs-eve", "x-551"]),
        ("?q=nothing", []),
    ],
)
async def test_a_part_of_slug_or_name_is_enough(service: Service, query: str, expected: list[str]) -> None:
    await service.new_task(slug="bitcoin-frogs")
    await service.new_task(slug="frogs-eve")
    await service.new_task(slug="DOG•GO", type="rune")
    in_wallet(("x-551", "Bitcoin Puppets"))
    assert names(await search(service, query)) == expected


async def test_nobody_learns_what_others_trade(service: Service) -> None:
    await service.new_task(slug="goosinals")
    in_wallet(("nodemonkes", "NodeMonkes"))
    assert names(await search(service, token=service.other_token)) == []


async def test_more_than_fit_are_told_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market, "MOST_SLUGS", 2)
    for slug in ("aa", "ab", "ac"):
        await service.new_task(slug=slug)
    found = await search(service, "?q=a")
    assert (names(found), found["isWhole"]) == (["aa", "ab"], False)


@pytest.mark.parametrize("query", ["?q=", "?type=cats", f"?q={'x' * 201}"])
async def test_a_bad_search_is_refused(service: Service, query: str) -> None:
    answer = await service.ask("GET", f"/api/tasks/slugs{query}")
    check("searchSlugs", answer)
    assert answer.status == 400


async def test_a_new_user_finds_nothing(service: Service) -> None:
    new_user(OWNER)
    assert await search(service) == {"slugs": [], "isWhole": True}
