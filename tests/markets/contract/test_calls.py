"""Calls of every adapter: its abilities, reads and writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from typing import Any, get_args

import pytest

from markets.adapter import Adapter, AskAgain
from markets.base import (
    BelowMinimum,
    InsufficientFunds,
    Item,
    Kind,
    NotFound,
    NotSupported,
    PriceGrid,
    Refused,
    Unavailable,
    VenueError,
)
from markets.mempool import Mempool
from tests.markets.contract.gate import Practice
from tests.markets.contract.hostile import assert_sane
from tests.markets.contract.parties import HELD, LISTED, each, having
from tests.markets.contract.town import METHODS, NOTHING, WRITES, Town, prepared
from tests.simulator.desk import ANN, BOB, PUPPETS


def test_every_method_of_the_contract_is_tried() -> None:
    own = {name for name, value in vars(Adapter).items() if callable(value) and not name.startswith("_")}
    assert set(METHODS) | {"capabilities", "profile"} == own


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_one_request_or_not_supported(town: Town, method: str) -> None:
    call = prepared(town, method)
    if town.has(method):
        call()
        assert len(town.gate.seen) == (0 if method in town.party.silent else 1)
        return
    with pytest.raises(NotSupported):
        call()
    assert not town.gate.seen


@having("asks")
def test_several_threads_may_ask_at_once(town: Town) -> None:
    wanted = town.adapter.asks(PUPPETS, None)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: town.adapter.asks(PUPPETS, None), range(8)))
    assert found == [wanted] * 8


def test_capabilities_tell_what_is_missing(town: Town) -> None:
    can = town.can
    assert can.name == town.adapter.name == town.party.name
    assert can.title and can.verified
    assert bool(can.kinds) == bool(can.bid_types) == town.has("place") == town.has("cancel") == town.has("own_bids")
    assert can.bids_are_psbt == town.has("draft_bid")
    assert can.needs_sign_in == town.has("sign_in") == town.has("sign_in_texts")
    assert can.listings == all(map(town.has, ("draft_listing", "list_item", "delist", "own_listings")))
    assert (can.delist_proof == "psbt") == town.has("draft_delist")
    assert not (can.cancel_needs_signature or can.delist_proof == "challenge") or town.has("challenge")
    assert can.rate_per_s > 0 and can.burst >= 1


@pytest.mark.parametrize("kind", get_args(Kind))
def test_profiles_are_of_the_kinds_of_goods_that_are_bid_on(town: Town, kind: Kind) -> None:
    if kind not in town.can.kinds:
        with pytest.raises(NotSupported):
            town.adapter.profile(kind)
        return
    profile = town.adapter.profile(kind)
    assert profile.venue == town.party.name
    assert profile.tick >= 1 and profile.min_bid >= profile.tick and profile.min_duration_s > 0


@each(["floors", "bids", "sales"])
def test_reads_of_goods_that_are_not_traded_find_nothing(town: Town, method: str) -> None:
    read = getattr(town.adapter, method)
    try:
        found = read(["A•B"], "runes") if method == "floors" else read("A•B", "runes", None)
    except (NotSupported, NotFound):
        return
    assert found in ({}, NOTHING)


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


class Gone(Unavailable):
    """The error of a permit whose client is gone."""


def _prepared(town: Town, method: str) -> Any:
    call = WRITES[method](town)
    town.gate.clear()
    return call


@each(WRITES)
def test_without_its_permit_not_a_byte_goes_out(town: Town, method: str) -> None:
    call = _prepared(town, method)
    asked: list[int] = []

    def permit() -> None:
        asked.append(town.gate.bytes_in)
        raise Gone("nobody waits any more")

    with pytest.raises(Gone):
        call(permit)
    assert asked == [0]
    assert (town.gate.seen, town.gate.bytes_in) == ([], 0)


@each(WRITES)
def test_a_permit_that_ends_while_the_connection_is_made_stops_a_write(town: Town, method: str) -> None:
    call = _prepared(town, method)
    left = [None]

    def permit() -> None:
        if not left:
            raise Gone("nobody waits any more")
        left.pop()

    with pytest.raises(Gone):
        call(permit)
    assert (town.gate.seen, town.gate.bytes_in) == ([], 0)


@each(WRITES)
def test_a_permit_is_asked_for_right_before_the_first_byte(town: Town, method: str) -> None:
    call = _prepared(town, method)
    asked: list[int] = []
    call(lambda: asked.append(town.gate.bytes_in))
    assert set(asked) == {0}
    assert len(town.gate.seen) == 1


@having("place")
def test_a_bid_is_placed_once_and_cancelled(town: Town) -> None:
    order = town.order(600_000)
    told = town.adapter.place(order)
    (bid,) = town.own_bids()
    assert told == (bid.venue_id if town.party.answers_ids else None)
    assert town.adapter.cancel(ANN.payment, [bid.venue_id], town.signature(ANN.payment)) is True
    assert town.own_bids() == []


@having("place")
def test_several_bids_are_cancelled_as_many_at_once_as_it_says(town: Town) -> None:
    names = [town.placed(600_000), town.placed(610_000, ("Hat", "Red"))]
    if town.can.cancels_at_once == 1:
        with pytest.raises(Refused):
            town.adapter.cancel(ANN.payment, names, town.signature(ANN.payment))
        assert len(town.own_bids()) == 2
        return
    assert town.adapter.cancel(ANN.payment, names, town.signature(ANN.payment)) is True
    assert town.own_bids() == []


@having("cancel")
def test_a_cancel_of_what_is_not_there_is_not_done(town: Town) -> None:
    name = town.placed()
    assert town.adapter.cancel(ANN.payment, [name], town.signature(ANN.payment)) is True
    signature = town.signature(ANN.payment)
    try:
        done = town.adapter.cancel(ANN.payment, [name], signature)
    except Refused:
        return
    assert done is False


@pytest.mark.parametrize(
    "price, leaf", [(600_001, PriceGrid), (5_000, BelowMinimum), (2_000_000_000, InsufficientFunds)], ids=str
)
@having("place")
def test_a_bid_that_breaks_a_rule_is_refused_by_name(town: Town, price: int, leaf: type[VenueError]) -> None:
    with pytest.raises(Refused) as caught:
        town.adapter.place(town.order(price))
    assert isinstance(caught.value, leaf) or caught.value.code == "refused"
    assert town.own_bids() == []


@having("list_item")
def test_a_listing_is_made_replaced_and_taken_down(town: Town) -> None:
    town.adapter.list_item(town.listing_order(950_000))
    assert [listing.price for listing in town.own_listings()] == [950_000]
    town.adapter.list_item(town.listing_order(940_000))
    assert [listing.price for listing in town.own_listings()] == [940_000]
    assert town.adapter.delist(ANN.ordinals, HELD, town.signature(ANN.ordinals)) is True
    assert town.own_listings() == []


@having("delist")
def test_a_delist_of_what_is_not_listed_is_not_done(town: Town) -> None:
    town.adapter.list_item(town.listing_order())
    town.own_listings()
    signature = town.signature(ANN.ordinals)
    assert town.adapter.delist(ANN.ordinals, HELD, signature) is True
    try:
        done = town.adapter.delist(ANN.ordinals, HELD, signature)
    except (Refused, Unavailable):
        return
    assert done is False


PAYMENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


@pytest.mark.parametrize(
    ("path", "rates"), [("mempool", (12, 8, 5, 3, 1)), ("esplora", ("12.5", "7.75", "4.5", "2.5", "1.0"))]
)
def test_every_question_is_answered_by_both(practice: Practice, path: str, rates: tuple[str, ...]) -> None:
    server = Mempool(f"http://127.0.0.1:{practice.port}/{path}")
    fees = server.fees(7)
    assert (fees.fastest, fees.half_hour, fees.hour, fees.economy, fees.minimum) == tuple(map(Decimal, rates))
    coins = server.coins(PAYMENT)
    assert coins and server.balance(PAYMENT) == sum(coin.value for coin in coins)
    txid = coins[0].outpoint.partition(":")[0]
    assert server.transaction(txid) and server.look_up(txid) is server.confirmation(txid).is_in_block
    assert not server.spending(coins[0].outpoint).is_spent
    assert server.tip_height() > 0
