"""Every fault mode and scene, seen from outside."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from simulator.calls import MODES, OPERATIONS
from simulator.scenes import BY_NAME, SCENES, Scenes
from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import ANN, PUPPETS, SATFLOW, Desk

pytestmark = pytest.mark.gen_test

NO_ANSWER = (HTTPClientError, OSError)


async def _scene(desk: Desk) -> None:
    await desk.list_puppets(100_000)


@pytest.mark.parametrize(("mode", "least"), [("cut", 0.0), ("timeout", 0.15)])
async def test_without_an_answer_nothing_is_done(desk: Desk, mode: str, least: float) -> None:
    await _scene(desk)
    await desk.fault("place", mode, delaySeconds=0.15, count=1)
    started = time.monotonic()

    with pytest.raises(NO_ANSWER):
        await desk.place()

    assert time.monotonic() - started >= least
    assert await desk.own_bids() == []
    await desk.placed()


@pytest.mark.parametrize(
    ("mode", "status"), [("error_500", 500), ("rate_429", 429), ("refuse_400", 400), ("auth_401", 401)]
)
async def test_a_status_instead_of_the_deed(desk: Desk, mode: str, status: int) -> None:
    await _scene(desk)
    await desk.fault("place", mode, count=1)

    answer = await desk.fetch("POST", f"{SATFLOW}/bid/place", ANN.bid(desk.clock.now_ms))

    assert answer.code == status
    assert ("Retry-After" in answer.headers) == (status == 429)
    assert await desk.own_bids() == []
    await desk.placed()


async def test_bad_json_hides_a_done_deed(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("place", "bad_json", count=1)

    answer = await desk.fetch("POST", f"{SATFLOW}/bid/place", ANN.bid(desk.clock.now_ms))

    assert (answer.code, answer.body) == (200, b'{"success": tru')
    assert len(await desk.own_bids()) == 1


async def test_slow_answers_late_and_rightly(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("floors", "slow", delaySeconds=0.15)
    started = time.monotonic()

    (row,) = await desk.data("collection-stats/floors", type="ordinals", slugs=PUPPETS)

    assert time.monotonic() - started >= 0.15
    assert row["floor"] == 100_000


async def test_stale_reads_show_the_market_of_then(desk: Desk) -> None:
    await _scene(desk)
    await desk.placed(price=50_000)
    await desk.sim("PUT", "faults", [{"operation": op, "mode": "stale"} for op in ("own_bids", "floors", "book")])

    await desk.placed(price=60_000)
    await desk.list_puppets(80_000)
    desk.clock.advance(3600)

    assert [bid["price"] for bid in await desk.own_bids()] == [50_000]
    (row,) = await desk.data("collection-stats/floors", type="ordinals", slugs=PUPPETS)
    assert row["floor"] == 100_000
    assert len((await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]) == 1
    await desk.sim("PUT", "faults", [])
    assert await desk.own_bids() == []


async def test_a_late_bid_shows_after_its_delay(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("place", "late", count=1, delaySeconds=5)

    await desk.placed()

    assert [event["event"] for event in await desk.events()] == ["accepted"]
    assert await desk.own_bids() == []
    assert (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"] == []
    desk.clock.advance(5)
    assert len(await desk.own_bids()) == 1


async def test_a_late_cancel_takes_effect_after_its_delay(desk: Desk) -> None:
    await _scene(desk)
    await desk.placed()
    (bid,) = await desk.own_bids()
    await desk.fault("cancel", "late", delaySeconds=5)

    _, answer = await desk.cancel(ANN, [bid["bid_id"]])

    assert answer["data"]["success"] is True
    assert len(await desk.own_bids()) == 1
    desk.clock.advance(5)
    assert await desk.own_bids() == []
    assert len(await desk.events("cancelled")) == 1


async def test_accepted_and_then_no_answer(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("place", "accept_then_timeout", count=1, delaySeconds=0.1)

    with pytest.raises(NO_ANSWER):
        await desk.place()

    assert len(await desk.own_bids()) == 1


async def test_accepted_and_then_a_500(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("place", "accept_then_500", count=1)

    status, _ = await desk.place()

    assert status == 500
    assert len(await desk.own_bids()) == 1


async def test_accepted_twice_makes_two_orders(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("place", "accept_twice", count=1)

    await desk.placed()

    first, second = await desk.own_bids()
    assert first["bid_id"] != second["bid_id"]
    assert first | {"bid_id": ""} == second | {"bid_id": ""}


async def test_a_lying_cancel_keeps_the_bid(desk: Desk) -> None:
    await _scene(desk)
    await desk.placed()
    (bid,) = await desk.own_bids()
    await desk.fault("cancel", "cancel_lie", count=1)

    _, answer = await desk.cancel(ANN, [bid["bid_id"]])

    assert (answer["data"]["success"], answer["data"]["failedCount"]) == (True, 0)
    assert len(await desk.own_bids()) == 1
    assert await desk.events("cancelled") == []


async def test_of_several_bids_a_lying_cancel_keeps_every_other_one(desk: Desk) -> None:
    await _scene(desk)
    for price in (20_000, 21_000, 22_000):
        await desk.placed(price=price)
    first, second, third = [bid["bid_id"] for bid in await desk.own_bids()]
    await desk.fault("cancel", "cancel_lie", count=1)

    _, answer = await desk.cancel(ANN, [first, second, third])

    assert (answer["data"]["successCount"], answer["data"]["failedCount"]) == (3, 0)
    assert [bid["bid_id"] for bid in await desk.own_bids()] == [first, third]


async def test_counts_run_out_and_a_put_replaces(desk: Desk) -> None:
    await _scene(desk)
    await desk.fault("own_bids", "error_500", count=2)

    statuses = [(await desk.read("address/bids", address=ANN.payment))[0] for _ in range(3)]
    assert statuses == [500, 500, 404]
    await desk.fault("own_bids", "error_500", probability=1)
    assert (await desk.read("address/bids", address=ANN.payment))[0] == 500
    await desk.fault("own_bids", "error_500", probability=0.0)
    assert (await desk.read("address/bids", address=ANN.payment))[0] == 404


async def test_a_caller_who_left_a_slow_place_still_gets_the_bid(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await _scene(desk)
    await desk.fault("place", "slow", count=1)
    has_come, has_left = asyncio.Event(), asyncio.Event()

    async def sleep(_: float) -> None:
        has_come.set()
        await has_left.wait()

    # The delay lasts until the market has seen its caller leave, however long that takes.
    monkeypatch.setattr("simulator.handler.asyncio", SimpleNamespace(Event=lambda: has_left, sleep=sleep))
    caller = asyncio.create_task(desk.place())
    await asyncio.wait_for(has_come.wait(), 60)
    assert await desk.events("accepted") == []
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(has_left.wait(), 60)

    async with asyncio.timeout(60):
        while not await desk.events("accepted"):
            pass  # each look is a request, which gives the market its turn
    assert len(await desk.own_bids()) == 1


def _requests(desk: Desk) -> dict[str, tuple[str, str, Any]]:
    """Returns one request for each operation."""
    get, post = "GET", "POST"
    return {
        "challenge": (get, f"{SATFLOW}/challenge?address={ANN.payment}", None),
        "floors": (get, f"{SATFLOW}/collection-stats?collectionId={PUPPETS}", None),
        "book": (get, f"{SATFLOW}/activity/listings?collectionSlug={PUPPETS}", None),
        "sales": (get, f"{SATFLOW}/activity/sales?collectionSlug={PUPPETS}", None),
        "own_bids": (get, f"{SATFLOW}/address/bids?address={ANN.payment}", None),
        "balance": (get, f"/mempool/api/address/{ANN.payment}", None),
        "place": (post, f"{SATFLOW}/bid/place", ANN.bid(desk.clock.now_ms)),
        "cancel": (post, f"{SATFLOW}/cancel", {}),
        "list": (post, f"{SATFLOW}/list", {}),
        "draft": (post, f"{SATFLOW}/intent/sell", {}),
        "wallet": (get, f"{SATFLOW}/address/wallet-contents?address={ANN.payment}", None),
        "item": (get, f"{SATFLOW}/item?inscriptionId=x", None),
        "collection": (get, f"{SATFLOW}/collection?collection_id={PUPPETS}", None),
        "fees": (get, "/mempool/api/v1/fees/recommended", None),
        "output": (get, f"/ord/output/{'0' * 64}:0", None),
        "inscription": (get, "/ord/inscription/x", None),
        "index": (get, "/ord/status", None),
        "holdings": (get, f"/ord/address/{ANN.ordinals}", None),
        "tx": (get, f"/mempool/api/tx/{'0' * 64}", None),
        "outspend": (get, f"/mempool/api/tx/{'0' * 64}/outspend/0", None),
        "tip": (get, "/mempool/api/blocks/tip/height", None),
        "withdraw": (post, f"{SATFLOW}/withdraw", {}),
        "broadcast": (post, "/mempool/api/tx", b"00"),
        "content": (get, "/content/x", None),
    }


@pytest.mark.parametrize("mode", sorted(MODES))
async def test_every_mode_strikes_every_operation_once(desk: Desk, mode: str) -> None:
    await _scene(desk)
    requests = _requests(desk)
    assert set(requests) == OPERATIONS
    rules = [{"operation": name, "mode": mode, "count": 1, "delaySeconds": 0.01} for name in requests]
    await desk.sim("PUT", "faults", rules)

    for method, path, body in requests.values():
        desk.clock.advance(1)
        with suppress(*NO_ANSWER):
            answer = await desk.fetch(method, path, body)
            assert answer.code in (200, 400, 401, 403, 404, 429, 500, 501)
    assert [rule["count"] for rule in await desk.sim("GET", "faults")] == [0] * len(requests)

    for method, path, body in requests.values():
        desk.clock.advance(1)
        assert (await desk.fetch(method, path, body)).code in (200, 400, 404, 501)


def drawn(seed: int) -> list[str]:
    return Scenes(seed, lambda: 0, drawn=True).names


def test_a_bare_market_has_no_scenes_and_one_with_scenes_draws_them_by_its_seed(clock: Clock) -> None:
    assert World(seed=1, clock=clock.ms).scenes.names == []
    with_scenes = World(seed=1, clock=clock.ms, scenes=True)
    assert with_scenes.scenes.names == drawn(1) != []
    with_scenes.reset(2, background=False)
    assert with_scenes.scenes.names == drawn(2) != drawn(1)


def test_every_scene_is_drawn_by_some_seed_and_names_its_evidence() -> None:
    assert {name for seed in range(20) for name in drawn(seed)} == {each.name for each in SCENES if not each.hides}
    assert all(scene.evidence[0] in "RPCDK" for scene in SCENES)
    assert len(BY_NAME) == len(SCENES)


async def test_a_control_call_chooses_scenes_by_name_and_a_reset_ends_them(desk: Desk) -> None:
    told = await desk.sim("PUT", "scenes", {"names": ["row_null", "unisat_attrs"]})

    assert told["names"] == (await desk.sim("GET", "state"))["scenes"] == ["row_null", "unisat_attrs"]
    assert {row["name"] for row in told["known"]} == set(BY_NAME)
    status, answer = await desk.ask("PUT", "/sim/scenes", {"names": ["row_nil"]})
    assert (status, "row_nil" in answer["error"], "row_null" in answer["error"]) == (400, True, True)
    assert (await desk.sim("PUT", "scenes", {"names": "drawn"}))["names"] == drawn(1)
    await desk.sim("POST", "reset", {"seed": 1})
    assert (await desk.sim("GET", "scenes"))["names"] == []


async def test_odd_rows_leave_the_real_ones_as_they_are(desk: Desk) -> None:
    await desk.list_puppets(300_000, 250_000, 400_000, 500_000)
    await desk.sim("PUT", "limits", {"perSecond": 1000, "burst": 1000})
    plain = (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    for scene in SCENES:
        if scene.odd is None or not scene.is_shown_in("satflow", "listings"):
            continue
        await desk.sim("PUT", "scenes", {"names": [scene.name]})
        data = await desk.data("activity/listings", collectionSlug=PUPPETS)
        odd = [row for row in data["items"] if row not in plain]
        assert [row for row in data["items"] if row in plain] == plain, scene.name
        assert len(odd) == 1 and data["pagination"]["total"] == 5, scene.name
        known = {row["_id"] for row in plain}
        assert not (isinstance(odd[0], dict) and odd[0].get("_id") in known), scene.name


async def test_no_list_has_only_odd_rows(desk: Desk) -> None:
    await desk.list_puppets(300_000)
    names = [scene.name for scene in SCENES if scene.odd is not None and not scene.ahead]
    await desk.sim("PUT", "scenes", {"names": names})

    assert len((await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]) == 2
    assert (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"] == []


async def test_a_scene_changes_no_order_and_no_price(desk: Desk) -> None:
    await desk.list_puppets(300_000)
    await desk.placed(price=40_000)
    await desk.sim("PUT", "scenes", {"names": list(BY_NAME)})

    for path in ("activity/listings", "activity/bids", "activity/sales"):
        await desk.data(path, collectionSlug=PUPPETS)
    state = (await desk.sim("GET", "state"))["collections"][PUPPETS]

    assert (state["floor"], state["asks"], state["bids"]) == (300_000, 1, 1)
    assert len(desk.world.engine.bids_of(ANN.payment)) == 1
