"""The soak's own test: bugs are planted in the pace, and the measurements of a task find them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from drills.endurance.stage import Ladder, Stage
from drills.endurance.task_time import TaskTime
from strategy.config.bid import BidConfig
from strategy.fill import Ration
from strategy.ladders import Rung
from strategy.reasons import Reason

pytestmark = pytest.mark.slow

QUARTERS = 4
honest = Ration.share_out


def soaked(hours: int) -> TaskTime:
    """Lets hours pass, or fewer when something is found before."""
    with Stage("drift", (Ladder(5),), life_minutes=16) as stage:
        for _ in range(QUARTERS * hours):
            stage.run(1 / QUARTERS)
            if stage.times[0].problems():
                break
        return stage.times[0]


def renewals_last(
    self: Ration, rungs: Iterable[Rung], due: Collection[int], raising: Collection[Rung], free: int
) -> int | None:
    rungs = list(rungs)
    for rung in rungs:
        if rung.order is not None and rung.order.id in due:
            rung.barred = Reason.SIGNED_LIMIT
    return honest(self, rungs, (), raising, free)


def missing_never(
    self: Ration, rungs: Iterable[Rung], due: Collection[int], raising: Collection[Rung], free: int
) -> int | None:
    rungs = list(rungs)
    held = sum(rung.order is not None for rung in rungs)
    for rung in rungs:
        if rung.is_missing and 0 < held < len(rungs):
            rung.refused = Reason.SIGNED_LIMIT
    return honest(self, rungs, due, raising, free)


def test_a_pace_that_starves_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ration, "share_out", renewals_last)
    assert any("while a renewal waited" in problem for problem in soaked(2).problems())


@pytest.mark.parametrize(("moved_ends_s", "is_starving"), [(80, False), (600, True)])
def test_a_bid_that_made_way_just_before_its_end_took_nothing_from_a_renewal(
    moved_ends_s: int, is_starving: bool
) -> None:
    """Twenty bids that all ended in the same minute had room for seventeen new ones."""
    task = TaskTime(1, BidConfig("cats", 1_000_000, bid_expiry_minutes=120, loop_seconds=30), "bc1qa", 0)
    waits = {"order": 1, "reason": "signed_limit", "expires_ms": 80_000}
    moved = {"order": 2, "reason": "surplus", "expires_ms": 1000 * moved_ends_s}
    detail = {"bids": [waits, moved], "cancelled": [2], "rungs": [{"rung": 0, "fate": "placed"}]}
    assert task._is_starving(detail, 0) == is_starving


def test_a_pace_that_leaves_rungs_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ration, "share_out", missing_never)
    assert any("cycles without its bids" in problem for problem in soaked(1).problems())


def test_nothing_is_found_without_them() -> None:
    assert not soaked(1).problems()
