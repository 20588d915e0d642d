"""The order book over HTTP, and a task's live bids in it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.base import AskBook, BidBook, NotSupported, OwnBid, OwnBids, Unavailable
from models.ledger.states import Order
from strategy.book import Ask, Bid
from tests.server.driver import check
from tests.server.ledger_rows import open_order
from tests.server.test_preview import EXAMPLE, preview, with_floor
from tests.worlds.service import OWNER, START_MS, Service, keys_of


def ask(price: int, maker: str = "seller", quantity: int = 1, number: int = 0) -> Ask:
    return Ask(f"ask-{price}-{number}", price, Decimal(quantity), Decimal(price) / quantity, maker)


def bid(price: int, maker: str = "rival", order_id: str = "", quantity: str = "1") -> Bid:
    tokens = Decimal(quantity)
    return Bid(order_id or f"bid-{price}-{maker}", price, tokens, price / tokens, maker, None)


def level(
    price: float, quantity: float = 1, orders: int = 1, own: float = 0, own_orders: int | None = None
) -> dict[str, float]:
    """Returns a level; of single items as many are the caller's own as orders."""
    ours = int(own) if own_orders is None else own_orders
    return {"unitPrice": price, "quantity": quantity, "orders": orders, "own": own, "ownOrders": ours}


async def test_levels_are_shown_best_first_with_the_callers_own(service: Service) -> None:
    task = await service.new_task()
    order = open_order(service, task, 3)
    Order.update(venue_id="mine", wallet=keys_of(OWNER)["payment"]).where(Order.id == order.id).execute()
    vault = keys_of(OWNER)["vault"]
    service.gateway.answers["asks"] = AskBook((ask(90_000), ask(80_000), ask(90_000, vault, number=1)), START_MS)
    service.gateway.answers["bids"] = BidBook((bid(60_000), bid(70_000), bid(60_000, "x", "mine")), START_MS)

    answer = await service.ask("GET", "/api/market/book?slug=goosinals")

    check("getBook", answer)
    side = {"takenAt": "2025-11-20T12:00:00.000Z", "isWhole": True}
    assert answer.json == {
        "slug": "goosinals",
        "type": "ordinals",
        "venue": "simulator",
        "trait": None,
        "asks": side | {"levels": [level(80_000), level(90_000, 2, 2, 1)]},
        "asksUnknown": None,
        "bids": side | {"levels": [level(70_000), level(60_000, 2, 2, 1)]},
        "bidsUnknown": None,
        "ranks": [{"order": order.id, "rank": 3}],
    }
    assert [request["max_age_s"] for request in service.gateway.asked] == [10, 10]


async def test_own_orders_rank_beside_those_of_their_task_where_they_compete(service: Service) -> None:
    tasks = [await service.new_task(), await service.new_task(slug="other")]
    first, second, elsewhere, left_behind = (open_order(service, tasks[0], number) for number in (5, 3, 4, 8))
    open_order(service, tasks[1], 9)
    Order.update(slug="its-slug-before").where(Order.id == left_behind.id).execute()
    Order.update(trait_type="Hat", trait_value="Red").where(Order.id == elsewhere.id).execute()
    bids = (bid(60_000), bid(40_000), bid(30_000))
    service.gateway.answers["bids"] = BidBook(bids, START_MS)

    whole = await service.ask("GET", "/api/market/book?slug=goosinals")
    on_trait = await service.ask("GET", "/api/market/book?slug=goosinals&traitType=Hat&traitValue=Red")
    service.gateway.answers["bids"] = BidBook(bids[1:], START_MS, 3, 1)
    in_part = await service.ask("GET", "/api/market/book?slug=goosinals")
    best = bid(60_000, keys_of(OWNER)["payment"])
    service.gateway.answers["bids"] = BidBook((best, *bids[1:]), START_MS, 3, 1)
    below_own = await service.ask("GET", "/api/market/book?slug=goosinals")
    service.gateway.answers["bids"] = lambda **_: Unavailable("away")
    unknown = await service.ask("GET", "/api/market/book?slug=goosinals")

    assert whole.json["ranks"] == [{"order": first.id, "rank": 2}, {"order": second.id, "rank": 5}]
    assert on_trait.json["ranks"] == [{"order": elsewhere.id, "rank": 3}], "behind its equal, whose age is not known"
    assert in_part.json["ranks"] == [{"order": first.id, "rank": 1}], "none of the others' is known for sure"
    assert below_own.json["ranks"] == [], "another's may lie between the caller's best and these"
    assert (unknown.json["bids"], unknown.json["ranks"]) == (None, None)


async def test_side_with_rows_that_may_be_orders_and_were_not_understood_is_not_whole(service: Service) -> None:
    service.gateway.answers["asks"] = AskBook((ask(90_000),), START_MS, None, 3, 1)
    service.gateway.answers["bids"] = BidBook((bid(60_000),), START_MS, 3, 0)
    answer = await service.ask("GET", "/api/market/book?slug=goosinals")
    assert (answer.json["asks"]["isWhole"], answer.json["bids"]["isWhole"]) == (False, True)


async def test_own_orders_are_counted_whatever_quantity_each_has(service: Service) -> None:
    payment = keys_of(OWNER)["payment"]
    tokens = (
        bid(200, payment, "a", "100"),
        bid(300, payment, "b", "150"),
        bid(6, quantity="3"),
        bid(1, payment, "c", "0.5"),
    )
    service.gateway.answers["bids"] = BidBook(tokens, START_MS)
    answer = await service.ask("GET", "/api/market/book?slug=DOG&type=rune")
    check("getBook", answer)
    assert answer.json["bids"]["levels"] == [level(2, 253.5, 4, 250.5, own_orders=3)]


async def test_a_bid_of_an_untold_maker_at_our_price_may_be_ours(service: Service) -> None:
    open_order(service, await service.new_task(), 3)
    Order.update(wallet=keys_of(OWNER)["payment"]).execute()
    service.gateway.answers["bids"] = BidBook((bid(30_000, ""), bid(20_000, "")), START_MS)
    answer = await service.ask("GET", "/api/market/book?slug=goosinals")
    assert [found["own"] for found in answer.json["bids"]["levels"]] == [1, 0]


async def test_no_more_levels_are_told_than_asked_for(service: Service) -> None:
    service.gateway.answers["bids"] = BidBook(tuple(bid(price) for price in (3, 1, 2)), START_MS)
    answer = await service.ask("GET", "/api/market/book?slug=goosinals&depth=2")
    assert ([found["unitPrice"] for found in answer.json["bids"]["levels"]], answer.json["bids"]["isWhole"]) == (
        [3, 2],
        False,
    )


async def test_a_side_that_is_not_known_is_null_and_says_why(service: Service) -> None:
    service.gateway.answers["bids"] = lambda **_: NotSupported("bids are not told there")
    answer = await service.ask("GET", "/api/market/book?slug=goosinals")
    check("getBook", answer)
    assert (answer.json["asks"]["levels"], answer.json["asksUnknown"]) == ([], None)
    assert (answer.json["bids"], answer.json["bidsUnknown"]) == (None, "bids are not told there")
    service.gateway.answers["asks"] = lambda **_: Unavailable("away")
    assert (await service.ask("GET", "/api/market/book?slug=goosinals")).status == 502


async def test_a_rune_and_a_trait_are_asked_for_as_such(service: Service) -> None:
    service.gateway.answers["rune_asks"] = AskBook((ask(300, quantity=200),), START_MS)
    rune = await service.ask("GET", "/api/market/book?slug=DOG&type=rune")
    assert rune.json["asks"]["levels"] == [level(1.5, 200)]
    service.gateway.asked.clear()
    hat = await service.ask("GET", "/api/market/book?slug=goosinals&traitType=Hat&traitValue=Red")
    assert hat.json["trait"] == {"type": "Hat", "value": "Red"}
    assert [request["args"]["trait"] for request in service.gateway.asked[:2]] == [["Hat", "Red"]] * 2


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?slug=a&type=runes", 400),
        ("?slug=goosinals&depth=0", 400),
        ("?slug=goosinals&depth=201", 400),
        ("?slug=goosinals&traitType=Hat", 400),
        ("?slug=goosinals&traitType=Hat&traitValue=Red%C2%97", 400),
        ("?slug=goosinals&venue=nowhere", 400),
        ("?slug=nobody-knows", 404),
        ("?slug=empty", 200),
    ],
)
async def test_what_cannot_be_meant_is_refused(service: Service, query: str, status: int) -> None:
    assert (await service.ask("GET", f"/api/market/book{query}")).status == status


async def test_a_preview_shows_the_books_that_it_was_made_on(service: Service) -> None:
    vault = keys_of(OWNER)["vault"]
    service.gateway.answers["asks"] = AskBook((ask(100_000), ask(120_000, vault)), START_MS)
    service.gateway.answers["bids"] = BidBook((bid(60_000),), START_MS)
    body = {"slug": "goosinals", "hardcapSats": 100_000}
    quiet = (await service.ask("POST", "/api/tasks/preview", body)).json["book"]
    read = [request["verb"] for request in service.gateway.asked].count("asks")
    loud = (await service.ask("POST", "/api/tasks/preview", body | {"outbidEnabled": True})).json["book"]
    assert quiet["asks"]["levels"] == loud["asks"]["levels"] == [level(100_000), level(120_000, own=1)]
    assert (quiet["bids"], quiet["bidsUnknown"]) == (None, "this config does not look at others' bids")
    assert (loud["bids"]["levels"], read) == ([level(60_000)], 1)


def bid_book(*rows: tuple[str, int, int | None]) -> BidBook:
    return BidBook(tuple(Bid(i, price, Decimal(1), Decimal(price), "m", at) for i, price, at in rows), 1)


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
            "budgetId": None,
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
async def test_rank_counts_higher_bids_and_older_equal_ones(
    service: Service, book: list[tuple[str, int, int | None]], rank: int
) -> None:
    """The book's word on our bid comes before the ledger's, which has it at 100 sats, placed at 5."""
    task_id = await service.new_task()
    order = open_order(service, task_id, 3)
    Order.update(price_sats=100, created_ms=5).where(Order.id == order.id).execute()
    own = OwnBid("me", "goosinals", "ordinals", 100, None, order.expires_ms, None)
    service.gateway.answers["own_bids"] = OwnBids((own,), 1)
    service.gateway.answers["bids"] = bid_book(*book)

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    assert [(bid["id"], bid["rank"]) for bid in answer.json] == [("me", rank)]


@pytest.mark.parametrize("key", ["mine", ""])
async def test_bid_that_may_be_in_an_unread_row_is_shown_as_it_was_placed(service: Service, key: str) -> None:
    task_id = await service.new_task()
    order = open_order(service, task_id, 3)
    Order.update(venue_id="mine").where(Order.id == order.id).execute()
    service.gateway.answers["own_bids"] = OwnBids((), 1, (key,))
    service.gateway.answers["bids"] = bid_book(("mine", 30_000, 10))

    answer = await service.ask("GET", f"/api/tasks/{task_id}/bids")

    (bid,) = answer.json
    assert (bid["id"], bid["price"], bid["quantityLeft"], bid["rank"]) == ("mine", 30_000, 1, 1)
    service.gateway.answers["own_bids"] = OwnBids((), 1, ("by-hand",))
    assert (await service.ask("GET", f"/api/tasks/{task_id}/bids")).json == []


async def test_only_the_first_rank_is_known_while_a_bid_is_not_understood(service: Service) -> None:
    task_id = await service.new_task()
    orders = {name: open_order(service, task_id, number) for number, name in ((4, "first"), (3, "second"))}
    own = (OwnBid(name, "goosinals", "ordinals", o.price_sats, None, 900_000, None) for name, o in orders.items())
    for name, order in orders.items():
        Order.update(venue_id=name, expires_ms=order.id).where(Order.id == order.id).execute()
    service.gateway.answers["own_bids"] = OwnBids(tuple(own), 1)
    service.gateway.answers["bids"] = BidBook(bid_book(("first", 40_000, 1), ("second", 30_000, 1)).bids, 1, 2, 1)

    first, second = (await service.ask("GET", f"/api/tasks/{task_id}/bids")).json

    assert (first["rank"], first["isHighest"], first["rankUnknown"]) == (1, True, None)
    assert (second["rank"], second["isHighest"]) == (None, None)
    assert second["rankUnknown"] == "1 bid of the book cannot be understood, and may be ahead of this one"


@pytest.mark.parametrize(("key", "places"), [("", False), ("by-hand", True)])
async def test_own_bids_that_may_all_be_in_an_unread_row_let_nothing_be_placed(
    service: Service, key: str, places: bool
) -> None:
    with_floor(service, 100_000)
    service.gateway.answers["own_bids"] = OwnBids((), 1, (key,))
    answer = await preview(service, **EXAMPLE)
    reasons = {rung["reason"] for rung in answer.json["rungs"]}
    assert ("own_bids_unknown" in reasons, "place" in reasons) == (not places, places)
