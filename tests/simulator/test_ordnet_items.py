"""Offers for one inscription at ord.net's dialect: drafted, signed, read, sold into, cancelled."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.shapes import replace
from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.ordnet_trader import Client
from tests.simulator.seller import PUPPET, hold
from wallet.psbt.decode import decode, encode
from wallet.psbt.sign import sign_input
from wallet.psbt.transaction import compact, decode_output

pytestmark = pytest.mark.gen_test

ITEM_OFFERS = f"collection/{PUPPETS}/offers"


async def bidder(desk: Desk) -> Client:
    """Bob, who bids for what Ann has."""
    await desk.list_puppets(900_000)
    await hold(desk)
    return await Client(desk, BOB).sign_in()


async def _body(client: Client, price: int = 50_000, **changes: Any) -> dict[str, Any]:
    body = {
        "walletBindingId": client.binding,
        "paymentPublicKey": client.trader.pubkey,
        "inscriptionIds": [PUPPET],
        "priceSats": price,
        "validityHours": 24,
        "spendableUtxos": await client.coins(),
    }
    return body | changes


def _signed(psbt: str) -> str:
    read = decode(b64decode(psbt))
    spent = [decode_output(fields[compact(0x01)]) for fields in read.inputs]
    signature = sign_input(read.transaction, 1, spent, 0x01, "p2wpkh", BOB.key)
    own = {**read.inputs[1], compact(0x02) + bytes.fromhex(BOB.pubkey): signature}
    return b64encode(encode(replace(read, inputs=(read.inputs[0], own)))).decode()


async def _place(client: Client, price: int = 50_000, *, sign: bool = True, **changes: Any) -> tuple[int, Any]:
    body = await _body(client, price, **changes)
    status, found = await client.ask("POST", f"{ITEM_OFFERS}/preflight", body)
    if status != 200:
        return status, found
    rows = []
    for item in found["items"]:
        (step,) = item["steps"]
        signed = step | ({"psbtBase64": _signed(step["psbtBase64"])} if sign else {})
        kept = {name: item[name] for name in ("inscriptionId", "expectedSettlementTxid")}
        rows.append(kept | {"signedSteps": [signed]})
    del body["spendableUtxos"]
    more = {"selectedPaymentUtxos": found["selectedPaymentUtxos"], "signedItems": rows}
    return await client.ask("POST", f"{ITEM_OFFERS}/submit", body | more)


async def test_a_signed_offer_is_shown_to_both_sides(desk: Desk) -> None:
    bob = await bidder(desk)

    status, answer = await _place(bob)

    assert (status, answer["status"]) == (200, "active")
    (placed,) = answer["items"]
    offer = placed["offerId"]
    assert placed == {"inscriptionId": PUPPET, "offerId": offer, "status": "active"}
    found = await bob.good("GET", f"inscriptions/{PUPPET}/offers")
    assert (found["ownerAddress"], found["topOfferSats"], found["liveOfferCount"]) == (ANN.ordinals, 50_000, 1)
    (row,) = found["offers"]
    assert (row["id"], row["sellerReceiveSats"], row["buyerPayTotalSats"]) == (offer, 49_500, 50_500)
    (sent,) = (await bob.good("GET", "me/offers", view="sent"))["rows"]
    assert (sent["id"], sent["side"], sent["sellerAddress"]) == (offer, "sent", ANN.ordinals)
    ann = await Client(desk).sign_in()
    (group,) = (await ann.good("GET", "me/offers"))["groups"]
    assert (group["inscriptionId"], group["topOfferSats"], len(group["offers"])) == (PUPPET, 50_000, 1)
    # It is none of the collection's.
    assert (await bob.good("GET", f"collection/{PUPPETS}/collection-offers"))["rows"] == []
    assert (await bob.own(), (await bob.good("GET", "me/offers", view="owned"))["groups"]) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"priceSats": 9_000}, 400),
        ({"priceSats": 50_500}, 400),
        ({"validityHours": 48}, 400),
        ({"inscriptionIds": []}, 400),
        ({"inscriptionIds": [PUPPET, PUPPET]}, 400),
        ({"inscriptionIds": ["f" * 64 + "i0"]}, 404),
        ({"paymentPublicKey": ANN.pubkey}, 400),
        ({"sign": False}, 400),
    ],
)
async def test_what_is_not_taken(desk: Desk, changes: dict[str, Any], status: int) -> None:
    assert (await _place(await bidder(desk), **changes))[0] == status


async def test_an_offer_is_filled_by_the_transaction_that_was_signed(desk: Desk) -> None:
    bob = await bidder(desk)
    _, answer = await _place(bob)

    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": answer["items"][0]["offerId"]})

    assert (sold["inscriptionId"], sold["sold"]["price"]) == (PUPPET, 50_000)
    item = await desk.data("item", inscriptionId=PUPPET)
    assert item["owner"] == BOB.ordinals
    assert [row["valueSats"] for row in await bob.coins()] == [100_000_000 - 50_500]


async def test_an_offer_falls_when_the_inscription_moves(desk: Desk) -> None:
    bob = await bidder(desk)
    await _place(bob)

    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.payment})

    assert (await bob.good("GET", f"inscriptions/{PUPPET}/offers"))["offers"] == []
    (event,) = await desk.events("cancelled")
    assert event["reason"] == "invalidated: a coin behind it is spent"


async def test_an_offer_is_cancelled(desk: Desk) -> None:
    bob = await bidder(desk)
    _, answer = await _place(bob)
    path = f"inscriptions/{PUPPET}/offers/{answer['items'][0]['offerId']}/cancel"

    assert (await bob.ask("POST", path, {"walletBindingId": "x"}))[0] == 403
    assert (await bob.good("POST", path, {"walletBindingId": bob.binding}))["status"] == "cancelled"
    assert (await bob.ask("POST", path, {"walletBindingId": bob.binding}))[0] == 409
