"""A task's live bids as the marketplace shows them, with their rank in its book; a preview while some are unread."""

from __future__ import annotations

from decimal import Decimal

import pytest

from markets.base import BidBook, OwnBid, OwnBids, Unavailable
from models.ledger.states import Order
from strategy.book import Bid
from tests.server.conftest import OWNER, Service
from tests.server.peers import keys_of
from tests.server.running_tasks import open_order
from tests.server.test_preview import EXAMPLE, preview, with_floor


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
    assert second["rankUnknown"] == "1 bids of the book cannot be understood, and may be ahead of this one"


@pytest.mark.parametrize(("key", "places"), [("", False), ("by-hand", True)])
async def test_own_bids_that_may_all_be_in_an_unread_row_let_nothing_be_placed(
    service: Service, key: str, places: bool
) -> None:
    with_floor(service, 100_000)
    service.gateway.answers["own_bids"] = OwnBids((), 1, (key,))
    answer = await preview(service, **EXAMPLE)
    reasons = {rung["reason"] for rung in answer.json["rungs"]}
    assert ("own_bids_unknown" in reasons, "place" in reasons) == (not places, places)
