"""A keystore that lacks keys which the audit log has opens for nobody."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.call import Request
from core.errors import PeerRefused
from tests.worlds.signer import OTHER_USER, START_MS, USER, no_space
from tests.worlds.signer_process import PASSPHRASE, WORDS, Start, live_bid, live_grant, sealed_keystore
from wallet.keystore import keystore
from wallet.keystore.keys import Contents, Imported, Keystore, KeystoreError, derive_user, seed_of
from wallet.protocol import AskStatus, SignerStatus, Unlock
from wallet.signer import audit
from wallet.signer.audit import AuditLog, verify_chain
from wallet.signer.ledger import Ledger
from wallet.signer.signer_process import Answering, SignerStates

SEED = seed_of(WORDS)
THIRD = derive_user(bytes(32), 7).public.payment
KEYS, OTHER_KEYS = (Imported(bytes([at] * 32), bytes([at + 1] * 32)) for at in (7, 9))


def keys_of(*users: str, imported: dict[str, Imported] | None = None, seed: bytes = SEED) -> Keystore:
    """A keystore for real money that is written nowhere."""
    return Keystore(Contents(seed, users, imported or {}), lambda fresh: None, is_play=False)


@dataclass
class Log:
    path: Path
    audit: AuditLog

    def note(self, *lines: audit.Line) -> None:
        for line in lines:
            self.audit.append(START_MS, line)

    def unlocked(self, opened: Keystore) -> list[str]:
        """Does what unlocking does; returns the users whose lines were written."""
        missing = audit.require_noted(self.path, opened)
        self.note(*missing)
        opened.note_with(lambda *about: self.note(audit.line_of(*about)))
        assert audit.require_noted(self.path, opened) == []
        return [line["user"] for line in missing]

    def lines(self) -> list[tuple[int, str, str, str]]:
        names = "user_number", "user", "payment", "vault"
        entries = map(json.loads, self.path.read_text().splitlines())
        return [tuple(entry[name] for name in names) for entry in entries if entry["operation"] == "keys"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    path = tmp_path / "signer" / "audit.jsonl"
    path.parent.mkdir()
    with closing(AuditLog(path)) as audit:
        yield Log(path, audit)
    verify_chain(path)


def refusal(log: Log, opened: Keystore) -> str:
    before = log.path.read_bytes()
    with pytest.raises(KeystoreError) as refused:
        log.unlocked(opened)
    assert log.path.read_bytes() == before
    return str(refused.value)


def test_a_new_user_is_noted_once_before_the_keys_are_shown(log: Log) -> None:
    opened = keys_of(USER)
    assert log.unlocked(opened) == [USER], "an installation from before there were such lines"
    third = opened.secrets_of(THIRD).public
    assert log.lines()[1:] == [(1, THIRD, third.payment, third.vault)]
    opened.secrets_of(THIRD)
    opened.secrets_of(USER)
    assert len(log.lines()) == 2
    assert log.unlocked(keys_of(USER, THIRD)) == []


def test_without_a_line_no_keys_are_shown_and_the_next_request_writes_it(log: Log) -> None:
    opened = keys_of()
    log.unlocked(opened)
    with no_space():
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                opened.secrets_of(USER)
    assert opened.users == (USER,), "the keystore is the newer one now"
    assert log.lines() == []
    opened.secrets_of(OTHER_USER)
    opened.secrets_of(USER)
    assert [line[:2] for line in log.lines()] == [(1, OTHER_USER), (0, USER)]
    assert log.unlocked(keys_of(USER, OTHER_USER)) == []


@pytest.mark.parametrize("older", [(), (USER,), (USER, OTHER_USER)])
def test_an_older_keystore_is_refused(log: Log, older: tuple[str, ...]) -> None:
    log.unlocked(keys_of(USER, OTHER_USER, THIRD))
    said = refusal(log, keys_of(*older))
    assert f"line {len(older) + 1} of audit.jsonl as number {len(older)}" in said
    assert "put the newest keystore.json back" in said
    assert THIRD not in said, "every client of the signer is told the reason"


@pytest.mark.parametrize("users", [(OTHER_USER, USER), (USER, THIRD), (USER, THIRD, OTHER_USER)])
def test_users_under_other_numbers_are_refused(log: Log, users: tuple[str, ...]) -> None:
    log.unlocked(keys_of(USER, OTHER_USER))
    assert "as number" in refusal(log, keys_of(*users))


def test_another_seed_is_refused(log: Log) -> None:
    log.unlocked(keys_of(USER))
    assert "other keys for the user of line 1" in refusal(log, keys_of(USER, seed=bytes(64)))
    vault = Imported(vault=bytes([7] * 32))
    assert "other keys" in refusal(log, keys_of(USER, imported={USER: vault}, seed=bytes(64)))


def test_a_newer_keystore_is_taken_with_all_that_it_has_more(log: Log) -> None:
    """A crash came between the keystore and the line, or an older audit log was put back."""
    log.unlocked(keys_of(USER))
    newer = keys_of(USER, OTHER_USER, THIRD, imported={USER: KEYS})
    assert log.unlocked(newer) == [USER, OTHER_USER, THIRD]
    assert [line[0] for line in log.lines()] == [0, 0, 1, 2]


@pytest.mark.parametrize("older", [{}, {USER: KEYS}, {USER: Imported(payment=OTHER_KEYS.payment)}])
def test_an_import_that_is_lost_is_refused_until_it_is_made_again(log: Log, older: dict[str, Imported]) -> None:
    for imported in ({}, {USER: KEYS}, {USER: OTHER_KEYS}):
        log.unlocked(keys_of(USER, imported=imported))
    opened = keys_of(USER, imported=older)
    assert "line 3 of audit.jsonl: put the newest keystore.json back, or import" in refusal(log, opened)
    opened.put_imported(USER, OTHER_KEYS)
    assert log.unlocked(opened) == []


def test_keys_that_return_after_others_are_the_last_ones(log: Log) -> None:
    for imported in ({USER: KEYS}, {USER: OTHER_KEYS}):
        log.unlocked(keys_of(USER, imported=imported))
    log.note(audit.line_of(0, USER, keys_of(USER, imported={USER: KEYS}).secrets_of(USER).public))
    assert log.unlocked(keys_of(USER, imported={USER: KEYS})) == []
    assert "line 3" in refusal(log, keys_of(USER, imported={USER: OTHER_KEYS}))


def test_an_import_gives_nobody_the_number_of_another(log: Log) -> None:
    log.unlocked(keys_of(USER, OTHER_USER))
    audit.require_numbers(log.path, (USER, OTHER_USER, THIRD))
    audit.require_numbers(log.path, (USER,))
    with pytest.raises(KeystoreError, match="as number 1: put the newest"):
        audit.require_numbers(log.path, (USER, THIRD))


def test_texts_in_lines_of_other_operations_are_no_lines_about_keys(log: Log) -> None:
    log.note({"operation": "bid", "slug": '"user_number"', "user_number": 0, "user": THIRD})
    assert log.unlocked(keys_of(USER)) == [USER]


def reason_to_stay_locked(start: Start) -> str:
    signer = start("satflow")
    with pytest.raises(PeerRefused) as refused:
        signer.unlock(PASSPHRASE)
    status = signer.client.status()
    assert (status.state, status.reason) == ("locked", refused.value.message)
    signer.end(signal.SIGTERM)
    return status.reason


async def test_a_line_that_cannot_be_written_keeps_it_locked_until_the_next_try(log: Log, tmp_path: Path) -> None:
    sealed_keystore(tmp_path, USER)
    full = [True]

    def note(line: audit.Line) -> None:
        if full[0]:
            raise OSError(28, "No space left on device")
        log.note(line)

    def answering_with(keys: Keystore | None, reason: str) -> Answering:
        async def answer(request: Request[Any]) -> dict[str, Any]:
            return {"reason": reason, "users": keys and keys.users}

        return answer

    directory = log.path.parent
    with closing(Ledger(directory / "signer.db")):
        states = SignerStates(directory, "satflow", answering_with, lambda control: None, note, lambda: START_MS)
        asked = Unlock(PASSPHRASE)
        with pytest.raises(PeerRefused, match="No space left"):
            await states.handle(asked)
        locked = await states.handle(AskStatus())
        assert locked == {"reason": "failed to read or write audit.jsonl: No space left on device", "users": None}
        full[0] = False
        assert await states.handle(asked) is None
        assert await states.handle(AskStatus()) == {"reason": "", "users": (USER,)}
    assert [line[1] for line in log.lines()] == [USER]


@pytest.mark.slow
def test_nobody_gets_the_keys_of_a_user_whom_the_backup_does_not_know(start: Start, tmp_path: Path) -> None:
    path, backup = sealed_keystore(tmp_path, THIRD), tmp_path / "backup.json"
    keystore.backup(path, backup)
    newest = tmp_path / "newest.json"
    signer = start("satflow")
    signer.unlock(PASSPHRASE)
    theirs = [signer.client.addresses(user) for user in (OTHER_USER, USER)]
    signer.end(signal.SIGKILL)
    path.replace(newest)

    keystore.backup(backup, path)
    assert "line 2 of audit.jsonl as number 1" in reason_to_stay_locked(start)
    path.unlink()
    keystore.backup(newest, path)
    signer = start("satflow")
    signer.unlock(PASSPHRASE)
    assert signer.client.status() == SignerStatus("ready", play=False)
    assert [signer.client.addresses(user) for user in (OTHER_USER, USER)] == theirs
    secret = signer.client.grant(live_grant(venue="satflow"))
    assert signer.client.sign_bid(17, 5, secret, live_bid())
    assert verify_chain(tmp_path / "signer" / "audit.jsonl") == 4
