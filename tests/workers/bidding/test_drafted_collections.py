"""The collections that a venue which drafts bids is asked about, and those that it does not know."""

from __future__ import annotations

import pytest

from markets.base import NotFound, Refused
from models.tasks import tasks
from strategy.config.bid import dump_bid_config
from tests.shapes import replace
from tests.worlds.drafting import ONE, DraftWorld, put


def test_the_venue_is_asked_about_the_tasks_collection_and_those_it_still_has_bids_on(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert set(drafts.market.asked_slugs) == {("cats",)}
    put(task, "live", slug="dogs")
    drafts.bidder(task).cycle()
    assert drafts.market.asked_slugs[-1] == ("cats", "dogs")


def move(drafts: DraftWorld, task: int, slug: str) -> None:
    """Changes the task to another slug."""
    config = dump_bid_config(replace(ONE, slug=slug))
    tasks.change_bidding_task(drafts.row(task), type="ordinals", slug=slug, slug_key=slug, config=config)


@pytest.mark.parametrize("error", [NotFound("no such collection"), Refused("bad_request", "that is no slug")])
def test_a_task_that_was_changed_to_an_unknown_collection_still_ends_its_bids(
    drafts: DraftWorld, error: Refused
) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    move(drafts, task, "catz")
    drafts.market.unknown = {"catz": error}
    drafts.market.fail("draft", error)
    drafts.bidder(task).cycle()
    assert drafts.market.prices == []
    assert drafts.closed() == [(50_000, "cancelled"), (50_000, "refused")]


def test_a_drain_of_a_task_on_an_unknown_collection_comes_to_its_end(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    move(drafts, task, "catz")
    drafts.market.unknown = {"catz": NotFound("no such collection")}
    tasks.mark_deleted(drafts.row(task), drafts.clock())
    assert drafts.drain(task).cycle() is None
    assert drafts.market.prices == []


def test_a_collection_with_bids_of_ours_that_is_unknown_of_a_sudden_is_a_failed_read(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    drafts.market.unknown = {"cats": NotFound("no such collection")}
    for _ in range(4):
        drafts.bidder(task).cycle()
        drafts.clock.advance(31)
    assert drafts.open(task) == {50_000: "live"}
    assert "failed to read our own bids" in str(drafts.row(task).last_error)
