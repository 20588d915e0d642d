"""A database of an older version, with bids, listings and withdrawals under way, is taken over without a difference.

`taken_over/ledger.sql` is a dump that the code of 5c2b9fa7 wrote: orders, listings and withdrawals in every state, dry
runs, fills, a half replaced listing, tombstones. `answers.jsonl` has the answers of that code's own functions about it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing as closed_after
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from models import budgets, outbox, schema, users
from models.database import base
from models.ledger import closing, fills, listings, orders, states, withdrawals
from models.ledger.limits import match
from models.ledger.states import Listing, Order
from models.ledger.withdrawals import Withdrawal

HERE = Path(__file__).parent / "taken_over"
ADA, BOB, CATS, DOGS, FISH, BUDGET = 1, 2, 1, 2, 5, 1
USERS, TASKS, DRY = (ADA, BOB), range(1, 17), (False, True)
WALLET, NOW_MS = "bc1qadapay", 1_790_000_000_700
REPRICED = "77" * 32 + ":0"


@dataclass
class Venue:
    name: str
    expiry: str


@dataclass
class Bid:
    venue_id: str
    slug: str
    price: int
    quantity: Decimal | None
    expires_ms: int | None
    trait: tuple[str, str] | None


@pytest.fixture
def taken_over(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bidkeeper.db"
    with closed_after(sqlite3.connect(path)) as connection:
        connection.executescript((HERE / "ledger.sql").read_text())
    base.connect(f"sqlite:///{path}")
    yield path
    base.close()


def shown(venue: Venue) -> list[Bid]:
    """Returns the bids that the venue shows: of every order that may have reached it."""
    sent = (o for o in orders.wallet_orders(WALLET) if o.venue == venue.name and o.state not in ("reserved", "signed"))
    return [
        Bid(
            venue_id=order.venue_id or f"new{order.id}",
            slug=order.slug,
            price=order.price_sats,
            quantity=Decimal(1),
            expires_ms=order.expires_ms if venue.expiry == "ms" else None,
            trait=order.trait,
        )
        for order in sent
    ]


def answers() -> Iterator[tuple[Any, ...]]:
    for user in USERS:
        for dry in DRY:
            yield "user", user, dry, orders.exposure(user, dry_run=dry), orders.open_count(user, dry_run=dry)
        yield "prices", user, sorted(states.open_prices(user))
        yield "coins", user, sorted(withdrawals.taken_coins(user))
        yield "behind bids", user, sorted(withdrawals.coins_behind_bids(user).items())
        rows = [
            (row.id, row.state, row.txid, row.sent_sats, row.fee_sats, row.reason, row.request)
            for row in withdrawals.newest(user, 20)
        ]
        open_ids = [row.id for row in withdrawals.open_of(user)]
        yield "withdrawals", user, rows, open_ids, withdrawals.largest_open_bid(user, "ordnet")
        yield (
            "fills",
            user,
            [
                (f.id, f.price_sats, str(f.quantity), f.sale_id, f.place.filled_ms, f.placed_ms, str(f.floor_at_fill))
                for f in fills.newest(user, fills.Wanted(), 50)
            ],
        )
        totals = fills.totals_of_tasks(user).items()
        yield "totals", user, sorted((task, each.count, each.sats, each.last_ms) for task, each in totals)
        yield "controls", user, [(each.scope, each.subject_id, each.state) for each in users.controls_of(user)]
        told = outbox.of_user_after(user, 0, 1000)
        yield "events", user, [(each.event, each.task_id, each.at_ms, each.data) for each in told]
    yield from of_budget()
    for task in TASKS:
        yield from of_task(task)
    for number in range(1, 8):
        output = f"{number:064x}:0"
        yield "output", number, listings.lowest_outstanding(output), listings.first_ms(output)
    yield "output", 77, listings.lowest_outstanding(REPRICED), listings.first_ms(REPRICED)
    yield "to end", sorted(closing.tasks_to_end())
    for task, venue in ((CATS, Venue("magiceden", "ms")), (DOGS, Venue("ordnet", "h"))):
        found = match(task, venue, WALLET, shown(venue), NOW_MS)
        own, by_order = (
            [order.id for order in found.own],
            sorted((i, bid.venue_id) for i, bid in found.by_order.items()),
        )
        strays, foreign = [bid.venue_id for bid in found.strays], [bid.venue_id for bid in found.foreign]
        yield "match", task, own, by_order, strays, foreign, found.untracked_sats


def of_budget() -> Iterator[tuple[Any, ...]]:
    budget = budgets.own(ADA, BUDGET)
    assert budget is not None
    for dry in DRY:
        yield "all", dry, orders.exposure_of_all(dry_run=dry)
        use = orders.use_of(BUDGET, NOW_MS, dry_run=dry)
        yield "budget", dry, use.open_sats, use.open_count, use.fills, use.spent_sats, use.spent_today_sats
        room = orders.left(budget, use)
        yield "room", dry, room.sats, room.orders


def of_task(task: int) -> Iterator[tuple[Any, ...]]:
    open_orders = [
        (o.id, o.state, o.price_sats, o.expires_ms, o.venue_id, o.misses, o.budget_id, o.trait, bool(o.dry_run))
        for o in orders.open_orders(task)
    ]
    yield "task", task, open_orders, closing.count_open(task)
    now, last = listings.open_listing(task), listings.newest(task)
    yield (
        "listing",
        task,
        now and (now.id, now.state, now.price_sats, now.venue_id, now.signed_ms, now.listed_ms),
        last and (last.id, last.state, last.close_reason, last.closed_ms),
        listings.first_listed_ms(task),
    )
    for dry in DRY:
        found = orders.fills(task, dry_run=dry, now_ms=NOW_MS)
        sums = found.count, found.sats, list(found.newest_closed), found.today, found.sats_today
        yield "filled", task, dry, *sums, orders.task_exposure(task, dry_run=dry)


def test_a_ledger_of_an_older_version_gives_its_own_answers(taken_over: Path) -> None:
    assert schema.migrate() == ["0003_versions", "0004_purchases", "0005_hook_codes", "0006_worth"]
    schema.check()
    then = (HERE / "answers.jsonl").read_text().splitlines()
    now = [json.dumps(answer) for answer in answers()]
    assert [line for line in now if line not in then] == []
    assert now == then


def test_every_row_under_way_is_carried_to_its_end(taken_over: Path) -> None:
    schema.migrate()
    kept = {row.id for row in Order.select().where(Order.state == "closed")}
    for order in [order for task in TASKS for order in orders.open_orders(task)]:
        for state in {"reserved": ("signed", "submitted", "live"), "unknown": ("live",)}.get(order.state, ()):
            orders.move(order, state, NOW_MS, venue_id="later" if state == "live" else None)
        orders.move(order, "closed", NOW_MS, reason="cancelled")
    for task in TASKS:
        listing = listings.open_listing(task)
        if listing is not None and listing.outpoint == REPRICED:
            listings.give_up(listing, "refused", NOW_MS)  # the former price is live again
            listing = listings.open_listing(task)
            assert listing is not None and (listing.state, listing.price_sats) == ("live", 500_000)
        if listing is not None:
            listings.move(listing, "closed", NOW_MS, reason="gone")
    for row in withdrawals.open_of(ADA):
        if row.state == "reserved":
            assert withdrawals.signed(row, "aa" * 32, 1, 1, NOW_MS)
        assert withdrawals.move(row, "confirmed", NOW_MS)
    assert [orders.exposure_of_all(dry_run=dry) for dry in DRY] == [0, 0]
    assert closing.tasks_to_end() == [] and withdrawals.taken_coins(ADA) == set()
    assert {row.state for table in (Order, Listing) for row in table.select()} == {"closed"}
    assert {row.state for row in Withdrawal.select()} == {"confirmed", "refused"}
    assert {row.id for row in Order.select().where(Order.close_reason != "cancelled")} < kept, "fills stay fills"
