"""What answers show of collections on the way is kept, bounded, for people to choose from; no call is made for it."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from gateway.reads.told import KEPT_MS, MOST_KEPT, Directory
from markets.base import Known
from markets.ordinalswallet import books as ordinalswallet
from markets.ordnet import reads as ordnet
from markets.satflow import items as satflow
from markets.told import Told, tell, telling
from markets.unisat import wire as unisat
from tests.gateway.conftest import Bench

ITEM = "ab" * 32 + "i0"
NOW = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW

    def __call__(self) -> int:
        return self.now_ms


def heard(read: Any, *given: Any, **more: Any) -> list[Told]:
    found: list[Told] = []
    with telling(found.append):
        read(*given, **more)
    return found


def test_satflow_shows_names_in_wallets_items_and_traits() -> None:
    row = {
        "collection": {"id": "cats", "name": "Cool Cats"},
        "token": {"inscription_id": ITEM, "image_url": "https://cdn.example/1.png"},
        "listing": None,
    }
    wallet = {"success": True, "data": {"results": {"ordinals": [row]}, "nextCursor": None}}
    cats = Told("ordinals", "cats", name="Cool Cats", item=ITEM, image_url="https://cdn.example/1.png")
    assert heard(satflow.wallet_items, wallet, is_first=True) == [cats]
    told = {"id": "cats", "name": "Cool Cats", "category_attributes": []}
    traits = {"success": True, "data": {"collection": [told]}}
    assert heard(satflow.catalogue, traits, "cats") == [Told("ordinals", "cats", name="Cool Cats")]


def test_unisat_shows_every_collection_of_its_list_with_volume_and_icon() -> None:
    def row(slug: str, icon: str) -> dict[str, Any]:
        return {
            "collectionId": slug,
            "name": slug.title(),
            "icon": icon,
            "btcValue": 3_000,
            "floorPrice": 5,
            "listed": 1,
        }

    link = "https://cdn.example/frogs.png"
    answer = {"code": 0, "msg": "ok", "data": {"list": [row("frogs", link), row("puppets", ITEM)], "total": 2}}
    frogs, puppets = heard(unisat.listed_floor, answer, "puppets")
    assert frogs == Told("ordinals", "frogs", name="Frogs", volume=3_000, image_url=link, is_public=True)
    assert puppets == Told("ordinals", "puppets", name="Puppets", volume=3_000, item=ITEM)


def test_ordnet_and_ordinals_wallet_show_what_they_document() -> None:
    listing = {"listingId": "12345678", "inscriptionId": ITEM, "priceSats": 5_000, "sellerAddress": "bc1pseller"}
    listing["collection"] = {"slug": "wizards", "name": "Wizards"}
    page = {"listings": [listing], "pagination": {"hasNext": False}}
    assert heard(ordnet.asks, page, "wizards", is_first=True) == [
        Told("ordinals", "wizards", name="Wizards", item=ITEM)
    ]
    stats = {"floor_price": 16_000, "listed": 2, "volume_total": 77_000}
    assert heard(ordinalswallet.floor, stats, "wizards", "ordinals") == [Told("ordinals", "wizards", volume=77_000)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<b>x</b>", "<b>x</b>"),
        ("a\u202eb\x00c", "abc"),
        ("   ", None),
        (7, None),
        ("x" * 5_000, "x" * 200),
        (None, None),
    ],
)
def test_a_hostile_name_is_cut_to_what_can_be_shown(name: Any, shown: str | None) -> None:
    assert heard(tell, "cats", name=name)[0].name == shown


@pytest.mark.parametrize("slug", [None, "", 5, "x" * 201, "a\nb", ["cats"]])
def test_what_has_no_slug_is_not_noted(slug: Any) -> None:
    assert heard(tell, slug, name="Cats") == []


@pytest.mark.parametrize(
    "odd", ["http://plain.example/1.png", "javascript:alert(1)", "data:image/png;base64,AA", 5, {}]
)
def test_only_a_link_is_a_picture(odd: Any) -> None:
    assert heard(tell, "cats", image=odd, item=odd, volume=odd if odd != 5 else "x")[0] == Told("ordinals", "cats")


def test_only_the_thread_that_reads_is_heard() -> None:
    found: list[Told] = []
    with telling(found.append):
        other = threading.Thread(target=tell, args=("cats",))
        other.start()
        other.join()
    assert found == []


def test_the_directory_joins_what_it_hears_and_keeps_the_first_face() -> None:
    directory = Directory(Clock())
    directory.note(Told("ordinals", "Cats", name="Cool Cats", image_url="https://a.example/1.png"))
    directory.note(Told("ordinals", "cats", floor=Decimal(5_000), listed=3, image_url="https://a.example/2.png"))
    directory.note(Told("ordinals", "cats", volume=9))
    [known] = directory.of("ordinals", ["CATS"])
    assert known == Known(
        "ordinals", "cats", "Cool Cats", Decimal(5_000), NOW, 3, 9, None, "https://a.example/1.png", NOW
    )
    directory.note(Told("ordinals", "cats", listed=0))
    assert directory.of("ordinals", ["cats"])[0].floor is None, "nothing is listed any more"
    assert directory.of("runes", ["cats"]) == []


def test_the_directory_is_bounded_in_number_and_age() -> None:
    clock = Clock()
    directory = Directory(clock)
    for number in range(MOST_KEPT + 50):
        directory.note(Told("ordinals", f"c{number}"))
    assert len(directory) == MOST_KEPT
    assert directory.of("ordinals", ["c0"]) == [] and directory.of("ordinals", [f"c{MOST_KEPT}"])
    clock.now_ms += KEPT_MS + 1
    assert directory.named("ordinals", "") == []


def test_a_part_of_a_name_finds_the_most_traded_first_and_runes_without_bullets() -> None:
    directory = Directory(Clock())
    directory.note(Told("ordinals", "small-cats", name="Small"))
    directory.note(Told("ordinals", "felines", name="Big Cats", volume=5))
    directory.note(Told("runes", "DOG•GO•TO•THE•MOON"))
    assert [each.slug for each in directory.named("ordinals", "CATS")] == ["felines", "small-cats"]
    for typed in ("doggo to", "DOG•GO", "goto"):
        assert [each.slug for each in directory.named("runes", typed)] == ["DOG•GO•TO•THE•MOON"], typed


def test_what_a_user_asked_for_is_not_shown_to_all() -> None:
    directory = Directory(Clock())
    directory.note(Told("ordinals", "wanted", floor=Decimal(5), listed=1))
    directory.note(Told("ordinals", "shown", is_public=True))
    directory.note(Told("ordinals", "shown", volume=5))
    assert [each.slug for each in directory.named("ordinals", "", only_public=True)] == ["shown"]


def test_a_floor_that_a_task_reads_is_in_the_picker_without_a_further_call(bench: Bench) -> None:
    floors = "/collection-stats/floors"
    bench.venue.answers[floors] = {"data": [{"slug": "cats", "floor": 7_000, "listedCount": 3}]}
    client = bench.client()
    client.floors(["cats"], "ordinals", 60)
    calls = len(bench.venue.calls)
    [cats] = client.collections("ordinals", part="ca")
    assert (cats.slug, cats.floor, cats.listed) == ("cats", Decimal(7_000), 3)
    assert client.collections("ordinals", ["cats", "dogs"]) == (cats,)
    assert client.collections("runes", part="") == ()
    assert client.trait_floors("cats") is None
    assert len(bench.venue.calls) == calls


def test_traits_have_the_floors_of_the_book_that_was_read(bench: Bench) -> None:
    def row(price: int, hat: str) -> dict[str, Any]:
        traits = [{"trait_type": "Hat", "value": hat}]
        return {"_id": f"{price:024d}", "inscriptionId": "1i0", "price": price, "attributes": traits}

    rows = [row(5_000, "Red"), row(6_000, "Red"), row(7_000, "Blue")]
    bench.venue.answers["/activity/listings"] = {
        "success": True,
        "data": {"items": rows, "pagination": {"page": 1, "totalPages": 1}},
    }
    client = bench.client()
    client.asks("cats", 60)
    found = client.trait_floors("cats")
    assert found is not None
    assert set(found.floors) == {("Hat", "Red", 5_000), ("Hat", "Blue", 7_000)}
