"""The signer's bids and listings, in its own file.

Sums over time go by the signer's clock and include signatures later than now: a clock that is set back makes more
count, never less.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wallet.policy import RecentSignatures, UnexpiredBids

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MOST_EXPIRIES = 200  # of a task, a user or all: a room that more of them must free is not dated
SAME_EXPIRY_MS = 5_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS signatures (
    intent TEXT PRIMARY KEY,
    task INTEGER NOT NULL,
    token INTEGER NOT NULL,
    user TEXT NOT NULL,
    price INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    message TEXT NOT NULL,
    message_hash TEXT NOT NULL,
    signature TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS signatures_expiry ON signatures (expires_ms, user, price);
CREATE INDEX IF NOT EXISTS signatures_of_task ON signatures (task, expires_ms, price);
CREATE INDEX IF NOT EXISTS signatures_created ON signatures (created_ms, task, user, price);
CREATE TABLE IF NOT EXISTS listings (
    intent TEXT PRIMARY KEY,
    task INTEGER NOT NULL,
    token INTEGER NOT NULL,
    user TEXT NOT NULL,
    inscription_id TEXT NOT NULL,
    outpoint TEXT NOT NULL,
    price INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    drafts_hash TEXT NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS listings_outpoint ON listings (outpoint, created_ms, price);
CREATE INDEX IF NOT EXISTS listings_created ON listings (created_ms, task, user);
"""
_OF_LATE = """
SELECT task, user, price, created_ms FROM signatures WHERE created_ms > :an_hour_ago
UNION ALL
SELECT task, user, 0, created_ms FROM listings WHERE created_ms > :an_hour_ago
"""
_ABOUT = {"task": "task = :task", "user": "user = :user", "host": "1"}


@dataclass(frozen=True, slots=True)
class BidSignature:
    """One signed bid. Times are Unix milliseconds, `price` sats of the whole order, `message_hash` SHA-256 in hex.

    For a bid that PSBTs pay for, `message` has all its fields, and `signature` is a JSON list of the PSBTs.
    """

    intent: str
    task: int
    token: int
    user: str
    price: int
    expires_ms: int
    created_ms: int
    message: str
    message_hash: str
    signature: str


@dataclass(frozen=True, slots=True)
class ListingSignature:
    """One signed listing. `drafts_hash` is SHA-256 (hex) of the venue's PSBTs, `answer` the signed ones."""

    intent: str
    task: int
    token: int
    user: str
    inscription_id: str
    outpoint: str
    price: int
    created_ms: int
    drafts_hash: str
    answer: tuple[str, ...]


def recent(database: sqlite3.Connection, table: str, now_ms: int) -> RecentSignatures:
    """Counts the table's rows of the minute and the hour before `now_ms`, by their `created_ms`."""
    query = f"SELECT coalesce(sum(created_ms > ?), 0), count(*), 0 FROM {table} WHERE created_ms > ?"
    return RecentSignatures(*database.execute(query, (now_ms - MINUTE_MS, now_ms - HOUR_MS)).fetchone())


def _added_up(rows: list[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Adds up prices in the order of their expiry. Those within some seconds are one step, at the last of them."""
    steps: dict[int, tuple[int, int]] = {}
    first_ms = sats = 0
    for expires_ms, price in rows:
        sats += price
        if expires_ms >= first_ms + SAME_EXPIRY_MS:
            first_ms = expires_ms
        steps[first_ms] = (expires_ms, sats)
    return tuple(ends_ms for ends_ms, _ in steps.values()), tuple(freed for _, freed in steps.values())


class SignedStore:
    """The tables of signatures. Writes belong inside the ledger's transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def bid(self, intent: str) -> BidSignature | None:
        row = self._row(BidSignature, "signatures", intent)
        return BidSignature(**row) if row else None

    def put_bid(self, bid: BidSignature) -> None:
        self._put("signatures", {field.name: getattr(bid, field.name) for field in fields(BidSignature)})

    def listing(self, intent: str) -> ListingSignature | None:
        row = self._row(ListingSignature, "listings", intent)
        return ListingSignature(**row | {"answer": tuple(json.loads(row["answer"]))}) if row else None

    def put_listing(self, listing: ListingSignature) -> None:
        values = {field.name: getattr(listing, field.name) for field in fields(ListingSignature)}
        self._put("listings", values | {"answer": json.dumps(listing.answer)})

    def unexpired(self, task: int, user: str, now_ms: int) -> dict[str, UnexpiredBids]:
        """Returns the bids that expire after `now_ms`: this `task`'s, this `user`'s, the whole `host`'s."""
        values = {"task": task, "user": user, "now": now_ms}
        query = "SELECT coalesce(sum(price), 0), min(expires_ms) FROM signatures WHERE expires_ms > :now AND "
        return {
            name: UnexpiredBids(*self._database.execute(query + about, values).fetchone())
            for name, about in _ABOUT.items()
        }

    def expiries(self, task: int, user: str, now_ms: int) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Returns the next expiries of the same bids, and the sats that have expired by each."""
        values = {"task": task, "user": user, "now": now_ms, "most": MOST_EXPIRIES}
        query = (
            "SELECT expires_ms, price FROM signatures WHERE expires_ms > :now AND {} ORDER BY expires_ms LIMIT :most"
        )
        return {
            name: _added_up(self._database.execute(query.format(about), values).fetchall())
            for name, about in _ABOUT.items()
        }

    def of_late(self, task: int, user: str, now_ms: int) -> dict[str, RecentSignatures]:
        """Returns the signatures of the last hour for this `task`, this `user` and the whole `host`."""
        sums = ", ".join(
            f"coalesce(sum({about} AND created_ms > :a_minute_ago), 0), coalesce(sum({about}), 0),"
            f" coalesce(sum(price * ({about})), 0)"
            for about in _ABOUT.values()
        )
        since = {"an_hour_ago": now_ms - HOUR_MS, "a_minute_ago": now_ms - MINUTE_MS}
        row = self._database.execute(
            f"SELECT {sums} FROM ({_OF_LATE})", since | {"task": task, "user": user}
        ).fetchone()
        return {name: RecentSignatures(*row[3 * at : 3 * at + 3]) for at, name in enumerate(_ABOUT)}

    def highest_listing(self, outpoint: str, now_ms: int) -> int:
        """Returns the price in sats of the dearest listing of `outpoint` in the hour before `now_ms`; 0 for none."""
        query = "SELECT coalesce(max(price), 0) FROM listings WHERE outpoint = ? AND created_ms > ?"
        return self._number(query, (outpoint, now_ms - HOUR_MS))

    def lowest_listing(self, outpoint: str) -> int | None:
        """Returns the price in sats of the cheapest listing of `outpoint` ever signed."""
        row = self._database.execute("SELECT min(price) FROM listings WHERE outpoint = ?", (outpoint,)).fetchone()
        return None if row[0] is None else int(row[0])

    def _row(self, kind: type[BidSignature] | type[ListingSignature], table: str, intent: str) -> dict[str, Any] | None:
        columns = [field.name for field in fields(kind)]
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE intent = ?"
        row = self._database.execute(query, (intent,)).fetchone()
        return dict(zip(columns, row, strict=True)) if row else None

    def _put(self, table: str, values: Mapping[str, Any]) -> None:
        marks = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))

    def _number(self, query: str, values: tuple[Any, ...]) -> int:
        return int(self._database.execute(query, values).fetchone()[0])
