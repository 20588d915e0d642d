"""The signer as a process: its files, its socket, its states, and its check at each start.

locked → reconciling → ready. It starts locked and answers, because exiting would only restart it for ever. It opens
the play keystore, or one whose passphrase is at hand, and otherwise waits for `unlock` over its socket. While
reconciling it compares its records and signs nothing. It stays unlocked until it ends.

The check at a start: the ledger (signer.db) and the audit log are written in one order, the log first. So each
signature has its line, in the ledger's order, with the same hash; a crash between the two leaves a line without a row.
So does a failed commit, whose line a later one takes back; the row may still exist, if the failed commit reached the
disk. The log also has every control state that was set: where the ledger is looser, the log's state holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embit import bip39
from msgspec.structs import asdict

from core import files, local_server
from core.call import Request
from core.errors import PeerRefused
from core.layout import OPERATORS_SOCKET
from wallet import policy
from wallet.bip322 import self_test, verify_ownership
from wallet.keystore import keystore, seal
from wallet.keystore.keys import Keystore, KeystoreError, derive_user, require_libsecp256k1, sign_message
from wallet.keystore.seal import WrongPassphrase
from wallet.protocol import DISK_FULL, STATES, AskStatus, ControlState, Scope, SetControl, SignerStatus, State, Unlock
from wallet.signer import audit, reading
from wallet.signer.audit import UNDONE, AuditError, AuditLog, verify_chain
from wallet.signer.authority import LOCKED, Entry
from wallet.signer.ledger import HOUR_MS, Ledger
from wallet.signer.reading import PEER, ask_facts
from wallet.signer.signer import Signer
from wallet.terms import DAY_MS, Ceilings

# A file of former versions, next to the keystore, with the forms of drafts that an operator confirmed.
LEARNT_FILE = "learnt.json"
# The maximum number of lines at the log's end without a row that are not undone. Each needs its own crash at the same
# point. More mean that the ledger is older than the log, and would allow the same sums again.
_MOST_LOST = 3
_FOREVER_MS = 1 << 62
_COUNTED_MS = {"list": HOUR_MS, "withdraw": DAY_MS}
# table → (query of its rows in the order of writing, the hash's name in the log)
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

    A ledger that is older than the log may also lack withdrawals of grants, which the log does not record. Then a halt
    of everything is returned, for an operator to lift. Raises KeystoreError if log and ledger disagree.
    `now_ms` is in Unix milliseconds.
    """
    try:
        verify_chain(audit_log)
    except (AuditError, OSError) as error:
        raise KeystoreError(f"the audit log is not whole: {error}") from error
    try:
        # A separate connection, because this runs in a thread while the signer answers requests that need no key.
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
    """Tells whether the ledger lacks the log's end. Raises KeystoreError if missing signatures still count."""
    awaited = {table: cursor.fetchone() for table, cursor in rows.items()}
    lost, most_lost, until_ms, at_the_end = 0, 0, 0, 0
    undone, found_undone = _undone(audit_log), set()
    with audit_log.open("rb") as lines:
        for entry in map(json.loads, lines):
            table = _TABLES.get(entry.get("operation"))
            if table is None:
                if entry.items() >= _HALTED.items():  # set by this check; lifting it means that an operator agrees
                    at_the_end = 0
                continue
            signed = entry.get("intent"), entry.get(_SIGNED[table][1])
            if signed == awaited[table]:
                awaited[table] = rows[table].fetchone()
                if entry["number"] in undone:
                    found_undone.add(signed)
                lost = at_the_end = 0
                continue
            if signed in found_undone:  # signed again: the row belongs to this line
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
    """Returns the numbers of the lines that later lines mark as undone."""
    with audit_log.open("rb") as lines:
        taken_back = (json.loads(line) for line in lines if b'"undone"' in line)
        return {entry["line"] for entry in taken_back if entry.get("operation") == UNDONE}


def _matters_until(entry: dict[str, Any]) -> int:
    """Returns when a signature stops counting: a bid at its expiry, a listing an hour, a withdrawal a day later.

    A listing that covers all outputs counts for ever, because no other may be signed for the same payout.
    """
    if entry.get("is_secure"):
        return _FOREVER_MS
    if (counted_ms := _COUNTED_MS.get(entry["operation"])) is not None:
        return int(entry["time_ms"]) + counted_ms
    return int(entry["expires_ms"])


def former_forms(directory: Path) -> str:
    """Returns the drafts whose form an operator confirmed in a former version, as `satflow plain, satflow secure`.

    That version refused drafts of other forms; now the rules alone decide. Returns "" without forms. Raises OSError.
    """
    try:
        stored = json.loads((directory / LEARNT_FILE).read_bytes())
        return ", ".join(f"{form['venue']} {form['kind']}" for form in stored["forms"])
    except FileNotFoundError:
        return ""
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"unknown drafts ({LEARNT_FILE} is damaged)"


def require_signing() -> None:
    """Raises KeystoreError unless a published seed gives its published address, and its keys' signatures verify."""
    keys = derive_user(bip39.mnemonic_to_seed(_PUBLISHED), 0)
    signed = (
        (keys.public.payment, sign_message(keys.payment, "p2wpkh", "self-test")),
        (keys.public.vault, sign_message(keys.vault, "p2tr", "self-test")),
    )
    if keys.public.payment != _PUBLISHED_PAYMENT or not all(
        verify_ownership(address, "self-test", signature) for address, signature in signed
    ):
        raise KeystoreError("the self-test of signing failed: nothing is signed with libraries that cannot be trusted")


log = logging.getLogger(__name__)

HALT_FILE = "halt"
KEYSTORE = "keystore.json"
AUDIT_LOG = "audit.jsonl"
LEDGER = "signer.db"
WRONG = "wrong-passphrase"
TOO_MANY = "too-many-tries"
_ROOM_S = 5.0  # between attempts to restore the reserve and the log's reserved space

Answering = Callable[[Request[Any]], Awaitable[Any]]


def now_ms() -> int:
    """Returns the wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def run(
    directory: Path,
    socket_path: Path,
    market: str,
    ceilings: Ceilings,
    facts_socket: Path,
    clock: Callable[[], int] = now_ms,
    allowed_uids: frozenset[int] | None = None,
    passphrase_file: Path | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT. Its files are in `directory`, closed to other users.

    Processes of `allowed_uids` and of our own user may connect; facts come from `facts_socket`. `passphrase_file`
    opens a sealed keystore unattended. Raises RuntimeError if its libraries fail their self-tests, AuditError if
    another signer runs or the log is broken.
    """
    keystore.harden()
    require_libsecp256k1()
    self_test()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    free_reserve = partial(files.free_reserve, directory)
    with (
        closing(AuditLog(directory / AUDIT_LOG, free_reserve)) as audit,
        closing(_ledger(directory / LEDGER, free_reserve)) as ledger,
    ):

        def signer_with(keys: Keystore | None, locked_reason: str) -> Signer:
            return Signer(
                ledger,
                audit,
                keys,
                ceilings=ceilings,
                clock=clock,
                locked_reason=locked_reason,
                has_halt_file=lambda: _is_there(directory / HALT_FILE),
                is_short=partial(files.is_short, directory),
                free_reserve=free_reserve,
            )

        def answering_with(keys: Keystore | None, locked_reason: str) -> Answering:
            return signer_with(keys, locked_reason).answering(partial(ask_facts, facts_socket))

        def set_control(control: ControlState) -> None:
            signer_with(None, "").handle(SetControl(control.scope, control.subject, control.state))

        def note(entry: Entry) -> None:
            audit.append(clock(), entry)

        def keep_room() -> None:
            audit.keep_room()
            if not files.is_short(directory):
                files.make_reserve(directory)
                ledger.store_unstored()

        _keep_room_or_warn(keep_room)
        report_former_forms(directory)
        states = SignerStates(directory, market, answering_with, set_control, note, clock)
        states.unlock_unattended(passphrase_file)
        allowed = (allowed_uids or frozenset()) | {os.getuid()}
        asyncio.run(_serve(states, socket_path, allowed, directory, partial(_keep_room_or_warn, keep_room)))
        if files.is_short(directory):
            # The ledger stays open: closing it would remove SQLite's extra files, and a start needs space for new ones.
            logging.shutdown()
            os._exit(0)


class SignerStates:
    """The signer behind its socket, from locked to ready."""

    def __init__(
        self,
        directory: Path,
        market: str,
        answering_with: Callable[[Keystore | None, str], Answering],
        set_control: Callable[[ControlState], None],
        note: Callable[[Entry], None],
        clock: Callable[[], int],
    ) -> None:
        self._directory = directory
        self._path = directory / KEYSTORE
        self._market = market
        self._answering_with = answering_with
        self._set_control = set_control
        self._note = note
        self._clock = clock
        # Separate, so that a client's wrong passphrases do not lock an operator out.
        self._tries_of_clients = seal.Tries(directory / "unlock-tries.json")
        self._tries_of_operators = seal.Tries(directory / "unlock-tries-ops.json")
        self._one_at_a_time = asyncio.Lock()
        self._is_reconciling = False
        self._forgotten: tuple[ControlState, ...] = ()
        self._is_ready = False
        self._answer = answering_with(None, "it is starting")

    def unlock_unattended(self, passphrase_file: Path | None) -> None:
        """Opens a keystore that needs no operator: a play keystore, or a sealed one whose passphrase is at hand."""
        try:
            if self._market == policy.PLAY_VENUE:
                self._ready(self._checked(Keystore.open_or_create_play(self._path, os.urandom)))
                return
            if not os.path.lexists(self._path):
                raise KeystoreError(f"there are no keys for {self._market} yet: bidkeeper keys init makes them")
            keystore.require_sealed(self._path)
            passphrase = seal.unattended(passphrase_file, os.environ)
            if passphrase is None:
                self._lock(f"the keystore for {self._market} is closed: bidkeeper keys unlock opens it")
            else:
                self._ready(self._opened(passphrase))
        except KeystoreError as error:
            self._lock(str(error))

    async def handle(self, request: Request[Any]) -> Any:
        """Answers a client's request. Wrong passphrases count for all clients together."""
        return await self._answered(request, self._tries_of_clients)

    async def handle_operator(self, request: Request[Any]) -> Any:
        """Answers an operator's request. Wrong passphrases are counted separately from the clients'."""
        return await self._answered(request, self._tries_of_operators)

    async def _answered(self, request: Request[Any], tries: seal.Tries) -> Any:
        """Answers a request. `unlock` takes half a second, and other requests are answered meanwhile."""
        if isinstance(request, Unlock):
            return await self._unlock(request.passphrase, tries)
        answer = await self._answer(request)
        if isinstance(request, AskStatus) and self._is_reconciling:
            doing = "it compares what it has signed with its audit log"
            return SignerStatus("reconciling", play=answer.play, reason=doing)
        return answer

    async def _unlock(self, passphrase: str, tries: seal.Tries) -> None:
        async with self._one_at_a_time:
            if self._is_ready:
                return
            if self._market == policy.PLAY_VENUE:
                raise PeerRefused(
                    PEER, LOCKED, "the practice marketplace takes play keys only, which need no unlocking"
                )
            if not self._take(tries):
                log.warning("unlock: too many tries")
                raise PeerRefused(PEER, TOO_MANY, "three tries within a minute: wait one")
            try:
                opened = await asyncio.to_thread(self._opened, passphrase)
            except WrongPassphrase as error:
                log.warning("unlock: the passphrase was wrong")
                raise PeerRefused(PEER, WRONG, str(error)) from None
            except KeystoreError as error:
                self._lock(str(error))
                raise PeerRefused(PEER, LOCKED, str(error)) from None
            self._tries_of_clients.clear()
            self._tries_of_operators.clear()
            self._ready(opened)

    def _take(self, tries: seal.Tries) -> bool:
        try:
            return tries.take(self._clock())
        except OSError as error:
            if not files.is_full(error):
                raise
            if not files.free_reserve(self._directory):
                text = "the disk of the signer's directory is full, and a try cannot be counted: make room"
                raise PeerRefused(PEER, DISK_FULL, text) from error
            return tries.take(self._clock())

    def _opened(self, passphrase: str) -> Keystore:
        """Opens and checks the sealed keystore. Its lock is kept until the process ends. Raises KeystoreError."""
        held = keystore.lock(self._path)
        try:
            return self._checked(keystore.unlock(self._path, passphrase))
        except BaseException:
            os.close(held)
            raise

    def _checked(self, opened: Keystore) -> Keystore:
        self._is_reconciling = True
        try:
            require_signing()
            audit_log = self._directory / AUDIT_LOG
            self._forgotten = require_agreement(audit_log, self._directory / LEDGER, self._clock())
            if not opened.is_play:
                for line in audit.require_noted(audit_log, opened):
                    self._note(line)
                opened.note_with(lambda *about: self._note(audit.line_of(*about)))
            return opened
        except OSError as error:
            raise KeystoreError(f"failed to read or write {AUDIT_LOG}: {error.strerror}") from error
        finally:
            self._is_reconciling = False

    def _ready(self, keys: Keystore) -> None:
        problem = keystore.lock_memory()
        if problem and not keys.is_play and keystore.has_swap():
            log.warning("memory cannot be locked (%s), and this machine swaps: keys may reach its disk", problem)
        for control in self._forgotten:
            log.warning("signer.db is older than the audit log: %s %s is set again", control.scope, control.state)
            self._set_control(control)
        self._answer = self._answering_with(keys, "")
        self._is_ready = True
        log.info("ready with %s keys", "play" if keys.is_play else "real")

    def _lock(self, reason: str) -> None:
        self._answer = self._answering_with(None, reason)
        log.warning("locked: %s", reason)


def _is_there(path: Path) -> bool:
    """Tells whether the path exists. Raises OSError if that is unknown, so that nothing is signed then."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def report_former_forms(directory: Path) -> None:
    """Logs a warning if an operator confirmed forms of drafts in a former version."""
    try:
        forms = former_forms(directory)
    except OSError as error:
        forms = f"unknown drafts ({error})"
    if forms:
        text = "the confirmed forms of %s refuse no listing any more: only the rules decide; see docs/custody.md"
        log.warning(text, forms)


def _ledger(path: Path, free_reserve: Callable[[], bool]) -> Ledger:
    """Opens the ledger; on an error it frees the disk's reserve and tries again."""
    try:
        return Ledger(path)
    except (sqlite3.Error, OSError):
        if not free_reserve():
            raise
        return Ledger(path)


def _keep_room_or_warn(keep_room: Callable[[], None]) -> None:
    try:
        keep_room()
    except (sqlite3.Error, OSError) as error:
        log.warning("failed to keep room on the disk: %s", error)


async def _serve(
    states: SignerStates,
    socket_path: Path,
    allowed_uids: frozenset[int],
    directory: Path,
    keep_room: Callable[[], None],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    operators_path, operators = directory / OPERATORS_SOCKET, frozenset({os.getuid(), local_server.ROOT})
    server = await local_server.serve(socket_path, reading.verbs(states.handle), allowed_uids=allowed_uids)
    of_operators = await local_server.serve(
        operators_path, reading.verbs(states.handle_operator), allowed_uids=operators
    )
    log.info("answering at %s", socket_path)
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _ROOM_S)
        keep_room()
    server.close()
    of_operators.close()
    log.info("ended")
