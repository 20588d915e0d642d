"""Ordinals Wallet's dialect: drafted, signed, checked, shown, listed again, sold."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.seller import (
    OTHER,
    PUPPET,
    as_base64,
    as_hex,
    hex_changed,
    hex_signed,
    hex_signed_all,
    hold,
    listed,
    outpoint_of,
    ow_draft,
    ow_listed,
    ow_read,
    ow_submit,
    own_listings,
    signed,
)
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact, decode_output

pytestmark = pytest.mark.gen_test


async def _listings(desk: Desk) -> dict[str, int]:
    """Returns the listings of Ann's vault, by inscription, at the buyers' prices."""
    rows = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    return {row["id"]: row["escrow"]["satoshi_price"] for row in rows if row["escrow"]}


async def test_a_draft_spends_the_inscription_and_pays_the_price_alone(desk: Desk) -> None:
    await hold(desk)

    status, answer = await ow_draft(desk)

    assert (status, set(answer)) == (200, {"psbt"})
    psbt = decode(bytes.fromhex(answer["psbt"]))
    (source,), (payout,), (fields,) = psbt.transaction.inputs, psbt.transaction.outputs, psbt.inputs
    assert f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" == await outpoint_of(desk)
    assert payout == TxOutput(900_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    assert fields[compact(0x03)] == (0x83).to_bytes(4, "little")
    assert fields[compact(0x17)].hex() == ANN.pubkey[2:]
    assert (await _listings(desk), await desk.events()) == ({}, [])


@pytest.mark.parametrize("final", [False, True])
async def test_a_signed_listing_shows_what_the_buyer_pays(desk: Desk, final: bool) -> None:
    await hold(desk, PUPPET, OTHER)
    _, draft = await ow_draft(desk, prices=[300_000])

    status, answer = await ow_submit(desk, hex_signed(draft["psbt"], final=final))

    assert (status, answer) == (200, {"success": True, "escrow_id": answer["escrow_id"]})
    assert await _listings(desk) == {PUPPET: 308_324}
    (row,) = await ow_read(desk, f"collection/{PUPPETS}/escrows")
    assert (row["id"], row["inscription_id"], row["satoshi_price"]) == (answer["escrow_id"], PUPPET, 308_324)
    assert (row["seller_address"], row["outpoint"]) == (ANN.ordinals, await outpoint_of(desk))
    assert (row["price_per"], row["amount"], row["created"]) == ("", "", "2025-10-09 08:53:20.000000+00")
    escrow = await ow_read(desk, f"market/escrow/{PUPPET}")
    assert (escrow["escrow_price"], escrow["satoshi_price"], escrow["market_royalty"]) == (300_000, 308_324, 0.026998)
    assert (await ow_read(desk, f"collection/{PUPPETS}/stats"))["floor_price"] == 308_324


@pytest.mark.parametrize(
    ("seller", "buyer"), [(15_000, 16_000), (1_990_000, 2_045_220), (2_500_000, 2_569_373), (100_000_000, 102_774_922)]
)
async def test_the_fee_is_that_of_the_recorded_answers(desk: Desk, seller: int, buyer: int) -> None:
    await hold(desk)
    await ow_listed(desk, seller)

    assert await _listings(desk) == {PUPPET: buyer}


async def test_a_listing_stands_at_its_own_venue_only(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000)
    await ow_listed(desk)

    assert await own_listings(desk) == {}
    satflow = await desk.data("activity/listings", collectionSlug=PUPPETS)
    assert [row["price"] for row in satflow["items"]] == [2_000_000]
    assert [row["satoshi_price"] for row in await ow_read(desk, f"collection/{PUPPETS}/escrows")] == [
        924_974,
        2_000_000,
    ]

    await listed(desk)

    assert (await own_listings(desk), await _listings(desk)) == ({PUPPET: 900_000}, {PUPPET: 924_974})
    events = [(event["event"], event["venue"], event["inscriptionId"]) for event in await desk.events()]
    assert events == [("accepted", "ordinalswallet", PUPPET), ("accepted", "satflow", PUPPET)]


async def test_listing_again_replaces(desk: Desk) -> None:
    await hold(desk)
    await ow_listed(desk, 900_000)
    await ow_listed(desk, 800_000)

    assert [row["satoshi_price"] for row in await ow_read(desk, f"collection/{PUPPETS}/escrows")] == [822_199]
    assert [event["reason"] for event in await desk.events("cancelled")] == ["listed again"]


async def test_a_sale_ends_the_listings_at_every_venue(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    await ow_listed(desk)

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "ordinalswallet"})

    assert (await own_listings(desk), await _listings(desk)) == ({}, {})
    status, spend = await desk.ask("GET", f"/mempool/api/tx/{sold['txid']}")
    assert (status, spend["vout"][2]["value"], spend["vout"][2]["scriptpubkey_address"]) == (200, 900_000, ANN.payment)
    filled, cancelled = (await desk.events())[-2:]
    assert (filled["event"], filled["venue"]) == ("filled", "ordinalswallet")
    assert (cancelled["venue"], cancelled["reason"]) == ("satflow", "sold at another venue")


async def test_two_inscriptions_are_listed_at_once(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    _, draft = await ow_draft(desk, inscriptions=[PUPPET, OTHER], prices=[900_000, 800_000])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    assert [output.value for output in psbt.transaction.outputs] == [900_000, 800_000]

    status, answer = await ow_submit(desk, hex_signed(draft["psbt"]))
    assert (status, "not signed" in answer["message"]) == (400, True)
    assert await _listings(desk) == {}
    assert await ow_submit(desk, hex_signed_all(draft["psbt"])) == (200, {"success": True})
    assert await _listings(desk) == {PUPPET: 924_974, OTHER: 822_199}
    await desk.sim("POST", "sell", {"inscriptionId": OTHER})
    assert await _listings(desk) == {PUPPET: 924_974}


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"inscriptions": [OTHER]}, 404, "inscription_not_found"),
        ({"from": BOB.ordinals}, 400, "not_the_owner"),
        ({"public_key": BOB.pubkey}, 400, "invalid_public_key"),
        ({"public_key": "ab"}, 400, "invalid_public_key"),
        ({"prices": [0]}, 400, None),
        ({"prices": []}, 400, None),
        ({"prices": ["900000"]}, 400, None),
        ({"receive_address": "nowhere"}, 400, None),
        ({"inscriptions": [PUPPET, PUPPET], "prices": [1_000, 1_000]}, 400, None),
    ],
)
async def test_no_draft_for_what_cannot_be_listed(
    desk: Desk, changes: dict[str, Any], status: int, code: str | None
) -> None:
    await hold(desk)

    found, answer = await ow_draft(desk, **changes)

    assert (found, answer["error"], answer.get("code")) == (status, True, code)
    assert answer["message"]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("unsigned", "not signed"),
        ("of another value", "invalid signature"),
        ("sighash ALL", "sighash"),
        ("altered after signing", "invalid signature"),
        ("another outpoint", "no output with an inscription"),
        ("base64", "not hex"),
        ("nonsense", "not a PSBT"),
    ],
)
async def test_a_wrong_listing_is_refused_with_its_reason(desk: Desk, what: str, reason: str) -> None:
    await hold(desk)
    psbt = (await ow_draft(desk))[1]["psbt"]
    good, own = hex_signed(psbt), decode_output(decode(bytes.fromhex(psbt)).inputs[0][compact(0x01)])
    wrong = {
        "unsigned": psbt,
        "of another value": as_hex(signed(as_base64(psbt), spent=own._replace(value=own.value + 1))),
        "sighash ALL": hex_signed(psbt, sighash=0x81),
        "altered after signing": hex_changed(good, value=1_000_000),
        "another outpoint": hex_changed(good, txid="0" * 64),
        "base64": as_base64(good),
        "nonsense": "00ff",
    }

    status, answer = await ow_submit(desk, wrong[what])

    assert (status, answer["error"], reason in answer["message"]) == (400, True, True), answer
    assert await _listings(desk) == {}


async def test_a_listing_of_what_was_moved_is_refused(desk: Desk) -> None:
    await hold(desk)
    good = hex_signed((await ow_draft(desk))[1]["psbt"])
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals})

    status, answer = await ow_submit(desk, good)

    assert (status, "spent" in answer["message"]) == (400, True)
