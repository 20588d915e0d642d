"""UniSat's collection market: put on sale, and at another price."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.desk import ANN, BOB, Desk
from tests.simulator.plain_seller import (
    as_base64,
    hex_changed,
    hex_signed,
    put_on,
    unisat,
    unisat_book,
    unisat_listed,
)
from tests.simulator.seller import OTHER, PUPPET, hold, outpoint_of, own_listings
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact

pytestmark = pytest.mark.gen_test
DEFAULT = 0x00


async def test_a_draft_spends_the_inscription_and_pays_the_price_alone(desk: Desk) -> None:
    await hold(desk)

    code, draft = await put_on(desk)

    assert (code, set(draft), draft["signIndexes"]) == (0, {"auctionId", "psbt", "signIndexes"}, [0])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    (source,), (payout,), (fields,) = psbt.transaction.inputs, psbt.transaction.outputs, psbt.inputs
    assert f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" == await outpoint_of(desk)
    assert payout == TxOutput(900_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    assert fields[compact(0x03)] == (0x83).to_bytes(4, "little")
    assert fields[compact(0x17)].hex() == ANN.pubkey[2:]
    assert (await unisat_book(desk), await desk.events()) == ({}, [])


async def test_without_a_btc_address_the_vault_is_paid(desk: Desk) -> None:
    await hold(desk)

    _, draft = await put_on(desk, btcAddress=None)

    (payout,) = decode(bytes.fromhex(draft["psbt"])).transaction.outputs
    assert payout.script == own_script("p2tr", ANN.key.get_public_key().sec())


@pytest.mark.parametrize("form", ["hex", "base64", "finalized"])
async def test_a_confirmed_listing_stands_here_only(desk: Desk, form: str) -> None:
    await hold(desk)
    _, draft = await put_on(desk)
    psbt = hex_signed(draft["psbt"], final=form == "finalized")
    sent: dict[str, Any] = {"psbt": as_base64(psbt), "fromBase64": True} if form == "base64" else {"psbt": psbt}

    assert await unisat(desk, "confirm_put_on", auctionId=draft["auctionId"], **sent) == (0, {})

    assert await unisat_book(desk) == {draft["auctionId"]: 900_000}
    assert await own_listings(desk) == {}
    (event,) = await desk.events()
    assert (event["event"], event["orderId"], event["venue"]) == ("accepted", draft["auctionId"], "unisat")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"inscriptionId": OTHER}, -109),
        ({"pubkey": BOB.pubkey}, -163),
        ({"pubkey": "ab"}, -156),
        ({"price": 999}, -132),
        ({"price": 2_100_000_000_000_001}, -133),
        ({"initPrice": 900_000}, -156),
        ({"unitPrice": "1"}, -156),
        ({"marketType": "auction"}, -156),
        ({"nftType": "runes"}, -107),
        ({"btcAddress": "nowhere"}, -156),
    ],
)
async def test_no_draft_for_what_cannot_be_listed(desk: Desk, changes: dict[str, Any], code: int) -> None:
    await hold(desk)

    found, said = await put_on(desk, **changes)

    assert (found, isinstance(said, str)) == (code, True)


async def test_no_draft_for_an_output_that_waits_or_holds_more(desk: Desk) -> None:
    await hold(desk)
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals, "confirmed": False})
    assert (await put_on(desk))[0] == -127
    desk.clock.advance(1_200)
    assert (await put_on(desk))[0] == 0
    await desk.sim("PUT", f"outputs/{await outpoint_of(desk)}", {"runes": {"AAA•BBB": {"amount": 5}}})
    assert (await put_on(desk))[0] == -126


@pytest.mark.parametrize("what", ["unsigned", "sighash", "altered", "another outpoint", "nonsense", "base64"])
async def test_a_wrong_signature_is_a_sign_error(desk: Desk, what: str) -> None:
    await hold(desk)
    _, draft = await put_on(desk)
    good = hex_signed(draft["psbt"])
    wrong = {
        "unsigned": draft["psbt"],
        "sighash": hex_signed(draft["psbt"], sighash=0x81),
        "altered": hex_changed(good, value=1_000_000),
        "another outpoint": hex_changed(good, txid="0" * 64),
        "nonsense": "00ff",
        "base64": as_base64(good),
    }

    code, said = await unisat(desk, "confirm_put_on", auctionId=draft["auctionId"], psbt=wrong[what])

    assert (code, said.startswith("Sign error")) == (-112, True)
    assert await unisat_book(desk) == {}


async def test_what_is_listed_is_not_listed_again(desk: Desk) -> None:
    await hold(desk)
    _, other = await put_on(desk)
    auction = await unisat_listed(desk)

    assert (await put_on(desk))[0] == -160
    for wanted, code in ((other["auctionId"], -160), (auction, -145), ("f" * 24, -100)):
        signed_psbt = hex_signed(other["psbt"])
        assert (await unisat(desk, "confirm_put_on", auctionId=wanted, psbt=signed_psbt))[0] == code
    assert await unisat_book(desk) == {auction: 900_000}


async def test_another_price_keeps_the_auction(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    new = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}

    code, draft = await unisat(desk, "create_modify_price", **new)
    assert (code, set(draft), draft["signIndexes"]) == (0, {"psbt", "signIndexes"}, [0])
    (output,) = decode(bytes.fromhex(draft["psbt"])).transaction.outputs
    assert output.value == 800_000
    assert await unisat_book(desk) == {auction: 900_000}
    confirm = {"auctionId": auction, "psbt": hex_signed(draft["psbt"]), "fromBase64": False}
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"fromBase64": None})))[0] == -156
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"psbt": draft["psbt"]})))[0] == -112
    assert await unisat(desk, "confirm_modify_price", **confirm) == (0, {})

    assert await unisat_book(desk) == {auction: 800_000}
    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET})
    assert (sold["sold"]["price"], sold["sold"]["orderId"]) == (800_000, auction)
    assert (await unisat(desk, "create_modify_price", **new))[0] == -144


async def test_a_draft_of_an_older_price_is_refused(desk: Desk) -> None:
    await hold(desk)
    auction = await unisat_listed(desk)
    first = {"auctionId": auction, "initPrice": "800000", "unitPrice": "800000"}
    _, draft = await unisat(desk, "create_modify_price", **first)
    confirm = {"auctionId": auction, "psbt": hex_signed(draft["psbt"]), "fromBase64": False}
    desk.world.engine.reprice(desk.world.engine.ask_of(PUPPET, "unisat"), 700_000)  # type: ignore[arg-type]

    assert (await unisat(desk, "confirm_modify_price", **confirm))[0] == -139
    assert (await unisat(desk, "create_modify_price", **(first | {"auctionId": "f" * 24})))[0] == -100
    assert (await unisat(desk, "confirm_modify_price", **(confirm | {"auctionId": "f" * 24})))[0] == -100
