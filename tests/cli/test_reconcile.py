"""`bidkeeper reconcile`: what it concludes of what a marketplace shows, and what it leaves open."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

import pytest

from cli import reconcile
from cli.doctor import data_check
from cli.reconcile import Findings, Purchase, look
from markets.base import GatewayAway, OwnBid, OwnBids, Sale, Sales, Unavailable, VenueError
from markets.orders import OwnListing, OwnListings
from models.ledger import fills, orders
from models.ledger.orders import SoldInto
from models.ledger.states import CLOSED, Order
from models.tasks import tasks
from models.tasks.cycles import Cycle
from models.tasks.tasks import Task
from models.users import User
from tests.cli.commands import in_this_process
from tests.models.test_budgets import placed, refused, sharing
from tests.models.test_orders import new, running_task
from wallet.protocol import UserKeys

NOW_MS = 1_790_000_000_000
WALLET, VAULT = "bc1qpay", "bc1pvault"
KEYS = UserKeys(WALLET, "02", VAULT, "ab")
STRANGER = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
SALE = Sale("s1", "cats", 75_000, Decimal(1), WALLET, "b9", None, NOW_MS)


@dataclass
class Market:
    """A marketplace as the gateway shows it; an error in place of an answer is raised."""

    bids: tuple[OwnBid, ...] | VenueError = ()
    sales_of: dict[str, tuple[Sale, ...] | VenueError] = field(default_factory=dict)
    listings: tuple[OwnListing, ...] = ()
    unread: tuple[str, ...] = ()  # rows of bids, of listings and of sales
    user: int | None = None

    def at(self, venue: str) -> Self:
        return self

    def own_bids(self, wallet: str, max_age_s: float, slugs: Any) -> OwnBids:
        if isinstance(self.bids, VenueError):
            raise self.bids
        return OwnBids(self.bids, NOW_MS, self.unread)

    def sales(self, slug: str, kind: str, since_ms: int, max_age_s: float) -> Sales:
        found = self.sales_of.get(slug, ())
        if isinstance(found, VenueError):
            raise found
        return Sales(found, NOW_MS, since_ms, tuple(None for _ in self.unread))

    def own_listings(self, wallet: str, max_age_s: float) -> OwnListings:
        return OwnListings(self.listings, NOW_MS, self.unread)


def bid(venue_id: str, expires_ms: int, price: int = 75_000) -> OwnBid:
    return OwnBid(venue_id, "cats", "ordinals", price, Decimal(1), expires_ms, None)


def looked(task: Task, **shown: Any) -> Findings:
    user = User.get_by_id(task.user_id)
    return look(Market(**shown), user, KEYS, "simulator", 0)  # type: ignore[arg-type]


@pytest.fixture
def task(database: str) -> Task:
    return running_task("cats")


def order_of(task: Task, price: int = 75_000, **columns: Any) -> Order:
    made = placed(task, price)
    Order.update(**columns).where(Order.id == made.id).execute()
    return Order.get_by_id(made.id)


def test_bids_of_open_orders_are_left_out_and_those_of_closed_ones_are_named(task: Task) -> None:
    known = order_of(task, venue_id="b1")
    closed = order_of(task, venue_id="b2", state=CLOSED, close_reason="cancelled")
    shown = (bid("b1", known.expires_ms), bid("b2", closed.expires_ms), bid("b3", NOW_MS + 7))
    found = looked(task, bids=shown)
    assert [each.venue_id for each in found.bids] == ["b2", "b3"]
    assert {venue_id: order.id for venue_id, order in found.closed.items()} == {"b2": closed.id}


def test_a_purchase_proves_no_task_where_two_may_have_made_it(task: Task) -> None:
    assert looked(task, sales_of={"cats": (SALE,)}).purchases == [Purchase(SALE, (task.id,))]
    other = tasks.create_bidding_task(
        task.user_id,
        type="ordinals",
        slug="cats",
        slug_key="cats, again",
        config="{}",
        venue="simulator",
        max_tasks=9,
        now_ms=1,
    )
    assert looked(task, sales_of={"cats": (SALE,)}).purchases == [Purchase(SALE, (task.id, other.id))]


def test_a_purchase_that_names_a_closed_order_is_its_tasks(task: Task) -> None:
    order_of(task, venue_id="b9", state=CLOSED, close_reason="lost")
    assert looked(task, sales_of={"cats": (SALE,)}).purchases == [Purchase(SALE, (task.id,), is_proven=True)]


@pytest.mark.parametrize("names", ["b9", None], ids=["by its bid", "by its price"])
def test_a_purchase_that_an_open_order_may_explain_is_left_to_its_task(task: Task, names: str | None) -> None:
    order_of(task, venue_id=names, created_ms=1)
    sale = SALE if names else Sale("s1", "cats", 75_000, Decimal(1), WALLET, None, None, NOW_MS)
    found = looked(task, sales_of={"cats": (sale,)})
    assert found.purchases == []
    assert [text for text in found.unknown if "s1" in text] == [] if names else found.unknown


def test_purchase_of_a_listing_is_not_the_fill_of_an_open_order(task: Task) -> None:
    order_of(task, venue_id=None, created_ms=1)
    sale = Sale("s1", "cats", 75_000, Decimal(1), WALLET, None, None, NOW_MS, is_of_listing=True)
    found = looked(task, sales_of={"cats": (sale,)})
    assert found.purchases == [Purchase(sale, (int(task.id),), may_be_by_hand=True)]
    assert found.unknown == []


def test_purchases_of_others_and_known_ones_are_left_out_and_those_by_hand_are_said_to_be_perhaps_so(
    task: Task,
) -> None:
    user = User.get_by_id(task.user_id)
    assert orders.fill(placed(task, 75_000), NOW_MS, SoldInto("known"))
    sales = (
        Sale("known", "cats", 75_000, None, WALLET, "b1", None, NOW_MS),
        Sale("anothers", "cats", 75_000, None, "bc1qanother", "b2", None, NOW_MS),
        Sale("hand", "cats", 75_000, None, user.ordinals_address, None, None, NOW_MS),
    )
    assert looked(task, sales_of={"cats": sales}).purchases == [Purchase(sales[2], (task.id,), may_be_by_hand=True)]


def test_rows_that_cannot_be_understood_are_said(task: Task) -> None:
    found = looked(task, unread=("b7", ""))
    told = "could not be understood; look at the marketplace itself"
    assert found.unknown == [f"2 of {what} {told}" for what in ("its bids", "the sales of cats", "its listings")]
    assert not found.is_empty


def test_what_cannot_be_read_is_said_and_nothing_is_concluded(task: Task) -> None:
    found = looked(task, bids=Unavailable("down"), sales_of={"cats": (SALE,)})
    assert (found.bids, found.purchases) == ((), [])
    assert found.unknown == [
        "its bids could not be read: down",
        "purchase s1: an open order may explain it; its task finds out",
    ]
    found = looked(task, sales_of={"cats": Unavailable("slow")})
    assert found.unknown == ["the sales of cats could not be read: slow"] and not found.is_empty
    with pytest.raises(GatewayAway):
        looked(task, bids=GatewayAway("no gateway"))


def test_listings_without_a_row_are_shown(task: Task) -> None:
    listed = OwnListing("l1", "7" * 64 + "i0", "cats", 90_000, VAULT)
    assert looked(task, listings=(listed, OwnListing("l2", "8" * 64 + "i0", "cats", 5, "bc1panother"))).listings == (
        listed,
    )


def test_a_counted_purchase_lowers_what_its_task_and_its_budget_may_spend_once(database: str) -> None:
    _, first, second = sharing(spend_cap_sats=100_000)
    assert fills.count_purchase(new(first, 75_000), SoldInto("s1", None, 5), NOW_MS)
    assert not fills.count_purchase(new(first, 75_000), SoldInto("s1", None, 5), NOW_MS), "it counts once"
    assert refused(second, 25_001, NOW_MS) == 25_000
    counted = orders.fills(first.id, now_ms=NOW_MS)
    assert (counted.count, counted.sats, counted.today) == (1, 75_000, 1)
    [row] = Order.select().where(Order.sale_id == "s1")
    assert (row.autolist_state, row.filled_ms, row.closed_ms) == (None, 5, NOW_MS), "it gives no authority to list"


def test_without_a_running_signer_it_says_what_to_start(environment: dict[str, str]) -> None:
    code, said, complained = in_this_process(environment, "reconcile", "--cancel")
    assert (code, said) == (1, "") and "add --yes" in complained
    code, said, complained = in_this_process(environment, "reconcile", "--user", STRANGER)
    assert code == 1 and "has not signed in here" in complained


def test_the_doctor_names_bids_that_running_tasks_see_without_an_order(task: Task) -> None:
    assert list(data_check._unknown_bids()) == []
    seen = [{"venue_id": "b1"}, {"venue_id": "b2"}]
    Cycle.create(task_id=task.id, time_ms=1, action="old", detail=json.dumps({"foreign": [{"venue_id": "b0"}]}))
    Cycle.create(task_id=task.id, time_ms=2, action="kept 1", detail=json.dumps({"foreign": seen}))
    [check] = data_check._unknown_bids()
    assert check.status == "warn" and "2 bids" in check.text and "bidkeeper reconcile" in check.remedy


@pytest.mark.parametrize(("typed", "is_agreed"), [("y", True), ("YES", True), ("", False), ("n", False)])
def test_only_a_yes_is_taken_for_one(monkeypatch: pytest.MonkeyPatch, typed: str, is_agreed: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda question: typed)
    assert reconcile._agreed(argparse.Namespace(yes=False), "Cancel 2 bids?") is is_agreed
