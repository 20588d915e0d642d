"""The withdrawals that the signer has signed, in its own file.

Sums go by the signer's clock and include signatures later than now: a clock that is set back makes more count, never
less.
"""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, fields

from wallet.ceilings import DAY_MS

SCHEMA = """
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


@dataclass(frozen=True, slots=True)
class WithdrawalSignature:
    """One signed withdrawal. `request_hash` is SHA-256 (hex) of the whole request; one of the two forms is empty."""

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


_COLUMNS = ", ".join(field.name for field in fields(WithdrawalSignature))


class WithdrawalStore:
    """The table of withdrawals. Writes belong inside the ledger's transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def find(self, intent: str) -> WithdrawalSignature | None:
        query = f"SELECT {_COLUMNS} FROM withdrawals WHERE intent = ?"
        row = self._database.execute(query, (intent,)).fetchone()
        return WithdrawalSignature(*row) if row else None

    def put(self, withdrawal: WithdrawalSignature) -> None:
        marks = ", ".join("?" * len(fields(WithdrawalSignature)))
        self._database.execute(f"INSERT INTO withdrawals ({_COLUMNS}) VALUES ({marks})", astuple(withdrawal))

    def of_a_day(self, user: str, *, from_bidding: bool, now_ms: int) -> tuple[int, int]:
        """Returns the number of withdrawals signed for `user` in the last day, and their sats with fees.

        Either those out of the bidding wallet, or those out of payment address and vault.
        """
        query = (
            "SELECT count(*), coalesce(sum(sent_sats + fee_sats), 0) FROM withdrawals"
            " WHERE user = ? AND created_ms > ? AND (source = 'bidding') = ?"
        )
        count, sats = self._database.execute(query, (user, now_ms - DAY_MS, from_bidding)).fetchone()
        return int(count), int(sats)
