"""The signer's own database: grants, each task's highest token, control states, and all signatures.

It is not the service's database, so that control of that one widens no limit here. SQLite in WAL with
`synchronous=FULL`, so every answer survives a power cut.

Sums go by the signer's clock and include signatures from the future, so that a clock set back makes more count, never
less.

The payouts of all signed listings are kept so that no payment satisfies the signatures of two outputs. A signature with
ALL|ANYONECANPAY covers all outputs and one input. Two of them over equal outputs fit into one transaction: it spends
both items and pays once. So does a secure one with a plain signature whose output is among those outputs. Only one
output that pays us is ever covered (`outputs-known`), so two signatures can share a payment when, and only when, script
and value of their payouts are equal and one of them covers all outputs. Two plain ones cannot, because each covers
the output at its own input's index.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, astuple

from core.fields import MAX_SATS
from wallet.policy import HeldGrant, RecentSignatures, UnexpiredBids
from wallet.protocol import ControlState, Grant, PolicyRefused, Scope, State
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import SECURE_LISTING, TxOutput
from wallet.signer.audit import AuditLog
from wallet.terms import DAY_MS

PAYOUTS_SCHEMA = """
CREATE TABLE IF NOT EXISTS payouts (
    script TEXT NOT NULL,
    sats INTEGER NOT NULL,
    outpoint TEXT NOT NULL,
    sighash INTEGER NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (script, sats, outpoint, sighash)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS payouts_outpoint ON payouts (outpoint);
"""


class PayoutStore:
    """The table of payouts; each stays until its output is spent. Writes belong inside the ledger's transaction.

    The payout buys `outpoint`; `item` is the output that was listed: the same, or the escrow's source. The payout of an
    escrow that is never created stays for ever, because the facts do not show which transaction spent the item, and so
    cannot exclude that it was the transfer.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def rivals(self, outpoint: str, payout: TxOutput, sighash: int) -> list[str]:
        """Returns the other outputs (`txid:vout`) that a payment for a signature with `sighash` would buy as well."""
        if payout.value > MAX_SATS:
            return []  # never signed, and too large for SQLite
        query = "SELECT DISTINCT outpoint FROM payouts WHERE script = ? AND sats = ? AND outpoint != ?"
        if sighash != SECURE_LISTING:
            query += f" AND sighash = {SECURE_LISTING}"
        found = self._database.execute(query + " ORDER BY outpoint", (payout.script.hex(), payout.value, outpoint))
        return [row[0] for row in found]

    def put(self, outpoint: str, payout: TxOutput, sighash: int, item: str) -> None:
        """Remembers a signature's payout."""
        row = (payout.script.hex(), payout.value, outpoint, sighash, item)
        self._database.execute("INSERT OR IGNORE INTO payouts VALUES (?, ?, ?, ?, ?)", row)

    def delete(self, outpoint: str) -> None:
        """Deletes the payouts of a spent output, because its signatures are worthless."""
        self._database.execute("DELETE FROM payouts WHERE outpoint = ?", (outpoint,))


def is_gone(facts: OutpointFacts | None) -> bool:
    """Tells whether the output is spent in a block. An unconfirmed spend may be replaced by another."""
    return facts is not None and facts.is_unspent is False and facts.is_spent_in_block


def outputs_unique(payout: TxOutput, rivals: Iterable[str], facts: Mapping[str, OutpointFacts]) -> None:
    """Refuses a payout that would also satisfy the signature of another output that may still be spent."""
    left = [outpoint for outpoint in rivals if not is_gone(facts.get(outpoint))]
    if left:
        raise PolicyRefused(
            "outputs-unique",
            f"a listing of {left[0]} was signed for {payout.value} sats, too, and one payment could buy both:"
            " ask a price that is one tick higher or lower",
        )


MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MOST_EXPIRIES = 200  # of a task, a user or all; later expiries are not reported
SAME_EXPIRY_MS = 5_000
SIGNED_SCHEMA = """
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


class BidSignature(Struct, frozen=True):
    """One signed bid. Times are Unix milliseconds, `price` sats of the whole order, `message_hash` SHA-256 in hex.

    For an offer, `message` has all its terms, and `signature` is a JSON list of the signed PSBTs.
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


class ListingSignature(Struct, frozen=True):
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
    """Adds up prices in order of expiry. Expiries within SAME_EXPIRY_MS are one step, at the last of them."""
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
        self._put("signatures", {name: getattr(bid, name) for name in BidSignature.__struct_fields__})

    def listing(self, intent: str) -> ListingSignature | None:
        row = self._row(ListingSignature, "listings", intent)
        return ListingSignature(**row | {"answer": tuple(json.loads(row["answer"]))}) if row else None

    def put_listing(self, listing: ListingSignature) -> None:
        values = {name: getattr(listing, name) for name in ListingSignature.__struct_fields__}
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
        """Returns the next expiries of the bids of `unexpired`, and the sum of sats that has expired by each."""
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
        """Returns the highest price in sats of a listing of `outpoint` in the hour before `now_ms`; 0 for none."""
        query = "SELECT coalesce(max(price), 0) FROM listings WHERE outpoint = ? AND created_ms > ?"
        return self._number(query, (outpoint, now_ms - HOUR_MS))

    def lowest_listing(self, outpoint: str) -> int | None:
        """Returns the price in sats of the cheapest listing of `outpoint` ever signed."""
        row = self._database.execute("SELECT min(price) FROM listings WHERE outpoint = ?", (outpoint,)).fetchone()
        return None if row[0] is None else int(row[0])

    def _row(self, kind: type[BidSignature] | type[ListingSignature], table: str, intent: str) -> dict[str, Any] | None:
        columns = kind.__struct_fields__
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE intent = ?"
        row = self._database.execute(query, (intent,)).fetchone()
        return dict(zip(columns, row, strict=True)) if row else None

    def _put(self, table: str, values: Mapping[str, Any]) -> None:
        marks = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))

    def _number(self, query: str, values: tuple[Any, ...]) -> int:
        return int(self._database.execute(query, values).fetchone()[0])


WITHDRAWALS_SCHEMA = """
CREATE TABLE IF NOT EXISTS withdrawals (
    intent TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    source TEXT NOT NULL,
    sent_sats INTEGER NOT NULL,
    fee_sats INTEGER NOT NULL,
    txid TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    request_hash TEXT NOT NULL,
    signed_transaction TEXT NOT NULL,
    signed_psbt TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS withdrawals_created ON withdrawals (user, created_ms, source);
"""


class WithdrawalSignature(Struct, frozen=True):
    """One signed withdrawal. `request_hash` is SHA-256 (hex) of the request; one of the two signed forms is empty."""

    intent: str
    user: str
    source: str
    sent_sats: int
    fee_sats: int
    txid: str
    created_ms: int
    request_hash: str
    signed_transaction: str
    signed_psbt: str


_COLUMNS = ", ".join(WithdrawalSignature.__struct_fields__)


class WithdrawalStore:
    """The table of withdrawals. Writes belong inside the ledger's transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def find(self, intent: str) -> WithdrawalSignature | None:
        query = f"SELECT {_COLUMNS} FROM withdrawals WHERE intent = ?"
        row = self._database.execute(query, (intent,)).fetchone()
        return WithdrawalSignature(*row) if row else None

    def put(self, withdrawal: WithdrawalSignature) -> None:
        marks = ", ".join("?" * len(WithdrawalSignature.__struct_fields__))
        self._database.execute(f"INSERT INTO withdrawals ({_COLUMNS}) VALUES ({marks})", astuple(withdrawal))

    def of_a_day(self, user: str, *, from_bidding: bool, now_ms: int) -> tuple[int, int]:
        """Returns the number of withdrawals signed for `user` in the last day, and their sats with fees.

        Counts either those from the bidding wallet, or those from payment address and vault.
        """
        query = (
            "SELECT count(*), coalesce(sum(sent_sats + fee_sats), 0) FROM withdrawals"
            " WHERE user = ? AND created_ms > ? AND (source = 'bidding') = ?"
        )
        count, sats = self._database.execute(query, (user, now_ms - DAY_MS, from_bidding)).fetchone()
        return int(count), int(sats)


_BUSY_SECONDS = 5.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    task INTEGER PRIMARY KEY,
    highest INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS grants (
    task INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    secret_hash TEXT NOT NULL,
    can_place INTEGER NOT NULL DEFAULT 1,
    withdrawn INTEGER NOT NULL DEFAULT 0,
    terms TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS controls (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (scope, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS new_users (
    user TEXT PRIMARY KEY,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS loosened (
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS loosened_created ON loosened (created_ms);
"""
_USER_KEPT_MS = 7 * DAY_MS
_USERS_IN_NEED = """
SELECT count(*) FROM (
    SELECT user FROM new_users WHERE created_ms > :since
    UNION SELECT user FROM signatures WHERE expires_ms > :since
    UNION SELECT user FROM listings WHERE outpoint IN (SELECT item FROM payouts)
)
"""


class Ledger:
    """The open database; its signatures are `signed`, `payouts`, `withdrawals`. Writes belong inside `transaction()`.

    Each signature has its line in the log `audit` before it is committed here. Only one process may open it (see the
    lock in wallet/signer/audit.py).

    `unstored` are control states that are in force, but in the log only, because the disk had no space.
    """

    def __init__(self, path: Path) -> None:
        self.audit: AuditLog | None = None
        self.unstored: dict[tuple[Scope, str], State] = {}
        self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        path.chmod(0o600)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.executescript(_SCHEMA + SIGNED_SCHEMA + PAYOUTS_SCHEMA + WITHDRAWALS_SCHEMA)
        self.signed = SignedStore(self._database)
        self.payouts = PayoutStore(self._database)
        self.withdrawals = WithdrawalStore(self._database)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Holds the write lock from the start and commits all or nothing. On a failure the log marks the signature as
        undone.
        """
        before = self.audit.number if self.audit else 0
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self.audit:
                self.audit.undo(before)
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def highest_token(self, task: int) -> int:
        """Returns the highest token seen for a task, 0 when none was."""
        row = self._database.execute("SELECT highest FROM tokens WHERE task = ?", (task,)).fetchone()
        return int(row[0]) if row else 0

    def see_token(self, task: int, token: int) -> None:
        self._database.execute(
            "INSERT INTO tokens VALUES (?, ?)"
            " ON CONFLICT (task) DO UPDATE SET highest = max(highest, excluded.highest)",
            (task, token),
        )

    def grant_of(self, task: int) -> HeldGrant | None:
        row = self._database.execute(
            "SELECT terms, secret_hash, can_place, withdrawn FROM grants WHERE task = ?", (task,)
        ).fetchone()
        if row is None:
            return None
        terms: dict[str, Any] = json.loads(row[0])
        # Older grants have no limit for the task alone: the user's limit applies.
        terms.setdefault("outstanding_task_sats", terms["outstanding_sats"])
        return HeldGrant(
            grant=Grant(**(terms | {"operations": tuple(terms["operations"])})),
            secret_hash=row[1],
            can_place=bool(row[2]),
            withdrawn=bool(row[3]),
        )

    def put_grant(self, grant: Grant, secret_hash: str) -> None:
        """Stores a grant in place of the task's former one and remembers its token."""
        terms = json.dumps(asdict(grant))
        self._database.execute(
            "INSERT OR REPLACE INTO grants (task, token, secret_hash, terms) VALUES (?, ?, ?, ?)",
            (grant.task, grant.token, secret_hash, terms),
        )
        self.see_token(grant.task, grant.token)

    def revoke_place(self, task: int, token: int) -> None:
        """Takes the right to place from the task's grant of this or a lower token."""
        self._database.execute("UPDATE grants SET can_place = 0 WHERE task = ? AND token <= ?", (task, token))

    def end_rights(self, task: int, token: int) -> None:
        """Ends the task's grant of this or a lower token."""
        self._database.execute(
            "UPDATE grants SET can_place = 0, withdrawn = 1 WHERE task = ? AND token <= ?", (task, token)
        )

    def users_in_need(self, now_ms: int) -> int:
        """Counts the users who need their keys: made in the week before `now_ms`, or with a bid that expires after its
        start, or with a listing whose output may still be spent.
        """
        found = self._database.execute(_USERS_IN_NEED, {"since": now_ms - _USER_KEPT_MS}).fetchone()
        return int(found[0])

    def note_user(self, user: str, now_ms: int) -> None:
        """Records that this user gets keys, and deletes records that are too old to count."""
        self._database.execute("DELETE FROM new_users WHERE created_ms <= ?", (now_ms - _USER_KEPT_MS,))
        self._database.execute("INSERT OR REPLACE INTO new_users VALUES (?, ?)", (user, now_ms))

    def controls(self) -> list[ControlState]:
        """Returns every control that is not on `run`, in any order."""
        rows = self._database.execute("SELECT scope, subject, state FROM controls").fetchall()
        found = {(scope, subject): state for scope, subject, state in rows} | self.unstored
        return [ControlState(scope, subject, state) for (scope, subject), state in found.items()]

    def control_of(self, scope: Scope, subject: str) -> State:
        """Returns the state set for this scope and subject; `run` when none was."""
        if (scope, subject) in self.unstored:
            return self.unstored[scope, subject]
        row = self._database.execute(
            "SELECT state FROM controls WHERE scope = ? AND subject = ?", (scope, subject)
        ).fetchone()
        return row[0] if row else "run"

    def loosened(self, now_ms: int) -> RecentSignatures:
        """Counts the changes to a looser state of the minute and the hour before `now_ms`."""
        return recent(self._database, "loosened", now_ms)

    def count_loosened(self, now_ms: int) -> None:
        """Counts one change to a looser state and deletes those too old to count."""
        self._database.execute("DELETE FROM loosened WHERE created_ms <= ?", (now_ms - HOUR_MS,))
        self._database.execute("INSERT INTO loosened VALUES (?)", (now_ms,))

    def put_control(self, control: ControlState) -> None:
        """Stores a control; `run` deletes the row, so the table holds restrictions only."""
        if control.state == "run":
            self._database.execute(
                "DELETE FROM controls WHERE scope = ? AND subject = ?", (control.scope, control.subject)
            )
        else:
            self._database.execute(
                "INSERT OR REPLACE INTO controls VALUES (?, ?, ?)", (control.scope, control.subject, control.state)
            )

    def store_unstored(self) -> None:
        """Stores the control states that the disk had no space for. Raises sqlite3.Error."""
        if self.unstored:
            with self.transaction():
                for (scope, subject), state in self.unstored.items():
                    self.put_control(ControlState(scope, subject, state))
            self.unstored.clear()
