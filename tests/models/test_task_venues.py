"""The venue of a task: named at its creation, NULL in rows of before, and part of what adds up at one marketplace."""

from __future__ import annotations

import pytest

from models import users
from models.ledger import orders
from models.ledger.listing_table import Listing
from models.ledger.order_table import CLOSED
from models.ledger.venues_in_use import name_venues
from models.tasks import tasks
from models.tasks.list import bidding_task_list
from models.tasks.numbers import AUTOLIST_BASE
from models.tasks.running_tasks import running_tasks
from models.tasks.tasks import AutolistTask, BiddingTask
from strategy.config import BidConfig, dumps
from strategy.monthly import Bidding


@pytest.fixture
def user_id(database: str) -> int:
    return int(users.User.create(address="bc1qa", ordinals_address="bc1qa", created_ms=1).id)


def bidding(user_id: int, slug: str, venue: str | None) -> BiddingTask:
    config = dumps(BidConfig(slug=slug, hardcap_sats=1))
    return tasks.create_bidding_task(
        user_id, type="ordinals", slug=slug, slug_key=slug, config=config, max_tasks=9, now_ms=1, venue=venue
    )


def test_it_is_kept_and_read_by_whoever_needs_it(user_id: int) -> None:
    named, unnamed = bidding(user_id, "cats", "simulator-ordnet"), bidding(user_id, "dogs", None)
    listing = tasks.create_autolist_task(
        user_id, inscription_id="a", collection_id=None, config="{}", now_ms=1, venue="simulator-unisat"
    )

    assert [tasks.venue_of(task.number) for task in (named, unnamed, listing)] == [
        "simulator-ordnet",
        None,
        "simulator-unisat",
    ]
    assert (tasks.venue_of(99), tasks.venue_of(AUTOLIST_BASE + 99)) == (None, None)
    assert [task.venue_or("satflow") for task in tasks.bidding_tasks(user_id)] == ["simulator-ordnet", "satflow"]
    assert [task.venue for task in bidding_task_list(user_id)] == ["simulator-ordnet", None]
    assert tasks.with_owner(listing.number).venue == "simulator-unisat"  # type: ignore[union-attr]
    assert tasks.under_token(named.number, 0).venue == "simulator-ordnet"  # type: ignore[union-attr]
    assert {row.venue for row in AutolistTask.select()} == {"simulator-unisat"}


def test_a_change_of_the_config_leaves_it(user_id: int) -> None:
    task = bidding(user_id, "cats", "simulator-ordnet")
    tasks.change_bidding_task(task, type="ordinals", slug="dogs", slug_key="dogs", config=task.config)
    assert tasks.venue_of(task.number) == "simulator-ordnet"


def test_what_runs_at_one_venue_adds_up_there_only(user_id: int) -> None:
    at = {"cats": "satflow", "dogs": None, "rats": "ordnet", "bats": "satflow"}
    made = {slug: bidding(user_id, slug, venue) for slug, venue in at.items()}
    for slug in ("cats", "dogs", "rats"):
        tasks.set_desired(made[slug], tasks.RUNNING)

    def slugs(venue: str, but: int | None = None) -> list[str]:
        found = running_tasks("satflow", but=but).get(venue, [])
        return [task.config.slug for task in found if isinstance(task, Bidding)]

    assert slugs("satflow") == ["cats", "dogs"]
    assert slugs("satflow", made["cats"].id) == ["dogs"]
    assert slugs("ordnet") == ["rats"]


def ordered(task: BiddingTask, number: int, venue: str, *, is_closed: bool = False) -> None:
    new = orders.NewOrder(f"{number:032x}", "bid", task.id, task.user_id, venue, "bc1qp", "cats", 1_000, "1", number, 1)
    order = orders.reserve(new, orders.Ceilings(9_000, 9_000, 9_000, 9), number)
    if is_closed:
        orders.move(order, CLOSED, number, reason="refused")


def test_what_named_none_is_named_for_good_by_where_it_traded(user_id: int) -> None:
    bids = bidding(user_id, "cats", None)
    tasks.raise_token(bids.number)
    tasks.set_desired(bids, tasks.RUNNING)
    ordered(bids, 1, "satflow", is_closed=True)
    ordered(bids, 2, "satflow")
    ordered(bids, 3, "ordnet", is_closed=True)
    unused, named = bidding(user_id, "dogs", None), bidding(user_id, "rats", "unisat")
    sells = tasks.create_autolist_task(user_id, inscription_id="a", collection_id=None, config="{}", now_ms=1)
    Listing.create(
        intent="a", task_id=sells.number, user_id=user_id, venue="unisat", wallet="bc1p", inscription_id="a",
        outpoint="b:0", price_sats=1, token=1, revision=1, state="closed", created_ms=1, updated_ms=1,
    )  # fmt: skip
    # Of the same id as the listing's task, and another one's.
    assert bids.id == sells.id

    assert name_venues("ordnet") == 3
    assert name_venues("satflow") == 0

    found = [tasks.venue_of(task.number) for task in (bids, unused, named, sells)]
    assert found == ["satflow", "ordnet", "unisat", "unisat"]
