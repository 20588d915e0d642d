"""The signer compares its ledger with its audit log before it signs; failed commits do not lock it out."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.worlds.signer import OTHER_USER, START_MS, USER, Bench, intent, tag_of
from wallet.keystore.keys import KeystoreError
from wallet.protocol import ControlState, Scope, State
from wallet.signer import signer_process
from wallet.signer.audit import AuditLog, verify_chain
from wallet.signer.ledger import ListingSignature

MINUTE_MS = 60_000
EVERYTHING = ControlState("global", "", "halt")


@pytest.fixture
def signed(bench: Bench) -> Bench:
    """Eight bids and a challenge, each bid expiring within the hour."""
    secret = bench.grant(outstanding_sats=10_000_000)
    for number in range(8):
        bench.sign_bid(secret, intent=intent(number))
    bench.sign_challenge(secret)
    return bench


def compare(bench: Bench, now_ms: int = START_MS + MINUTE_MS) -> tuple[ControlState, ...]:
    return signer_process.require_agreement(bench.audit_path, bench.directory / "signer.db", now_ms)


def change(bench: Bench, statement: str) -> None:
    with closing(sqlite3.connect(bench.directory / "signer.db", isolation_level=None)) as database:
        assert database.execute(statement).rowcount > 0


def rewrite(bench: Bench, keep: slice) -> None:
    """Rewrites the log with only these lines, whole in itself, as an attacker who can compute hashes would."""
    entries = bench.audit_path.read_text().splitlines()
    bench.audit.close()
    bench.audit_path.unlink()
    bench.audit = AuditLog(bench.audit_path)
    for entry in map(json.loads, entries[keep]):
        bench.audit.append(
            entry["time_ms"], {name: entry[name] for name in entry.keys() - {"number", "time_ms", "previous"}}
        )


def test_what_was_written_together_agrees(signed: Bench) -> None:
    compare(signed)


def test_nothing_signed_yet_agrees(bench: Bench) -> None:
    compare(bench)


@pytest.mark.parametrize("keep", [slice(0, 7), slice(1, None), slice(0, 0), slice(0, 9, 2)])
def test_a_bid_that_the_log_does_not_have_is_found(signed: Bench, keep: slice) -> None:
    rewrite(signed, keep)
    with pytest.raises(KeystoreError, match="audit log does not have"):
        compare(signed)


def test_a_bid_whose_text_was_changed_in_the_ledger_is_found(signed: Bench) -> None:
    change(signed, "UPDATE signatures SET message_hash = replace(message_hash, 'a', 'b') WHERE rowid = 8")
    with pytest.raises(KeystoreError, match="audit log does not have"):
        compare(signed)


def test_a_broken_chain_is_found(signed: Bench) -> None:
    signed.audit_path.write_bytes(signed.audit_path.read_bytes().replace(b'"price":40000', b'"price":40001', 1))
    with pytest.raises(KeystoreError, match="not whole"):
        compare(signed)


def test_lines_that_crashes_left_behind_are_no_disagreement(signed: Bench) -> None:
    change(signed, "DELETE FROM signatures WHERE rowid IN (1, 3, 5, 7, 8)")
    assert compare(signed) == ()


def test_a_ledger_older_than_the_log_is_found_until_its_bids_have_expired(signed: Bench) -> None:
    change(signed, "DELETE FROM signatures WHERE rowid > 4")
    with pytest.raises(KeystoreError, match=r"lacks 4 signatures .* in 59 min"):
        compare(signed)
    assert compare(signed, START_MS + 60 * MINUTE_MS) == (EVERYTHING,), "what it had withdrawn is forgotten, too"


def test_a_ledger_that_lacks_what_crashes_can_take_is_not_put_on_halt(signed: Bench) -> None:
    change(signed, "DELETE FROM signatures WHERE rowid > 5")
    assert compare(signed, START_MS + 60 * MINUTE_MS) == ()
    change(signed, "DELETE FROM signatures WHERE rowid < 5")
    assert compare(signed, START_MS + 60 * MINUTE_MS) == (), "the end is there"


def test_a_halt_for_an_older_ledger_is_lifted_once(signed: Bench) -> None:
    change(signed, "DELETE FROM signatures")
    late_ms = START_MS + 60 * MINUTE_MS
    assert compare(signed, late_ms) == (EVERYTHING,)
    signed.control("halt")
    assert compare(signed, late_ms) == ()
    signed.control("run")
    assert compare(signed, late_ms) == ()
    secret = signed.grant(token=6)
    for number in range(20, 24):
        signed.sign_bid(secret, token=6, intent=intent(number))
    change(signed, "DELETE FROM signatures")
    assert compare(signed, late_ms) == (EVERYTHING,)


@pytest.mark.parametrize("state", ["reduce", "halt"])
@pytest.mark.parametrize(("scope", "subject"), [("global", ""), ("user", USER), ("task", "17")])
def test_a_state_that_the_ledger_has_forgotten_is_the_logs(
    signed: Bench, scope: Scope, subject: str, state: State
) -> None:
    signed.control("reduce", "user", OTHER_USER)
    signed.control(state, scope, subject)
    assert compare(signed) == ()
    change(signed, f"DELETE FROM controls WHERE scope = '{scope}' AND subject = '{subject}'")
    assert compare(signed) == (ControlState(scope, subject, state),)
    signed.control("run", scope, subject)
    assert compare(signed) == (ControlState(scope, subject, state),), "what is not changed is not logged"
    signed.control("reduce", scope, subject)
    signed.control("run", scope, subject)
    assert compare(signed) == ()


def test_where_the_ledger_is_stricter_it_stays_so(signed: Bench) -> None:
    signed.control("halt", "task", "17")
    signed.control("reduce", "task", "17")
    change(signed, "UPDATE controls SET state = 'halt'")
    assert compare(signed) == ()
    change(signed, "UPDATE controls SET state = 'of a later version'")
    assert compare(signed) == (), "under which nothing is signed"
    change(signed, "UPDATE controls SET state = 'run'")
    assert compare(signed) == (ControlState("task", "17", "reduce"),)


def test_listings_are_compared_too(signed: Bench) -> None:
    listing = ListingSignature(
        "a" * 64, 17, 5, "user", "b" * 64 + "i0", "c" * 64 + ":0", 70_000, START_MS, "d" * 64, ()
    )
    with signed.ledger.transaction():
        signed.ledger.signed.put_listing(listing)
    with pytest.raises(KeystoreError, match="audit log does not have"):
        compare(signed)
    line = {"operation": "list", "intent": listing.intent, "drafts_sha256": listing.drafts_hash}
    signed.audit.append(START_MS, line)
    compare(signed)
    for number in range(4):
        signed.audit.append(START_MS, line | {"intent": f"{number:064x}"})
    with pytest.raises(KeystoreError, match="lacks 4 signatures"):
        compare(signed)
    compare(signed, START_MS + 60 * MINUTE_MS)


def test_listings_that_cover_all_outputs_are_never_forgotten(signed: Bench) -> None:
    """A signer that forgot their payouts would sign the same payout for another item."""
    lost = {"operation": "list", "drafts_sha256": "d" * 64, "is_secure": True}
    for number in range(4):
        signed.audit.append(START_MS, lost | {"intent": f"{number:064x}"})
    for later_ms in (0, 60 * MINUTE_MS, 10**12):
        with pytest.raises(KeystoreError, match=r"lacks 4 signatures that still count: put a newer one back$"):
            compare(signed, START_MS + later_ms)


def test_a_ledger_that_cannot_be_read_is_no_agreement(signed: Bench, tmp_path: Path) -> None:
    with pytest.raises(KeystoreError, match="failed to read"):
        signer_process.require_agreement(signed.audit_path, tmp_path / "nowhere.db", START_MS)
    with pytest.raises(KeystoreError, match="not whole"):
        signer_process.require_agreement(tmp_path / "nowhere.jsonl", signed.directory / "signer.db", START_MS)


def test_the_self_test_passes_here_and_fails_when_signatures_do_not_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    signer_process.require_signing()
    monkeypatch.setattr(signer_process, "sign_message", lambda key, kind, text: "AA==")
    with pytest.raises(KeystoreError, match="self-test"):
        signer_process.require_signing()


# A constraint that SQLite looks at in the commit only.
_BREAK = """
PRAGMA foreign_keys = ON;
CREATE TABLE space (id INTEGER PRIMARY KEY);
CREATE TABLE used (id INTEGER REFERENCES space (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TRIGGER full AFTER INSERT ON signatures BEGIN INSERT INTO used VALUES (1); END;
CREATE TRIGGER no_state AFTER INSERT ON controls BEGIN INSERT INTO used VALUES (1); END;
"""
_MEND = "DROP TRIGGER full; DROP TRIGGER no_state; DROP TABLE used; DROP TABLE space"


class Forgetful:
    """A database whose commits succeed and say that they failed."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        done = self._database.execute(statement, *values)
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return done


@contextmanager
def full(bench: Bench) -> Iterator[None]:
    bench.ledger._database.executescript(_BREAK)
    yield
    bench.ledger._database.executescript(_MEND)


@contextmanager
def forgetful(bench: Bench) -> Iterator[None]:
    database = bench.ledger._database
    bench.ledger._database = cast(sqlite3.Connection, Forgetful(database))
    yield
    bench.ledger._database = database


def compared(bench: Bench) -> tuple[ControlState, ...]:
    verify_chain(bench.audit_path)
    return signer_process.require_agreement(bench.audit_path, bench.ledger_path, START_MS)


def story(bench: Bench) -> list[tuple[str, str]]:
    entries = map(json.loads, bench.audit_path.read_text().splitlines())
    return [(entry["operation"], entry.get("intent", "")[-2:]) for entry in entries]


@pytest.fixture
def secret(bench: Bench) -> str:
    return bench.grant(outstanding_sats=10_000_000)


def fail(bench: Bench, secret: str, *numbers: int) -> None:
    for number in numbers:
        with pytest.raises(sqlite3.Error):
            bench.sign_bid(secret, intent=intent(number))


def sign(bench: Bench, secret: str, *numbers: int) -> None:
    for number in numbers:
        bench.sign_bid(secret, intent=intent(number))


def test_a_full_disk_locks_nobody_out_at_the_next_start(bench: Bench, secret: str) -> None:
    with full(bench):
        fail(bench, secret, *range(6))
    sign(bench, secret, 7)
    bench.restart()
    assert compared(bench) == ()
    assert story(bench)[-3:] == [("bid", "05"), ("undone", "05"), ("bid", "07")]
    sign(bench, secret, *range(6))
    assert compared(bench) == ()


def test_what_is_signed_at_last_is_what_the_ledger_must_have(bench: Bench, secret: str) -> None:
    with full(bench):
        for _ in range(3):
            fail(bench, secret, *range(5))
    sign(bench, secret, *range(5))
    assert compared(bench) == ()
    with full(bench):
        fail(bench, secret, 8)
    bench.ledger._database.execute("DELETE FROM signatures WHERE rowid > 1")
    with pytest.raises(KeystoreError, match="lacks 4 signatures"):
        compared(bench)


def test_nothing_is_signed_before_the_line_is_taken_back(
    bench: Bench, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, left = os.fsync, 1

    def fsync(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        really(handle)

    with full(bench), monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fsync)
        fail(bench, secret, 1)
    assert story(bench) == [("bid", "01")]
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fsync)
        assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "disk-full"
        assert tag_of(bench.control, "halt") == "disk-full"
    assert story(bench) == [("bid", "01")]
    assert tag_of(bench.sign_bid, secret, intent=intent(2)) == "control-state", "the halt is in force all the same"
    bench.sign_challenge(secret)
    assert story(bench) == [("bid", "01"), ("undone", "01"), ("challenge", "")]


def test_only_what_the_failed_transaction_signed_is_taken_back(bench: Bench, secret: str) -> None:
    sign(bench, secret, 1)
    with full(bench):
        bench.control("halt")
    bench.control("run")
    with pytest.raises(RuntimeError), bench.ledger.transaction():
        raise RuntimeError
    sign(bench, secret, 2)
    assert story(bench) == [("bid", "01"), ("control", ""), ("control", ""), ("bid", "02")]


def test_a_signature_that_survived_its_failed_commit_agrees(bench: Bench, secret: str) -> None:
    with forgetful(bench):
        fail(bench, secret, *range(5))
    assert compared(bench) == ()
    sign(bench, secret, *range(7))
    bench.restart()
    assert compared(bench) == ()
    assert [kind for kind, _ in story(bench)] == ["bid", "undone"] * 5 + ["bid"] * 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_log_and_ledger_agree(bench: Bench, secret: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        numbers = [rng.randrange(30) for _ in range(rng.randrange(1, 6))]
        kind = rng.choice(["signed", "full", "forgotten", "restart"])
        if kind == "restart":
            bench.restart()
        for number in numbers:
            is_new = bench.ledger.signed.bid(intent(number)) is None
            if kind == "full" and is_new:
                with full(bench):
                    fail(bench, secret, number)
            elif kind == "forgotten" and is_new:
                with forgetful(bench):
                    fail(bench, secret, number)
            else:
                sign(bench, secret, number)
        assert compared(bench) == ()
