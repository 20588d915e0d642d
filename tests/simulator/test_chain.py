"""The play chain: coins, transactions, PSBTs, signatures, and a node's rules."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from embit import script
from embit.ec import PrivateKey
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionInput, TransactionOutput

from simulator.chain import script_of
from simulator.taproot import ALL_ANYONECANPAY, MAX_BYTES, SINGLE_ANYONECANPAY, digest, is_signed, parse
from tests.simulator.desk import ANN, BOB, Desk, Trader
from tests.simulator.seller import OTHER, PUPPET, hold, listed, outpoint_of
from tests.vectors import load
from wallet.psbt.transaction import TxOutput, decode_unsigned, taproot_digest

pytestmark = pytest.mark.gen_test

JSON = {"Accept": "application/json"}


async def ord_says(desk: Desk, path: str) -> Any:
    status, answer = await desk.ask("GET", f"/ord/{path}", headers=JSON)
    assert status == 200, answer
    return answer


async def mempool_says(desk: Desk, path: str) -> Any:
    status, answer = await desk.ask("GET", f"/mempool/api/{path}", headers={})
    assert status == 200, answer
    return answer


async def text(desk: Desk, path: str) -> str:
    answer = await desk.fetch("GET", path, headers={})
    assert (answer.code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    return answer.body.decode()


async def test_every_inscription_of_a_wallet_lies_alone_on_an_output(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)

    first, second = await outpoint_of(desk), await outpoint_of(desk, OTHER)
    assert first != second
    output = await ord_says(desk, f"output/{first}")
    assert (output["inscriptions"], output["runes"], output["spent"], output["indexed"]) == ([PUPPET], {}, False, True)
    assert (output["address"], output["confirmations"]) == (ANN.ordinals, 121)
    assert output["script_pubkey"] == "5120" + script.p2tr(ANN.key.get_public_key()).data[2:].hex()
    where = await ord_says(desk, f"inscription/{PUPPET}")
    assert (where["satpoint"], where["address"], where["value"]) == (f"{first}:0", ANN.ordinals, output["value"])
    assert set((await ord_says(desk, f"address/{ANN.ordinals}"))["outputs"]) == {first, second}
    utxos = {f"{row['txid']}:{row['vout']}": row for row in await mempool_says(desk, f"address/{ANN.ordinals}/utxo")}
    assert utxos[first]["value"] == output["value"]
    assert utxos[first]["status"]["confirmed"] is True


async def test_a_transaction_is_real(desk: Desk) -> None:
    await hold(desk)
    txid, vout = (await outpoint_of(desk)).split(":")

    made = Transaction.parse(bytes.fromhex(await text(desk, f"/mempool/api/tx/{txid}/hex")))

    told = await mempool_says(desk, f"tx/{txid}")
    row = told["vout"][int(vout)]
    assert made.txid().hex() == told["txid"] == txid
    assert made.vout[int(vout)].value == row["value"]
    assert made.vout[int(vout)].script_pubkey.data.hex() == row["scriptpubkey"]
    assert (row["scriptpubkey_address"], row["scriptpubkey_type"]) == (ANN.ordinals, "v1_p2tr")
    assert told["status"] == await mempool_says(desk, f"tx/{txid}/status")


async def test_the_same_scene_has_the_same_outputs(desk: Desk) -> None:
    await hold(desk)
    before = await outpoint_of(desk)

    await hold(desk)
    assert await outpoint_of(desk) == before
    await desk.sim("POST", "reset", {"seed": 5})
    await hold(desk)
    assert await outpoint_of(desk) == before


async def test_a_move_spends_the_output(desk: Desk) -> None:
    await hold(desk)
    former = await outpoint_of(desk)

    moved = await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": BOB.ordinals})

    assert (moved["from"], moved["address"]) == (former, BOB.ordinals)
    txid, vout = former.split(":")
    spend = await mempool_says(desk, f"tx/{txid}/outspend/{vout}")
    assert (spend["spent"], spend["txid"], spend["vin"]) == (True, moved["txid"], 0)
    assert spend["status"]["confirmed"] is True
    assert (await mempool_says(desk, f"tx/{txid}/outspends"))[int(vout)] == spend
    old, new = await ord_says(desk, f"output/{former}"), await ord_says(desk, f"output/{moved['outpoint']}")
    assert (old["spent"], old["indexed"], old["inscriptions"]) == (True, False, [])
    assert (new["spent"], new["inscriptions"], new["address"]) == (False, [PUPPET], BOB.ordinals)
    assert (await ord_says(desk, f"inscription/{PUPPET}"))["satpoint"] == f"{moved['outpoint']}:0"
    assert (await desk.data("item", inscriptionId=PUPPET))["owner"] == BOB.ordinals
    inputs = (await mempool_says(desk, f"tx/{moved['txid']}"))["vin"]
    assert [f"{row['txid']}:{row['vout']}" for row in inputs] == [former]
    assert inputs[0]["prevout"]["scriptpubkey_address"] == ANN.ordinals


async def test_a_waiting_move_is_seen_by_the_node_and_not_by_the_index(desk: Desk) -> None:
    await hold(desk)
    former = await outpoint_of(desk)

    body = {"inscriptionId": PUPPET, "address": ANN.ordinals, "confirmed": False}
    moved = await desk.sim("POST", "move", body)

    txid, vout = former.split(":")
    spend = await mempool_says(desk, f"tx/{txid}/outspend/{vout}")
    assert (spend["spent"], spend["status"]) == (True, {"confirmed": False})
    old, new = await ord_says(desk, f"output/{former}"), await ord_says(desk, f"output/{moved['outpoint']}")
    assert (old["spent"], old["inscriptions"]) == (True, [PUPPET])
    assert (new["spent"], new["indexed"], new["confirmations"], new["inscriptions"]) == (False, False, 0, [])
    assert (await ord_says(desk, f"inscription/{PUPPET}"))["satpoint"] == f"{former}:0"

    desk.clock.advance(1200)

    new = await ord_says(desk, f"output/{moved['outpoint']}")
    assert (new["indexed"], new["inscriptions"]) == (True, [PUPPET])
    assert (await ord_says(desk, f"output/{former}"))["inscriptions"] == []
    spend = await mempool_says(desk, f"tx/{txid}/outspend/{vout}")
    assert spend["status"]["confirmed"] is True


async def test_a_block_comes_every_ten_minutes(desk: Desk) -> None:
    heights = []
    for _ in range(3):
        heights.append(int(await text(desk, "/mempool/api/blocks/tip/height")))
        assert int(await text(desk, "/ord/blockheight")) == heights[-1]
        assert (await ord_says(desk, "status"))["height"] == heights[-1]
        desk.clock.advance(600)

    assert heights == [heights[0], heights[0] + 1, heights[0] + 2]


async def test_a_stale_index_lags_behind_the_chain(desk: Desk) -> None:
    await hold(desk)
    former = await outpoint_of(desk)
    faults = [{"operation": name, "mode": "stale"} for name in ("output", "inscription", "index")]
    await desk.sim("PUT", "faults", faults)

    moved = await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": BOB.ordinals})
    desk.clock.advance(1800)

    tip = int(await text(desk, "/mempool/api/blocks/tip/height"))
    assert int(await text(desk, "/ord/blockheight")) == tip - 3
    assert (await ord_says(desk, f"inscription/{PUPPET}"))["satpoint"] == f"{former}:0"
    assert (await ord_says(desk, f"output/{former}"))["spent"] is False
    assert (await desk.fetch("GET", f"/ord/output/{moved['outpoint']}", headers=JSON)).code == 404


async def test_an_index_finds_what_a_script_puts_on_an_output(desk: Desk) -> None:
    await hold(desk)
    outpoint = await outpoint_of(desk)
    runes = {"AAA•BBB": {"amount": 5, "divisibility": 2}}

    await desk.sim("PUT", f"outputs/{outpoint}", {"inscriptions": [OTHER], "runes": runes})

    output = await ord_says(desk, f"output/{outpoint}")
    assert output["inscriptions"] == [PUPPET, OTHER]
    assert output["runes"] == {"AAA•BBB": {"amount": 5, "divisibility": 2, "symbol": "¤"}}


async def test_an_inscription_that_a_script_takes_away_is_nowhere(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    outpoint = await outpoint_of(desk)

    await hold(desk, OTHER)

    assert (await desk.fetch("GET", f"/ord/inscription/{PUPPET}", headers=JSON)).code == 404
    assert (await ord_says(desk, f"output/{outpoint}"))["inscriptions"] == []
    assert (await ord_says(desk, f"address/{ANN.ordinals}"))["inscriptions"] == [OTHER]


async def test_unknown_things(desk: Desk) -> None:
    nowhere = f"{'0' * 64}:0"
    for what in (f"output/{nowhere}", f"inscription/{PUPPET}"):
        answer = await desk.fetch("GET", f"/ord/{what}", headers=JSON)
        assert (answer.code, answer.body.decode()) == (404, f"{what.replace('/', ' ')} not found")
    for path in ("", "/hex", "/outspends"):
        assert (await desk.ask("GET", f"/mempool/api/tx/{'0' * 64}{path}"))[0] == 404
    assert await mempool_says(desk, f"tx/{'0' * 64}/status") == {"confirmed": False}
    assert await mempool_says(desk, f"tx/{'0' * 64}/outspend/0") == {"spent": False}
    assert (await desk.ask("POST", "/sim/move", {"inscriptionId": PUPPET, "address": ANN.ordinals}))[0] == 404
    assert (await desk.ask("PUT", f"/sim/outputs/{nowhere}", {}))[0] == 404


async def test_ord_speaks_json_only_to_who_asks_for_it(desk: Desk) -> None:
    answer = await desk.fetch("GET", "/ord/status", headers={})

    assert answer.headers["Content-Type"].startswith("text/html")


async def test_every_route_is_counted_by_what_it_is_asked_about(desk: Desk) -> None:
    await hold(desk)
    outpoint = await outpoint_of(desk)
    txid, vout = outpoint.split(":")
    for path in (f"output/{outpoint}", f"inscription/{PUPPET}", f"address/{ANN.ordinals}", "status", "blockheight"):
        await desk.fetch("GET", f"/ord/{path}", headers=JSON)
    for path in (f"tx/{txid}", f"tx/{txid}/hex", f"tx/{txid}/outspend/{vout}", "blocks/tip/height"):
        await desk.fetch("GET", f"/mempool/api/{path}")

    counts = await desk.sim("GET", "requests")

    assert {name: counts[name] for name in ("output", "inscription", "holdings", "index", "tx", "outspend", "tip")} == {
        "output": {outpoint: 1},
        "inscription": {PUPPET: 1},
        "holdings": {ANN.ordinals: 1},
        "index": {"": 2},
        "tx": {txid: 2},
        "outspend": {outpoint: 1},
        "tip": {"": 1},
    }


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


TX = Transaction(2, [TransactionInput(b"\x01" * 32, 3, sequence=0)], [TransactionOutput(5, script_of("x"))], 7)


def _field(key: bytes, value: bytes) -> bytes:
    return bytes([len(key)]) + key + bytes([len(value)]) + value


def _psbt(tx: bytes = TX.serialize(), inputs: bytes = b"", tail: bytes = b"") -> str:
    return b64encode(b"psbt\xff" + _field(b"\x00", tx) + b"\0" + inputs + b"\0" + b"\0" + tail).decode()


def test_a_transaction_and_the_fields_of_its_inputs_are_read() -> None:
    psbt = parse(_psbt(inputs=_field(b"\x03", b"\x83\0\0\0") + _field(b"\x13", b"s" * 65)))

    assert psbt.tx.serialize() == TX.serialize()
    assert psbt.inputs == ({b"\x03": b"\x83\0\0\0", b"\x13": b"s" * 65},)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        _psbt() + "!",
        _psbt(tail=b"\0"),
        _psbt(inputs=_field(b"\x03", b"1") * 2),
        _psbt(tx=b""),
        _psbt(tx=TX.serialize()[:-1]),
        _psbt(tx=Transaction(2, [], []).serialize()),
        b64encode(b64decode(_psbt())[:-1]).decode(),
        b64encode(b"PSBT" + b64decode(_psbt())[4:]).decode(),
        b64encode(b"psbt\xff\x01\x04\xff" + b"\xff" * 8).decode(),
        _psbt(tail=bytes(MAX_BYTES)),
    ],
)
def test_nothing_else_is_a_psbt(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(its?|a field|something) "):
        parse(text)


def test_every_published_psbt_of_version_0_with_an_input_is_read() -> None:
    read = 0
    for text in load("psbt")["valid"]:
        raw = b64decode(text)
        # The transaction comes first, after its length of one byte; its inputs are counted after its version.
        if raw[5:7] == b"\x01\x00" and raw[7] < 0xFD and raw[12]:
            psbt = parse(text)
            assert len(psbt.inputs) == len(psbt.tx.vin) == raw[12]
            read += 1
    assert read >= 20


def test_the_published_digests_of_inputs_that_leave_others_open() -> None:
    seen = set()
    for vector in load("bip341")["keyPathSpending"]:
        tx = Transaction.parse(bytes.fromhex(vector["given"]["rawUnsignedTx"]))
        spent = [
            TransactionOutput(u["amountSats"], Script(bytes.fromhex(u["scriptPubKey"])))
            for u in vector["given"]["utxosSpent"]
        ]
        for item in vector["inputSpending"]:
            at, sighash = item["given"]["txinIndex"], item["given"]["hashType"]
            if sighash not in (ALL_ANYONECANPAY, SINGLE_ANYONECANPAY):
                continue
            (witness,) = item["expected"]["witness"]
            assert digest(tx, at, spent[at], sighash).hex() == item["intermediary"]["sigHash"]
            assert is_signed(tx, at, spent[at], bytes.fromhex(witness), sighash)
            assert not is_signed(tx, at, spent[at], bytes.fromhex(witness)[:-1] + b"\x01", sighash)
            assert not is_signed(tx, at, spent[at], bytes.fromhex(witness)[:-1], sighash)
            seen.add(sighash)
    assert seen == {ALL_ANYONECANPAY, SINGLE_ANYONECANPAY}


KEY = PrivateKey(b"\x07" * 32).taproot_tweak(b"")
OWN = TransactionOutput(7_000, Script(b"\x51\x20" + KEY.xonly()))


def _made() -> Transaction:
    """Two inputs, ours the second, and two outputs."""
    ins = [TransactionInput(bytes([at]) * 32, at, sequence=0xFFFFFFFD - at) for at in (1, 2)]
    return Transaction(2, ins, [TransactionOutput(1_000 * at, OWN.script_pubkey) for at in (1, 2)], 5)


@pytest.mark.parametrize("sighash", [ALL_ANYONECANPAY, SINGLE_ANYONECANPAY])
def test_the_digest_is_the_signers(sighash: int) -> None:
    tx = _made()
    theirs = decode_unsigned(tx.serialize())
    spent = (None, TxOutput(OWN.value, OWN.script_pubkey.data))

    assert digest(tx, 1, OWN, sighash) == taproot_digest(theirs, 1, spent, sighash)


def test_single_leaves_open_what_is_not_at_its_index() -> None:
    tx = _made()
    signature = KEY.schnorr_sign(digest(tx, 1, OWN, SINGLE_ANYONECANPAY)).serialize() + bytes([SINGLE_ANYONECANPAY])

    tx.vin.append(TransactionInput(b"\x09" * 32, 9))
    tx.vout[0] = TransactionOutput(1, OWN.script_pubkey)
    assert is_signed(tx, 1, OWN, signature, SINGLE_ANYONECANPAY)
    assert not is_signed(tx, 1, OWN, signature[:-1] + bytes([ALL_ANYONECANPAY]), SINGLE_ANYONECANPAY)
    tx.vout[1] = TransactionOutput(1_999, OWN.script_pubkey)
    assert not is_signed(tx, 1, OWN, signature, SINGLE_ANYONECANPAY)


@pytest.mark.parametrize("sighash", [0x00, 0x01, 0x02, 0x03, 0x82])
def test_no_other_sighash_is_known(sighash: int) -> None:
    with pytest.raises(ValueError, match="known"):
        digest(_made(), 1, OWN, sighash)


def test_single_without_an_output_of_its_index_signs_nothing() -> None:
    tx = _made()
    del tx.vout[1]

    with pytest.raises(ValueError, match="SINGLE"):
        digest(tx, 1, OWN, SINGLE_ANYONECANPAY)
    assert not is_signed(tx, 1, OWN, b"\x01" * 64 + b"\x83", SINGLE_ANYONECANPAY)
