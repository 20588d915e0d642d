"""What the signer looks at between unlocking and its first signature: does it remember what it has signed?

The ledger (signer.db) and the audit log are written in one order, the log first. So each thing signed has its line, in
the ledger's order, with the same hash; a line without a row is what a crash leaves between the two.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from embit import bip39

from wallet.audit import AuditError, verify_chain
from wallet.bip322 import verify_ownership
from wallet.keys import derive_user
from wallet.keystore_file import KeystoreError
from wallet.signing import sign_message

# Lines in a row that still matter and lack theirs in the ledger. Each needs a crash of its own at the same point; more
# of them mean that the ledger is older than the log, and would let through as much again.
_MOST_LOST = 3
_HOUR_MS = 3_600_000
# operation → (its rows in the order they were written, what the log calls the hash)
_SIGNED = {
    "bid": ("SELECT intent, message_hash FROM signatures ORDER BY rowid", "message_sha256"),
    "list": ("SELECT intent, drafts_hash FROM listings ORDER BY rowid", "drafts_sha256"),
}
# Of BIP-84 and BIP-86, with the account that the first user's vault has here.
_PUBLISHED = "abandon " * 11 + "about"
_PUBLISHED_PAYMENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


def require_agreement(audit_log: Path, ledger: Path, now_ms: int) -> None:
    """Raises KeystoreError when log and ledger do not tell the same story; now in Unix milliseconds."""
    try:
        verify_chain(audit_log)
    except (AuditError, OSError) as error:
        raise KeystoreError(f"the audit log is not whole: {error}") from error
    try:
        # A connection of its own: this runs in a thread, while the signer still answers what needs no key.
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
            _compare(audit_log, {name: database.execute(query) for name, (query, _) in _SIGNED.items()}, now_ms)
    except sqlite3.Error as error:
        raise KeystoreError(f"failed to read {ledger.name}: {error}") from error


def _compare(audit_log: Path, rows: dict[str, sqlite3.Cursor], now_ms: int) -> None:
    awaited = {operation: cursor.fetchone() for operation, cursor in rows.items()}
    lost, most_lost, until_ms = 0, 0, 0
    with audit_log.open("rb") as lines:
        for entry in map(json.loads, lines):
            operation = entry.get("operation")
            if operation not in rows:
                continue
            if (entry.get("intent"), entry.get(_SIGNED[operation][1])) == awaited[operation]:
                awaited[operation] = rows[operation].fetchone()
                lost = 0
            elif (matters_until := _matters_until(entry)) > now_ms:
                lost, until_ms = lost + 1, max(until_ms, matters_until)
                most_lost = max(most_lost, lost)
    if any(row is not None for row in awaited.values()):
        raise KeystoreError(
            "something was signed that the audit log does not have: put signer.db and audit.jsonl back from one copy"
        )
    if most_lost > _MOST_LOST:
        raise KeystoreError(
            f"signer.db is older than the audit log and lacks {most_lost} signatures that still count: put a newer one"
            f" back, or unlock when they do not, in {-(-(until_ms - now_ms) // 60_000)} min"
        )


def _matters_until(entry: dict[str, Any]) -> int:
    """When a signature stops to count against any limit: a bid with its expiry, a listing within the hour."""
    return int(entry["expires_ms"]) if entry["operation"] == "bid" else int(entry["time_ms"]) + _HOUR_MS


def self_test() -> None:
    """Raises KeystoreError unless published keys give their published address and sign so that it verifies."""
    keys = derive_user(bip39.mnemonic_to_seed(_PUBLISHED), 0)
    signed = (
        (keys.public.payment, sign_message(keys.payment, "p2wpkh", "self-test")),
        (keys.public.vault, sign_message(keys.vault, "p2tr", "self-test")),
    )
    if keys.public.payment != _PUBLISHED_PAYMENT or not all(
        verify_ownership(address, "self-test", signature) for address, signature in signed
    ):
        raise KeystoreError("the self-test of signing failed: nothing is signed with libraries that cannot be trusted")
