"""Reads the files of a task's journal: one moment, the newest part for a replay, or everything.

Do not call this on the server's loop.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct

from core.errors import BidkeeperError
from core.layout import journal_path, older
from strategy.decision import Entry
from strategy.journal import Decoder

READ_BYTES = 6_000_000  # read at most of each of the two files; their writer keeps them at five megabytes
BLOCK_BYTES = 128_000  # read first, from the end, because most requests are for the last decisions
MOST_BYTES = 5_000_000  # of the journal, in one replay
MOST_CYCLES = 10_000  # of a replay: about three days at one every 30 seconds; ten to twenty seconds of work
_TIME = re.compile(rb'^\{"n":(\d+),"now_ms":(\d+)[,}]')


class ReplayError(BidkeeperError):
    """A recording, or a config for it, that cannot be used; the message names the fault."""


class JournalMoment(NamedTuple):
    """The newest cycle before a moment, or None and `why`. `from_ms` is the time of the journal's first line."""

    entry: Entry | None
    from_ms: int | None
    why: str


class LineHead(NamedTuple):
    """The fields at the begin of a journal's line; `number` counts from 0."""

    number: int
    is_first: bool  # of a run of lines; it can be read without other lines
    now_ms: int


def moment_of(data_dir: Path, task_id: int, time_ms: int) -> JournalMoment:
    """Returns the journal's newest cycle at or before this time; reads from the end, only as far as needed."""
    path, from_ms = journal_path(data_dir, task_id), None
    for each in (path, older(path)):
        try:
            with _opened(each) as file:
                first_ms, run = _first_ms(file), _run_before(file, time_ms)
        except OSError as error:
            return JournalMoment(None, from_ms, f"the journal cannot be read: {error.strerror}")
        from_ms = from_ms if first_ms is None else first_ms
        if run:
            return _decoded(run, from_ms if each != path else _beginning(older(path), from_ms))
    if from_ms is None:
        return JournalMoment(None, None, "the journal is empty: no cycle was written to it")
    return JournalMoment(None, from_ms, "the journal does not reach back that far")


def _opened(path: Path) -> BinaryIO:
    """Opens a file of the journal; a missing file counts as empty."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return BytesIO()


def read_lines(path: Path) -> list[bytes]:
    """Returns the complete lines in a file's last READ_BYTES; none if the file is missing. Raises OSError."""
    with _opened(path) as file:
        return _last_lines(file, READ_BYTES)


def heads_of(lines: list[bytes]) -> list[LineHead]:
    """Returns the heads of the lines that have one."""
    heads = ((number, _TIME.match(line)) for number, line in enumerate(lines))
    return [LineHead(number, head[1] == b"0", int(head[2])) for number, head in heads if head is not None]


def _run_before(file: BinaryIO, time_ms: int) -> list[bytes]:
    """Returns the newest line at or before the time, after the earlier lines of its run.

    The run's first line is missing if the file no longer has it. Returns no lines if all are newer. Reads from the end,
    twice as much each time until it is enough.
    """
    size, block = file.seek(0, os.SEEK_END), BLOCK_BYTES
    while True:
        lines = _last_lines(file, min(block, READ_BYTES))
        heads = heads_of(lines)
        wanted = next((place for place in range(len(heads) - 1, -1, -1) if heads[place].now_ms <= time_ms), -1)
        first = next((place for place in range(wanted, -1, -1) if heads[place].is_first), None)
        if first is not None or block >= min(size, READ_BYTES):
            return [lines[head.number] for head in heads[first or 0 : wanted + 1]]
        block *= 2


def _last_lines(file: BinaryIO, most_bytes: int) -> list[bytes]:
    begin = max(0, file.seek(0, os.SEEK_END) - most_bytes)
    file.seek(begin)
    lines = file.read(most_bytes).split(b"\n")
    # The last line is incomplete or empty; the first line is cut unless the file begins there.
    return lines[1:-1] if begin else lines[:-1]


def _first_ms(file: BinaryIO) -> int | None:
    """Returns the time of the first line in a file's last READ_BYTES; None without a line."""
    begin = max(0, file.seek(0, os.SEEK_END) - READ_BYTES)
    file.seek(begin)
    if begin:
        file.readline()  # skips the rest of a line whose begin is cut off
    for text in file:
        if text.endswith(b"\n") and (head := _TIME.match(text)):
            return int(head[2])
    return None


def _beginning(path: Path, otherwise_ms: int | None) -> int | None:
    """Returns the time of the older file's first line, or `otherwise_ms` without one."""
    try:
        with path.open("rb") as file:
            head = _TIME.match(file.readline(READ_BYTES))
    except OSError:
        return otherwise_ms
    return otherwise_ms if head is None else int(head[2])


def _decoded(run: list[bytes], from_ms: int | None) -> JournalMoment:
    """Decodes the last line of a run, which holds differences to the lines before it."""
    if not heads_of(run[:1])[0].is_first:
        return JournalMoment(None, from_ms, "the journal's line of that moment needs one that is gone")
    decoder, entry = Decoder(), None
    for line in run:
        try:
            entry = decoder.read(line.decode())
        except ValueError as error:
            return JournalMoment(None, from_ms, f"the journal's line of that moment cannot be read: {error}")
    return JournalMoment(entry, from_ms, "")


class JournalPart:
    """The cycles of a journal's files (oldest first) from `from_ms` to `to_ms`, at most the newest MOST_BYTES of them.

    `first_ms` is the time of the journal's first line, or None. `is_cut` says that the span has more cycles than are
    used. `unread` counts the unreadable lines, and is complete after the iteration. Raises ReplayError.
    """

    def __init__(self, paths: list[Path], from_ms: int | None, to_ms: int | None) -> None:
        self._files: list[tuple[list[bytes], frozenset[int]]] = []
        self.first_ms: int | None = None
        self.is_cut = False
        self.unread = 0
        size, count = 0, 0
        for path in reversed(paths):
            try:
                lines = read_lines(path)
            except OSError as error:
                raise ReplayError(f"the journal cannot be read: {error.strerror}") from None
            heads = heads_of(lines)
            if heads:
                self.first_ms = heads[0].now_ms
            wanted = set()
            for head in reversed(heads):
                if (from_ms is not None and head.now_ms < from_ms) or (to_ms is not None and head.now_ms > to_ms):
                    continue
                size, count = size + len(lines[head.number]) + 1, count + 1
                if size > MOST_BYTES or count > MOST_CYCLES:
                    self.is_cut = True
                    break
                wanted.add(head.number)
            self._files.insert(0, (lines, frozenset(wanted)))

    def entries(self) -> Iterator[Entry]:
        """Yields the cycles, oldest first. Earlier lines are read too, because each is a difference to the last."""
        decoder = Decoder()
        for lines, wanted in self._files:
            decoder.forget()
            for number in range(max(wanted, default=-1) + 1):
                try:
                    entry = decoder.read(lines[number].decode())
                except ValueError:
                    self.unread += number in wanted
                    continue
                if number in wanted:
                    yield entry


class Recording(Struct, frozen=True):
    """Entries in order of time; `notes` name the lines that were left out."""

    name: str
    entries: list[Entry]
    notes: list[str]


def lines_of(path: Path) -> list[bytes]:
    """Reads the lines of a file, without line ends and byte order mark. Raises ReplayError."""
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}") from None


def read_journal(paths: list[Path]) -> Recording:
    """Reads the journal with the files `paths`, oldest first. Unreadable lines are left out and noted.

    Lines after an unreadable one are lost until the next self-contained line. Raises ReplayError if no cycle is left.
    """
    entries, notes, decoder = list[Entry](), list[str](), Decoder()
    for path in paths:
        *lines, rest = lines_of(path)
        decoder.forget()
        lost = 0
        for number, line in enumerate(lines, start=1):
            try:
                entry = decoder.read(line.decode())
            except ValueError as error:
                if not lost:
                    notes.append(f"{path.name} line {number} is left out: {error}")
                lost += 1
            else:
                entries.append(entry)
                notes += _more_lost(path.name, number, lost)
                lost = 0
        notes += _more_lost(path.name, len(lines) + 1, lost)
        if rest:
            notes.append(f"{path.name} line {len(lines) + 1} is left out: it was never finished")
    if not entries:
        raise ReplayError("; ".join([*notes, f"{paths[-1].name} holds no cycle"]))
    return Recording(paths[-1].name, entries, notes)


def _more_lost(name: str, number: int, lost: int) -> list[str]:
    """Notes that `lost` lines before line `number` were left out; the first of them has its own note."""
    return [f"{name} lines {number - lost + 1} to {number - 1} need it and are left out"] if lost > 1 else []
