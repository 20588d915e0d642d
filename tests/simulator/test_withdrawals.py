"""Sats out of a bidding wallet of the practice market, to the payment address that shares it."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from embit.hashes import tagged_hash
from embit.psbt import PSBT
from embit.script import Script
from embit.transaction import SIGHASH

from tests.simulator.desk import ANN, BOB, SATFLOW, Desk, Trader
from tests.simulator.test_chain import coins, funded, paying, send, signed

pytestmark = pytest.mark.gen_test


async def wallet_of(desk: Desk, trader: Trader = ANN) -> str:
    query = {"paymentAddress": trader.payment, "ordinalsAddress": trader.ordinals, "paymentPubkey": trader.pubkey}
    return str((await desk.data("address/bidding-wallet", **query))["address"])


async def balance(desk: Desk, address: str) -> int:
    _, stats = await desk.ask("GET", f"/mempool/api/address/{address}")
    return int(stats["chain_stats"]["funded_txo_sum"])


async def draft(desk: Desk, amount: Any = 50_000, user: str = ANN.payment) -> tuple[int, Any]:
    return await desk.ask("POST", f"{SATFLOW}/intent/withdraw", {"userAddress": user, "amount": amount})


async def submit(desk: Desk, psbt: str, user: str = ANN.payment) -> tuple[int, Any]:
    return await desk.ask("POST", f"{SATFLOW}/withdraw", {"signedWithdrawPSBT": psbt, "bidderPaymentAddress": user})


def sign(psbt: str, trader: Trader = ANN) -> str:
    read = PSBT.parse(b64decode(psbt))
    for at, each in enumerate(read.inputs):
        if each.witness_script is None:
            leaf, signature = leaf_signature(read, at, trader)
            each.taproot_sigs[trader.key.get_public_key(), leaf] = signature
            continue
        digest = read.tx.sighash_segwit(at, each.witness_script, each.witness_utxo.value, SIGHASH.ALL)
        each.partial_sigs[trader.key.get_public_key()] = trader.key.sign(digest).serialize() + b"\x01"
    return str(read.to_base64())


def leaf_signature(read: PSBT, at: int, trader: Trader) -> tuple[bytes, bytes]:
    """Returns the hash of the leaf of input `at`, and the signature for it with DEFAULT."""
    (code,) = [value[:-1] for value in read.inputs[at].taproot_scripts.values()]
    spent = [each.witness_utxo for each in read.inputs]
    digest = read.tx.sighash_taproot(
        at,
        [output.script_pubkey for output in spent],
        [output.value for output in spent],
        ext_flag=1,
        script=Script(code),
        leaf_version=0xC0,
    )
    hashed = tagged_hash("TapLeaf", bytes([0xC0, len(code)]) + code)
    return hashed, trader.key.schnorr_sign(digest).serialize()


async def drafted(desk: Desk, amount: int = 50_000) -> str:
    await wallet_of(desk)
    status, answer = await draft(desk, amount)
    assert status == 200, answer
    return str(answer["data"]["unsignedPSBTBase64"])


async def test_a_draft_is_a_psbt_of_the_bidding_wallet(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})

    status, answer = await draft(desk)

    found = answer["data"]
    psbt = PSBT.parse(b64decode(found["unsignedPSBTBase64"]))
    assert (status, found["paymentUtxoCount"]) == (200, 1)
    assert bytes.fromhex(found["unsignedPSBTHex"]) == b64decode(found["unsignedPSBTBase64"])
    assert [output.script_pubkey.address() for output in psbt.tx.vout] == [ANN.payment, wallet]
    assert psbt.tx.vout[0].value == 50_000
    assert 28_000 < psbt.tx.vout[1].value < 30_000
    assert psbt.inputs[0].witness_utxo.script_pubkey.address() == wallet
    assert psbt.inputs[0].non_witness_utxo.txid() == psbt.tx.vin[0].txid
    assert ANN.key.get_public_key().sec() in psbt.inputs[0].witness_script.data


@pytest.mark.parametrize(("kind", "begin"), [("2of2", "bc1q"), ("2of3", "bc1q"), ("leaf", "bc1p")])
async def test_what_is_signed_is_completed_and_sent(desk: Desk, kind: str, begin: str) -> None:
    await desk.sim("PUT", "bidding-wallets", {"kind": kind})
    wallet = await wallet_of(desk)
    assert wallet.startswith(begin)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})
    psbt = await drafted(desk)
    before = await balance(desk, ANN.payment)

    status, answer = await submit(desk, sign(psbt))

    assert status == 200, answer
    txid = answer["data"]["txid"]
    assert txid == PSBT.parse(b64decode(psbt)).tx.txid().hex()
    assert f"{txid}:0" in await coins(desk, ANN.payment)
    assert list(await coins(desk, wallet)) == [f"{txid}:1"]
    assert await balance(desk, ANN.payment) == before + 50_000
    assert await balance(desk, wallet) < 30_000


async def test_all_of_it_pays_the_fee_from_what_arrives(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})
    psbt = PSBT.parse(b64decode(await drafted(desk, 80_000)))
    assert len(psbt.tx.vout) == 1
    assert 78_000 < psbt.tx.vout[0].value < 80_000


async def test_bids_are_backed_by_what_is_left_in_the_bidding_wallet(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    await desk.list_puppets(100_000)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})
    assert (await submit(desk, sign(await drafted(desk, 60_000))))[0] == 200

    status, answer = await desk.place()

    assert status == 400
    assert "insufficient" in answer["error"]


async def test_money_that_leaves_the_payment_address_leaves_the_bids_alone(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})
    (coin,) = await funded(desk, 80_000)
    assert (await send(desk, signed(coin, paying(BOB.payment, 79_000)).serialize()))[0] == 200
    assert (await balance(desk, wallet), await balance(desk, ANN.payment)) == (80_000, 0)
    assert await wallet_of(desk) == wallet
    assert await balance(desk, wallet) == 80_000


@pytest.mark.parametrize("amount", [0, -1, 1.5, True, "50000", None, 100_000_001, 21 * 10**14 + 1])
async def test_amounts_that_cannot_be_taken_out(desk: Desk, amount: Any) -> None:
    await wallet_of(desk)
    assert (await draft(desk, amount))[0] == 400


async def test_nobody_without_a_bidding_wallet_takes_anything_out(desk: Desk) -> None:
    assert (await draft(desk, 1_000, BOB.payment))[0] == 400
    assert (await draft(desk, 1_000, "nobody"))[0] == 400


async def test_what_is_not_signed_by_its_user_is_not_sent(desk: Desk) -> None:
    psbt = await drafted(desk)
    await wallet_of(desk, BOB)
    for tried in (psbt, sign(psbt, BOB), "", "cHNidP8="):
        assert (await submit(desk, tried))[0] == 400
    assert (await submit(desk, sign(psbt), BOB.payment))[0] == 400
    assert await coins(desk, await wallet_of(desk)) != {}


async def test_a_poisoned_draft_is_not_completed_either(desk: Desk) -> None:
    await desk.sim("PUT", "poison", {"mode": "wrong_payout"})
    psbt = await drafted(desk)
    assert PSBT.parse(b64decode(psbt)).tx.vout[0].script_pubkey.address() != ANN.payment
    assert (await submit(desk, sign(psbt)))[0] == 400


async def test_faults_of_a_withdrawal(desk: Desk) -> None:
    psbt = sign(await drafted(desk))
    await desk.fault("withdraw", "accept_then_500", count=1)
    assert (await submit(desk, psbt))[0] == 500
    assert (await submit(desk, psbt))[0] == 200, "one that waits is taken again"


async def test_a_withdrawal_brings_no_sats_into_being(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    before = await balance(desk, ANN.payment) + await balance(desk, wallet)
    assert before == 200_000_000
    psbt = await drafted(desk)
    assert await balance(desk, ANN.payment) + await balance(desk, wallet) == before
    assert (await submit(desk, sign(psbt)))[0] == 200
    assert before - 5_000 < await balance(desk, ANN.payment) + await balance(desk, wallet) < before


async def test_separate_money_survives_a_restart_of_the_market(desk: Desk) -> None:
    wallet = await wallet_of(desk)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 80_000})
    await submit(desk, sign(await drafted(desk)))
    kept = desk.world.engine.wallets.dump()
    fresh = type(desk.world.engine.wallets)()
    fresh.load(kept)
    assert fresh.balance(wallet) == desk.world.engine.wallets.balance(wallet) < 30_000
    assert fresh.backing(ANN.payment) == fresh.balance(wallet)
    assert fresh.bidding_wallet(ANN.payment, ANN.ordinals, ANN.pubkey) == wallet
    assert fresh.balance(wallet) < 30_000
