"""Sales into bids and purchases of listings."""

from __future__ import annotations

from typing import Any

import pytest
from embit.ec import PublicKey, SchnorrSig
from embit.transaction import Transaction

from simulator import engine
from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, Desk
from tests.simulator.seller import OTHER, PUPPET, hold, list_item, listed, outpoint_of, own_listings
from wallet.psbt.transaction import TxOutput, decode_network, taproot_digest

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


PRICE = 900_000


async def _balance(desk: Desk, address: str) -> int:
    _, stats = await desk.ask("GET", f"/mempool/api/address/{address}")
    return int(stats["chain_stats"]["funded_txo_sum"])


async def _sold(desk: Desk, **more: Any) -> Any:
    return await desk.sim("POST", "sell", {"inscriptionId": PUPPET} | more)


async def _raw(desk: Desk, txid: str) -> bytes:
    answer = await desk.fetch("GET", f"/mempool/api/tx/{txid}/hex")
    assert answer.code == 200
    return bytes.fromhex(answer.body.decode())


async def test_somebody_buys_a_listing(desk: Desk) -> None:
    await hold(desk)
    order = await listed(desk)
    item, before = await desk.data("item", inscriptionId=PUPPET), await _balance(desk, ANN.payment)
    desk.clock.advance(60)

    sold = await _sold(desk)

    assert (sold["sold"]["orderId"], sold["sold"]["price"], sold["sold"]["maker"]) == (order, PRICE, ANN.ordinals)
    assert await _balance(desk, ANN.payment) == before + PRICE + item["outputValue"]
    assert await own_listings(desk) == {}
    now = await desk.data("item", inscriptionId=PUPPET)
    assert (now["owner"], now["output"], now["outputValue"]) == (sold["buyer"], sold["outpoint"], item["outputValue"])
    assert (now["listed"], sold["outpoint"]) == (False, f"{sold['txid']}:1")
    (sale,) = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"]
    told = {name: sale[name] for name in ("_id", "inscriptionId", "price", "bidId", "sellerOrdAddress", "timestamp")}
    assert told == {
        "_id": sold["saleIds"][0],
        "inscriptionId": PUPPET,
        "price": PRICE,
        "bidId": None,
        "sellerOrdAddress": ANN.ordinals,
        "timestamp": desk.clock.now_ms,
    }
    (event,) = await desk.events("filled")
    assert (event["kind"], event["orderId"], event["price"], event["signature"][-2:]) == ("ask", order, PRICE, "83")


async def test_the_sale_is_a_transaction_in_which_the_sellers_signature_holds(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    former, postage = await outpoint_of(desk), (await desk.data("item", inscriptionId=PUPPET))["outputValue"]

    sold = await _sold(desk)

    raw = await _raw(desk, sold["txid"])
    tx = Transaction.parse(raw)
    at = [f"{source.txid.hex()}:{source.vout}" for source in tx.vin].index(former)
    assert tx.vout[at].value == PRICE + postage
    assert tx.vout[at].script_pubkey.address() == ANN.payment
    program = bytes.fromhex((await desk.ask("GET", f"/mempool/api/tx/{former[:64]}"))[1]["vout"][0]["scriptpubkey"])
    spent: list[TxOutput | None] = [None] * len(tx.vin)
    spent[at] = TxOutput(postage, program)
    (signature,) = tx.vin[at].witness.items
    digest = taproot_digest(decode_network(raw), at, spent, 0x83)
    assert PublicKey.from_xonly(program[2:]).schnorr_verify(SchnorrSig(signature[:64]), digest)
    _, told = await desk.ask("GET", f"/mempool/api/tx/{sold['txid']}")
    assert told["fee"] == 2_000
    # The inscription's sat comes first in its output: what stands before it goes into output 0 to the sat.
    assert sum(row["prevout"]["value"] for row in told["vin"][:at]) == tx.vout[0].value


async def test_every_signature_of_a_sale_holds_by_consensus(desk: Desk) -> None:
    pytest.importorskip("btclib", reason="a second opinion, where it is installed")
    from btclib.script.engine import verify_transaction
    from btclib.tx import Tx, TxOut

    await hold(desk)
    await listed(desk)

    sold = await _sold(desk)

    tx = Tx.parse(await _raw(desk, sold["txid"]))
    _, told = await desk.ask("GET", f"/mempool/api/tx/{sold['txid']}")
    spent = [row["prevout"] for row in told["vin"]]
    outputs = [TxOut(row["value"], bytes.fromhex(row["scriptpubkey"])) for row in spent]
    verify_transaction(outputs, tx)


async def test_a_sale_may_wait_for_its_block(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    former = await outpoint_of(desk)

    sold = await _sold(desk, confirmed=False)

    _, spend = await desk.ask("GET", f"/mempool/api/tx/{former[:64]}/outspend/0")
    assert (spend["txid"], spend["status"]) == (sold["txid"], {"confirmed": False})


async def test_what_is_not_listed_is_sold_into_a_bid_as_ever(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets()
    await desk.placed(BOB, price=70_000)

    sold = await _sold(desk)

    assert sold["sold"]["maker"] == BOB.payment
    item = await desk.data("item", inscriptionId=PUPPET)
    assert item["owner"] == BOB.ordinals
    _, output = await desk.ask("GET", f"/ord/output/{item['output']}", headers={"Accept": "application/json"})
    assert (output["address"], output["inscriptions"]) == (BOB.ordinals, [PUPPET])


async def test_a_listing_that_is_sold_into_a_bid_ends(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    await desk.placed(BOB, price=70_000)
    (bid,) = await desk.own_bids(BOB)

    await _sold(desk, bidId=bid["bid_id"])

    assert [(e["kind"], e["reason"]) for e in await desk.events("cancelled")] == [("ask", "sold into a bid")]


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_listing_ends_when_the_inscription_is_moved(desk: Desk, confirmed: bool) -> None:
    await hold(desk)
    await listed(desk)

    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals, "confirmed": confirmed})

    assert await own_listings(desk) == {}
    (event,) = await desk.events("cancelled")
    assert (event["kind"], event["reason"]) == ("ask", "the inscription was moved")
    assert (await list_item(desk) if confirmed else (200, None))[0] == 200


async def test_a_listing_ends_when_a_script_takes_the_inscription_away(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)

    await hold(desk, OTHER)

    assert [e["reason"] for e in await desk.events("cancelled")] == ["the inscription is gone"]


async def test_a_waiting_inscription_is_not_listed(desk: Desk) -> None:
    await hold(desk)
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": BOB.ordinals, "confirmed": False})
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals, "confirmed": False})

    with pytest.raises(AssertionError, match="not confirmed"):
        await list_item(desk)
    desk.clock.advance(1200)
    await listed(desk)


async def test_the_venue_drops_a_listing(desk: Desk) -> None:
    await hold(desk)
    order = await listed(desk)

    dropped = await desk.sim("POST", "delist", {"inscriptionId": PUPPET})

    assert dropped == {"orderId": order, "inscriptionId": PUPPET, "price": PRICE}
    assert await own_listings(desk) == {}
    assert [e["reason"] for e in await desk.events("cancelled")] == ["delisted by the venue"]
    assert (await desk.ask("POST", "/sim/delist", {"inscriptionId": PUPPET}))[0] == 404


async def test_a_listing_whose_signature_does_not_hold_is_not_sold(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    # As if the venue had altered what it keeps: the output that the listing sells is worth a sat more than was signed.
    coin = desk.world.engine.chain.coins[await outpoint_of(desk)]
    coin.value += 1

    status, answer = await desk.ask("POST", "/sim/sell", {"inscriptionId": PUPPET})

    assert (status, "signature" in answer["error"]) == (409, True)
    assert await desk.events("filled") == []
    assert len(await desk.events("cancelled")) == 1


async def test_listings_and_the_chain_survive_a_restart(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    before = desk.world.dump()

    desk.world.load(before)

    after = desk.world.dump()
    assert (after["engine"], desk.world.engine.ask_of(PUPPET) is not None) == (before["engine"], True)
    await _sold(desk)
