"""Pictures of inscriptions as their owner's browser gets them: the whole service, and the practice market's own."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
import requests

from cli.demo import gifts
from simulator.wallets import Item, Kind, content_of, kind_of
from tests.e2e.installation import Installation, Trader

pytestmark = pytest.mark.slow
SLUG = "quantum-cats-demo"


def of_kind(kind: Kind) -> str:
    """Returns the id of a new inscription with such content."""
    return next(each for _ in count() if kind_of(each := f"{secrets.token_hex(32)}i0") == kind)


def hold(service: Installation, trader: Trader, inscriptions: list[str]) -> None:
    """Puts inscriptions into the trader's vault, and has the trader look at it."""
    vault = trader.ok("GET", "/api/wallet")["vault"]
    items = [{"id": each, "collection": SLUG} for each in inscriptions]
    service.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": items})
    shown = trader.ok("GET", "/api/autolist/wallet/ordinals?refresh=1")
    assert {each["id"] for each in shown} >= set(inscriptions)


def image(trader: Trader, inscription: str) -> requests.Response:
    return trader.call("GET", f"/api/autolist/item/{inscription}/image")


def fetched(service: Installation, inscription: str) -> int:
    """Returns how often the practice market was asked for it."""
    found: int = service.sim("GET", "/sim/requests")["content"].get(inscription, 0)
    return found


def looked_up(service: Installation) -> tuple[Any, ...]:
    """Returns the questions to the marketplace about inscriptions and wallets so far."""
    asked = service.sim("GET", "/sim/requests")
    return asked.get("item"), asked.get("wallet")


def test_a_picture_is_shown_and_fetched_once_for_ever(service: Installation, trader: Trader) -> None:
    inscription = of_kind("picture")
    hold(service, trader, [inscription])

    first, second = image(trader, inscription), image(trader, inscription)

    drawn = content_of(Item(inscription, SLUG, "")).data
    assert first.status_code == second.status_code == 200
    assert first.content == second.content == drawn
    assert first.headers["Content-Type"] == "image/png"
    assert first.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert fetched(service, inscription) == 1
    [kept] = [each for each in (service.data_dir / "pictures").iterdir() if each.read_bytes() == drawn]
    assert kept.stat().st_mode & 0o777 == 0o600
    same = trader.session.get(first.url, headers={"If-None-Match": first.headers["ETag"]}, timeout=30)
    assert (same.status_code, same.content) == (304, b"")


@pytest.mark.parametrize(("kind", "word"), [("svg", "SVG"), ("text", "text"), ("large", "too large")])
def test_other_content_is_a_drawing_that_says_so(service: Installation, trader: Trader, kind: Kind, word: str) -> None:
    inscription = of_kind(kind)
    hold(service, trader, [inscription])

    answers = [image(trader, inscription) for _ in range(2)]

    for answer in answers:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/svg+xml")
        assert f">{word}<" in answer.text
        assert answer.headers["Cache-Control"] == "private, max-age=3600"
    assert fetched(service, inscription) == 1


def test_one_that_cannot_be_had_now_is_a_drawing_for_a_minute(service: Installation, trader: Trader) -> None:
    inscription = of_kind("picture")
    hold(service, trader, [inscription])
    service.sim("PUT", "/sim/faults", [{"operation": "content", "mode": "error_500", "count": 1}])

    answer = image(trader, inscription)

    assert ">no picture<" in answer.text
    assert answer.headers["Cache-Control"] == "private, max-age=60"


def test_a_page_of_sixty_is_shown_and_costs_the_marketplace_no_look_up(service: Installation, trader: Trader) -> None:
    inscriptions = [of_kind("picture") for _ in range(60)]
    hold(service, trader, inscriptions)
    before = looked_up(service)

    # As many at a time as a browser asks for: tests/server and tests/gateway have all sixty at once.
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda each: image(trader, each), inscriptions))

    assert [(each.status_code, each.headers["Content-Type"]) for each in found] == [(200, "image/png")] * 60
    assert len({each.content for each in found}) > 55
    assert looked_up(service) == before
    assert all(fetched(service, each) == 1 for each in inscriptions)


def test_one_that_is_somebody_elses_is_looked_up_as_its_details_are(service: Installation, trader: Trader) -> None:
    inscription = of_kind("picture")
    ask = {"price": 5_000, "inscriptionId": inscription}
    service.sim("PUT", f"/sim/collections/{SLUG}", {"asks": [ask], "bids": []})
    assert image(trader, inscription).content == content_of(Item(inscription, SLUG, "")).data
    assert image(trader, of_kind("picture")).status_code == 404
    assert requests.get(f"{service.url}/api/autolist/item/{inscription}/image", timeout=30).status_code == 401


def test_the_demos_gifts_are_shown(service: Installation, trader: Trader) -> None:
    vault = trader.ok("GET", "/api/wallet")["vault"]
    service.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": gifts(vault, "bitcoin-puppets-demo")})
    shown = trader.ok("GET", "/api/autolist/wallet/ordinals?refresh=1")

    media = [image(trader, each["id"]).headers["Content-Type"] for each in shown]

    assert (media.count("image/png"), media.count("image/svg+xml")) == (6, 3)
    assert {each["name"].partition(" #")[0] for each in shown} == {"Bitcoin Puppets", "Quantum Cats", "Nodemonkes"}
