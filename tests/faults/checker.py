"""Joins what the marketplace accepted with what the ledger knows, and names every way in which they disagree."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def orders_of(data_dir: Path) -> list[dict[str, Any]]:
    """All rows of the ledger, read without disturbing its writers."""
    with sqlite3.connect(f"file:{data_dir / 'bidkeeper.db'}?mode=ro", uri=True, timeout=30) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM orders")]
    connection.close()
    return rows


def fingerprint(event: Event) -> tuple[str, int]:
    """Wallet and signed expiry of an accepted bid, as its signed text has them."""
    parts = event["message"].split(":")
    return parts[0], int(parts[5])


def placed(history: list[Event]) -> list[Event]:
    """The bids that came through the dialect, with a signature."""
    return [event for event in history if event["event"] == "accepted" and event["kind"] == "bid" and event["message"]]


def live(history: list[Event]) -> dict[str, Event]:
    """The placed bids that are still there, by their id."""
    ids = {event["orderId"]: event for event in placed(history)}
    for event in history:
        if event["event"] in ("cancelled", "expired", "filled"):
            ids.pop(event["orderId"], None)
    return ids


def disagreements(
    history: list[Event], orders: list[dict[str, Any]], *, hardcap: int, task_total: int, accepted_twice: bool = False
) -> list[str]:
    """Every violation, in words; none for a service that keeps its promises.

    `hardcap` and `task_total` are those of every task. With `accepted_twice` the venue was made to accept a bid twice,
    which is then no fault of ours.
    """
    found = []
    known = {(order["wallet"], order["expires_ms"]): order for order in orders}
    for event in placed(history):
        order = known.get(fingerprint(event))
        if order is None:
            found.append(f"untracked: {event['orderId']} for {event['price']} on {event['slug']}")
        elif (order["price_sats"], order["slug"]) != (event["price"], event["slug"]):
            found.append(f"another bid than order {order['id']} says: {event}")
        if event["price"] > hardcap:
            found.append(f"above the hard cap: {event['price']} on {event['slug']}")
    if not accepted_twice:
        counts = Counter(map(fingerprint, placed(history)))
        found += [f"sent twice: {mark}" for mark, count in counts.items() if count > 1]
    alive = live(history)
    for slug, bids in _by_slug(alive).items():
        prices = sorted(bid["price"] for bid in bids)
        if len(prices) != len(set(prices)) and not accepted_twice:
            found.append(f"two bids at one price on {slug}: {prices}")
        if sum(prices) > task_total:
            found.append(f"above the task's total on {slug}: {prices}")
    for event in alive.values():
        order = known.get(fingerprint(event))
        if order is not None and order["state"] == "closed":
            found.append(f"live at the venue, closed ({order['close_reason']}) in the ledger: order {order['id']}")
    return found


def _by_slug(alive: dict[str, Event]) -> dict[str, list[Event]]:
    by_slug: dict[str, list[Event]] = {}
    for event in alive.values():
        by_slug.setdefault(event["slug"], []).append(event)
    return by_slug


def accepted_after(history: list[Event], time_ms: int) -> list[Event]:
    """The bids that the venue took after `time_ms`."""
    return [event for event in placed(history) if event["time"] > time_ms]


def plant(history: list[Event], change: dict[str, Any]) -> list[Event]:
    """A copy of the history whose last placed bid is changed: to see whether the checker notices."""
    copy: list[Event] = json.loads(json.dumps(history))
    placed(copy)[-1].update(change)
    return copy
