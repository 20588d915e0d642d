"""The signer's own database: grants, each task's highest token, control states, and all signatures.

Apart from the service's database on purpose: control over that one widens no limit here. SQLite in WAL with
`synchronous=FULL`, so every answer survives a power cut.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from wallet.ceilings import DAY_MS
from wallet.policy import HeldGrant, RecentSignatures
from wallet.protocol import ControlState, Grant, Scope, State
from wallet.signer import payouts, signed_withdrawals
from wallet.signer.audit import AuditLog
from wallet.signer.payouts import PayoutStore
from wallet.signer.signed import HOUR_MS, SCHEMA, SignedStore, recent
from wallet.signer.signed_withdrawals import WithdrawalStore

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
    """The open file; `signed`, `payouts` and `withdrawals` are its signatures. Writes belong inside `transaction()`.

    `audit` is the log in which each signature has its line before it is committed here. One process at a time (see the
    lock in wallet/signer/audit.py).

    `unstored` are control states that are in force, though the file had no room for them: the log has them.
    """

    def __init__(self, path: Path) -> None:
        self.audit: AuditLog | None = None
        self.unstored: dict[tuple[Scope, str], State] = {}
        self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        path.chmod(0o600)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.executescript(_SCHEMA + SCHEMA + payouts.SCHEMA + signed_withdrawals.SCHEMA)
        self.signed = SignedStore(self._database)
        self.payouts = PayoutStore(self._database)
        self.withdrawals = WithdrawalStore(self._database)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Holds the write lock from its start; all or nothing. If it fails, the log will say that its signature is
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
        # Older grants have no limit for the task alone: the user's is their only one.
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
        """Counts the users who got keys in the week before `now_ms`, or have signed a bid that has not expired for a
        week, or a listing whose output may still be spent.
        """
        found = self._database.execute(_USERS_IN_NEED, {"since": now_ms - _USER_KEPT_MS}).fetchone()
        return int(found[0])

    def note_user(self, user: str, now_ms: int) -> None:
        """Notes that this user gets keys, and forgets those who got theirs long ago."""
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
        """Counts one change to a looser state and forgets those too old to count."""
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
        """Stores the control states for which there was no room. Raises sqlite3.Error."""
        if self.unstored:
            with self.transaction():
                for (scope, subject), state in self.unstored.items():
                    self.put_control(ControlState(scope, subject, state))
            self.unstored.clear()
