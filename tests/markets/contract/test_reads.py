"""The results of reads: typed values in our units, all pages, unknown things left out or NotFound, never a guess."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from markets.adapter import AskAgain
from markets.base import Item, NotFound, NotSupported, Unavailable, VenueError
from tests.markets.contract.parties import HELD, LISTED, each, having
from tests.markets.contract.sane import assert_sane
from tests.markets.contract.town import NOTHING, Town
from tests.simulator.desk import ANN, BOB, PUPPETS

UNKNOWN = "nobody-knows-this"


@having("floors")
def test_a_floor_is_the_cheapest_listing(town: Town) -> None:
    found = town.adapter.floors([PUPPETS], "ordinals")
    assert_sane(found, dict)
    floor = found[PUPPETS]
    assert (floor.slug, floor.floor, floor.listed_count) == (PUPPETS, Decimal(town.party.shown(800_000)), 2)


@having("floors")
def test_unknown_collections_have_no_floor_and_spoil_none(town: Town) -> None:
    if town.can.floors_at_once == 1:
        assert town.adapter.floors([UNKNOWN], "ordinals") == {}
        return
    assert set(town.adapter.floors([UNKNOWN, PUPPETS, "a b/c?d=e&f#g", "•"], "ordinals")) == {PUPPETS}


@having("floors")
def test_nothing_listed_is_no_floor(town: Town) -> None:
    town.book(asks=[], bids=[])
    found = town.adapter.floors([PUPPETS], "ordinals")
    assert PUPPETS not in found or found[PUPPETS].floor is None


@having("floors")
def test_floor_is_found_by_another_source_of_the_venue_where_the_first_has_none(town: Town) -> None:
    # At UniSat's as clients have seen it, the first source fails for this collection.
    town.practice.sim("PUT", "collections/cats", {"asks": [{"price": 700_000, "traits": {"Hat": "Red"}}]})
    found: dict[str, Any] = {}
    for _ in range(3):
        town.practice.clock.ahead_s += 1
        with suppress(AskAgain):
            found = dict(town.adapter.floors(["cats"], "ordinals"))
            break
    assert_sane(found, dict)
    assert (found["cats"].floor, found["cats"].listed_count) == (Decimal(town.party.shown(700_000)), 1)


@having("asks")
def test_listings_are_cheapest_first_with_sellers_and_ids(town: Town) -> None:
    page = town.adapter.asks(PUPPETS, None)
    assert_sane(page, tuple)
    asks = [listing.ask for listing in page.entries]
    told = [town.party.shown(price) for price in (800_000, 900_000)]
    assert [(ask.price, ask.unit_price, ask.quantity) for ask in asks] == [(price, price, 1) for price in told]
    assert len({ask.order_id for ask in asks}) == 2
    assert page.following is None


@having("asks")
def test_listings_tell_traits_or_that_they_do_not(town: Town) -> None:
    told = [listing.traits for listing in town.adapter.asks(PUPPETS, None).entries]
    if town.can.tells_traits and not town.party.seed % 2:  # clients have seen them
        assert told[0] == frozenset({("Hat", "Red")})
    assert told in ([None, None], [frozenset({("Hat", "Red")}), frozenset()], [frozenset({("Hat", "Red")}), None])


@having("asks")
def test_all_pages_of_listings_are_read_each_once(town: Town) -> None:
    prices = list(range(100_000, 353_000, 1_000))
    town.book(asks=[{"price": price} for price in reversed(prices)], bids=[])
    found = [listing.ask for listing in town.all_pages(lambda cursor: town.adapter.asks(PUPPETS, cursor))]
    assert [ask.price for ask in found] == [town.party.shown(price) for price in prices]
    assert len({ask.order_id for ask in found}) == len(prices)


@having("bids")
def test_bids_are_best_first_with_what_they_are_on(town: Town) -> None:
    red = {"type": "Hat", "value": "Red"}
    town.book(
        asks=[{"price": 900_000}], bids=[{"price": 400_000}, {"price": 600_000, "trait": red}, {"price": 500_000}]
    )
    page = town.adapter.bids(PUPPETS, "ordinals", None)
    assert_sane(page, tuple)
    told = [(offer.bid.price, offer.bid.unit_price, offer.bid.quantity, offer.traits) for offer in page.entries]
    assert told == [
        (600_000, 600_000, 1, frozenset({("Hat", "Red")})),
        (500_000, 500_000, 1, frozenset()),
        (400_000, 400_000, 1, frozenset()),
    ]
    assert all(offer.bid.maker and offer.bid.placed_ms is not None for offer in page.entries)


@having("bids")
def test_all_pages_of_bids_are_read_each_once(town: Town) -> None:
    prices = list(range(100_000, 353_000, 1_000))
    town.book(asks=[], bids=[{"price": price} for price in prices])
    found = [offer.bid for offer in town.all_pages(lambda cursor: town.adapter.bids(PUPPETS, "ordinals", cursor))]
    assert [bid.price for bid in found] == prices[::-1]
    assert len({bid.order_id for bid in found}) == len(prices)


@each(["asks", "bids", "sales", "traits"])
def test_an_unknown_collection_is_not_found_or_empty(town: Town, method: str) -> None:
    calls: dict[str, Any] = {
        "asks": lambda: town.adapter.asks(UNKNOWN, None),
        "bids": lambda: town.adapter.bids(UNKNOWN, "ordinals", None),
        "sales": lambda: town.adapter.sales(UNKNOWN, "ordinals", None),
        "traits": lambda: town.adapter.traits(UNKNOWN),
    }
    try:
        found = calls[method]()
    except NotFound:
        return
    assert method != "traits"
    assert found == NOTHING


@each(["asks", "bids", "sales", "traits"])
def test_a_strange_name_leads_nowhere_else(town: Town, method: str) -> None:
    for slug in ("", "a/b", "../x", "a?b=c", "a#b", "a b", "é", "%2e%2e", "a,b", "•", "a" * 300, "\x00"):
        town.practice.clock.ahead_s += 1
        args = {"asks": (slug, None), "traits": (slug,)}.get(method, (slug, "ordinals", None))
        try:
            found = getattr(town.adapter, method)(*args)
        except VenueError:
            continue
        assert found == NOTHING, slug


@having("traits")
def test_traits_are_counted(town: Town) -> None:
    try:
        found = town.adapter.traits(PUPPETS)
    except NotSupported:
        pytest.skip("not of this collection")
    assert_sane(found, dict)
    assert found["Hat"]["Red"] >= 1


@having("sales")
def test_a_sale_tells_what_was_paid_and_when(town: Town) -> None:
    assert town.adapter.sales(PUPPETS, "ordinals", None) == NOTHING
    if town.has("place"):
        town.placed(600_000)
        town.practice.sim("POST", "sell", {"slug": PUPPETS})
    else:
        town.adapter.list_item(town.listing_order(600_000))
        town.practice.sim("POST", "sell", {"inscriptionId": HELD})
    page = town.adapter.sales(PUPPETS, "ordinals", None)
    assert_sane(page, tuple)
    (sale,) = page.entries
    assert (sale.slug, sale.price, sale.quantity) == (PUPPETS, 600_000, 1)
    assert abs(sale.sold_ms - town.practice.clock.ms()) < 60_000
    if town.has("place"):
        assert sale.buyer in (ANN.payment, ANN.ordinals)


@having("own_bids")
def test_own_bids_are_this_wallets_alone(town: Town) -> None:
    assert town.own_bids() == []
    town.book(asks=[], bids=[{"price": 500_000, "bidder": BOB.payment}])
    name = town.placed(600_000)
    (bid,) = town.own_bids()
    assert_sane(bid, type(bid))
    assert (bid.venue_id, bid.slug, bid.kind, bid.price, bid.trait) == (name, PUPPETS, "ordinals", 600_000, None)
    assert bid.quantity in (None, 1)


@having("own_bids")
def test_own_bids_on_traits(town: Town) -> None:
    if "trait" not in town.can.bid_types:
        pytest.skip("it takes no bids on traits")
    town.placed(610_000, ("Hat", "Red"))
    (bid,) = town.own_bids()
    assert (bid.price, bid.trait) == (610_000, ("Hat", "Red"))


@having("own_bids")
def test_own_bids_cannot_be_told_apart_from_none_without_their_collections(town: Town) -> None:
    if not town.can.own_bids_by_collection:
        pytest.skip("it tells all at once")
    with pytest.raises(Unavailable):
        town.adapter.own_bids(ANN.payment, None)


@having("own_bids", "bids")
def test_our_bid_is_in_the_book_under_its_own_name(town: Town) -> None:
    name = town.placed(600_000)
    best = town.adapter.bids(PUPPETS, "ordinals", None).entries[0].bid
    assert (best.order_id, best.price) == (name, 600_000)
    assert best.maker in (ANN.payment, ANN.ordinals)


@having("list_item")
def test_our_listing_is_in_the_book_and_among_our_own(town: Town) -> None:
    assert town.own_listings() == []
    town.adapter.list_item(town.listing_order(700_000))
    (own,) = town.own_listings()
    assert_sane(own, type(own))
    assert (own.inscription_id, own.slug, own.price, own.owner) == (HELD, PUPPETS, 700_000, ANN.ordinals)
    cheapest = town.adapter.asks(PUPPETS, None).entries[0].ask
    assert (cheapest.price, cheapest.maker) == (700_000, ANN.ordinals)


@having("list_item")
def test_our_listing_is_at_our_price_where_a_creator_takes_a_part_of_the_buyers(town: Town) -> None:
    town.practice.sim("PUT", f"collections/{PUPPETS}", {"creator": BOB.ordinals, "asks": [], "bids": []})
    for price in (700_000, 600_000):
        town.adapter.list_item(town.listing_order(price))
        for _ in range(2):  # the second time it may be known from the first
            assert [(own.inscription_id, own.price) for own in town.own_listings()] == [(HELD, price)]


@having("wallet_contents")
def test_all_pages_of_a_wallet_are_read_each_once(town: Town) -> None:
    ids = [f"{number:064x}i0" for number in range(253)]
    rows = [{"id": each, "collection": PUPPETS, "name": "Puppet", "traits": {}} for each in ids]
    town.practice.sim("PUT", f"wallets/{ANN.ordinals}", {"inscriptions": rows})
    found = town.all_pages(lambda cursor: town.adapter.wallet_contents(ANN.ordinals, cursor))
    assert_sane(found, list)
    assert sorted(item.id for item in found) == ids
    assert {item.collection_id for item in found} == {PUPPETS}


@having("item")
def test_an_item_is_about_what_was_asked(town: Town) -> None:
    found = town.adapter.item(LISTED)
    assert_sane(found, Item)
    assert (found.id, found.collection_id, found.listed) == (LISTED, PUPPETS, True)
    with pytest.raises((NotFound, Unavailable)):
        town.adapter.item("f" * 64 + "i9")


@having("item")
def test_item_that_is_not_listed_has_its_holder(town: Town) -> None:
    try:
        found = town.adapter.item(HELD)
    except NotFound:
        return  # it knows what is listed only
    assert (found.listed, found.listing_price, found.owner) == (False, None, ANN.ordinals)
