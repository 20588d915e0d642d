"""The payouts of all signed listings, kept so that no payment satisfies the signatures of two outputs.

A signature with ALL|ANYONECANPAY covers all outputs and one input. Two of them over equal outputs stand in one
transaction: it spends both items and pays once. So does a secure one with a plain signature whose output is among those
outputs. Only one output that pays us is ever covered (`outputs-known`), so two signatures can share a payment when, and
only when, script and value of their payouts are equal and one of them covers all outputs.

Two plain ones cannot: each takes the output at its own input's index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from core.fields import MAX_SATS
from wallet.protocol import PolicyRefused
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import SECURE_LISTING, TxOutput

SCHEMA = """
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
    """The table of payouts; one stays until its output is spent. Writes belong inside the ledger's transaction.

    `outpoint` is what the payout buys, `item` the output that was listed: the same, or the one that an escrow is made
    from. An escrow that is never made is never spent, and its payout stays: the facts do not show what spent the item's
    output, so they cannot say that none will come.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def rivals(self, outpoint: str, payout: TxOutput, sighash: int) -> list[str]:
        """Returns the other outputs (`txid:vout`) that `payout` would pay for as well, next to one of `sighash`."""
        if payout.value > MAX_SATS:
            return []  # never signed, and too large a number for SQLite
        query = "SELECT DISTINCT outpoint FROM payouts WHERE script = ? AND sats = ? AND outpoint != ?"
        if sighash != SECURE_LISTING:
            query += f" AND sighash = {SECURE_LISTING}"
        found = self._database.execute(query + " ORDER BY outpoint", (payout.script.hex(), payout.value, outpoint))
        return [row[0] for row in found]

    def put(self, outpoint: str, payout: TxOutput, sighash: int, item: str) -> None:
        """Remembers a signature's payout."""
        row = (payout.script.hex(), payout.value, outpoint, sighash, item)
        self._database.execute("INSERT OR IGNORE INTO payouts VALUES (?, ?, ?, ?, ?)", row)

    def forget(self, outpoint: str) -> None:
        """Deletes the payouts of a spent output, because its signatures are worthless."""
        self._database.execute("DELETE FROM payouts WHERE outpoint = ?", (outpoint,))


def is_gone(facts: OutpointFacts | None) -> bool:
    """Tells whether the output is spent for good. A spend that is in no block yet may be replaced by another."""
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
