"""What a sale into a bid leaves on the play chain, and the scenes that set the market's word against it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.desk import ANN, PUPPETS, Desk
from tests.simulator.test_chain import mempool_says, ord_says

pytestmark = pytest.mark.gen_test

OTHER_ITEM = "d" * 64 + "i0"


async def bidding_wallet(desk: Desk, kind: str = "2of2") -> str:
    await desk.sim("PUT", "bidding-wallets", {"kind": kind})
    asked = {"paymentAddress": ANN.payment, "ordinalsAddress": ANN.ordinals, "paymentPubkey": ANN.pubkey}
    return str((await desk.data("address/bidding-wallet", **asked))["address"])


async def sold(desk: Desk, price: int = 60_000, fee: int = 600) -> Any:
    await desk.list_puppets(100_000)
    await desk.placed(price=price)
    return await desk.sim("POST", "sell", {"slug": PUPPETS, "networkFee": fee})


@pytest.mark.parametrize("kind", ["2of2", "2of3", "leaf"])
async def test_the_bidding_wallet_pays_and_its_script_is_shown(desk: Desk, kind: str) -> None:
    wallet = await bidding_wallet(desk, kind)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 100_000})
    sale = await sold(desk)
    (txid,) = sale["txids"]
    bought = await mempool_says(desk, f"tx/{txid}")

    item, paid = bought["vin"]
    assert paid["prevout"]["scriptpubkey_address"] == wallet
    assert any(ANN.pubkey[2:] in shown for shown in paid["witness"]), "our key is in the script that the witness shows"
    escrow, seller, change = bought["vout"]
    assert (seller["value"], change["value"], bought["fee"]) == (60_000, 39_400, 600)
    assert change["scriptpubkey_address"] == wallet and escrow["value"] == item["prevout"]["value"]

    where = await ord_says(desk, f"inscription/{sale['inscriptionId']}")
    onward = await mempool_says(desk, f"tx/{where['satpoint'].split(':')[0]}")
    assert [source["txid"] for source in onward["vin"]] == [txid]
    assert where["address"] == ANN.ordinals and onward["status"]["confirmed"]
    _, stats = await desk.ask("GET", f"/mempool/api/address/{wallet}")
    assert stats["chain_stats"]["funded_txo_sum"] == 39_400


async def test_a_block_is_not_older_than_what_is_in_it(desk: Desk) -> None:
    await bidding_wallet(desk)
    desk.clock.now_ms += 7_000
    sale = await sold(desk)
    status = (await mempool_says(desk, f"tx/{sale['txids'][0]}"))["status"]
    assert status["block_time"] == desk.clock.now_ms // 1000


async def test_without_a_bidding_wallet_the_account_pays_without_a_transaction(desk: Desk) -> None:
    sale = await sold(desk)
    assert sale["txids"] == [""]


async def test_the_scene_names_another_item_in_sales_and_nowhere_else(desk: Desk) -> None:
    await bidding_wallet(desk)
    await desk.sim("PUT", "scenes/sale_names_other_item", {"inscriptionId": OTHER_ITEM})
    sale = await sold(desk)
    row = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"][0]
    assert (row["inscriptionId"], row["price"]) == (OTHER_ITEM, 60_000)
    assert sale["inscriptionId"] != OTHER_ITEM
    assert (await ord_says(desk, f"inscription/{sale['inscriptionId']}"))["address"] == ANN.ordinals
    await desk.sim("PUT", "scenes/sale_names_other_item", {"inscriptionId": None})
    row = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"][0]
    assert row["inscriptionId"] == sale["inscriptionId"]


async def test_a_reorganisation_takes_a_transaction_out_of_its_block(desk: Desk) -> None:
    await bidding_wallet(desk)
    (txid,) = (await sold(desk))["txids"]
    before = (await mempool_says(desk, f"tx/{txid}"))["status"]
    assert txid in (await desk.sim("POST", "reorganise", {"txid": txid}))["waiting"]
    assert (await mempool_says(desk, f"tx/{txid}/status")) == {"confirmed": False}
    status, _ = await desk.ask("POST", "/sim/reorganise", {"txid": txid})
    assert status == 400, "it is in no block any more"

    await desk.sim("POST", "confirm", {})
    after = (await mempool_says(desk, f"tx/{txid}"))["status"]
    assert after["confirmed"] and after["block_hash"] != before["block_hash"]
