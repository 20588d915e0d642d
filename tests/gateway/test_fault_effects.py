"""The effect of each class of fault on a venue's breaker and on the pause of its key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gateway import venue as module
from gateway.quota import Priority
from gateway.venue import FAILURES
from markets.base import RateLimited, Unavailable, VenueError
from tests.fault_classes import EFFECTS, Effect
from tests.gateway.conftest import Bench


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_fault_opens_the_breaker_or_pauses_the_key_by_its_class(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, effect: Effect
) -> None:
    monkeypatch.setattr(module, "SPAN_S", 0.0)
    venue = bench.gateway.venues.markets["simulator"]

    def fails() -> None:
        raise effect.error

    async def ask() -> None:
        for _ in range(FAILURES):
            await venue.budget.take(Priority.REST, asyncio.get_running_loop().time() + 60)
            venue.budget._paused_until = 0.0  # the next one does not wait for it
            with pytest.raises(VenueError):
                await venue.run("asks", "asks", fails, Unavailable)

    bench.run(ask)
    assert venue.breaker.is_open is effect.opens_breaker
    assert (venue.budget.paused_s() > 0) is effect.pauses


def test_unisats_403_over_the_rate_pauses_its_key_longer_each_time(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(unisat_api_key="k", market="unisat")
    path = "/v3/market/collection/auction/list"
    bench.venue.statuses[path], bench.venue.answers[path] = 403, {"code": -2006, "msg": "exceeds rate limit"}
    venue, pauses = bench.gateway.venues.markets["unisat"], []
    for _ in range(3):
        with pytest.raises(RateLimited):
            bench.client().at("unisat").own_listings("bc1pvault", 0)
        pauses.append(venue.budget.paused_s())
        venue.budget._paused_until = 0.0
    assert all(0 < pause_s <= most for pause_s, most in zip(pauses, (2.5, 5, 10), strict=True)), pauses
    assert pauses == sorted(pauses)
