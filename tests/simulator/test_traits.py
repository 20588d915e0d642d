"""Traits: what the catalogue, the listings and the bids tell of them."""

from __future__ import annotations

import pytest

from tests.simulator.desk import ANN, PUPPETS, Desk

pytestmark = pytest.mark.gen_test

ASKS = [{"price": price, "traits": {"Hat": hat}} for price, hat in ((10_000, "Red"), (20_000, "Blue"), (30_000, "Red"))]


async def _listings(desk: Desk) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    return rows


async def test_listings_tell_their_traits(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})

    rows = await _listings(desk)

    assert rows[1]["attributes"] == [{"trait_type": "Hat", "value": "Blue"}]


async def test_listings_may_leave_their_traits_out_as_documented(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS, "listingTraits": False})

    assert all("attributes" not in row for row in await _listings(desk))
    catalogue = (await desk.data("collection", collection_id=PUPPETS, categoryAttributes="true"))["collection"][0]
    assert [each["key"] for each in catalogue["category_attributes"]] == ["Hat"]

    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    assert all("attributes" not in row for row in await _listings(desk))
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS, "listingTraits": True})
    assert all("attributes" in row for row in await _listings(desk))


async def test_a_trait_bid_is_told_and_sold_into_with_its_trait(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    red = {"trait_type": "Hat", "value": "Red"}
    await desk.placed(price=15_000, attribute=red)
    (own,) = await desk.own_bids()

    (market,) = (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"]
    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": own["bid_id"]})

    assert own["attribute"] == market["attribute"] == red
    item = await desk.data("item", inscriptionId=sold["inscriptionId"])
    assert (item["owner"], item["metadata"]["token"]["attributes"]) == (ANN.ordinals, [red])


async def test_an_uncovered_bid_with_attributes_makes_no_order(desk: Desk) -> None:
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": ASKS})
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 10_000})

    status, _ = await desk.place(price=11_000, attributes=[{"trait_type": "Hat", "value": "Red"}] * 2)

    assert status == 400
    assert await desk.own_bids() == []
