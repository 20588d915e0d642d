"""UniSat's collection market: how an auction ends, evil drafts, faults."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from tests.simulator.desk import ANN, Desk
from tests.simulator.plain_seller import (
    BEARER,
    UNISAT,
    hex_changed,
    hex_signed,
    ow_listed,
    put_on,
    unisat,
    unisat_book,
    unisat_listed,
)
from tests.simulator.seller import OTHER, PUPPET, hold, listed, outpoint_of
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput

pytestmark = pytest.mark.gen_test
DEFAULT = 0x00


async def _put_off(desk: Desk, auction: str, **changes: Any) -> tuple[int, Any]:
    return await unisat(desk, "create_put_off", **({"auctionId": auction, "offChain": True} | changes))


async def test_a_listing_is_put_off_by_a_signature_that_moves_nothing(desk: Desk) -> None:
    await hold(desk)
    auction, outpoint = await unisat_listed(desk), await outpoint_of(desk)

    code, draft = await _put_off(desk, auction)

    assert (code, draft["btcSignIndexes"], draft["nftSignIndexes"]) == (0, [], [0])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    (output,), value = psbt.transaction.outputs, (await desk.data("item", inscriptionId=PUPPET))["outputValue"]
    assert output == TxOutput(value, own_script("p2tr", ANN.key.get_public_key().sec()))
    confirm = {"auctionId": auction, "offChain": True, "psbt": hex_signed(draft["psbt"], sighash=DEFAULT)}
    for wrong in (draft["psbt"], hex_signed(draft["psbt"]), hex_changed(confirm["psbt"], value=value - 1)):
        assert (await unisat(desk, "confirm_put_off", **(confirm | {"psbt": wrong})))[0] == -112
    assert await unisat(desk, "confirm_put_off", **confirm) == (0, {"txid": ""})
    assert (await unisat_book(desk), await outpoint_of(desk)) == ({}, outpoint)
    assert (await _put_off(desk, auction))[0] == -144
    assert (await unisat(desk, "confirm_put_off", **confirm))[0] == -144


async def test_putting_off_on_the_chain_is_not_here(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)

    for name, body in (
        ("create_put_off", {"auctionId": auction}),
        ("confirm_put_off", {"auctionId": auction, "psbt": "00"}),
        ("create_bid", {"auctionId": auction}),
    ):
        status, answer = await desk.ask("POST", f"{UNISAT}/{name}", body, headers=BEARER)
        assert (status, answer["code"]) == (501, -1)


async def test_a_sale_elsewhere_ends_the_auction(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    await listed(desk)
    await ow_listed(desk)

    await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "satflow"})

    assert await unisat_book(desk) == {}
    assert (await _put_off(desk, auction))[0] == -144
    assert {event["venue"] for event in await desk.events("cancelled")} == {"unisat", "ordinalswallet"}


@pytest.mark.parametrize("mode", ["wrong_payout", "low_payout", "extra_input", "sighash_none", "two_inputs"])
async def test_drafts_can_be_evil_here_too(desk: Desk, mode: str) -> None:
    await hold(desk, PUPPET, OTHER)
    auction = await unisat_listed(desk)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    honest = [await unisat(desk, "create_modify_price", **new), await _put_off(desk, auction)]
    await desk.sim("PUT", "poison", {"mode": mode})

    evil = [await unisat(desk, "create_modify_price", **new), await _put_off(desk, auction)]
    _, put = await put_on(desk, inscriptionId=OTHER)

    assert all(a[1]["psbt"] != b[1]["psbt"] for a, b in zip(honest, evil, strict=True))
    assert bytes.fromhex(put["psbt"])[:5] == b64decode("cHNidP8=")


async def test_faults_strike_a_listing_and_its_end(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "accept_then_500", count=1)
    _, draft = await put_on(desk)
    body = {"auctionId": draft["auctionId"], "psbt": hex_signed(draft["psbt"])}

    status, answer = await desk.ask("POST", f"{UNISAT}/confirm_put_on", body, headers=BEARER)

    assert (status, answer["code"]) == (500, -1)
    assert list(await unisat_book(desk)) == [draft["auctionId"]]
    await desk.fault("cancel", "cancel_lie", count=1)
    _, off = await _put_off(desk, draft["auctionId"])
    confirm = {"auctionId": draft["auctionId"], "offChain": True, "psbt": hex_signed(off["psbt"], sighash=DEFAULT)}
    assert await unisat(desk, "confirm_put_off", **confirm) == (0, {"txid": ""})
    assert list(await unisat_book(desk)) == [draft["auctionId"]]
    await desk.fault("cancel", "late", delaySeconds=3)
    assert (await unisat(desk, "confirm_put_off", **confirm))[0] == 0
    assert len(await unisat_book(desk)) == 1
    desk.clock.advance(3)
    assert await unisat_book(desk) == {}
    counts = await desk.sim("GET", "requests")
    assert counts["list"] == {PUPPET: 1, draft["auctionId"]: 1}
    assert counts["cancel"] == {draft["auctionId"]: 3}
