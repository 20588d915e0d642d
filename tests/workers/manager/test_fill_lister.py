"""The way of a fill to its auto-list task: two reads, one commit, and what keeps it waiting."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from markets.base import Unavailable
from markets.items import LocatedInscription
from models.leases.leases import EVERYBODY
from models.ledger import orders, purchases
from models.ledger.states import Listing, Order
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import User
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config, load_listing_config
from strategy.plan_listing import guard
from strategy.purchases import NotYetShown, ProvenPurchase
from tests.shapes import replace
from tests.worlds.purchases import HELD, ITEM, MARGIN, OTHER, RULE, TO_VAULT, Desk, autolists, buys
from tests.worlds.worker import KEYS, Crash, CrashAt, World
from wallet.signer_client import SignerUnavailable
from workers.context import FILL_NAMES
from workers.manager.purchase_facts import Evidence, Found

DAY_S = 86_400


def test_the_worked_example(world: World) -> None:
    task, desk = buys(world), Desk(world)
    assert desk.look() == ("waiting", "it is seen in the vault, and looked at once more", None)
    assert autolists() == []
    listed = desk.look()

    (made,) = autolists()
    order = Order.get()
    assert listed == ("listed", None, made.id)
    assert (made.inscription_id, made.collection_id, made.venue, made.source_order) == (
        ITEM,
        "cats",
        "simulator",
        order.id,
    )
    assert made.desired == "running"
    config = load_listing_config(made.config)
    assert config == replace(MARGIN, cost_sats=75_600)
    assert (guard(config, 20_000, tick=1), guard(config, 20_000, tick=1_000)) == (84_858, 85_000)
    assert purchases.count_open(task) == 1
    assert desk.look(times=3) == listed and desk.reads == 2


def test_the_cost_is_the_chains_whatever_fee_is_known_and_without_start_nothing_starts(world: World) -> None:
    buys(world, replace(TO_VAULT, on_fill=replace(RULE, start=False)), fee=9_000)
    Desk(world).look(times=2)
    (made,) = autolists()
    assert (load_listing_config(made.config).cost_sats, made.desired) == (75_600, "stopped")


@pytest.mark.parametrize(
    "place",
    [
        LocatedInscription("pending"),
        LocatedInscription("unknown"),
        LocatedInscription("spent"),
        replace(HELD, is_in_escrow=True),
    ],
)
def test_what_is_not_confirmed_in_the_vault_waits(world: World, place: LocatedInscription) -> None:
    buys(world)
    desk = Desk(world)
    desk.look()
    desk.place = place  # the second read disagrees
    assert desk.look() == ("waiting", f"it is not confirmed in the vault {KEYS.vault} yet", None)
    desk.place = HELD
    assert desk.look(after_s=11)[0] == "waiting"  # type: ignore[index]
    desk.place = replace(HELD, outpoint="2" * 64 + ":1")
    assert desk.look()[0] == "waiting", "another output than the first read saw"  # type: ignore[index]
    assert autolists() == []
    assert desk.look()[0] == "listed"  # type: ignore[index]


@pytest.mark.parametrize("point", FILL_NAMES)
def test_a_manager_that_dies_makes_one_task_and_no_second(world: World, point: str) -> None:
    buys(world)
    dying = Desk(world, CrashAt(point))
    dying.look()
    with pytest.raises(Crash):
        dying.look()
    assert len(autolists()) == (point == "fill-listed")
    assert Desk(world).look(times=3)[0] == "listed"  # type: ignore[index]
    assert len(autolists()) == 1


def test_a_death_between_the_task_and_the_end_of_the_wish_leaves_neither(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    buys(world)
    desk = Desk(world)
    desk.look()
    with monkeypatch.context() as dying:
        dying.setattr(purchases, "_end", lambda *_: (_ for _ in ()).throw(Crash("in the commit")))
        with pytest.raises(Crash):
            desk.look()
    assert (autolists(), Order.get().autolist_state) == ([], "waiting")
    assert Desk(world).look(times=2)[0] == "listed"  # type: ignore[index]


def test_two_managers_make_one_task(world: World) -> None:
    buys(world)
    one, other = Desk(world), Desk(world)
    one.look(), other.look()
    order = purchases.waiting(EVERYBODY)[0]
    assert one.look()[0] == "listed"  # type: ignore[index]
    proof = purchases.of_order(order.id)
    assert proof and purchases.make_task(order, proof, MARGIN, is_wanted=True, now_ms=1) is None
    other.look()
    assert len(autolists()) == 1


def test_a_task_that_is_there_already_is_as_good(world: World) -> None:
    buys(world)
    user = int(world.user.id)
    mine = tasks.create_autolist_task(
        user, inscription_id=ITEM, collection_id=None, config=dump_listing_config(MARGIN), venue="simulator", now_ms=1
    )
    assert Desk(world).look(times=2) == ("listed", "there was an auto-list task for it already", mine.id)
    assert [(row.id, row.desired, row.source_order) for row in autolists()] == [(mine.id, "stopped", None)]


def test_more_than_max_open_wait_until_one_is_sold(world: World) -> None:
    task = buys(world)
    desk = Desk(world)
    desk.look(times=2)
    first = Order.get()
    row = first.__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "other", "inscription_id": OTHER}
    Order.insert(row | {"autolist_state": "waiting", "autolist_task": None}).execute()
    waits = ("waiting", "1 auto-list tasks of this task's fills are open, as many as maxOpen allows", None)
    desk.look(times=2)
    assert Order.get_by_id(50).autolist_state == "waiting" and Order.get_by_id(50).autolist_reason == waits[1]
    assert desk.reads == 3, "once for the proof, and not again for what would have to wait"
    Listing.insert(
        intent="l", task_id=autolists()[0].id, user_id=first.user_id, venue="simulator", wallet=KEYS.vault,
        inscription_id=ITEM, outpoint="o", price_sats=1, token=1, revision=1, state="closed", close_reason="sold",
        misses=0, created_ms=1, updated_ms=1,
    ).execute()  # fmt: skip
    desk.look(after_s=400, times=2)
    assert [row.inscription_id for row in autolists()] == [ITEM, OTHER] and purchases.count_open(task) == 1


def test_the_wish_of_now_counts_and_a_week_is_the_most(world: World) -> None:
    task = buys(world, item=None)
    desk = Desk(world)
    waits = desk.look()
    assert waits == ("waiting", "the marketplace has not told which inscription was bought", None)
    assert desk.look(after_s=7 * DAY_S) == ("dropped", f"not possible for a week: {waits.reason}", None)
    Order.update(autolist_state="waiting").execute()
    tasks.change_bidding_task(
        world.row(task), type="ordinals", slug="cats", slug_key="cats",
        config=dump_bid_config(replace(TO_VAULT, on_fill=None)),
    )  # fmt: skip
    assert Desk(world).look() == ("dropped", "its task no longer wants it: onFill is null", None)
    Order.update(autolist_state="waiting").execute()
    tasks.mark_deleted(world.row(task), 1)
    assert Desk(world).look() == ("dropped", "its task was deleted", None)


def test_what_was_delivered_elsewhere_is_not_listed(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.vault = "bc1pother"
    assert desk.look() == ("dropped", f"it was delivered to {KEYS.vault}, not to the vault", None)


def test_what_the_chain_does_not_show_is_dropped_with_the_reason(world: World) -> None:
    task, desk = buys(world), Desk(world)
    desk.shown = "it came from an address of the user's own"
    reason = "the chain does not show that this bid bought it: it came from an address of the user's own"
    assert desk.look(times=3) == ("dropped", reason, None) and desk.reads == 1
    assert autolists() == [] and purchases.count_open(task) == 0
    assert purchases.of_inscription(int(world.user.id), ITEM) == purchases.ClaimedPurchase(Order.get().id)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Unavailable("the server is down"), "failed to read how it was bought: the server is down"),
        (SignerUnavailable("no answer"), "failed to read how it was bought"),
        (NotYetShown("the transaction that bought it is in no block yet"), "is in no block yet"),
    ],
)
def test_a_fill_waits_while_the_chain_does_not_answer(world: World, fault: Exception, says: str) -> None:
    buys(world)
    desk = Desk(world)
    honest = desk.read

    def away(*about: Any) -> Evidence:
        raise fault

    desk.lister._read = away
    waits = desk.look()
    assert waits is not None and waits.state == "waiting" and says in str(waits.reason)
    assert autolists() == []
    desk.lister._read = honest
    assert desk.look(after_s=12, times=2)[0] == "listed"  # type: ignore[index]


def test_less_than_the_price_is_refused_as_a_cost(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.left_sats = 74_999
    assert "only 74999 sats left" in str(desk.look())
    assert autolists() == []


def test_an_item_of_another_collection_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    buys(world)
    desk = Desk(world)
    honest = desk.read
    desk.lister._read = lambda *about: replace(honest(*about), collection="Dogs")
    assert "it is of the collection Dogs" in str(desk.look())
    assert autolists() == []


def test_a_purchase_of_a_task_without_on_fill_is_proved_for_its_cost(world: World) -> None:
    buys(world, replace(TO_VAULT, on_fill=None))
    assert Desk(world).look() is None and autolists() == []
    found = purchases.of_inscription(int(world.user.id), ITEM)
    assert isinstance(found, ProvenPurchase) and purchases.cost(found) == 75_600


def test_one_that_cannot_be_worked_on_keeps_no_other_waiting(world: World) -> None:
    buys(world, replace(TO_VAULT, on_fill=replace(RULE, max_open=5)))
    row = Order.get().__data__ | {"id": 50, "intent": "x", "expires_ms": 5, "sale_id": "s", "inscription_id": OTHER}
    Order.insert(row).execute()
    desk = Desk(world)
    found = desk.find

    def broken(order: Order, user: User) -> Found:
        if order.id != 50:
            raise OSError("the disk is full")
        return found(order, user)

    desk.lister._find = broken
    desk.look(times=2)
    assert [row.inscription_id for row in autolists()] == [OTHER]
    assert Order.get_by_id(row["id"] - 49).autolist_state == "waiting"


def test_a_rule_that_cannot_be_read_or_leads_to_no_price_waits(world: World) -> None:
    task = buys(world)
    costly = ListingConfig(min_margin=Decimal(100), cost_sats=None)
    for rule, says in (("{", "onFill.autolist cannot be read"), (dump_listing_config(costly), "")):
        config = dump_bid_config(replace(TO_VAULT, on_fill=replace(RULE, autolist=rule)))
        Task.update(config=config).where(Task.id == task).execute()
        Order.update(price_sats=2_000_000_000_000_000).execute()
        desk = Desk(world)
        desk.left_sats = 2_000_000_000_000_000
        waits = desk.look(times=2)
        assert waits is not None and waits.state == "waiting" and says in str(waits.reason)
    assert autolists() == []


@pytest.mark.slow
def test_what_waits_long_is_looked_at_more_and_more_rarely(world: World) -> None:
    buys(world)
    desk = Desk(world)
    desk.place = LocatedInscription("pending")
    desk.look(after_s=5, times=720)
    assert 12 <= desk.reads <= 20, "an hour: 5, 10, 20 and so on up to 300 seconds apart"


@pytest.mark.parametrize("config", [replace(TO_VAULT, on_fill=None), replace(TO_VAULT, dry_run=True)])
def test_only_real_fills_of_a_task_that_wants_it_wait(world: World, config: BidConfig) -> None:
    task, bidder = world.begun(config)
    world.later(30, bidder)
    (order,) = orders.open_orders(task)
    orders.fill(order, world.clock(), orders.SoldInto("s", ITEM))
    assert Order.get().autolist_state is None and purchases.waiting(EVERYBODY) == []
