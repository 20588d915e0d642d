"""The signer's files: the chained audit log, and the ledger with its sums."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shapes import replace
from tests.worlds.signer import GRANT, START_MS, no_space
from wallet.policy import RecentSignatures, UnexpiredBids
from wallet.protocol import ControlState
from wallet.signer.audit import FIRST, ROOM_BYTES, AuditError, AuditLog, verify_chain
from wallet.signer.ledger import HOUR_MS, MINUTE_MS, BidSignature, Ledger, ListingSignature


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of five lines, written in two sittings."""
    path = tmp_path / "audit.jsonl"
    for sitting in ((0, 1, 2), (3, 4)):
        audit = AuditLog(path)
        for number in sitting:
            audit.append(1000 + number, {"operation": "bid", "price": number})
        audit.close()
    return path


def test_an_untouched_log_verifies_across_restarts(path: Path) -> None:
    assert verify_chain(path) == 5
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[0]["previous"] == FIRST
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_empty_log_verifies(tmp_path: Path) -> None:
    AuditLog(tmp_path / "audit.jsonl").close()
    assert verify_chain(tmp_path / "audit.jsonl") == 0


def test_tampering_is_found_where_it_was_done(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    changed = lines[1].replace(b'"price":1', b'"price":9')
    for tampered, at in (
        ([lines[0], changed, *lines[2:]], 3),
        ([lines[0], *lines[2:]], 2),
        (lines[1:], 1),
        ([lines[1], lines[0], *lines[2:]], 1),
        ([*lines[:3], b"{}\n", *lines[3:]], 4),
        ([*lines[:4], lines[4][:-5]], 5),
    ):
        path.write_bytes(b"".join(tampered))
        with pytest.raises(AuditError, match=f"line {at}"):
            verify_chain(path)


def test_a_line_torn_by_a_crash_is_cut_off_and_the_chain_goes_on(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"number":6,"operation":"bi')
    audit = AuditLog(path)
    audit.append(2000, {"operation": "challenge"})
    audit.close()
    assert verify_chain(path) == 6


def test_a_log_that_is_one_torn_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"x" * 200_000)
    audit = AuditLog(path)
    audit.append(1, {})
    audit.close()
    assert verify_chain(path) == 1


def test_a_log_with_an_unreadable_last_line_is_not_continued(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"something else\n")
    with pytest.raises(AuditError, match="last line"):
        AuditLog(path)


def test_a_second_signer_is_kept_off(path: Path) -> None:
    audit = AuditLog(path)
    with pytest.raises(AuditError, match="another signer"):
        AuditLog(path)
    audit.close()
    AuditLog(path).close()


def test_a_line_that_does_not_reach_the_disk_raises_and_leaves_no_trace(path: Path) -> None:
    audit = AuditLog(path)
    with no_space(), pytest.raises(OSError, match="No space"):
        audit.append(2000, {"operation": "bid"})
    audit.append(2001, {"operation": "bid"})
    audit.close()
    assert verify_chain(path) == 6


def test_lines_of_two_threads_follow_each_other(path: Path) -> None:
    audit = AuditLog(path)

    def append() -> None:
        for at in range(50):
            audit.append(at, {"operation": "control"})

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    audit.close()
    assert verify_chain(path) == 205


def test_room_for_the_next_lines_is_taken_ahead_of_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = AuditLog(path)
    for number in range(5):
        assert path.stat().st_blocks * 512 - path.stat().st_size >= ROOM_BYTES
        audit.append(number, {"operation": "bid", "much": "x" * (ROOM_BYTES // 2)})
    audit.append(6, {"operation": "bid"})
    taken = path.stat().st_blocks * 512
    audit.close()
    AuditLog(path).close()
    assert path.stat().st_blocks * 512 == taken, "a restart takes no more"
    assert verify_chain(path) == 6


def test_a_line_without_room_frees_the_reserve_and_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[bool] = []
    really = os.fsync

    def fsync(handle: int) -> None:
        if not freed:
            raise OSError(28, "No space left on device")
        really(handle)

    audit = AuditLog(path, lambda: not freed and not freed.append(True))
    monkeypatch.setattr(os, "fsync", fsync)
    audit.append(2000, {"operation": "challenge"})
    audit.close()
    assert (len(freed), verify_chain(path)) == (1, 6)


def test_lines_are_found_by_operation_and_time(path: Path) -> None:
    audit = AuditLog(path)
    audit.append(1003, {"operation": "challenge", "task": 7, "user": '"operation":"bid"'})
    found = list(audit.entries(frozenset({"bid"}), 1002))
    assert [entry["price"] for entry in found] == [3, 4]
    assert [entry["task"] for entry in audit.entries(frozenset({"challenge", "brake"}), 0)] == [7]
    audit.close()


OUTPOINT = "ab" * 32 + ":0"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "signer.db")
    yield opened
    opened.close()


def bid(intent: str, created_ms: int, price: int = 100, task: int = 1, user: str = "a") -> BidSignature:
    return BidSignature(intent, task, 5, user, price, created_ms + HOUR_MS, created_ms, "text", "ff", "signature")


def listed(intent: str, created_ms: int, price: int, outpoint: str = OUTPOINT, task: int = 1) -> ListingSignature:
    return ListingSignature(intent, task, 5, "a", "inscription", outpoint, price, created_ms, "ff", ("one", "two"))


def test_what_was_put_comes_back(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS))
    ledger.signed.put_listing(listed("2", START_MS, 300))
    assert ledger.signed.bid("1") == bid("1", START_MS)
    assert ledger.signed.listing("2") == listed("2", START_MS, 300)
    assert ledger.signed.bid("2") is None and ledger.signed.listing("1") is None


def test_an_intent_is_put_once(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS))
    ledger.signed.put_listing(listed("2", START_MS, 300))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.signed.put_bid(bid("1", START_MS))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.signed.put_listing(listed("2", START_MS, 300))


def test_grants_come_back_with_what_became_of_them(ledger: Ledger) -> None:
    assert ledger.grant_of(17) is None
    ledger.put_grant(GRANT, "hash")
    held = ledger.grant_of(17)
    assert held and (held.grant, held.secret_hash, held.can_place, held.withdrawn) == (GRANT, "hash", True, False)
    ledger.revoke_place(17, 4)
    assert ledger.grant_of(17) == held
    ledger.revoke_place(17, 5)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, False)
    ledger.end_rights(17, 4)
    assert ledger.grant_of(17) == held
    ledger.end_rights(17, 6)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, True)


def test_a_withdrawn_grant_may_place_nothing_either(ledger: Ledger) -> None:
    ledger.put_grant(GRANT, "hash")
    ledger.end_rights(17, 5)
    held = ledger.grant_of(17)
    assert held and (held.can_place, held.withdrawn) == (False, True)


def test_the_highest_token_never_falls(ledger: Ledger) -> None:
    assert ledger.highest_token(17) == 0
    ledger.put_grant(GRANT, "hash")
    assert ledger.highest_token(17) == 5
    for seen, highest in ((5, 5), (3, 5), (6, 6)):
        ledger.see_token(17, seen)
        assert ledger.highest_token(17) == highest
    ledger.put_grant(GRANT, "hash")
    assert ledger.highest_token(17) == 6
    assert ledger.highest_token(18) == 0


def test_a_minute_and_an_hour() -> None:
    assert (MINUTE_MS, HOUR_MS) == (60_000, 3_600_000)


def test_sums_of_late_are_of_task_user_and_all(ledger: Ledger) -> None:
    now = START_MS
    for number, (age, price, task, user) in enumerate(
        [
            (0, 1, 1, "a"),
            (MINUTE_MS - 1, 10, 1, "a"),
            (MINUTE_MS, 100, 2, "a"),
            (HOUR_MS - 1, 1_000, 1, "b"),
            (HOUR_MS, 10_000, 1, "a"),
            (-HOUR_MS, 100_000, 2, "b"),
        ]
    ):
        ledger.signed.put_bid(bid(str(number), now - age, price, task, user))
    ledger.signed.put_listing(listed("l", now - 1, 7, task=1))
    ledger.signed.put_listing(listed("m", now - HOUR_MS, 7, task=1))
    assert ledger.signed.of_late(1, "a", now) == {
        "task": RecentSignatures(3, 4, 1_011),
        "user": RecentSignatures(3, 4, 111),
        "host": RecentSignatures(4, 6, 101_111),
    }
    nobody = ledger.signed.of_late(9, "c", now + 3 * HOUR_MS)
    assert set(nobody.values()) == {RecentSignatures(0, 0, 0)}


def test_outstanding_ends_with_the_signed_expiry(ledger: Ledger) -> None:
    ledger.signed.put_bid(bid("1", START_MS, 100, user="a"))
    ledger.signed.put_bid(bid("2", START_MS + 1, 50, user="b"))
    end = START_MS + HOUR_MS
    found = [ledger.signed.unexpired(1, "a", now)["host"] for now in (end - 1, end, end + 1)]
    assert found == [UnexpiredBids(150, end), UnexpiredBids(50, end + 1), UnexpiredBids(0, None)]
    assert [ledger.signed.unexpired(1, user, end - 1)["user"].sats for user in ("a", "b", "c")] == [100, 50, 0]


def test_what_is_unexpired_is_of_task_user_and_all(ledger: Ledger) -> None:
    for number, (after, price, task, user) in enumerate(
        [(0, 1, 1, "a"), (5, 10, 1, "b"), (7, 100, 2, "a"), (3, 1_000, 2, "b")]
    ):
        ledger.signed.put_bid(bid(str(number), START_MS - HOUR_MS + after, price, task, user))
    assert ledger.signed.unexpired(1, "a", START_MS) == {
        "task": UnexpiredBids(10, START_MS + 5),
        "user": UnexpiredBids(100, START_MS + 7),
        "host": UnexpiredBids(1_110, START_MS + 3),
    }


def test_a_grant_of_before_tasks_had_a_ceiling_has_its_users(ledger: Ledger) -> None:
    ledger.put_grant(replace(GRANT, outstanding_sats=7, outstanding_task_sats=3), "hash")
    held = ledger.grant_of(17)
    assert held and (held.grant.outstanding_sats, held.grant.outstanding_task_sats) == (7, 3)
    ledger._database.execute("UPDATE grants SET terms = json_remove(terms, '$.outstanding_task_sats')")
    held = ledger.grant_of(17)
    assert held and (held.grant.outstanding_sats, held.grant.outstanding_task_sats) == (7, 7)


def test_highest_and_lowest_listing_of_an_output(ledger: Ledger) -> None:
    for number, (price, age) in enumerate([(500, HOUR_MS), (300, HOUR_MS - 1), (400, 0), (200, 2 * HOUR_MS)]):
        ledger.signed.put_listing(listed(str(number), START_MS - age, price))
    ledger.signed.put_listing(listed("other", START_MS, 900, "cd" * 32 + ":1"))
    assert ledger.signed.highest_listing(OUTPOINT, START_MS) == 400
    assert ledger.signed.highest_listing(OUTPOINT, START_MS - 1) == 500
    assert ledger.signed.highest_listing(OUTPOINT, START_MS + 2 * HOUR_MS) == 0
    assert ledger.signed.lowest_listing(OUTPOINT) == 200
    assert ledger.signed.lowest_listing("ef" * 32 + ":0") is None


def test_controls_keep_what_restricts(ledger: Ledger) -> None:
    for state in ("halt", "reduce"):
        ledger.put_control(ControlState("task", "17", state))  # type: ignore[arg-type]
    assert ledger.controls() == [ControlState("task", "17", "reduce")]
    assert ledger.control_of("task", "17") == "reduce"
    assert ledger.control_of("user", "17") == ledger.control_of("task", "1") == "run"
    ledger.put_control(ControlState("task", "17", "run"))
    assert ledger.controls() == []


def test_a_transaction_is_all_or_nothing(ledger: Ledger) -> None:
    with pytest.raises(KeyError), ledger.transaction():
        ledger.see_token(17, 9)
        raise KeyError
    assert ledger.highest_token(17) == 0
    with ledger.transaction():
        ledger.see_token(17, 9)
    assert ledger.highest_token(17) == 9


def test_a_transaction_that_the_database_gave_up_is_over(ledger: Ledger) -> None:
    """SQLite rolls back by itself when the disk is full; the first error is the one to be told."""
    with pytest.raises(OSError, match="full"), ledger.transaction():
        ledger._database.execute("ROLLBACK")
        raise OSError("full")
    with ledger.transaction():
        ledger.see_token(17, 1)


def test_nobody_else_reads_the_file_and_what_is_committed_is_on_disk(tmp_path: Path, ledger: Ledger) -> None:
    assert (tmp_path / "signer.db").stat().st_mode & 0o777 == 0o600
    settings = {
        name: ledger._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2}


def test_a_closed_ledger_is_closed(tmp_path: Path) -> None:
    closed = Ledger(tmp_path / "closed.db")
    closed.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        closed.highest_token(17)


def test_a_file_from_before_listings_opens(tmp_path: Path) -> None:
    """Grants were stored without an inscription then."""
    former = Ledger(tmp_path / "old.db")
    former.put_grant(GRANT, "hash")
    former._database.execute("UPDATE grants SET terms = json_remove(terms, '$.inscription_id', '$.min_price_sats')")
    former._database.executescript("DROP TABLE listings; DROP INDEX signatures_created;")
    former.close()
    opened = Ledger(tmp_path / "old.db")
    held = opened.grant_of(17)
    assert held and held.grant == GRANT
    assert opened.signed.lowest_listing(OUTPOINT) is None
    opened.close()


def test_expiries_add_up_what_has_expired_by_each_and_join_those_within_seconds(ledger: Ledger) -> None:
    for number, (after_ms, price, task, user) in enumerate(
        [(0, 1, 1, "a"), (4_999, 10, 1, "a"), (5_000, 100, 1, "a"), (60_000, 1_000, 2, "a"), (90_000, 10_000, 3, "b")]
    ):
        ledger.signed.put_bid(bid(str(number), START_MS + after_ms, price, task, user))
    end = START_MS + HOUR_MS

    assert ledger.signed.expiries(1, "a", START_MS) == {
        "task": ((end + 4_999, end + 5_000), (11, 111)),
        "user": ((end + 4_999, end + 5_000, end + 60_000), (11, 111, 1_111)),
        "host": ((end + 4_999, end + 5_000, end + 60_000, end + 90_000), (11, 111, 1_111, 11_111)),
    }
    assert ledger.signed.expiries(1, "a", end + 4_999)["task"] == ((end + 5_000,), (100,))
    assert ledger.signed.expiries(9, "c", START_MS)["task"] == ((), ())
