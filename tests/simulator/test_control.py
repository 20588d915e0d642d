"""The control routes: scenes, history, counts, sales, starting over."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.simulator.desk import ANN, BOB, PUPPETS, RUNE, Desk

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
