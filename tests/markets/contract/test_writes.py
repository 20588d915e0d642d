"""Writes: they happen once, report their result, and never go out without their permit."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import BelowMinimum, InsufficientFunds, PriceGrid, Refused, Unavailable, VenueError
from tests.markets.contract.parties import HELD, each, having
from tests.markets.contract.town import WRITES, Town
from tests.simulator.desk import ANN


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
