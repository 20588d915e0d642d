"""Transactions that are sent to the practice market's chain: what it checks of them, and what they move."""

from __future__ import annotations

from typing import Any

import pytest
from embit import script
from embit.script import Witness
from embit.transaction import SIGHASH, Transaction, TransactionInput, TransactionOutput

from tests.simulator.desk import ANN, BOB, Desk, Trader
from tests.simulator.seller import OTHER, PUPPET, hold, listed, outpoint_of

pytestmark = pytest.mark.gen_test

FEE = 500  # less than any inscription's coin holds


async def send(desk: Desk, raw: bytes | str) -> tuple[int, str]:
    body = raw if isinstance(raw, str) else raw.hex()
    answer = await desk.fetch("POST", "/mempool/api/tx", body.encode(), headers={"Content-Type": "text/plain"})
    return answer.code, answer.body.decode()


async def coins(desk: Desk, address: str) -> dict[str, dict[str, Any]]:
    _, rows = await desk.ask("GET", f"/mempool/api/address/{address}/utxo")
    return {f"{row['txid']}:{row['vout']}": row for row in rows}


async def funded(desk: Desk, *values: int, trader: Trader = ANN) -> list[tuple[str, int]]:
    made = await desk.sim("PUT", f"coins/{trader.payment}", {"values": list(values)})
    return [(row["outpoint"], row["value"]) for row in made]


def spend(outpoint: str) -> TransactionInput:
    txid, vout = outpoint.split(":")
    return TransactionInput(bytes.fromhex(txid), int(vout))


def paying(to: str, value: int) -> TransactionOutput:
    return TransactionOutput(value, script.address_to_scriptpubkey(to))


def sign_payment(tx: Transaction, at: int, value: int, trader: Trader = ANN) -> None:
    code = script.p2pkh_from_p2wpkh(script.p2wpkh(trader.key.get_public_key()))
    signature = trader.key.sign(tx.sighash_segwit(at, code, value, SIGHASH.ALL)).serialize() + b"\x01"
    tx.vin[at].witness = Witness([signature, trader.key.get_public_key().sec()])


def signed(coin: tuple[str, int], *outputs: TransactionOutput, trader: Trader = ANN) -> Transaction:
    tx = Transaction(2, [spend(coin[0])], list(outputs))
    sign_payment(tx, 0, coin[1], trader)
    return tx


async def test_coins_are_what_a_script_sets(desk: Desk) -> None:
    made = dict(await funded(desk, 10_000, 25_000))

    assert {outpoint: row["value"] for outpoint, row in (await coins(desk, ANN.payment)).items()} == made
    assert sorted(made.values()) == [10_000, 25_000]


async def test_a_payment_moves_coins_and_waits_for_its_block(desk: Desk) -> None:
    (coin,) = await funded(desk, 100_000)
    await funded(desk, trader=BOB)
    tx = signed(coin, paying(BOB.payment, 60_000), paying(ANN.payment, 40_000 - FEE))

    assert await send(desk, tx.serialize()) == (200, tx.txid().hex())

    assert list(await coins(desk, ANN.payment)) == [f"{tx.txid().hex()}:1"]
    (got,) = (await coins(desk, BOB.payment)).values()
    assert (got["value"], got["status"]) == (60_000, {"confirmed": False})
    assert (await desk.sim("POST", "confirm", {"txid": tx.txid().hex()}))["confirmed"] == [tx.txid().hex()]
    (got,) = (await coins(desk, BOB.payment)).values()
    assert got["status"]["confirmed"] is True
    assert (await desk.sim("POST", "confirm", {}))["confirmed"] == []


async def test_it_gets_into_a_block_by_the_clock(desk: Desk) -> None:
    (coin,) = await funded(desk, 100_000)
    tx = signed(coin, paying(BOB.ordinals, 99_000))
    await send(desk, tx.serialize())
    desk.clock.advance(20 * 60)

    _, status = await desk.ask("GET", f"/mempool/api/tx/{tx.txid().hex()}/status")
    assert status["confirmed"] is True


async def test_one_that_waits_is_taken_again_and_one_in_a_block_is_not(desk: Desk) -> None:
    (coin,) = await funded(desk, 100_000)
    tx = signed(coin, paying(BOB.payment, 99_000))

    assert (await send(desk, tx.serialize()))[0] == (await send(desk, tx.serialize()))[0] == 200

    await desk.sim("POST", "confirm", {})
    code, said = await send(desk, tx.serialize())
    assert (code, '"code":-27' in said) == (400, True)


def _another_key(tx: Transaction) -> None:
    sign_payment(tx, 0, 100_000, BOB)


def _another_amount(tx: Transaction) -> None:
    sign_payment(tx, 0, 100_001)


def _changed_afterwards(tx: Transaction) -> None:
    tx.vout[0].value -= 1


def _unsigned(tx: Transaction) -> None:
    tx.vin[0].witness = Witness([])


def _none(tx: Transaction) -> None:
    tx.vin[0].witness = Witness([tx.vin[0].witness.items[0][:-1] + b"\x02", tx.vin[0].witness.items[1]])


@pytest.mark.parametrize("change", [_another_key, _another_amount, _changed_afterwards, _unsigned, _none])
async def test_a_signature_that_does_not_hold(desk: Desk, change: Any) -> None:
    (coin,) = await funded(desk, 100_000)
    tx = signed(coin, paying(BOB.payment, 99_000))
    change(tx)

    code, said = await send(desk, tx.serialize())

    assert (code, "script-verify" in said) == (400, True)
    assert list(await coins(desk, ANN.payment)) == [coin[0]]


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ([100_001], "bad-txns-in-belowout"),
        ([99_950], "min relay fee not met"),
        ([293], "dust"),
    ],
)
async def test_amounts_that_no_node_relays(desk: Desk, outputs: list[int], reason: str) -> None:
    (coin,) = await funded(desk, 100_000)

    code, said = await send(desk, signed(coin, *(paying(BOB.payment, value) for value in outputs)).serialize())

    assert (code, reason in said) == (400, True)


@pytest.mark.parametrize("raw", ["", "zz", "00", "0200000000" * 10, "ab" * 100])
async def test_what_is_no_transaction(desk: Desk, raw: str) -> None:
    assert (await send(desk, raw))[0] == 400


async def test_a_coin_is_spent_once(desk: Desk) -> None:
    (coin,) = await funded(desk, 100_000)
    await send(desk, signed(coin, paying(BOB.payment, 99_000)).serialize())

    code, said = await send(desk, signed(coin, paying(BOB.payment, 98_000)).serialize())

    assert (code, "txn-mempool-conflict" in said) == (400, True)
    assert (
        "missingorspent" in (await send(desk, signed(("ab" * 32 + ":0", 1), paying(BOB.payment, 900)).serialize()))[1]
    )


async def satpoint(desk: Desk) -> str:
    _, found = await desk.ask("GET", f"/ord/inscription/{PUPPET}", headers={"Accept": "application/json"})
    return str(found["satpoint"])


async def moving(desk: Desk, *, first: bool = True) -> Transaction:
    """Moves the inscription's coin and a payment coin, in this order or the other, to BOB."""
    outpoint = await outpoint_of(desk)
    value = (await coins(desk, ANN.ordinals))[outpoint]["value"]
    (coin,) = await funded(desk, 50_000)
    sources, values = [spend(outpoint), spend(coin[0])], [value, 50_000]
    if not first:
        sources.reverse()
        values.reverse()
    tx = Transaction(2, sources, [paying(BOB.ordinals, value), paying(ANN.payment, 50_000 - FEE)])
    item, money = (0, 1) if first else (1, 0)
    sign_payment(tx, money, 50_000)
    vault = script.p2tr(ANN.key.get_public_key())
    scripts = [vault, script.p2wpkh(ANN.key.get_public_key())]
    digest = tx.sighash_taproot(item, scripts if first else scripts[::-1], values)
    tx.vin[item].witness = Witness([ANN.key.taproot_tweak(b"").schnorr_sign(digest).serialize()])
    return tx


async def test_an_inscription_goes_with_its_sat_and_its_listing_ends(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    tx = await moving(desk)

    assert (await send(desk, tx.serialize()))[0] == 200

    item = await desk.data("item", inscriptionId=PUPPET)
    assert (item["owner"], item["listed"]) == (BOB.ordinals, False)
    assert any(row["event"] == "cancelled" for row in await desk.sim("GET", "history"))
    assert await satpoint(desk) != f"{tx.txid().hex()}:0:0", "an index of blocks sees it later"
    await desk.sim("POST", "confirm", {})
    assert await satpoint(desk) == f"{tx.txid().hex()}:0:0"


async def test_behind_money_an_inscription_lands_on_another_output(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    tx = await moving(desk, first=False)

    assert (await send(desk, tx.serialize()))[0] == 200
    await desk.sim("POST", "confirm", {})

    assert await satpoint(desk) == f"{tx.txid().hex()}:1:0"
    assert (await desk.data("item", inscriptionId=PUPPET))["owner"] == ANN.payment


async def test_faults_of_a_broadcast(desk: Desk) -> None:
    (coin,) = await funded(desk, 100_000)
    tx = signed(coin, paying(BOB.payment, 99_000))
    await desk.fault("broadcast", "error_500")
    assert (await send(desk, tx.serialize()))[0] == 500
    await desk.fault("broadcast", "accept_then_500")
    assert (await send(desk, tx.serialize()))[0] == 500
    assert (await desk.ask("GET", f"/mempool/api/tx/{tx.txid().hex()}/status"))[1] == {"confirmed": False}
