"""Items of ord.net's dialect that are in their escrow without a sale: sold from there, or given back."""

from __future__ import annotations

import pytest

from tests.simulator.desk import ANN, Desk
from tests.simulator.ordnet_trader import Client
from tests.simulator.seller import PUPPET, hold

pytestmark = pytest.mark.gen_test


async def stranded(desk: Desk) -> str:
    """Lists an item and sends its transfer; returns the escrow."""
    await desk.list_puppets(900_000)
    client = await Client(desk).sign_in()
    await hold(desk)
    await client.listed(PUPPET)
    found = await desk.sim("POST", "escrow", {"inscriptionId": PUPPET})
    assert found["address"] not in (ANN.ordinals, None)
    return str(found["outpoint"])


async def _is_at(desk: Desk) -> str:
    _, found = await desk.ask("GET", f"/ord/inscription/{PUPPET}", headers={"Accept": "application/json"})
    return str(found["satpoint"].rpartition(":")[0])


async def test_it_is_there_and_can_be_bought_from_there(desk: Desk) -> None:
    escrow = await stranded(desk)
    assert await _is_at(desk) == escrow
    found = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "ordnet"})
    assert await _is_at(desk) == found["outpoint"] != escrow
    assert found["sold"]["price"] == 900_000


async def test_it_comes_back_to_where_it_was_and_is_listed_no_more(desk: Desk) -> None:
    escrow = await stranded(desk)
    found = await desk.sim("POST", "escrow", {"inscriptionId": PUPPET, "back": True})
    assert (found["address"], await _is_at(desk)) == (ANN.ordinals, found["outpoint"])
    assert found["outpoint"] != escrow
    for body in ({"inscriptionId": PUPPET}, {"inscriptionId": PUPPET, "back": True}):
        assert (await desk.ask("POST", "/sim/escrow", body, headers={}))[0] == 404


async def test_it_goes_there_once(desk: Desk) -> None:
    await stranded(desk)
    assert (await desk.ask("POST", "/sim/escrow", {"inscriptionId": PUPPET}, headers={}))[0] == 409
