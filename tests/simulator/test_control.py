"""The control routes, the play wallet, and deliveries."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from simulator.world import StateFile, World
from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, Desk
from tests.simulator.test_chain import mempool_says, ord_says
from tests.simulator.test_running import Program, program  # noqa: F401
from wallet.bip322 import verify_ownership

pytestmark = pytest.mark.gen_test


async def test_a_put_replaces_the_script_and_keeps_what_was_placed(desk: Desk) -> None:
    await desk.list_puppets(100_000, 110_000, bids=[{"price": 30_000}])
    await desk.placed(price=40_000)

    await desk.list_puppets(90_000, bids=[{"price": 20_001}])

    rows = (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"]
    assert [row["price"] for row in rows] == [40_000, 20_001]
    assert (await desk.sim("GET", "state"))["collections"][PUPPETS]["floor"] == 90_000
    assert len(await desk.own_bids()) == 1


async def test_a_wrong_put_changes_nothing(desk: Desk) -> None:
    await desk.list_puppets(100_000)

    wrong = {"asks": [{"price": 50_000}, {"price": -1}]}
    status, answer = await desk.ask("PUT", f"/sim/collections/{PUPPETS}", wrong)

    assert status == 400
    assert "asks[1].price" in answer["error"]
    assert (await desk.sim("GET", "state"))["collections"][PUPPETS]["floor"] == 100_000


async def test_paths_are_percent_encoded(desk: Desk) -> None:
    await desk.list_rune()
    await desk.sim("PUT", f"collections/{quote('a/b c', safe='')}", {"asks": [{"price": 1}]})

    state = await desk.sim("GET", "state")

    assert list(state["runes"]) == [RUNE]
    assert list(state["collections"]) == ["a/b c"]


async def test_scripted_makers_keep_their_names_and_get_valid_addresses_otherwise(desk: Desk) -> None:
    asks = [{"price": 10, "seller": ANN.ordinals.upper()}, {"price": 11}]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": asks, "bids": [{"price": 5, "bidder": BOB.payment}]})

    sellers = [
        row["sellerOrdAddress"] for row in (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    ]

    assert sellers[0] == ANN.ordinals
    assert (await desk.ask("GET", f"/mempool/api/address/{sellers[1]}"))[0] == 200
    assert [bid["price"] for bid in await desk.own_bids(BOB)] == [5]


async def test_rune_bids_are_given_by_unit_or_total_price(desk: Desk) -> None:
    bids = [{"tokens": 100, "unitPrice": 1.5}, {"quantity": 100, "price": 170}]
    await desk.list_rune(bids=bids)

    rows = (await desk.data("activity/bids", collectionSlug=RUNE))["items"]

    assert [(row["price"], row["unitPrice"]) for row in rows] == [(170, 1.7), (150, 1.5)]


async def test_requests_are_counted_by_operation_and_key(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    for _ in range(2):
        await desk.data("collection-stats/floors", type="ordinals", slugs="a,b")
    await desk.placed()
    await desk.own_bids()
    await desk.ask("GET", "/mempool/api/v1/fees/recommended")
    await desk.ask("GET", f"/mempool/api/address/{ANN.payment}")

    assert await desk.sim("GET", "requests") == {
        "floors": {"a,b": 2},
        "place": {PUPPETS: 1},
        "own_bids": {ANN.payment: 1},
        "fees": {"": 1},
        "balance": {ANN.payment: 1},
    }


async def test_a_reset_forgets_everything(desk: Desk) -> None:
    await desk.list_puppets(100_000)
    await desk.placed()
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 1})
    await desk.fault("floors", "error_500")

    await desk.sim("POST", "reset", {"seed": 5, "background": False})

    state = await desk.sim("GET", "state")
    assert (state["seed"], state["collections"], state["runes"], state["faults"]) == (5, {}, {}, [])
    assert await desk.sim("GET", "history") == []
    assert await desk.sim("GET", "requests") == {}
    _, stats = await desk.ask("GET", f"/mempool/api/address/{ANN.payment}")
    assert stats["chain_stats"]["funded_txo_sum"] == 100_000_000


async def test_health_is_answered(desk: Desk) -> None:
    assert await desk.ask("GET", "/healthz", headers={}) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/sim/reset", {"seed": "one"}),
        ("POST", "/sim/reset", {"background": 1}),
        ("POST", "/sim/reset", {"sed": 1}),
        ("PUT", "/sim/collections/a", {"asks": {}}),
        ("PUT", "/sim/collections/a", {"asks": [{"price": 1.5}]}),
        ("PUT", "/sim/collections/a", {"asks": [{"cost": 1}]}),
        ("PUT", "/sim/collections/a", {"asks": [{"price": 1, "traits": [5]}]}),
        ("PUT", "/sim/runes/a", {"divisibility": 39}),
        ("PUT", "/sim/runes/a", {"divisibility": 0, "asks": [{"tokens": 1.5, "unitPrice": 1}]}),
        ("PUT", "/sim/runes/a", b'{"asks": [{"tokens": 1, "unitPrice": 1e999}]}'),
        ("PUT", "/sim/runes/a", b'{"asks": [{"tokens": NaN, "unitPrice": 1}]}'),
        ("PUT", "/sim/wallets/a", {"balance": -1}),
        ("PUT", "/sim/wallets/a", {"inscriptions": [{"id": "x"}]}),
        ("PUT", "/sim/faults", {}),
        ("PUT", "/sim/faults", [{"operation": "nothing", "mode": "cut"}]),
        ("PUT", "/sim/faults", [{"operation": "place", "mode": "odd"}]),
        ("PUT", "/sim/faults", [{"operation": "place", "mode": "cut", "probability": 2}]),
        ("PUT", "/sim/faults", [{"operation": "place", "mode": "cut", "count": 0}]),
        ("PUT", "/sim/faults", [{"operation": [], "mode": {}}]),
        ("POST", "/sim/sell", {}),
        ("POST", "/sim/sell", {"slug": 5}),
        ("POST", "/sim/sell", {"slug": "a", "fillQuantity": 0}),
        ("PUT", "/sim/limits", {"perSecond": 0}),
        ("PUT", "/sim/limits", {"burst": 1.5}),
        ("PUT", "/sim/limits", {"hourly": 1}),
        ("PUT", "/sim/collections/a", {"listingTraits": "no"}),
        ("PUT", "/sim/collections/a", {"creator": 5}),
        ("POST", "/sim/reset", b"{"),
        ("POST", "/sim/sell", b"[]"),
        ("POST", "/sim/sell", b"\xff\xfe"),
        ("POST", "/sim/sell", b"[" * 100_000),
        ("POST", "/sim/sell", b'{"slug": ' + b"9" * 5000 + b"}"),
    ],
)
async def test_bad_control_input_is_a_400_with_a_reason(desk: Desk, method: str, path: str, body: object) -> None:
    status, answer = await desk.ask(method, path, body)

    assert status == 400
    assert answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/sim/%00", 404),
        ("GET", "/sim/reset", 405),
        ("PATCH", "/satflow/v1/challenge", 405),
        ("POST", "/satflow/v1/challenge", 405),
        ("GET", "/satflow/v1/bid/place", 405),
        ("PUT", "/sim/collections/%ff", 400),
        ("PUT", "/sim/collections/%00", 400),
        ("GET", "/satflow/v1/address/bids", 400),
        ("GET", "/satflow/v1/address/bids?address=%ff", 400),
        ("GET", "/satflow/v1/address/bids?address=%00", 400),
        ("GET", "/satflow/v1/activity/listings?collectionSlug=a&page=-1", 400),
        ("GET", "/satflow/v1/activity/sales", 400),
        ("GET", "/satflow/v1/activity/sales?collectionSlug=a&timeRange=1y", 400),
        ("GET", "/satflow/v1/activity/sales?collectionSlug=a&sortBy=fame", 400),
        ("GET", "/sim/history?since=-1", 400),
        ("GET", "/unisat/v1/indexer/runes/info-list", 401),
        ("GET", "/satflow/v1/activity/listings?collectionSlug=a&page=1&pageSize=%D9%A1", 400),
        ("GET", "/satflow/v1/collection-stats/floors?type=x&slugs=a", 400),
        ("GET", "/mempool/api/address/nobody", 400),
        ("GET", "/mempool/api/address/tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", 400),
        ("POST", "/unisat/v3/market/runes/auction/list", 401),
    ],
)
async def test_strange_requests_get_json_and_no_traceback(desk: Desk, method: str, path: str, expected: int) -> None:
    answer = await desk.fetch(method, path, b"{}" if method in ("PUT", "POST", "PATCH") else None)

    assert answer.code == expected
    assert answer.headers["Content-Type"].startswith("application/json")
    assert b"Traceback" not in answer.body
    assert (expected == 405) == ("Allow" in answer.headers)


async def test_a_huge_body_is_a_413(desk: Desk) -> None:
    status, _ = await desk.ask("PUT", "/sim/faults", b" " * (2 << 20))

    assert status == 413


TEXT = "Sign in to Bidkeeper at 127.0.0.1:8888\nAddress: bc1q\nNonce: 00"


@pytest.mark.gen_test
async def test_its_signature_proves_its_address_and_no_other_text(desk: Desk) -> None:
    address = (await desk.sim("GET", "play-wallet"))["address"]
    signed = await desk.sim("POST", "play-wallet/sign", {"message": TEXT})

    assert signed["address"] == address
    assert verify_ownership(address, TEXT, signed["signature"])
    assert not verify_ownership(address, TEXT + "1", signed["signature"])


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "body",
    [{}, *({"message": wrong} for wrong in ("", 5, "x" * 2001, "a\x00b", "\ud800")), {"message": "a", "address": "b"}],
)
async def test_what_is_no_text_is_refused_by_name(desk: Desk, body: dict[str, object]) -> None:
    status, answer = await desk.ask("POST", "/sim/play-wallet/sign", body)

    assert status == 400
    assert "message" in answer["error"] or "unknown fields" in answer["error"]


@pytest.mark.gen_test
async def test_a_reset_forgets_the_market_and_keeps_the_wallet(desk: Desk) -> None:
    before = await desk.sim("GET", "play-wallet")
    await desk.sim("POST", "reset", {"seed": 9})

    assert await desk.sim("GET", "play-wallet") == before


def test_no_two_markets_have_the_same_one_and_the_seed_does_not_make_it() -> None:
    assert World(seed=1).play_wallet.address != World(seed=1).play_wallet.address


def test_it_is_made_of_the_randomness_that_is_given_at_its_first_use() -> None:
    drawn: list[int] = []

    def random_bytes(count: int) -> bytes:
        drawn.append(count)
        return bytes([7]) * count

    world = World(seed=1, random_bytes=random_bytes)
    assert (world.dump()["playWallet"], drawn) == (None, [])

    assert world.play_wallet.address == world.play_wallet.address
    assert (world.dump()["playWallet"], drawn) == ("07" * 32, [32])


@pytest.mark.parametrize("key", ["07" * 31, "no hex", 7])
def test_a_state_file_with_a_broken_key_is_put_aside(tmp_path: Path, key: object) -> None:
    path = tmp_path / "simulator.json"
    path.write_text(json.dumps(World(seed=1).dump() | {"playWallet": key}))

    assert StateFile(path, World(seed=1)).load() is False


@pytest.mark.slow
def test_a_kill_right_after_the_first_answer_does_not_change_it(program: Program) -> None:  # noqa: F811
    program.start()
    before = program.ask("GET", "/sim/play-wallet").json()
    program.end(signal.SIGKILL)
    program.start()

    assert program.ask("GET", "/sim/play-wallet").json() == before


OTHER_ITEM = "d" * 64 + "i0"


async def bidding_wallet(desk: Desk, kind: str = "2of2") -> str:
    await desk.sim("PUT", "bidding-wallets", {"kind": kind})
    asked = {"paymentAddress": ANN.payment, "ordinalsAddress": ANN.ordinals, "paymentPubkey": ANN.pubkey}
    return str((await desk.data("address/bidding-wallet", **asked))["address"])


async def sold(desk: Desk, price: int = 60_000, fee: int = 600) -> Any:
    await desk.list_puppets(100_000)
    await desk.placed(price=price)
    return await desk.sim("POST", "sell", {"slug": PUPPETS, "networkFee": fee})


@pytest.mark.parametrize("kind", ["2of2", "2of3", "leaf"])
async def test_the_bidding_wallet_pays_and_its_script_is_shown(desk: Desk, kind: str) -> None:
    wallet = await bidding_wallet(desk, kind)
    await desk.sim("PUT", f"wallets/{wallet}", {"balance": 100_000})
    sale = await sold(desk)
    (txid,) = sale["txids"]
    bought = await mempool_says(desk, f"tx/{txid}")

    item, paid = bought["vin"]
    assert paid["prevout"]["scriptpubkey_address"] == wallet
    assert any(ANN.pubkey[2:] in shown for shown in paid["witness"]), "our key is in the script that the witness shows"
    escrow, seller, change = bought["vout"]
    assert (seller["value"], change["value"], bought["fee"]) == (60_000, 39_400, 600)
    assert change["scriptpubkey_address"] == wallet and escrow["value"] == item["prevout"]["value"]

    where = await ord_says(desk, f"inscription/{sale['inscriptionId']}")
    onward = await mempool_says(desk, f"tx/{where['satpoint'].split(':')[0]}")
    assert [source["txid"] for source in onward["vin"]] == [txid]
    assert where["address"] == ANN.ordinals and onward["status"]["confirmed"]
    _, stats = await desk.ask("GET", f"/mempool/api/address/{wallet}")
    assert stats["chain_stats"]["funded_txo_sum"] == 39_400


async def test_a_block_is_not_older_than_what_is_in_it(desk: Desk) -> None:
    await bidding_wallet(desk)
    desk.clock.now_ms += 7_000
    sale = await sold(desk)
    status = (await mempool_says(desk, f"tx/{sale['txids'][0]}"))["status"]
    assert status["block_time"] == desk.clock.now_ms // 1000


async def test_without_a_bidding_wallet_the_account_pays_without_a_transaction(desk: Desk) -> None:
    sale = await sold(desk)
    assert sale["txids"] == [""]


async def test_the_scene_names_another_item_in_sales_and_nowhere_else(desk: Desk) -> None:
    await bidding_wallet(desk)
    await desk.sim("PUT", "scenes/sale_names_other_item", {"inscriptionId": OTHER_ITEM})
    sale = await sold(desk)
    row = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"][0]
    assert (row["inscriptionId"], row["price"]) == (OTHER_ITEM, 60_000)
    assert sale["inscriptionId"] != OTHER_ITEM
    assert (await ord_says(desk, f"inscription/{sale['inscriptionId']}"))["address"] == ANN.ordinals
    await desk.sim("PUT", "scenes/sale_names_other_item", {"inscriptionId": None})
    row = (await desk.data("activity/sales", collectionSlug=PUPPETS))["items"][0]
    assert row["inscriptionId"] == sale["inscriptionId"]


async def test_a_reorganisation_takes_a_transaction_out_of_its_block(desk: Desk) -> None:
    await bidding_wallet(desk)
    (txid,) = (await sold(desk))["txids"]
    before = (await mempool_says(desk, f"tx/{txid}"))["status"]
    assert txid in (await desk.sim("POST", "reorganise", {"txid": txid}))["waiting"]
    assert (await mempool_says(desk, f"tx/{txid}/status")) == {"confirmed": False}
    status, _ = await desk.ask("POST", "/sim/reorganise", {"txid": txid})
    assert status == 400, "it is in no block any more"

    await desk.sim("POST", "confirm", {})
    after = (await mempool_says(desk, f"tx/{txid}"))["status"]
    assert after["confirmed"] and after["block_hash"] != before["block_hash"]
