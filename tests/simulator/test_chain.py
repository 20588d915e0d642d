"""The play chain as ord and mempool.space tell of it."""

from __future__ import annotations

from typing import Any

import pytest
from embit import script
from embit.transaction import Transaction

from tests.simulator.desk import ANN, BOB, Desk
from tests.simulator.seller import OTHER, PUPPET, hold, outpoint_of

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
