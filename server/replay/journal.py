"""The files of a task's journal as the server reads them, and one moment of it: the newest cycle before that.

Read-only, and off the loop.
"""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from core.task_files import journal_path, older
from strategy.entry import Entry
from strategy.journal_format import Decoder

MOST_BYTES = 6_000_000  # of each of the two files; their writer keeps them at five
BLOCK_BYTES = 128_000  # read at first, from the end: most who ask want what was decided last
_TIME = re.compile(rb'^\{"n":(\d+),"now_ms":(\d+)[,}]')


class JournalMoment(NamedTuple):
    """The newest cycle before a moment; None where there is none, and `why`. `from_ms`: the journal's first line."""

    entry: Entry | None
    from_ms: int | None
    why: str


class LineHead(NamedTuple):
    """The head of one line of a journal's file; `number` counts from 0."""

    number: int
    is_first: bool  # of a run of lines: it needs no other
    now_ms: int


def moment_of(data_dir: Path, task_id: int, time_ms: int) -> JournalMoment:
    """Reads the journal's newest cycle at or before this time: from the end, and no further back than it takes."""
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
    """Opens a file of the journal; one that is not there is empty."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return BytesIO()


def read_lines(path: Path) -> list[bytes]:
    """Returns the finished lines at the end of a file, of MOST_BYTES at most; none without a file. Raises OSError."""
    with _opened(path) as file:
        return _last_lines(file, MOST_BYTES)


def heads_of(lines: list[bytes]) -> list[LineHead]:
    """Returns the heads of the lines that have one."""
    heads = ((number, _TIME.match(line)) for number, line in enumerate(lines))
    return [LineHead(number, head[1] == b"0", int(head[2])) for number, head in heads if head is not None]


def _run_before(file: BinaryIO, time_ms: int) -> list[bytes]:
    """Returns the newest line at or before the time, and before it those of its run; without their first one where that
    is gone. Nothing where no line is as old. Reads twice as much from the end as long as that is not enough.
    """
    size, block = file.seek(0, os.SEEK_END), BLOCK_BYTES
    while True:
        lines = _last_lines(file, min(block, MOST_BYTES))
        heads = heads_of(lines)
        wanted = next((place for place in range(len(heads) - 1, -1, -1) if heads[place].now_ms <= time_ms), -1)
        first = next((place for place in range(wanted, -1, -1) if heads[place].is_first), None)
        if first is not None or block >= min(size, MOST_BYTES):
            return [lines[head.number] for head in heads[first or 0 : wanted + 1]]
        block *= 2


def _last_lines(file: BinaryIO, most_bytes: int) -> list[bytes]:
    begin = max(0, file.seek(0, os.SEEK_END) - most_bytes)
    file.seek(begin)
    lines = file.read(most_bytes).split(b"\n")
    # The last one was not finished, or is empty; the first one is cut unless the file begins there.
    return lines[1:-1] if begin else lines[:-1]


def _first_ms(file: BinaryIO) -> int | None:
    """Returns the time of the first of the lines that are read of a file; None where there is none."""
    begin = max(0, file.seek(0, os.SEEK_END) - MOST_BYTES)
    file.seek(begin)
    if begin:
        file.readline()  # cut
    for text in file:
        if text.endswith(b"\n") and (head := _TIME.match(text)):
            return int(head[2])
    return None


def _beginning(path: Path, otherwise_ms: int | None) -> int | None:
    """Returns the time of the first line of the older file, where there is one."""
    try:
        with path.open("rb") as file:
            head = _TIME.match(file.readline(MOST_BYTES))
    except OSError:
        return otherwise_ms
    return otherwise_ms if head is None else int(head[2])


def _decoded(run: list[bytes], from_ms: int | None) -> JournalMoment:
    """Reads the last line of a run, which is written against those before it."""
    if not heads_of(run[:1])[0].is_first:
        return JournalMoment(None, from_ms, "the journal's line of that moment needs one that is gone")
    decoder, entry = Decoder(), None
    for line in run:
        try:
            entry = decoder.read(line.decode())
        except ValueError as error:
            return JournalMoment(None, from_ms, f"the journal's line of that moment cannot be read: {error}")
    return JournalMoment(entry, from_ms, "")
