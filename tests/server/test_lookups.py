"""Floor, rune market, live bids, inscriptions, wallet: what venues say, and what is said when they do not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from markets.base import (
    AskBook,
    Balance,
    BidBook,
    Item,
    NotFound,
    OwnBid,
    OwnBids,
    RateLimited,
    Unavailable,
    WalletItem,
)
from models.ledger.order_table import Order
from models.tasks.table import Task
from server.bidding.bids import rank_of
from strategy.book import Ask, Bid
from tests.server.api import START_MS
from tests.server.conftest import OWNER, Service
from tests.server.peers import keys_of
from tests.server.test_running import open_order

INSCRIPTION = "7" * 64 + "i0"
UNREADABLE = "The marketplace cannot be read"


def ask(tokens: int, unit: str) -> Ask:
    return Ask("x", 1, Decimal(tokens), Decimal(unit), "seller")


@pytest.mark.gen_test
async def test_floor_answers_price_and_count(service: Service) -> None:
    there = await service.ask("GET", "/api/tasks/floor?slug=goosinals")
    empty = await service.ask("GET", "/api/tasks/floor?slug=empty&type=ordinals")
    unknown = await service.ask("GET", "/api/tasks/floor?slug=nobody-knows")

    assert (there.status, there.json) == (200, {"floorPrice": 87_300, "listedCount": 12})
    assert (empty.status, empty.json) == (200, {"floorPrice": None, "listedCount": 0})
    assert unknown.status == 404


@pytest.mark.gen_test
async def test_floor_of_a_rune_asks_for_runes(service: Service) -> None:
    await service.ask("GET", "/api/tasks/floor?slug=DOG%E2%80%A2GO&type=rune")

    assert service.gateway.asked[-1]["args"] == {"slugs": ["DOG•GO"], "kind": "runes"}


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_the_market_of_a_rune(service: Service) -> None:
    asks = (ask(400_000, "1.00"), ask(300_000, "1.10"), ask(800_000, "1.20"))
    service.gateway.answers["rune_asks"] = AskBook(asks, 1)

    deep = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG%E2%80%A2GO")
    thin = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG&depth=9000000")

    assert deep.json == {
        "ticker": "DOG•GO",
        "floor": 1,
        "vwap": Decimal("1.0810810810810810811"),
        "depthSats": 1_000_000,
    }
    assert thin.json["depthSats"] == 400_000 + 330_000 + 960_000
    assert thin.json["vwap"] == Decimal("1.1266666666666666667")


@pytest.mark.gen_test
async def test_a_rune_without_asks_has_no_price_and_an_unknown_one_is_404(service: Service) -> None:
    empty = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")
    without_asks = await service.ask("GET", "/api/tasks/rune-market?ticker=NONE")
    service.gateway.answers["rune_asks"] = NotFound("no such rune")
    unknown = await service.ask("GET", "/api/tasks/rune-market?ticker=DOG")

    assert (empty.status, empty.json) == (200, {"ticker": "DOG", "floor": None, "vwap": None, "depthSats": 0})
    assert (without_asks.status, unknown.status) == (404, 404)


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_a_gateway_that_is_away_or_paused_is_502(service: Service) -> None:
    service.gateway.answers["floors"] = lambda **_: RateLimited(30)
    paused = await service.ask("GET", "/api/tasks/floor?slug=goosinals")
    await service.gateway.stop()
    service.gateway.path.unlink()
    away = await service.ask("GET", "/api/tasks/floor?slug=goosinals")

    assert (paused.status, away.status) == (502, 502)


def bid_book(*rows: tuple[str, int, int | None]) -> BidBook:
    return BidBook(tuple(Bid(i, price, Decimal(1), Decimal(price), "m", at) for i, price, at in rows), 1)


@pytest.mark.gen_test
async def test_bids_are_those_of_this_task_with_their_rank(service: Service) -> None:
    task_id = await service.new_task()
    order = open_order(service, task_id, 3)
    other = await service.new_task(slug="other")
    foreign = open_order(service, other, 4)

    def own(venue_id: str, price: int, expires_ms: int | None) -> OwnBid:
        return OwnBid(venue_id, "goosinals", "ordinals", price, None, expires_ms, None)

    service.gateway.answers["own_bids"] = OwnBids(
        (own("mine", 30_000, order.expires_ms), own("other's", 40_000, foreign.expires_ms), own("unheard", 1, 5)), 1
    )
    service.gateway.answers["bids"] = bid_book(("rival", 31_000, 1), ("mine", 30_000, 10), ("late", 30_000, 11))

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    assert answer.status == 200, answer.text
    assert answer.json == [
        {
            "id": "mine",
            "price": 30_000,
            "quantity": 1,
            "quantityLeft": 1,
            "slug": "goosinals",
            "type": "ordinals",
            "trait": None,
            "expiresAt": "2025-11-20T12:15:00.000Z",
            "rank": 2,
            "isHighest": False,
            "rankUnknown": None,
        }
    ]
    reads = {request["verb"]: request for request in service.gateway.asked}
    assert reads["own_bids"]["args"] == {"wallet": "bc1qpayment", "slugs": ["goosinals"]}
    assert reads["own_bids"]["venue"] == reads["bids"]["venue"] == "simulator"
    assert reads["own_bids"]["max_age_s"] <= 2 and reads["bids"]["max_age_s"] <= 2


@pytest.mark.gen_test
async def test_a_bid_in_a_book_that_is_not_understood_stands_nobody_knows_where(service: Service) -> None:
    task_id = await service.new_task()
    order = open_order(service, task_id, 3)
    own = OwnBid("mine", "goosinals", "ordinals", 30_000, None, order.expires_ms, None)
    service.gateway.answers["own_bids"] = OwnBids((own,), 1)
    service.gateway.answers["bids"] = lambda **_: Unavailable("none of 3 bids is one on the whole")

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    (bid,) = answer.json
    assert (answer.status, bid["id"], bid["rank"], bid["isHighest"]) == (200, "mine", None, None)
    assert bid["rankUnknown"] == "none of 3 bids is one on the whole"


@pytest.mark.gen_test
async def test_a_trait_bid_competes_with_those_on_its_trait_and_shows_what_is_left(service: Service) -> None:
    task_id = await service.new_task()
    plain, hat = open_order(service, task_id, 3), open_order(service, task_id, 4)
    Order.update(trait_type="Hat", trait_value="Red", quantity="4").where(Order.id == hat.id).execute()
    service.gateway.answers["own_bids"] = OwnBids(
        (
            OwnBid("plain", "goosinals", "ordinals", 30_000, None, plain.expires_ms, None),
            OwnBid("hat", "goosinals", "ordinals", 40_000, Decimal(1), hat.expires_ms, None),
        ),
        1,
    )
    books = {None: bid_book(("plain", 30_000, 1)), ("Hat", "Red"): bid_book(("rival", 10_001, 1), ("plain", 30_000, 1))}
    service.gateway.answers["bids"] = lambda trait=None, **_: books[tuple(trait) if trait else None]

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    shown = {bid["id"]: bid for bid in answer.json}
    assert (shown["plain"]["rank"], shown["plain"]["trait"], shown["plain"]["quantityLeft"]) == (1, None, 1)
    assert shown["hat"]["trait"] == {"type": "Hat", "value": "Red"}
    assert (shown["hat"]["rank"], shown["hat"]["isHighest"]) == (3, False), "by unit price"
    assert (shown["hat"]["quantity"], shown["hat"]["quantityLeft"]) == (4, 1)


@pytest.mark.gen_test
async def test_bids_left_on_a_former_slug_rank_there_and_dry_ones_are_nowhere(service: Service) -> None:
    task_id = await service.new_task()
    order, dry = open_order(service, task_id, 3), open_order(service, task_id, 4)
    Order.update(dry_run=True, venue_id="dry-1", wallet="bc1qdry").where(Order.id == dry.id).execute()
    await service.ask("PUT", f"/api/tasks/{task_id}", {"slug": "elsewhere"})
    own = OwnBid("old", "goosinals", "ordinals", 30_000, None, order.expires_ms, None)
    service.gateway.answers["own_bids"] = OwnBids((own,), 1)

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    assert [(bid["id"], bid["slug"]) for bid in answer.json] == [("old", "goosinals")]
    asked = [(request["verb"], request["args"]) for request in service.gateway.asked]
    assert ("own_bids", {"wallet": "bc1qdry"}) not in asked
    assert [args["slug"] for verb, args in asked if verb == "bids"] == ["goosinals"]


@pytest.mark.gen_test
async def test_a_task_without_orders_asks_for_the_bids_of_its_payment_address(service: Service) -> None:
    task_id = await service.new_task()

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    assert (answer.status, answer.json) == (200, [])
    wallets = [r["args"]["wallet"] for r in service.gateway.asked if r["verb"] == "own_bids"]
    assert wallets == [keys_of(OWNER)["payment"]]


@pytest.mark.parametrize(
    ("book", "rank"),
    [
        ([], 1),
        ([("rival", 99, 1)], 1),
        ([("rival", 101, 9)], 2),
        ([("rival", 100, 4)], 2),
        ([("rival", 100, 6)], 1),
        ([("rival", 100, None)], 2),
        ([("rival", 100, 4), ("me", 100, 3)], 1),
        ([("me", 100, 7), ("rival", 100, 6)], 2),
        ([("a", 102, 1), ("b", 101, 1), ("me", 100, 5), ("c", 100, 5)], 4),
    ],
)
def test_rank_counts_higher_bids_and_older_equal_ones(book: list[tuple[str, int, int | None]], rank: int) -> None:
    assert rank_of("me", Decimal(100), 5, bid_book(*book).bids) == rank


def item(**fields: Any) -> WalletItem:
    values = {
        "id": INSCRIPTION,
        "name": "Goosinal #1",
        "collection_id": "goosinals",
        "collection_name": "Goosinals",
        "image_url": "https://example.org/1.png",
        "listed": True,
        "listing_price": 100_000,
    }
    return WalletItem(**(values | fields))


@pytest.mark.gen_test
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


@pytest.mark.gen_test
async def test_wallet_ordinals_shows_at_most_500_and_tames_what_venues_write(service: Service) -> None:
    strange = item(name='\u202e<b>\n\x00"', image_url="javascript:alert(1)", collection_name="x" * 600)
    service.gateway.answers["wallet_contents"] = (strange,) * 500

    answer = await service.ask("GET", "/api/autolist/wallet/ordinals")

    assert len(answer.json) == 500
    assert answer.json[0]["name"] == '<b>"'
    assert answer.json[0]["imageUrl"] is None
    assert len(answer.json[0]["collectionName"]) == 500


@pytest.mark.gen_test
async def test_wallet_ordinals_without_signer_is_503(service: Service) -> None:
    await service.signer.stop()

    assert (await service.ask("GET", "/api/autolist/wallet/ordinals")).status == 503


@pytest.mark.gen_test
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


@pytest.mark.gen_test
@pytest.mark.parametrize("text", ["x", "%00", "%FF", "..%2f..", "A" * 64 + "i0", "7" * 64 + "i", "7" * 5000])
async def test_what_is_no_inscription_id_is_404(service: Service, text: str) -> None:
    assert (await service.ask("GET", f"/api/autolist/item/{text}")).status == 404
    assert service.gateway.asked == []


@pytest.mark.gen_test
async def test_the_wallet_shows_addresses_balance_and_exposure(service: Service) -> None:
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 123_456, START_MS)
    keys = keys_of(OWNER)

    answer = await service.ask("GET", "/api/wallet")

    assert answer.json == {
        "payment": keys["payment"],
        "vault": keys["vault"],
        "ordinalsAddress": OWNER,
        "biddingWallet": {"address": "bc1qmultisig", "balanceSats": 123_456},
        "exposure": 0,
        "worstLoss": 123_456,
        "ifAllFillNow": 0,
        "signedSats": 0,
        "signedLimitSats": 200_000_000,
        "signedFreeAt": None,
        "paymentSats": 0,
        "funding": [
            {
                "venue": "simulator",
                "from": "bidding",
                "address": "bc1qmultisig",
                "balanceSats": 123_456,
                "backs": "bids are backed by the bidding wallet: a script of the marketplace's key and the user's",
                "wayOut": 'withdraw from "bidding": the marketplace signs too; the sats arrive at the payment address',
            },
            {
                "venue": "simulator-ordnet",
                "from": "payment",
                "address": keys["payment"],
                "balanceSats": 0,
                "backs": "bids are paid with whole coins of the payment address: one coin for each bid, a little above "
                "its price",
                "wayOut": 'withdraw from "payment": the user\'s key alone moves them',
            },
        ],
        "withdrawals": [],
    }


@pytest.mark.gen_test
async def test_the_wallet_shows_what_is_signed_and_when_room_comes_back(service: Service) -> None:
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 123_456, START_MS)
    service.signer.signed_sats, service.signer.frees_ms = 70_000, 1_800_000_061_000

    answer = await service.ask("GET", "/api/wallet")

    assert (answer.json["signedSats"], answer.json["signedLimitSats"]) == (70_000, 200_000_000)
    assert answer.json["signedFreeAt"] == "2027-01-15T08:01:01.000Z"


@pytest.mark.gen_test
async def test_a_wallet_that_is_not_there_can_lose_nothing(service: Service) -> None:
    service.gateway.answers["balance"] = NotFound()

    answer = await service.ask("GET", "/api/wallet")

    assert (answer.json["biddingWallet"], answer.json["worstLoss"], answer.json["ifAllFillNow"]) == (None, 0, 0)
    assert answer.json["balanceError"]


@pytest.mark.gen_test
async def test_the_wallet_is_shown_without_the_venue_but_not_without_the_signer(service: Service) -> None:
    service.gateway.down = True
    no_venue = await service.ask("GET", "/api/wallet")
    service.signer.state = "locked"
    locked = await service.ask("GET", "/api/wallet")
    await service.signer.stop()
    away = await service.ask("GET", "/api/wallet")

    assert no_venue.status == 200
    assert (no_venue.json["biddingWallet"], no_venue.json["balanceError"]) == (None, "the venue does not answer")
    assert [(row["address"], row["balanceSats"]) for row in no_venue.json["funding"]] == [
        (None, None),
        (keys_of(OWNER)["payment"], None),
    ]
    assert no_venue.json["worstLoss"] is None and no_venue.json["ifAllFillNow"] is None
    assert (locked.status, locked.json["error"]) == (503, "The signer is locked")
    assert (away.status, away.json["error"]) == (503, "The signer cannot be asked")
    assert Task.select().count() == 0
