"""Sales into our bids: the exchange, the cancels that follow, and the venue's report."""

from __future__ import annotations

import pytest

from simulator import engine
from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, Desk
from tests.simulator.seller import PUPPET

pytestmark = pytest.mark.gen_test


async def _anns_balance(desk: Desk) -> int:
    _, stats = await desk.ask("GET", f"/mempool/api/address/{ANN.payment}")
    return int(stats["chain_stats"]["funded_txo_sum"])


async def test_a_sale_fills_the_best_bid_and_debits_the_account(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 100_000})
    for price in (50_000, 60_000, 30_000):
        await desk.placed(price=price)

    sold = await desk.sim("POST", "sell", {"slug": PUPPETS})

    assert (sold["sold"]["price"], sold["sold"]["maker"]) == (60_000, ANN.payment)
    # 40,000 sats are left: the venue cancels the bid that they no longer cover.
    assert [bid["price"] for bid in await desk.own_bids()] == [30_000]
    assert [(e["event"], e["price"]) for e in await desk.events("filled", "cancelled")] == [
        ("filled", 60_000),
        ("cancelled", 50_000),
    ]
    _, stats = await desk.ask("GET", f"/mempool/api/address/{ANN.payment}")
    assert stats["chain_stats"]["funded_txo_sum"] == 40_000
    contents = await desk.data("address/wallet-contents", address=ANN.ordinals)
    assert contents["results"]["ordinals"][0]["token"]["inscription_id"] == sold["inscriptionId"]


async def test_a_purchase_may_cost_its_bidder_a_fee_as_well(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 100_000})
    await desk.placed(price=60_000)
    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "networkFee": 600})
    assert (sold["sold"]["price"], await _anns_balance(desk)) == (60_000, 39_400)


async def test_an_inscription_is_sold_to_the_best_bid_that_it_meets(desk: Desk) -> None:
    asks = [{"price": 90_000, "traits": {"Hat": "Red"}, "inscriptionId": PUPPET}]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks})
    await desk.placed(price=70_000, attribute={"trait_type": "Hat", "value": "Blue"})
    await desk.placed(price=60_000, attribute={"trait_type": "Hat", "value": "Red"})
    await desk.placed(price=50_000)

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    plain = await desk.sim("POST", "sell", {"slug": PUPPETS})

    assert (sold["sold"]["price"], plain["sold"]["price"]) == (60_000, 50_000)
    assert (await desk.sim("GET", "state"))["collections"][PUPPETS]["asks"] == 0
    assert (await desk.data("item", inscriptionId=PUPPET))["owner"] == ANN.ordinals


async def test_a_given_bid_is_sold_into(desk: Desk) -> None:
    await desk.list_rune()
    for price in (100, 200):
        await desk.placed(metaType="runes", collectionSlug=RUNE, price=price, quantity=100)
    cheap = (await desk.own_bids())[0]

    sold = await desk.sim("POST", "sell", {"slug": "AAABBB", "bidId": cheap["bid_id"]})

    assert sold["sold"]["price"] == 100
    (rune,) = (await desk.data("address/wallet-contents", address=ANN.ordinals))["results"]["runes"]
    assert (rune["token"]["rune_amount"], rune["token"]["rune_amount_formatted"]) == ("10000", 100)
    assert (await desk.ask("POST", "/sim/sell", {"slug": RUNE, "bidId": cheap["bid_id"]}))[0] == 404


async def test_an_uncovered_bid_is_not_filled(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.placed()
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 10})

    status, _ = await desk.ask("POST", "/sim/sell", {"slug": PUPPETS})

    assert status == 409
    assert await desk.own_bids() == []


async def test_a_sale_is_told_with_buyer_and_bid(desk: Desk) -> None:
    asks = [{"price": 90_000, "inscriptionId": PUPPET, "seller": BOB.ordinals}]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks})
    await desk.placed(price=70_000)
    (bid,) = await desk.own_bids()
    desk.clock.advance(30)

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})

    found = await desk.data("activity/sales", collectionSlug=PUPPETS)
    assert found["items"] == [
        {
            "_id": sold["saleIds"][0],
            "type": "sale",
            "collectionSlug": PUPPETS,
            "inscriptionId": PUPPET,
            "price": 70_000,
            "quantity": 1,
            "bidId": bid["bid_id"],
            "buyerAddress": ANN.payment,
            "buyerTokenReceiveAddress": ANN.ordinals,
            "sellerOrdAddress": BOB.ordinals,
            "timestamp": desk.clock.now_ms,
        }
    ]
    assert found["pagination"] == {"page": 1, "pageSize": 100, "total": 1, "totalPages": 1}
    assert (await desk.data("collection-stats", collectionId=PUPPETS))["volume1d"] == 70_000
    assert (await desk.sim("GET", "requests"))["sales"] == {PUPPETS: 1}


async def test_sales_are_paged_from_the_newest(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    for price in (30_000, 20_000, 40_000):
        await desk.placed(price=price)
        await desk.sim("POST", "sell", {"slug": PUPPETS})
        desk.clock.advance(3 * 86_400)

    pages = [await desk.data("activity/sales", collectionSlug=PUPPETS, page=p, pageSize=2) for p in (1, 2, 3)]
    dearest = await desk.data("activity/sales", collectionSlug=PUPPETS, sortBy="price")
    this_week = await desk.data("activity/sales", collectionSlug=PUPPETS, timeRange="7d")

    assert [[row["price"] for row in page["items"]] for page in pages] == [[40_000, 20_000], [30_000], []]
    assert [row["price"] for row in dearest["items"]] == [40_000, 30_000, 20_000]
    assert [row["price"] for row in this_week["items"]] == [40_000, 20_000]
    assert (await desk.data("activity/sales", collectionSlug="nobody"))["items"] == []


async def test_the_newest_of_one_instant_comes_first(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    for price in (30_000, 20_000):
        await desk.placed(price=price)
        await desk.sim("POST", "sell", {"slug": PUPPETS})

    rows = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"]

    assert [row["price"] for row in rows] == [20_000, 30_000]


async def test_sales_are_kept_up_to_a_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KEPT_SALES", 3)
    await desk.list_puppets(bids=[{"price": 1000 + at} for at in range(5)])
    for _ in range(5):
        await desk.sim("POST", "sell", {"slug": PUPPETS})

    found = await desk.data("activity/sales", collectionSlug=PUPPETS)

    assert [row["price"] for row in found["items"]] == [1000, 1001, 1002]
    assert found["pagination"]["total"] == 3


async def test_a_rune_bid_is_filled_in_parts_to_the_sat(desk: Desk) -> None:
    await desk.list_rune()
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 1000})
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=100, quantity=3)
    (before,) = await desk.own_bids()

    first = await desk.sim("POST", "sell", {"slug": RUNE, "fillQuantity": 2})
    (left,) = await desk.own_bids()
    second = await desk.sim("POST", "sell", {"slug": RUNE, "bidId": left["bid_id"], "fillQuantity": "0.25"})
    third = await desk.sim("POST", "sell", {"slug": RUNE})

    assert (first["sold"]["price"], first["sold"]["quantity"], first["remaining"]) == (66, 2, 1)
    assert (left["bid_id"], left["price"]) == (before["bid_id"], 34)
    assert left["runes_metadata"]["runes"][0]["amount"] == "100"
    assert (second["sold"]["price"], second["remaining"]) == (8, 0.75)
    assert (third["sold"]["price"], third["sold"]["quantity"], third["remaining"]) == (26, 0.75, 0)
    assert await desk.own_bids() == []
    assert await _anns_balance(desk) == 900
    (rune,) = (await desk.data("address/wallet-contents", address=ANN.ordinals))["results"]["runes"]
    assert rune["token"]["rune_amount"] == "300"
    rows = (await desk.data("activity/sales", collectionSlug=RUNE))["items"]
    assert [(row["bidId"], row["price"], row["quantity"]) for row in rows] == [
        (before["bid_id"], 26, 0.75),
        (before["bid_id"], 8, 0.25),
        (before["bid_id"], 66, 2),
    ]
    events = await desk.events("filled")
    assert [(e["price"], e["quantity"], e.get("remaining")) for e in events] == [
        (66, 2, 1),
        (8, 0.25, 0.75),
        (26, 0.75, None),
    ]


async def test_a_bid_for_several_inscriptions_takes_one_at_a_time(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.placed(price=100_000, quantity=3)

    one = await desk.sim("POST", "sell", {"slug": PUPPETS})
    both = await desk.sim("POST", "sell", {"slug": PUPPETS, "fillQuantity": 2})

    assert (one["sold"]["price"], one["remaining"], both["sold"]["price"], both["remaining"]) == (33_333, 2, 66_667, 0)
    rows = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"]
    assert [row["price"] for row in rows] == [33_334, 33_333, 33_333]
    held = (await desk.data("address/wallet-contents", address=ANN.ordinals))["results"]["ordinals"]
    assert {row["token"]["inscription_id"] for row in held} == {row["inscriptionId"] for row in rows}


@pytest.mark.parametrize("quantity", [4, "1.001", "0.01"])
async def test_an_impossible_part_is_a_400(desk: Desk, quantity: object) -> None:
    await desk.list_rune()
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=3, quantity=3)

    status, _ = await desk.ask("POST", "/sim/sell", {"slug": RUNE, "fillQuantity": quantity})

    assert status == 400
    assert len(await desk.own_bids()) == 1


async def test_what_is_left_of_a_bid_must_be_covered_too(desk: Desk) -> None:
    await desk.list_rune()
    await desk.placed(metaType="runes", collectionSlug=RUNE, price=100, quantity=2)
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 70})

    await desk.sim("POST", "sell", {"slug": RUNE, "fillQuantity": 1})

    assert await desk.own_bids() == []
    assert [(e["event"], e["price"]) for e in await desk.events("filled", "cancelled")] == [
        ("filled", 50),
        ("cancelled", 50),
    ]
