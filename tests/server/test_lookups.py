"""Look-ups: floors, rune markets, inscriptions, slugs, traits and tickers."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from typing import Any

import pytest

from core.fields import iso
from markets.base import AskBook, Item, NotFound, NotSupported, RateLimited, Rune, Unavailable
from markets.client import MarketClient
from models import venue_memory
from models.database import base
from models.tasks.cycles import Sample, add_sample
from models.venue_memory import Inscription
from server import app, market, task_handler
from server.inscriptions import KEPT_MS
from server.task_handler import missing_trait
from strategy.book import Ask
from tests.server.driver import check
from tests.server.ledger_rows import INSCRIPTION, bought, item, row, started
from tests.worlds.service import OWNER, START_MS, Service, keys_of, new_user

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


async def test_a_new_user_finds_nothing(service: Service) -> None:
    new_user(OWNER)
    assert await search(service) == {"slugs": [], "isWhole": True}


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
