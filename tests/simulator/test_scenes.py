"""Scenes: which are in force, and what they leave alone."""

from __future__ import annotations

import pytest

from simulator.scenes import BY_NAME, SCENES, Scenes
from simulator.world import World
from tests.clock import Clock
from tests.simulator.desk import ANN, PUPPETS, Desk

pytestmark = pytest.mark.gen_test


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
        if scene.odd is None or not scene.is_told("satflow", "listings"):
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
