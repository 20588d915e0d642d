"""Floor, rune market, inscriptions: what venues say, and what is said when they do not."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.base import AskBook, Item, NotFound, RateLimited
from models.venue_memory import Inscription
from server import app
from server.inscriptions import KEPT_MS
from strategy.book import Ask
from tests.server.conftest import OWNER, Service
from tests.server.peers import keys_of
from tests.server.wallet_items import INSCRIPTION, item

UNREADABLE = "The marketplace cannot be read"


def ask(tokens: int, unit: str) -> Ask:
    return Ask("x", 1, Decimal(tokens), Decimal(unit), "seller")


async def test_floor_answers_price_and_count(service: Service) -> None:
    there = await service.ask("GET", "/api/tasks/floor?slug=goosinals")
    empty = await service.ask("GET", "/api/tasks/floor?slug=empty&type=ordinals")
    unknown = await service.ask("GET", "/api/tasks/floor?slug=nobody-knows")

    assert (there.status, there.json) == (200, {"floorPrice": 87_300, "listedCount": 12})
    assert (empty.status, empty.json) == (200, {"floorPrice": None, "listedCount": 0})
    assert unknown.status == 404


@pytest.mark.parametrize("path", ["/api/tasks/floor", "/api/market/book"])
async def test_query_without_slug_names_its_other_faults_as_well(service: Service, path: str) -> None:
    answer = await service.ask("GET", f"{path}?venue=satflow")

    assert (answer.status, answer.names()) == (400, {"slug", "venue"})


async def test_prices_below_a_millionth_are_written_digit_for_digit(service: Service) -> None:
    service.gateway.answers["rune_asks"] = AskBook((ask(3, "0.000000125"),), 1)

    answer = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")

    assert answer.json["floor"] == Decimal("0.000000125")
    assert "0.000000125" in answer.text


async def test_floor_of_a_rune_asks_for_runes(service: Service) -> None:
    await service.ask("GET", "/api/tasks/floor?slug=DOG%E2%80%A2GO&type=rune")

    assert service.gateway.asked[-1]["args"] == {"slugs": ["DOG•GO"], "kind": "runes"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "slug"),
        ("?slug=", "slug"),
        ("?slug=a%2Fb", "slug"),
        ("?slug=%00", "slug"),
        ("?slug=%FF%FE", "slug"),
        ("?slug=a%0d%0aX:y", "slug"),
        ("?slug=" + "a" * 201, "slug"),
        ("?slug=a&slug=b", "slug"),
        ("?slug=a&type=runes", "type"),
        ("?slug=a&type=", "type"),
        ("?slug=a-b&type=rune", "slug"),
    ],
)
async def test_floor_refuses_bad_queries(service: Service, query: str, field: str) -> None:
    answer = await service.ask("GET", f"/api/tasks/floor{query}")

    assert answer.status == 400
    assert field in answer.names()
    assert service.gateway.asked == []


async def test_the_market_of_a_rune(service: Service) -> None:
    asks = (ask(400_000, "1.00"), ask(300_000, "1.10"), ask(800_000, "1.20"))
    service.gateway.answers["rune_asks"] = AskBook(asks, 1)

    deep = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG%E2%80%A2GO")
    thin = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG&depth=9000000")
    service.gateway.answers["rune_asks"] = AskBook(asks, 1, None, 1, 1)
    unsure = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")

    assert deep.json == {
        "ticker": "DOG•GO",
        "floor": 1,
        "vwap": Decimal("1.0810810810810810811"),
        "depthSats": 1_000_000,
    }
    assert thin.json["depthSats"] == 400_000 + 330_000 + 960_000
    assert thin.json["vwap"] == Decimal("1.1266666666666666667")
    assert (unsure.json["floor"], unsure.json["vwap"]) == (1, None), "a lot that could not be read would lower it"


async def test_a_rune_without_asks_has_no_price_and_an_unknown_one_is_404(service: Service) -> None:
    empty = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")
    without_asks = await service.ask("GET", "/api/tasks/rune-market?ticker=NONE")
    service.gateway.answers["rune_asks"] = NotFound("no such rune")
    unknown = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")

    assert (empty.status, empty.json) == (200, {"ticker": "DOG", "floor": None, "vwap": None, "depthSats": 0})
    assert (without_asks.status, unknown.status) == (404, 404)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "ticker"),
        ("?ticker=a-b", "ticker"),
        *((f"?ticker=DOG&depth={bad}", "depth") for bad in ("0", "-1", "1.5", "1e6", "x", "", "9" * 30, "%D9%A3")),
    ],
)
async def test_rune_market_refuses_bad_queries(service: Service, query: str, field: str) -> None:
    answer = await service.ask("GET", f"/api/tasks/rune-market{query}")

    assert (answer.status, answer.names()) == (400, {field})


@pytest.mark.parametrize(
    "path",
    [
        "/api/tasks/floor?slug=goosinals",
        "/api/tasks/rune-market?ticker=DOG",
        "/api/tasks/{task}/bids",
        "/api/autolist/wallet/ordinals",
        f"/api/autolist/item/{INSCRIPTION}",
    ],
)
async def test_a_market_that_cannot_be_read_is_502(service: Service, path: str) -> None:
    task_id = await service.new_task()
    service.gateway.down = True

    answer = await service.ask("GET", path.format(task=task_id))

    assert (answer.status, answer.json) == (502, {"error": UNREADABLE, "message": "the venue does not answer"})


async def test_a_gateway_that_is_away_is_503_and_a_paused_one_502(service: Service) -> None:
    service.gateway.answers["floors"] = lambda **_: RateLimited(30)
    paused = await service.ask("GET", "/api/tasks/floor?slug=goosinals")
    await service.gateway.stop()
    service.gateway.path.unlink()
    away = await service.ask("GET", "/api/tasks/floor?slug=goosinals")

    assert (paused.status, away.status) == (502, 503)


async def test_wallet_ordinals_shows_both_addresses_and_is_kept_five_minutes(service: Service) -> None:
    service.gateway.answers["wallet_contents"] = lambda address: (item(),) if address == OWNER else (item(id="b"),)

    first = await service.ask("GET", "/api/autolist/wallet/ordinals")
    service.gateway.answers["wallet_contents"] = ()
    service.clock.now_ms += 299_000
    kept = await service.ask("GET", "/api/autolist/wallet/ordinals")
    fresh = await service.ask("GET", "/api/autolist/wallet/ordinals?refresh=1")

    assert first.json[0] == {
        "id": INSCRIPTION,
        "name": "Goosinal #1",
        "collectionId": "goosinals",
        "collectionName": "Goosinals",
        "imageUrl": "https://example.org/1.png",
        "listed": True,
        "listingPrice": 100_000,
        "address": OWNER,
    }
    assert [entry["address"] for entry in first.json] == [OWNER, keys_of(OWNER)["vault"]]
    assert kept.json == first.json
    assert fresh.json == []


async def test_wallet_ordinals_shows_at_most_500_and_tames_what_venues_write(service: Service) -> None:
    strange = item(name='\u202e<b>\n\x00"', image_url="javascript:alert(1)", collection_name="x" * 600)
    service.gateway.answers["wallet_contents"] = (strange,) * 500

    answer = await service.ask("GET", "/api/autolist/wallet/ordinals")

    assert len(answer.json) == 500
    assert answer.json[0]["name"] == '<b>"'
    assert answer.json[0]["imageUrl"] is None
    assert len(answer.json[0]["collectionName"]) == 500


async def test_wallet_ordinals_without_signer_is_503(service: Service) -> None:
    await service.signer.stop()

    assert (await service.ask("GET", "/api/autolist/wallet/ordinals")).status == 503


async def test_an_inscription_is_told_in_our_words_and_kept(service: Service) -> None:
    service.gateway.answers["item"] = Item(
        INSCRIPTION,
        listed=True,
        number=7,
        name="O\x07ne",
        collection_id="goosinals",
        collection_name="Goosinals",
        content_url="https://example.org/c",
        content_type="image/png",
        owner=OWNER,
        location="a:0:0",
        output_value=546,
        listing_price=9_000,
        seller=OWNER,
        traits=(("Hat", "Red"), ("\x07", "x")),
    )
    first = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")
    service.gateway.answers["item"] = NotFound("gone")
    kept = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")
    still = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}?refresh=1")
    service.clock.now_ms += 20_001
    fresh = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}?refresh=1")
    task = await service.ask("POST", "/api/autolist", {"inscriptionId": INSCRIPTION})

    assert first.status == 200
    assert (first.json["collectionId"], first.json["listingPrice"], first.json["owner"]) == ("goosinals", 9_000, OWNER)
    assert (first.json["name"], first.json["imageUrl"]) == ("One", None)
    assert first.json["traits"] == [{"type": "Hat", "value": "Red"}]
    assert kept.json == first.json
    assert still.json == first.json, "nobody can have it read again and again"
    assert fresh.status == 404
    assert task.json["collectionId"] == "goosinals"


async def test_details_that_are_too_old_to_be_told_leave_the_database(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "now_ms", service.clock.ms)
    image = "https://example.org/1.png"
    service.gateway.answers["item"] = Item(INSCRIPTION, listed=False, collection_id="cats", image_url=image)
    told = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")
    service.clock.now_ms += KEPT_MS - 1
    await app._purge()
    kept = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")
    asked = len(service.gateway.asked)
    service.clock.now_ms += 1
    await app._purge()
    row = Inscription.get_by_id(INSCRIPTION)
    again = await service.ask("GET", f"/api/autolist/item/{INSCRIPTION}")

    assert kept.json == told.json
    assert (row.detail, row.collection_id, row.image_url) == (None, "cats", image)
    assert (again.json, len(service.gateway.asked)) == (told.json, asked + 1)


@pytest.mark.parametrize("text", ["x", "%00", "%FF", "..%2f..", "G" * 64 + "i0", "7" * 64 + "i", "7" * 5000])
async def test_what_is_no_inscription_id_is_404(service: Service, text: str) -> None:
    assert (await service.ask("GET", f"/api/autolist/item/{text}")).status == 404
    assert service.gateway.asked == []
