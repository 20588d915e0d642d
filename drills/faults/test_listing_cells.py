"""Every way in which the venue may fail at listing and at cancelling a listing: both lives end as they would have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drills.faults.listing_fleet import Shop, restart
from drills.faults.listing_lives import DELETION, SALE, Life
from simulator.calls import MODES
from tests.e2e.installation import Installation, Trader, until

pytestmark = [pytest.mark.slow, pytest.mark.faults]
STRIKES = 2


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    service = Installation()
    try:
        restart(service)
        yield Shop(service, Trader(service).sign_in(), 0)
    finally:
        service.destroy()


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("operation", ["list", "cancel"])
def test_a_life_ends_as_it_would_have(shop: Shop, operation: str, mode: str) -> None:
    life = Life(shop, SALE if operation == "list" else DELETION, "list")
    steps = list(life.steps)
    if operation == "cancel":
        while steps[0] != "delete":
            life.walk(steps.pop(0))
    fault = {"operation": operation, "mode": mode, "count": STRIKES, "delaySeconds": 1}
    shop.service.sim("PUT", "/sim/faults", [fault])
    for step in steps:
        life.begin(step)
        until(lambda step=step: is_done(life, step), f"{step} of task {life.task}", 240)  # type: ignore[misc]
    [left] = shop.service.sim("GET", "/sim/faults")
    shop.service.sim("PUT", "/sim/faults", [])
    assert left["count"] < STRIKES, "the fault never struck: this cell says nothing"
    assert shop.disagreements() == []


def is_done(life: Life, step: str) -> bool:
    """A task that gave up, since its key was not accepted, is started by its owner again."""
    if (
        life.item.task is not None
        and step not in ("stop", "sale")
        and not life.shop.trader.ok("GET", f"/api/autolist/{life.task}")["isRunning"]
    ):
        life.shop.start(life.task)
    return life.is_done(step)
