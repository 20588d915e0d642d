"""ord.net's listings: drafted, signed, sold, and out of their escrow."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from embit.ec import PublicKey

from simulator.venue_scripts import MARKET
from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.ordnet_trader import COLLECTION, LISTINGS, OFFERS, Client, sign_key_path, sign_leaf, tagged
from tests.simulator.seller import OTHER, PUPPET, hold, list_item, outpoint_of, own_listings
from wallet.psbt.decode import Psbt, decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact, decode_output

pytestmark = pytest.mark.gen_test

VAULT = own_script("p2tr", ANN.key.get_public_key().sec())


async def opened(desk: Desk, *ids: str) -> Client:
    await desk.list_puppets(2_000_000)
    await hold(desk, *ids)
    return await Client(desk).sign_in()


def _read(step: dict[str, Any]) -> Psbt:
    return decode(b64decode(step["psbtBase64"]))


async def test_the_first_step_moves_the_inscription_to_the_shared_output(desk: Desk) -> None:
    client = await opened(desk)

    _, found = await client.draft((PUPPET, 900_000))

    (row,) = found["listings"]
    first = _read(row["psbts"][0])
    own, anchor = map(_utxo, first.inputs)
    assert str(first.transaction.inputs[0].outpoint) == await outpoint_of(desk)
    assert own.script == VAULT != anchor.script
    passed, change = first.transaction.outputs
    assert passed == TxOutput(own.value, _passthrough())
    assert (change.script, change.value < anchor.value) == (anchor.script, True)
    assert row["psbts"][0]["inputsToSign"] == [{"address": ANN.ordinals, "signingIndexes": [0], "sigHash": 0}]


async def test_the_second_step_sells_it_from_there_for_the_payout(desk: Desk) -> None:
    client = await opened(desk)

    _, found = await client.draft((PUPPET, 900_000))

    first, second = (_read(step) for step in found["listings"][0]["psbts"])
    (source,), (payout,) = second.transaction.inputs, second.transaction.outputs
    assert (source.outpoint.txid, source.outpoint.vout) == (first.transaction.txid(), 0)
    assert _utxo(second.inputs[0]) == first.transaction.outputs[0]
    assert payout == TxOutput(891_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    (asked,) = found["listings"][0]["psbts"][1]["inputsToSign"]
    assert asked == {
        "address": ANN.ordinals,
        "publicKey": ANN.pubkey[2:],
        "disableTweakSigner": True,
        "signingIndexes": [0],
        "sigHash": 131,
    }
    ((key, leaf),) = ((key, value) for key, value in second.inputs[0].items() if key[:1] == compact(0x15))
    assert (leaf, key[2:]) == (_leaf() + b"\xc0", bytes.fromhex(ANN.pubkey[2:]))


async def test_the_recovery_brings_all_of_them_back(desk: Desk) -> None:
    client = await opened(desk, PUPPET, OTHER)

    _, found = await client.draft((PUPPET, 900_000), (OTHER, 800_000))

    back = _read(found["recoveryPsbt"])
    moves = [_read(row["psbts"][0]).transaction for row in found["listings"]]
    assert [source.outpoint.txid for source in back.transaction.inputs] == [move.txid() for move in moves]
    assert list(back.transaction.outputs) == [TxOutput(move.outputs[0].value, VAULT) for move in moves]
    assert found["recoveryPsbt"]["inputsToSign"] == [{"address": ANN.ordinals, "signingIndexes": [0, 1], "sigHash": 1}]
    assert (await desk.events(), (await client.good("GET", "listings", sellerAddress=ANN.ordinals))["listings"]) == (
        [],
        [],
    )


async def test_a_signed_listing_is_shown_here_alone(desk: Desk) -> None:
    client = await opened(desk)

    listing = await client.listed(PUPPET)

    (row,) = (await client.good("GET", "listings", collectionSlug="Puppets", sort="price", limit=1))["listings"]
    txid, vout = (await outpoint_of(desk)).split(":")
    assert row == {
        "listingId": listing,
        "inscriptionId": PUPPET,
        "inscriptionNumber": row["inscriptionNumber"],
        "inscriptionName": row["inscriptionName"],
        "collection": {
            "slug": PUPPETS,
            "name": PUPPETS,
            "kind": "parent_child",
            "verificationStatus": "verified",
        },
        "sellerAddress": ANN.ordinals,
        "priceSats": 900_000,
        "listedAt": "2025-10-09T08:53:20.000Z",
        "listingExpiresAt": "2025-11-08T08:53:20.000Z",
        "sat": None,
        "locationTxid": txid,
        "locationVout": int(vout),
        "locationSatpoint": f"{txid}:{vout}:0",
    }
    (floors,) = (await client.good("GET", "collection-stats/floors", slugs=f"nothing,{PUPPETS}"))["data"]
    assert (floors["slug"], floors["floor"], floors["listedCount"], floors["ownerCount"]) == (PUPPETS, 900_000, 2, 2)
    (_, item) = sorted(
        (await client.good("GET", f"collection/{PUPPETS}/inscriptions"))["items"], key=lambda r: r["id"] == PUPPET
    )
    assert (item["listingState"], item["priceSats"], item["owner"]) == ("buyable", 900_000, ANN.ordinals)
    assert item["traits"] == [{"type": "Hat", "value": "Red"}]
    (event,) = await desk.events()
    assert (event["event"], event["kind"], event["venue"], event["orderId"]) == ("accepted", "ask", "ordnet", listing)
    assert (await own_listings(desk), (await desk.sim("GET", "requests"))["list"]) == ({}, {PUPPET: 2})


def _steps(body: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = body["signed"][0]["psbts"]
    return steps


def _swap_steps(body: dict[str, Any]) -> None:
    _steps(body)[0]["psbtBase64"], _steps(body)[1]["psbtBase64"] = (
        _steps(body)[1]["psbtBase64"],
        _steps(body)[0]["psbtBase64"],
    )


def _first_by_another_sighash(body: dict[str, Any]) -> None:
    step = _steps(body)[0]
    step["psbtBase64"] = sign_key_path(step["psbtBase64"], ANN, 0x01, [0])


def _second_by_all(body: dict[str, Any]) -> None:
    step = _steps(body)[1]
    step["psbtBase64"] = sign_leaf(step["psbtBase64"], ANN, 0x81)


def _recovery_by_default(body: dict[str, Any]) -> None:
    recovery = body["signedRecoveryPsbt"]
    recovery["psbtBase64"] = sign_key_path(recovery["psbtBase64"], ANN, 0x00, [0])


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (_swap_steps, 400),
        (_first_by_another_sighash, 400),
        (_second_by_all, 400),
        (_recovery_by_default, 400),
        (lambda body: body.pop("signedRecoveryPsbt"), 400),
        (lambda body: body.update(durationDays=2), 400),
        (lambda body: body["items"][0].update(priceSats=800_000), 400),
        (lambda body: body["anchors"][0].update(anchorUtxoId="x"), 409),
        (lambda body: _steps(body)[0].update(psbtBase64="AAAA"), 400),
    ],
)
async def test_what_no_submit_takes(desk: Desk, change: Callable[[dict[str, Any]], Any], status: int) -> None:
    client = await opened(desk)

    assert (await client.list((PUPPET, 900_000), change=change))[0] == status

    assert (await client.good("GET", "listings", sellerAddress=ANN.ordinals))["listings"] == []


async def test_a_signature_of_another_key_does_not_help(desk: Desk) -> None:
    client = await opened(desk)
    body, preflight = await client.draft((PUPPET, 900_000))
    second = preflight["listings"][0]["psbts"][1]
    second["psbtBase64"] = sign_leaf(second["psbtBase64"], BOB)
    submit = client.signed_listing(body, preflight)
    submit["signed"][0]["psbts"][1] = second

    assert (await client.ask("POST", f"{LISTINGS}/submit", submit))[0] == 400
    (event,) = await desk.events()
    assert event["event"] == "refused"


async def test_what_no_preflight_takes(desk: Desk) -> None:
    client = await opened(desk)
    bob = await Client(desk, BOB).sign_in()

    for who, changes, status in (
        (bob, {}, 403),
        (client, {"ordinalsPublicKey": BOB.pubkey[2:]}, 400),
        (client, {"items": []}, 400),
        (client, {"items": [{"inscriptionId": PUPPET, "priceSats": 900_000}] * 2}, 400),
        (client, {"items": [{"inscriptionId": "f" * 64 + "i0", "priceSats": 900_000}]}, 404),
        (client, {"items": [{"inscriptionId": PUPPET, "priceSats": 1}]}, 400),
    ):
        body = {
            "walletBindingId": who.binding,
            "ordinalsPublicKey": who.trader.pubkey[2:],
            "items": [{"inscriptionId": PUPPET, "priceSats": 900_000}],
        }
        assert (await who.ask("POST", f"{LISTINGS}/preflight", body | changes))[0] == status


async def test_an_inscription_that_has_moved_since(desk: Desk) -> None:
    client = await opened(desk)
    submit = client.signed_listing(*await client.draft((PUPPET, 900_000)))
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals})

    assert (await client.ask("POST", f"{LISTINGS}/submit", submit))[0] == 409


async def test_taking_down_needs_no_signature(desk: Desk) -> None:
    client = await opened(desk)
    listing = await client.listed(PUPPET)
    bob = await Client(desk, BOB).sign_in()

    assert (await bob.delist((PUPPET, listing)))[0] == 403
    assert (await client.delist((OTHER, listing)))[0] == 409
    gone = {"listings": [{"inscriptionId": PUPPET, "listingId": listing}]}
    assert await client.delist((PUPPET, listing)) == (200, gone)
    assert (await client.delist((PUPPET, listing)))[0] == 409
    assert (await client.delist((PUPPET, "11111111-1111-1111-1111-111111111111")))[0] == 404


async def test_a_listing_is_bought_on_the_chain(desk: Desk) -> None:
    pytest.importorskip("btclib", reason="a second opinion, where it is installed")
    from btclib.script.engine import verify_transaction
    from btclib.tx import Tx, TxOut

    client = await opened(desk)
    former, value = await outpoint_of(desk), 100_000_000
    assert sum(row["valueSats"] for row in await client.coins()) == value
    listing = await client.listed(PUPPET)

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})

    assert (sold["sold"]["orderId"], sold["sold"]["price"]) == (listing, 900_000)
    _, move = await desk.ask("GET", f"/mempool/api/tx/{former[:64]}/outspend/0", headers={})
    _, sale = await desk.ask("GET", f"/mempool/api/tx/{move['txid']}/outspend/0", headers={})
    assert sale["txid"] == sold["txid"]
    for txid in (move["txid"], sale["txid"]):
        raw = await desk.fetch("GET", f"/mempool/api/tx/{txid}/hex", headers={})
        _, told = await desk.ask("GET", f"/mempool/api/tx/{txid}", headers={})
        spent = [TxOut(row["prevout"]["value"], bytes.fromhex(row["prevout"]["scriptpubkey"])) for row in told["vin"]]
        verify_transaction(spent, Tx.parse(bytes.fromhex(raw.body.decode())))
    item = await desk.data("item", inscriptionId=PUPPET)
    assert (item["owner"], item["output"]) == (sold["buyer"], sold["outpoint"])
    assert sum(row["valueSats"] for row in await client.coins()) == value + 891_000
    (row,) = (await client.good("GET", "sales"))["sales"]
    assert (row["txid"], row["saleType"], row["sellerAddress"]) == (sold["txid"], "internal", ANN.ordinals)


async def test_a_listing_at_two_venues_ends_at_both_when_it_is_sold(desk: Desk) -> None:
    client = await opened(desk)
    listing = await client.listed(PUPPET)
    assert (await list_item(desk, price=800_000))[0] == 200

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "satflow"})

    assert sold["sold"]["price"] == 800_000
    (event,) = await desk.events("cancelled")
    assert event["orderId"] == listing
    assert (await client.good("GET", "listings", sellerAddress=ANN.ordinals))["listings"] == []


async def test_pages_follow_one_another(desk: Desk) -> None:
    await desk.list_puppets(*range(100_000, 105_000, 1_000))
    client = await Client(desk).sign_in()
    query: dict[str, Any] = {"collectionSlug": PUPPETS, "sort": "price", "limit": 2}

    pages = [await client.good("GET", "listings", **query)]
    while cursor := pages[-1]["pagination"]["nextCursor"]:
        pages.append(await client.good("GET", "listings", **query, cursor=cursor))

    prices = [row["priceSats"] for page in pages for row in page["listings"]]
    assert [page["pagination"]["pageSize"] for page in pages] == [2, 2, 1]
    assert [page["pagination"]["hasNext"] for page in pages] == [True, True, False]
    kept = pages[0]["pagination"]["nextCursor"]
    assert prices == list(range(100_000, 105_000, 1_000))
    assert (await client.ask("GET", "listings", collectionSlug=PUPPETS, sort="recent", cursor=kept))[0] == 400
    assert (await client.ask("GET", "listings", cursor="nonsense"))[0] == 400
    assert (await client.ask("GET", "listings", sort="cheapest"))[0] == 400
    assert (await client.ask("GET", "collection/nothing/inscriptions"))[0] == 404
    assert (await client.good("GET", "sales", collectionSlug="nothing"))["sales"] == []


def _utxo(fields: Any) -> TxOutput:
    return decode_output(fields[compact(0x01)])


def _leaf() -> bytes:
    """multi_a(2, seller, ord.net)."""
    keys = [bytes.fromhex(ANN.pubkey[2:]), MARKET.get_public_key().xonly()]
    return b"\x20" + keys[0] + b"\xac\x20" + keys[1] + b"\xba\x52\x9c"


def _passthrough() -> bytes:
    root = tagged("TapLeaf", b"\xc0" + bytes([len(_leaf())]) + _leaf())
    key = PublicKey.from_xonly(bytes.fromhex(ANN.pubkey[2:]))
    return b"\x51\x20" + key.taproot_tweak(root).xonly()


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


async def stranded(desk: Desk) -> str:
    """Lists an item and sends its transfer; returns the escrow."""
    await desk.list_puppets(900_000)
    client = await Client(desk).sign_in()
    await hold(desk)
    await client.listed(PUPPET)
    found = await desk.sim("POST", "escrow", {"inscriptionId": PUPPET})
    assert found["address"] not in (ANN.ordinals, None)
    return str(found["outpoint"])


async def _is_at(desk: Desk) -> str:
    _, found = await desk.ask("GET", f"/ord/inscription/{PUPPET}", headers={"Accept": "application/json"})
    return str(found["satpoint"].rpartition(":")[0])


async def test_it_is_there_and_can_be_bought_from_there(desk: Desk) -> None:
    escrow = await stranded(desk)
    assert await _is_at(desk) == escrow
    found = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "ordnet"})
    assert await _is_at(desk) == found["outpoint"] != escrow
    assert found["sold"]["price"] == 900_000


async def test_it_comes_back_to_where_it_was_and_is_listed_no_more(desk: Desk) -> None:
    escrow = await stranded(desk)
    found = await desk.sim("POST", "escrow", {"inscriptionId": PUPPET, "back": True})
    assert (found["address"], await _is_at(desk)) == (ANN.ordinals, found["outpoint"])
    assert found["outpoint"] != escrow
    for body in ({"inscriptionId": PUPPET}, {"inscriptionId": PUPPET, "back": True}):
        assert (await desk.ask("POST", "/sim/escrow", body, headers={}))[0] == 404


async def test_it_goes_there_once(desk: Desk) -> None:
    await stranded(desk)
    assert (await desk.ask("POST", "/sim/escrow", {"inscriptionId": PUPPET}, headers={}))[0] == 409
