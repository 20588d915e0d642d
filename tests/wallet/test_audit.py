"""The audit log: chained, durable before the signature, and any change shows."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.worlds.signer import no_space
from wallet.signer.audit import FIRST, ROOM_BYTES, AuditError, AuditLog, verify_chain


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
