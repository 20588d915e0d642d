"""What there is to choose from: one's own first, what the marketplace showed, and nothing of what others trade."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest

from core.fields import iso
from markets.base import Known, NotFound, NotSupported, TraitFloors
from models.users import User
from server import collections
from tests.server.driver import check
from tests.server.ledger_rows import bought
from tests.server.test_lookups import in_wallet
from tests.worlds.service import START_MS, Service

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
PICTURE = {"type": "picture", "media": "image/png", "data": base64.b64encode(PNG).decode()}
FROGS = Known(
    "ordinals", "frogs", "Bitcoin Frogs", Decimal(698_000), START_MS, 72, 900, None, "https://a.example/f.png", START_MS
)
CATS = Known("ordinals", "cats", told_ms=START_MS)
PUPPETS = Known("ordinals", "puppets", volume=5_000, told_ms=START_MS)


def shows(service: Service, *known: Known) -> list[dict[str, Any]]:
    """Has the gateway know these; returns what it is asked."""
    asked: list[dict[str, Any]] = []

    def answer(**args: Any) -> tuple[Known, ...]:
        asked.append(args)
        return tuple(each for each in known if args.get("part") is not None or each.slug in args["slugs"])

    service.gateway.answers["collections"] = answer
    return asked


async def search(service: Service, query: str = "") -> Any:
    answer = await service.ask("GET", f"/api/market/collections{query}")
    check("searchCollections", answer)
    return answer.json


async def test_ones_own_come_first_then_volume_then_names(service: Service) -> None:
    await service.new_task(slug="zebras")
    shows(service, CATS, FROGS, PUPPETS)
    found = await search(service)
    assert [each["slug"] for each in found["collections"]] == ["zebras", "puppets", "frogs", "cats"]
    assert (found["isWhole"], found["venue"]) == (True, "simulator")
    frogs = found["collections"][2]
    assert frogs == {
        "slug": "frogs",
        "type": "ordinals",
        "name": "Bitcoin Frogs",
        "picture": "/api/market/picture?venue=simulator&type=ordinals&slug=frogs",
        "floor": 698_000,
        "floorAt": iso(START_MS),
        "listed": 72,
        "volumeSats": 900,
        "toldAt": iso(START_MS),
        "isOwn": False,
        "taskId": None,
    }


async def test_own_past_is_there_while_the_gateway_is_away(service: Service) -> None:
    bought(service.user_id, 10_000, slug="omb")
    in_wallet(("nodemonkes", "NodeMonkes"))
    service.gateway.down = True
    found = await search(service)
    assert [(each["slug"], each["name"]) for each in found["collections"]] == [
        ("nodemonkes", "NodeMonkes"),
        ("omb", None),
    ]
    assert [each["slug"] for each in (await search(service, "?q=monkes"))["collections"]] == ["nodemonkes"]


async def test_at_most_twenty_are_shown(service: Service) -> None:
    shows(service, *(Known("ordinals", f"c{n:02}", told_ms=START_MS) for n in range(21)))
    found = await search(service, "?q=c")
    assert (len(found["collections"]), found["isWhole"]) == (collections.MOST_FOUND, False)


async def test_among_several_users_only_what_is_public_is_asked_for(service: Service) -> None:
    asked = shows(service)
    assert User.select().count() > 1
    await search(service, "?q=frogs")
    assert asked[-1]["only_public"] is True
    User.delete().where(User.id != service.user_id).execute()
    await search(service, "?q=frogs")
    assert "only_public" not in asked[-1]


@pytest.mark.parametrize("query", ["?venue=nowhere", "?type=coin", "?q=", "?more=1"])
async def test_a_wrong_query_is_refused(service: Service, query: str) -> None:
    assert (await service.ask("GET", f"/api/market/collections{query}")).status == 400


async def test_faces_are_of_ones_own_tasks_alone_and_one_question_a_venue(service: Service) -> None:
    asked = shows(service, FROGS, CATS, Known("ordinals", "others", "Others", told_ms=START_MS))
    for slug in ("frogs", "cats"):
        await service.new_task(slug=slug)
    answer = await service.ask("GET", "/api/market/faces")
    check("listFaces", answer)
    [face] = answer.json
    assert (face["slug"], face["name"]) == ("frogs", "Bitcoin Frogs"), "nothing is known of the cats"
    assert len(asked) == 1 and asked[0]["slugs"] == ["cats", "frogs"]


async def test_a_wallet_names_what_the_gateway_forgot(service: Service) -> None:
    in_wallet(("monkes", "NodeMonkes"))
    await service.new_task(slug="monkes")
    service.gateway.down = True
    [face] = (await service.ask("GET", "/api/market/faces")).json
    assert (face["slug"], face["name"], face["picture"]) == ("monkes", "NodeMonkes", None)


async def test_the_picture_goes_the_way_of_all_pictures(service: Service) -> None:
    shows(service, FROGS)
    service.gateway.answers["picture"] = PICTURE
    answer = await service.ask("GET", "/api/market/picture?slug=frogs")
    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, PNG, "image/png")
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    [told] = [each["args"] for each in service.gateway.asked if each["verb"] == "picture"]
    assert told == {"inscription_id": None, "url": "https://a.example/f.png"}
    assert (await service.ask("GET", "/api/market/picture?slug=unknown")).status == 404


async def traits(service: Service) -> Any:
    answer = await service.ask("GET", "/api/market/traits?slug=goosinals")
    check("listTraits", answer)
    return answer.json


async def test_traits_have_counts_and_floors(service: Service) -> None:
    service.gateway.answers["trait_floors"] = TraitFloors((("Hat", "Red", 5_000), ("Hat", "Odd", 9_000)), START_MS)
    found = await traits(service)
    assert found["types"] == [
        {"type": "Eyes", "values": [{"value": "Laser", "count": 1, "floorSats": None}]},
        {
            "type": "Hat",
            "values": [
                {"value": "Odd", "count": None, "floorSats": 9_000},
                {"value": "Red", "count": 3, "floorSats": 5_000},
                {"value": "Blue", "count": 4, "floorSats": None},
            ],
        },
    ]
    assert (found["floorsAt"], found["unknown"], found["isWhole"]) == (iso(START_MS), None, True)


async def test_without_a_catalogue_the_field_stays_free(service: Service) -> None:
    service.gateway.answers["traits"] = NotSupported("it does not show traits")
    found = await traits(service)
    assert (found["types"], found["unknown"]) == (None, "it does not show traits")
    service.gateway.answers["traits"] = NotFound("no such collection")
    assert (await service.ask("GET", "/api/market/traits?slug=goosinals")).status == 404
