"""Offers at ord.net that are filled: transactions go out, and what stood on the same coins falls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.desk import ANN, PUPPETS, Desk
from tests.simulator.ordnet_trader import COLLECTION, OFFERS, Client

pytestmark = pytest.mark.gen_test


async def trader(desk: Desk) -> Client:
    await desk.list_puppets(900_000)
    return await Client(desk).sign_in()


async def _transaction(desk: Desk, txid: str) -> tuple[bytes, dict[str, Any]]:
    answer = await desk.fetch("GET", f"/mempool/api/tx/{txid}/hex", headers={})
    _, told = await desk.ask("GET", f"/mempool/api/tx/{txid}", headers={})
    return bytes.fromhex(answer.body.decode()), told


async def _parent(desk: Desk, client: Client, price: int) -> tuple[str, str]:
    """Returns an offer's id and the txid of its funding parent."""
    status, answer = await client.place(price)
    assert status == 200, answer
    (row,) = answer["offers"]
    return row["offerId"], row["fundingParentTxid"]


async def test_a_filled_offer_is_paid_on_the_chain(desk: Desk) -> None:
    client = await trader(desk)
    (coin,) = await client.coins()
    offer, parent = await _parent(desk, client, 60_000)

    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": offer})

    assert sold["sold"]["price"] == 60_000
    _, spend = await desk.ask("GET", f"/mempool/api/tx/{coin['txid']}/outspend/{coin['vout']}", headers={})
    assert spend["txid"] == parent
    _, told = await _transaction(desk, parent)
    assert [output["value"] for output in told["vout"]] == [60_000, 0, 100_000_000 - 60_000]
    assert told["fee"] == 0
    _, spend = await desk.ask("GET", f"/mempool/api/tx/{parent}/outspend/0", headers={})
    _, child = await _transaction(desk, spend["txid"])
    assert child["vin"][1]["txid"] == parent
    assert child["vout"][0]["scriptpubkey_address"] == ANN.ordinals
    assert [output["value"] for output in child["vout"][1:]] == [58_500, 1_500]
    item = await desk.data("item", inscriptionId=sold["inscriptionId"])
    assert (item["owner"], item["output"]) == (ANN.ordinals, f"{spend['txid']}:0")
    assert [row["valueSats"] for row in await client.coins()] == [99_940_000]
    assert await client.own() == {}
    (sale,) = (await client.good("GET", "sales", collectionSlug=PUPPETS))["sales"]
    assert (sale["saleType"], sale["txid"], sale["priceSats"]) == ("internal", spend["txid"], 60_000)
    assert (sale["buyerAddress"], sale["price"]) == (ANN.ordinals, 0.0006)


async def test_a_fill_invalidates_what_stands_on_its_coins(desk: Desk) -> None:
    client = await trader(desk)
    await desk.sim("PUT", f"coins/{ANN.payment}", {"values": [2_000_000, 1_500_000]})
    large, small = sorted(await client.coins(), key=lambda coin: -coin["valueSats"])
    first, second = await client.placed(60_000, spendableUtxos=[large], offerCount=2, ladderStepSats=5_000)
    (third,) = await client.placed(50_000, spendableUtxos=[small])

    await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": first})

    assert set(await client.own()) == {third}
    (event,) = await desk.events("cancelled")
    assert (event["orderId"], event["reason"]) == (second, "invalidated: a coin behind it is spent")
    assert (await client.cancel(second))[0] == 409


async def test_a_changed_balance_spends_coins_too(desk: Desk) -> None:
    client = await trader(desk)
    (offer,) = await client.placed(60_000)

    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 50_000_000})

    assert await client.own() == {}
    assert [row["valueSats"] for row in await client.coins()] == [50_000_000]
    (event,) = await desk.events("cancelled")
    assert event["orderId"] == offer


async def test_coins_that_were_spent_since_the_preflight(desk: Desk) -> None:
    client = await trader(desk)
    body = await client.offer()
    preflight = await client.good("POST", f"{OFFERS}/preflight", body)
    await desk.sim("PUT", f"coins/{ANN.payment}", {"values": [2_000_000]})

    status, answer = await client.ask("POST", f"{OFFERS}/submit", client.signed_offers(body, preflight))

    assert (status, answer) == (409, {"error": "a payment input is spent"})
    (event,) = await desk.events()
    assert (event["event"], event["reason"]) == ("refused", "a payment input is spent")


async def test_an_inscription_is_sold_into_the_best_bid_of_any_venue(desk: Desk) -> None:
    client = await trader(desk)
    inscription = "e" * 64 + "i0"
    row = {"id": inscription, "collection": PUPPETS, "traits": {"Hat": "Red"}}
    await desk.sim("PUT", "wallets/somebody", {"inscriptions": [row]})
    await client.placed(70_000, target={"kind": "traits", "traits": [{"type": "Hat", "values": ["Blue", "Red"]}]})
    await client.placed(60_000, target=COLLECTION)

    sold = await desk.sim("POST", "sell", {"inscriptionId": inscription})

    assert (sold["sold"]["price"], sold["inscriptionId"]) == (70_000, inscription)
    item = await desk.data("item", inscriptionId=inscription)
    assert item["owner"] == ANN.ordinals


async def test_the_signatures_of_a_fill_hold_by_consensus(desk: Desk) -> None:
    pytest.importorskip("btclib", reason="a second opinion, where it is installed")
    from btclib.script.engine import verify_input, verify_transaction
    from btclib.tx import Tx, TxOut

    client = await trader(desk)
    offer, parent = await _parent(desk, client, 60_000)
    await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": offer})
    _, spend = await desk.ask("GET", f"/mempool/api/tx/{parent}/outspend/0", headers={})

    def spent(told: dict[str, Any]) -> list[TxOut]:
        rows = [row["prevout"] for row in told["vin"]]
        return [TxOut(row["value"], bytes.fromhex(row["scriptpubkey"])) for row in rows]

    raw, told = await _transaction(desk, parent)
    verify_transaction(spent(told), Tx.parse(raw))
    raw, told = await _transaction(desk, spend["txid"])
    # The seller's input has nobody's signature; the offer's has those of the venue.
    verify_input(spent(told), Tx.parse(raw), 1)
