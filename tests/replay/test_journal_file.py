"""The journal on disk: bounded, whole lines only, and never in the way of a cycle."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from core import files
from core.layout import journal_path, older
from server.replay.journal import read_journal
from strategy.decision import Entry
from tests.replay.recorded import entry
from tests.shapes import replace
from workers.bidding import moment
from workers.bidding.moment import RUN, Journal


def wandering(cycles: int, first: int = 0) -> list[Entry]:
    """Books in which a new ask appears in each cycle."""
    return [entry(cycle, *range(100_000 + cycle, 100_040 + cycle)) for cycle in range(first, first + cycles)]


def write(path: Path, entries: list[Entry], **options: Any) -> None:
    writer = Journal(path, **options)
    for each in entries:
        writer.write(each)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = journal_path(tmp_path, 17)
    write(path, wandering(10))

    assert path == tmp_path / "journal" / "task-17.jsonl"
    assert read_journal([path]).entries == wandering(10)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_next_worker_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, wandering(3))
    write(path, wandering(3, first=3))

    assert read_journal([path]).entries == wandering(6)


@pytest.mark.slow
def test_a_line_needs_few_others_and_beginning_anew_costs_little(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, wandering(400))

    runs = path.read_bytes().split(b'{"n":0,')[1:]
    first = [len(each.split(b"\n")[0]) for each in runs]
    assert len(runs) > 3
    assert all(len(each) < (RUN + 2) * size for each, size in zip(runs, first, strict=True))
    assert sum(first) < path.stat().st_size / RUN
    assert read_journal([path]).entries == wandering(400)


def test_two_files_of_bounded_size_of_which_each_can_be_read_alone(tmp_path: Path) -> None:
    path, most = tmp_path / "j.jsonl", 20_000
    write(path, wandering(400), max_bytes=most)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["j.jsonl", "j.jsonl.1"]
    assert path.stat().st_size <= most
    assert most // 2 < older(path).stat().st_size <= most
    for paths in ([path], [older(path)], [older(path), path]):
        recording = read_journal(paths)
        assert recording.notes == []
        assert recording.entries
    assert recording.entries == wandering(400)[-len(recording.entries) :]


def test_line_that_a_killed_worker_left_unfinished_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, wandering(3))
    path.write_bytes(path.read_bytes()[:-10])
    write(path, wandering(2, first=3))

    recording = read_journal([path])

    assert recording.entries == [*wandering(2), *wandering(2, first=3)]
    assert len(recording.notes) == 1
    assert recording.notes[0].startswith("j.jsonl line 3 is left out: ")


@pytest.mark.parametrize("taken", [0, 100])
def test_full_disk_drops_lines_with_one_log_line_and_leaves_none_torn(
    taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, real = tmp_path / "j.jsonl", os.write
    writer = Journal(path)
    writer.write(wandering(1)[0])

    def full(fd: int, line: bytes) -> int:
        if not taken:
            raise OSError(28, "No space left on device")
        return real(fd, line[:taken])

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(moment.os, "write", full)
        for each in wandering(3, first=1):
            writer.write(each)
    for each in wandering(2, first=4):
        writer.write(each)

    assert len(caplog.records) == 1
    assert "failed to write the journal" in caplog.text
    recording = read_journal([path])
    assert recording.entries == [*wandering(1), *wandering(2, first=4)]
    assert recording.notes == []


def test_full_disk_for_real(caplog: pytest.LogCaptureFixture) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    writer = Journal(Path("/dev/full"))

    for each in wandering(3):
        writer.write(each)

    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_directory_that_cannot_be_made_and_values_that_cannot_be_written_end_no_cycle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "journal").write_text("a file where the directory should be")
    blocked = Journal(journal_path(tmp_path, 1))
    blocked.write(entry(0, 100_000))
    odd: Any = object()
    writer = Journal(tmp_path / "j.jsonl")
    writer.write(entry(0, 100_000))
    writer.write(replace(entry(1, 100_000), memory=odd))
    writer.write(entry(2, 100_000))

    assert len(caplog.records) == 2
    assert read_journal([tmp_path / "j.jsonl"]).entries == [entry(0, 100_000), entry(2, 100_000)]


@pytest.mark.parametrize("remove", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_file_that_an_operator_takes_away_is_begun_anew(remove: Any, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    writer = Journal(path)
    writer.write(wandering(1)[0])
    remove(path)
    writer.write(wandering(1, first=1)[0])

    assert read_journal([path]).entries == wandering(1, first=1)


@pytest.mark.parametrize("path", [None, Path("j.jsonl"), Path("data/journal/task-1.jsonl")])
def test_without_an_absolute_path_nothing_is_kept(
    path: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Journal(path).write(entry(0, 100_000))

    assert list(tmp_path.iterdir()) == []


def test_data_directory_is_not_made(tmp_path: Path) -> None:
    Journal(journal_path(tmp_path / "nowhere", 1)).write(entry(0, 100_000))

    assert list(tmp_path.iterdir()) == []


def test_keeps_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    write(tmp_path / "j.jsonl", wandering(5), max_bytes=5_000)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_below_the_floor_nothing_is_written_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = journal_path(tmp_path, 17)
    writer = Journal(path)
    for floor, cycles in ((0, [0]), (1 << 60, [1, 2]), (0, [3, 4])):
        monkeypatch.setattr(files, "FLOOR_BYTES", floor)
        for cycle in cycles:
            writer.write(wandering(1, first=cycle)[0])
    assert read_journal([path]).entries == [each for first in (0, 3, 4) for each in wandering(1, first)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
