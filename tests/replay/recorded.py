"""Ways to record a market: cycles of a task that was carried out on paper, in memory or in a journal's file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from cli.main import main
from strategy.book import Ask, Bid, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import BidPlan, Entry, Limits, Memory, OwnOrder, Rules, SaleIntoBid
from strategy.plan_bids import plan_bids
from tests.shapes import replace
from workers.bidding.moment import Journal

START = 1_800_000_000_000  # 2027-01-15T08:00:00Z
LOOP = 30_000
CONFIG = BidConfig(slug="quiet-cats", hardcap_sats=100_000)
PROFILE = VenueProfile("simulator", 1_000, 10_000, 900, True, "per_bid")
LIMITS = Limits(0, 10**12, 20, 10**12, 2_000)


def ask(price: int, number: int = 0) -> Ask:
    return Ask(f"ask-{number}", price, Decimal(1), Decimal(price), "bc1qseller")


def bid(price: int, placed_ms: int | None = None, number: int = 0) -> Bid:
    return Bid(f"bid-{number}", price, Decimal(1), Decimal(price), "bc1qrival", placed_ms)


def sale(price: int, sold_ms: int, number: int = 0, **changes: Any) -> SaleIntoBid:
    return replace(SaleIntoBid(f"sale-{number}", price, Decimal(1), sold_ms), **changes)


def entry(cycle: int, *prices: int, **changes: Any) -> Entry:
    """Returns the cycle of this number (from 0), with these asks."""
    now_ms = START + cycle * LOOP
    snapshot = Snapshot(now_ms, tuple(ask(price, number) for number, price in enumerate(prices)))
    of_snapshot = {name: changes.pop(name) for name in ("bids", "trait_asks", "history") if name in changes}
    made = Entry(now_ms, CONFIG, PROFILE, replace(snapshot, **of_snapshot), (), LIMITS, Rules(), Memory())
    return replace(made, **changes)


def carried_out(entries: Iterable[Entry]) -> list[Entry]:
    """Returns the entries as the journal of a task has them whose every bid and cancel succeeded at once."""
    own, memory, done, number = tuple[OwnOrder, ...](), Memory(), list[Entry](), 0
    for each in entries:
        own = tuple(order for order in own if order.expires_ms > each.now_ms)
        each = replace(each, own=own, memory=memory)
        plan = plan_bids(each)
        done.append(replace(each, plan=plan))
        own, number = _after(own, plan, each, number)
        memory = plan.memory
    return done


def _after(own: Sequence[OwnOrder], plan: BidPlan, at: Entry, number: int) -> tuple[tuple[OwnOrder, ...], int]:
    gone = {cancel.order_id for cancel in plan.to_cancel}
    left = [order for order in own if order.id not in gone]
    for place in plan.to_place:
        number += 1
        expires_ms = at.now_ms + at.config.expiry_ms
        left.append(OwnOrder(number, "live", place.price_sats, place.quantity, at.now_ms, expires_ms, place.trait))
    return tuple(left), number


def a_day() -> list[Entry]:
    """Returns a hundred cycles in which the floor wanders, a few sales happen and a rival bids."""
    entries = []
    for cycle in range(100):
        floor = 100_000 - 1_000 * (cycle % 7) + 200 * (cycle % 3)
        now_ms = START + cycle * LOOP
        sales = (sale(70_000, now_ms - 5_000, cycle),) if cycle % 20 == 19 else ()
        rival = bid(60_000 + 1_000 * (cycle % 5), now_ms - 60_000, cycle)
        entries.append(entry(cycle, floor, floor + 5_000, bids=(rival,), sales=sales))
    return carried_out(entries)


def journal(path: Path, entries: Iterable[Entry]) -> Path:
    writer = Journal(path)
    for each in entries:
        writer.write(each)
    return path


def replay(*arguments: object) -> int:
    """Runs the command in this process."""
    return main(["replay", *map(str, arguments)])
