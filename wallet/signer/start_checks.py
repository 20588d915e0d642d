"""The check between unlocking and the first signature that the signer's memory is complete.

The ledger (signer.db) and the audit log are written in one order, the log first. So each thing signed has its line, in
the ledger's order, with the same hash; a crash between the two leaves a line without a row. So does a failed commit,
whose line a later one takes back; the row may still exist, if the failed commit reached the disk. The log
has every control state that was set, too: where the ledger is looser, the log's holds.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embit import bip39
from msgspec.structs import asdict

from wallet.bip322 import verify_ownership
from wallet.keystore.keys import KeystoreError, derive_user, sign_message
from wallet.protocol import STATES, ControlState, Scope, State
from wallet.signer.audit import UNDONE, AuditError, verify_chain
from wallet.signer.ledger import HOUR_MS
from wallet.terms import DAY_MS

# A file of former versions, next to the keystore, with forms that an operator confirmed.
LEARNT_FILE = "learnt.json"
# The most lines at the log's end that may lack their row and are not undone. Each needs a crash of its own at the same
# point; more mean that the ledger is older than the log, and would allow as much again.
_MOST_LOST = 3
_FOREVER_MS = 1 << 62
_COUNTED_MS = {"list": HOUR_MS, "withdraw": DAY_MS}
# table → (its rows in the order they were written, the log's name for the hash)
_SIGNED = {
    "signatures": ("SELECT intent, message_hash FROM signatures ORDER BY rowid", "message_sha256"),
    "listings": ("SELECT intent, drafts_hash FROM listings ORDER BY rowid", "drafts_sha256"),
    "withdrawals": ("SELECT intent, request_hash FROM withdrawals ORDER BY rowid", "request_sha256"),
}
_CONTROLS = "SELECT scope || ' ' || subject, state FROM controls"
_EVERYTHING = ControlState("global", "", "halt")
_HALTED = {"operation": "control", **asdict(_EVERYTHING)}
# The table of each operation's signatures.
_TABLES = {"bid": "signatures", "offer": "signatures", "list": "listings", "withdraw": "withdrawals"}
# The words of BIP-84's test vectors, and their first address.
_PUBLISHED = "abandon " * 11 + "about"
_PUBLISHED_PAYMENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


def require_agreement(audit_log: Path, ledger: Path, now_ms: int) -> tuple[ControlState, ...]:
    """Returns the control states that the ledger lacks and that must be set before anything is signed.

    A ledger that is older than the log lacks withdrawn grants as well, which the log does not have: then everything is
    on halt until an operator lifts it. Raises KeystoreError if log and ledger disagree. `now_ms` is in Unix
    milliseconds.
    """
    try:
        verify_chain(audit_log)
    except (AuditError, OSError) as error:
        raise KeystoreError(f"the audit log is not whole: {error}") from error
    try:
        # A connection of its own: this runs in a thread, while the signer still answers requests that need no key.
        with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=ro", uri=True)) as database:
            is_older = _compare(
                audit_log, {name: database.execute(query) for name, (query, _) in _SIGNED.items()}, now_ms
            )
            forgotten = _forgotten(audit_log, dict(database.execute(_CONTROLS).fetchall()))
    except sqlite3.Error as error:
        raise KeystoreError(f"failed to read {ledger.name}: {error}") from error
    return (*forgotten, _EVERYTHING) if is_older else forgotten


def _forgotten(audit_log: Path, held: dict[str, State]) -> tuple[ControlState, ...]:
    """Returns the log's last state of each scope and subject, where the ledger's (`held`) is looser."""
    said: dict[tuple[Scope, str], State] = {}
    with audit_log.open("rb") as lines:
        for entry in map(json.loads, lines):
            if entry.get("operation") == "control":
                said[entry["scope"], entry["subject"]] = entry["state"]
    return tuple(
        ControlState(scope, subject, state)
        for (scope, subject), state in said.items()
        if held.get(f"{scope} {subject}", "run") in STATES[: STATES.index(state)]
    )


def _compare(audit_log: Path, rows: dict[str, sqlite3.Cursor], now_ms: int) -> bool:
    """Tells whether the ledger lacks the log's end, and its entries count no more. Raises KeystoreError if they do."""
    awaited = {table: cursor.fetchone() for table, cursor in rows.items()}
    lost, most_lost, until_ms, at_the_end = 0, 0, 0, 0
    undone, found_undone = _undone(audit_log), set()
    with audit_log.open("rb") as lines:
        for entry in map(json.loads, lines):
            table = _TABLES.get(entry.get("operation"))
            if table is None:
                if entry.items() >= _HALTED.items():  # our own entry; an operator who lifts it has checked
                    at_the_end = 0
                continue
            signed = entry.get("intent"), entry.get(_SIGNED[table][1])
            if signed == awaited[table]:
                awaited[table] = rows[table].fetchone()
                if entry["number"] in undone:
                    found_undone.add(signed)
                lost = at_the_end = 0
                continue
            if signed in found_undone:  # signed again: the row was this line's
                lost = at_the_end = 0
                continue
            if entry["number"] in undone:
                continue
            at_the_end += 1
            if (matters_until := _matters_until(entry)) > now_ms:
                lost, until_ms = lost + 1, max(until_ms, matters_until)
                most_lost = max(most_lost, lost)
    if any(row is not None for row in awaited.values()):
        raise KeystoreError(
            "something was signed that the audit log does not have: put signer.db and audit.jsonl back from one copy"
        )
    if most_lost > _MOST_LOST:
        waiting = f", or unlock when they do not, in {-(-(until_ms - now_ms) // 60_000)} min"
        raise KeystoreError(
            f"signer.db is older than the audit log and lacks {most_lost} signatures that still count: put a newer one"
            f" back{'' if until_ms == _FOREVER_MS else waiting}"
        )
    return at_the_end > _MOST_LOST


def _undone(audit_log: Path) -> set[int]:
    """Returns the numbers of the lines that later ones take back."""
    with audit_log.open("rb") as lines:
        taken_back = (json.loads(line) for line in lines if b'"undone"' in line)
        return {entry["line"] for entry in taken_back if entry.get("operation") == UNDONE}


def _matters_until(entry: dict[str, Any]) -> int:
    """Returns when a signature stops counting: a bid at its expiry, a listing an hour, a withdrawal a day later.

    A listing that covers all outputs counts for ever: no other may be signed for the same payout.
    """
    if entry.get("is_secure"):
        return _FOREVER_MS
    if (counted_ms := _COUNTED_MS.get(entry["operation"])) is not None:
        return int(entry["time_ms"]) + counted_ms
    return int(entry["expires_ms"])


def former_forms(directory: Path) -> str:
    """Returns the drafts whose form an operator confirmed in a former version, as `satflow plain, satflow secure`.

    That version refused drafts of another form; now the rules decide alone. "" without forms. Raises OSError.
    """
    try:
        stored = json.loads((directory / LEARNT_FILE).read_bytes())
        return ", ".join(f"{form['venue']} {form['kind']}" for form in stored["forms"])
    except FileNotFoundError:
        return ""
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"unknown drafts ({LEARNT_FILE} is damaged)"


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
