"""A commit that fails while the signer lives on leaves a line that is taken back, and locks nobody out later."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tests.worlds.signer import START_MS, Bench, intent, tag_of
from wallet.keystore.keystore_file import KeystoreError
from wallet.protocol import ControlState
from wallet.signer import start_checks
from wallet.signer.audit import verify_chain

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


def compare(bench: Bench) -> tuple[ControlState, ...]:
    verify_chain(bench.audit_path)
    return start_checks.require_agreement(bench.audit_path, bench.ledger_path, START_MS)


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
    assert compare(bench) == ()
    assert story(bench)[-3:] == [("bid", "05"), ("undone", "05"), ("bid", "07")]
    sign(bench, secret, *range(6))
    assert compare(bench) == ()


def test_what_is_signed_at_last_is_what_the_ledger_must_have(bench: Bench, secret: str) -> None:
    with full(bench):
        for _ in range(3):
            fail(bench, secret, *range(5))
    sign(bench, secret, *range(5))
    assert compare(bench) == ()
    with full(bench):
        fail(bench, secret, 8)
    bench.ledger._database.execute("DELETE FROM signatures WHERE rowid > 1")
    with pytest.raises(KeystoreError, match="lacks 4 signatures"):
        compare(bench)


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
    assert compare(bench) == ()
    sign(bench, secret, *range(7))
    bench.restart()
    assert compare(bench) == ()
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
        assert compare(bench) == ()
