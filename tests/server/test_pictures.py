"""The pictures of inscriptions as a browser gets them: what is answered, under which headers, at what cost."""

from __future__ import annotations

import asyncio
import base64
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from markets.base import PICTURE_LACKS, PICTURE_MEDIA, Instead, Item, NoPicture, NotFound, TooManyLookups, Unavailable
from models.users import Session
from server.http.blocking import A_MINUTE
from server.inscriptions import drawn
from tests.server.ledger_rows import INSCRIPTION, item
from tests.worlds.service import Answer, Service

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
PATH = f"/api/autolist/item/{INSCRIPTION}/image"
SHUT = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def told(media: str = "image/png", data: bytes = PNG) -> dict[str, str]:
    return {"type": "picture", "media": media, "data": base64.b64encode(data).decode()}


def asked(service: Service, verb: str = "picture") -> list[dict[str, Any]]:
    return [request["args"] for request in service.gateway.asked if request["verb"] == verb]


async def known(service: Service, **fields: Any) -> None:
    """Has the caller's inscriptions read, with one among them."""
    service.gateway.answers["wallet_contents"] = lambda address: (item(**fields),)
    assert (await service.ask("GET", "/api/autolist/wallet/ordinals")).status == 200


def shut(answer: Answer) -> dict[str, str]:
    return {name: answer.headers.get(name) for name in SHUT}


@pytest.mark.parametrize("media", PICTURE_MEDIA)
async def test_a_picture_is_answered_as_what_it_is_and_as_nothing_else(service: Service, media: str) -> None:
    await known(service)
    service.gateway.answers["picture"] = told(media)

    answer = await service.ask("GET", PATH)

    assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, PNG, media)
    assert shut(answer) == SHUT
    assert answer.headers["Cache-Control"] == "private, max-age=86400"
    assert "Set-Cookie" not in answer.headers and "Access-Control-Allow-Origin" not in answer.headers


async def test_its_address_is_as_the_venue_told_it_and_the_venue_is_not_asked_again(service: Service) -> None:
    await known(service)
    service.clock.now_ms += 3_600_000
    service.gateway.asked.clear()
    for _ in range(3):
        await service.ask("GET", PATH)
    assert [request["verb"] for request in service.gateway.asked] == ["picture"] * 3
    assert asked(service)[0] == {"inscription_id": INSCRIPTION, "url": "https://example.org/1.png"}


async def test_an_inscription_never_seen_is_looked_up_once_as_its_own_route_does(service: Service) -> None:
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, image_url="https://example.org/2.png")
    await service.ask("GET", PATH)
    await service.ask("GET", PATH)
    assert len(asked(service, "item")) == 1
    assert [each["url"] for each in asked(service)] == ["https://example.org/2.png"] * 2
    assert (await service.ask("GET", PATH.removesuffix("/image"))).status == 200
    assert len(asked(service, "item")) == 1, "its details are kept as well"


@pytest.mark.parametrize(
    ("fault", "status"), [(NotFound("gone"), 404), (TooManyLookups(4, "so often"), 429), (Unavailable("away"), 502)]
)
async def test_a_look_up_that_fails_is_answered_as_on_its_own_route(
    service: Service, fault: Exception, status: int
) -> None:
    service.gateway.answers["item"] = fault
    answer = await service.ask("GET", PATH)
    alike = await service.ask("GET", PATH.removesuffix("/image"))
    assert (answer.status, answer.json) == (alike.status, alike.json)
    assert answer.status == status
    assert answer.headers["Cache-Control"] == "no-store"
    assert asked(service) == []


async def test_one_whose_venue_tells_no_address_costs_no_look_up(service: Service) -> None:
    await known(service, image_url=None)
    service.gateway.answers["picture"] = NoPicture("none")
    answer = await service.ask("GET", PATH)
    assert answer.status == 200 and b">no picture<" in answer.body
    assert asked(service) == [{"inscription_id": INSCRIPTION, "url": None}]
    assert asked(service, "item") == []


@pytest.mark.parametrize("instead", PICTURE_LACKS)
async def test_in_place_of_anything_else_a_drawing_says_so(service: Service, instead: Instead) -> None:
    await known(service)
    service.gateway.answers["picture"] = NoPicture(instead)

    answer = await service.ask("GET", PATH)

    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/svg+xml")
    assert shut(answer) == SHUT
    kept = 60 if instead == "unreachable" else 3_600
    assert answer.headers["Cache-Control"] == f"private, max-age={kept}"
    assert answer.body == drawn(INSCRIPTION, instead)


@pytest.mark.parametrize("instead", PICTURE_LACKS)
def test_the_drawing_is_plain_xml_without_anything_that_runs_or_loads(instead: Instead) -> None:
    drawing = drawn(INSCRIPTION, instead)
    root = ET.fromstring(drawing)
    assert {each.tag.partition("}")[2] for each in root.iter()} == {"svg", "rect", "text"}
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on") or "href" in name]
    words = [each.text for each in root.iter() if each.text]
    assert words == [root.attrib["aria-label"]]
    assert drawn(INSCRIPTION, instead) == drawing
    assert drawn("8" * 64 + "i0", instead) != drawing


async def test_with_the_gateway_away_the_drawing_is_for_a_minute(service: Service) -> None:
    await known(service)
    service.gateway.answers["picture"] = Unavailable("its turn did not come")
    first = await service.ask("GET", PATH)
    await service.gateway.stop()
    second = await service.ask("GET", PATH)
    for answer in (first, second):
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "private, max-age=60")
        assert b">no picture<" in answer.body


@pytest.mark.parametrize(
    "strange",
    [told("text/html", b"<script>"), told("image/svg+xml"), {"type": "none", "instead": "<script>"}, {}, None],
)
async def test_a_gateway_that_tells_another_type_is_not_believed(service: Service, strange: Any) -> None:
    await known(service)
    service.gateway.answers["picture"] = strange
    answer = await service.ask("GET", PATH)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/svg+xml")
    assert answer.body == drawn(INSCRIPTION, "unreachable")


async def test_an_unchanged_picture_is_not_sent_again(service: Service) -> None:
    await known(service)
    service.gateway.answers["picture"] = told()
    first = await service.ask("GET", PATH)
    same = {"If-None-Match": first.headers["Etag"]}
    again = await service.api("GET", PATH, token=service.token, headers=same)
    service.gateway.answers["picture"] = told(data=PNG + b"x")
    changed = await service.api("GET", PATH, token=service.token, headers=same)
    head = await service.api("HEAD", PATH, token=service.token)

    assert (again.status, again.body) == (304, b"")
    assert shut(again)["Content-Security-Policy"] == SHUT["Content-Security-Policy"]
    assert (changed.status, changed.body) == (200, PNG + b"x")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(PNG) + 1))


async def test_whoever_is_not_signed_in_any_more_gets_no_picture(service: Service) -> None:
    await known(service)
    answered = asyncio.Event()

    def sign_out(**_: Any) -> dict[str, str]:

        Session.delete().execute()
        answered.set()
        return told()

    service.gateway.answers["picture"] = sign_out
    assert (await service.ask("GET", PATH)).status == 401
    assert answered.is_set()


async def test_a_page_of_sixty_at_once_is_fine(service: Service) -> None:
    await known(service)
    service.gateway.answers["picture"] = told()
    answers = await asyncio.gather(*(service.ask("GET", PATH) for _ in range(60)))
    assert {(each.status, each.body) for each in answers} == {(200, PNG)}


async def test_a_flood_is_429_for_its_user_alone_and_other_looks_go_on(service: Service) -> None:
    await known(service)
    service.gateway.answers["picture"] = told()
    limit = service.app.settings["services"].pictures
    for _ in range(A_MINUTE - 1):
        limit.count(service.user_id)
    last = await service.ask("GET", PATH)
    flood = await service.ask("GET", PATH)
    other = await service.api("GET", PATH, token=service.other_token)

    assert (last.status, flood.status, other.status) == (200, 429, 200)
    assert 1 <= int(flood.headers["Retry-After"]) <= 60
    assert flood.json["message"] == "A user may ask for 600 pictures a minute."
    assert (await service.ask("GET", "/api/autolist/wallet/ordinals?refresh=1")).status == 200


async def test_more_at_once_than_may_wait_are_429(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await known(service)
    service.gateway.answers["picture"] = told()
    monkeypatch.setattr(service.app.settings["services"].pictures._seats._looks, "_waiting", 6)
    answers = await asyncio.gather(*(service.ask("GET", PATH) for _ in range(40)))
    refused = [each for each in answers if each.status == 429]
    assert refused and refused[0].headers["Retry-After"] == "2"
    assert {each.body for each in answers if each.status == 200} == {PNG}


@pytest.mark.parametrize("text", ["x", "%00", "..%2f..", "G" * 64 + "i0", "7" * 64 + "i"])
async def test_what_is_no_inscription_id_is_404(service: Service, text: str) -> None:
    answer = await service.ask("GET", f"/api/autolist/item/{text}/image")
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/json")
    assert service.gateway.asked == []
