"""The ends of a listing: bought in a real transaction, moved away, taken down by the venue."""

from __future__ import annotations

from typing import Any

import pytest
from embit.ec import PublicKey, SchnorrSig
from embit.transaction import Transaction

from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.seller import OTHER, PUPPET, hold, list_item, listed, outpoint_of, own_listings
from wallet.psbt.sighash import taproot_digest
from wallet.psbt.transaction import TxOutput, decode_network

pytestmark = pytest.mark.gen_test

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
