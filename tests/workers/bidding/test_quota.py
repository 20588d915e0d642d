"""A month's quota that runs short, as a bidding task and its owner see it."""

from __future__ import annotations

import pytest

from markets.base import AskBook, Refused
from markets.client import Scarcity
from tests.shapes import replace
from tests.worlds.worker import CATS, World

LOW = 15_000  # the lowest rung on a floor of 100,000


def test_the_lowest_rungs_wait_and_the_owner_reads_why(world: World) -> None:
    task = world.task()
    world.market.scarcity = Scarcity(stretch_s=240, rungs=2)

    world.bidder(task).cycle()

    assert world.market.prices == [75_000, 60_000]
    counts = "placed 2, kept 0, cancelled 0; skipped 3 quota"
    assert world.action(task) == f"{counts}; the market is read every 240 s (quota)"
    assert "only the top 2 of the ladder get new bids" in str(world.row(task).last_error)


def test_a_low_bid_is_not_cancelled_and_not_renewed(world: World) -> None:
    _, bidder = world.begun()
    assert LOW in world.market.prices
    world.market.scarcity = Scarcity(stretch_s=600, rungs=1)
    world.market.done.clear()
    world.clock.now_ms += 15 * 60_000  # a minute before they expire

    bidder.cycle()

    assert [done for done in world.market.done if done[0] == "place"] == [("place", 75_000)]
    assert LOW in world.market.prices


def test_a_book_of_some_minutes_ago_is_no_unknown_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a short month would cancel everything: without a reason, one of more than two minutes ago counts as none."""
    for stretch_s, told in ((600, None), (0, "no_reference")):
        task, bidder = world.begun(replace(CATS, slug=f"cats{stretch_s}"))
        old = AskBook(tuple(world.market.asks_), world.clock())
        monkeypatch.setattr(world.market, "asks", lambda *_, old=old, **__: old)
        world.market.scarcity = Scarcity(stretch_s=stretch_s)
        world.clock.now_ms += 300_000

        bidder.cycle()

        assert (told is not None) == (str(told) in world.detail(task)["rungs"][0]["reason"]), stretch_s
        monkeypatch.undo()


def test_what_the_gateway_refuses_is_closed_and_ends_placing(world: World) -> None:
    task = world.task()
    world.market.fail("place", Refused("quota", "the month's quota of calls runs short"))

    world.bidder(task).cycle()

    assert world.market.prices == []
    assert world.open(task) == {}
    assert world.closed() == [(75_000, "refused")]
    assert world.action(task).startswith("placed 0, kept 0, cancelled 0; skipped 1 quota, 4 put_off")


def test_a_rune_is_read_by_the_quota_of_its_source(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its asks may be minutes old while the marketplace has calls enough; a collection's may not."""
    rune = replace(CATS, type="rune", slug="UNCOMMON•GOODS", quantity_mode="quantity")
    for config, reason in ((rune, "kept"), (CATS, "no_reference")):
        task, bidder = world.begun(config)
        old = AskBook(tuple(world.market.asks_), world.clock())
        monkeypatch.setattr(world.market, "rune_asks", lambda *_, old=old, **__: old)
        monkeypatch.setattr(world.market, "asks", lambda *_, old=old, **__: old)
        world.market.rune_scarcity = Scarcity(stretch_s=600)
        world.clock.now_ms += 300_000

        bidder.cycle()

        assert world.detail(task)["rungs"][0]["reason"] == reason
        assert ("the market is read every 600 s (quota)" in world.action(task)) == (config is rune)
        monkeypatch.undo()
