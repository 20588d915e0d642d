"""The files of a task's journal as the server reads them, and one moment of it: the newest cycle before that.

Read-only, and off the loop.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from core.task_files import journal_path, older
from strategy.entry import Entry
from strategy.journal_format import Decoder

MOST_BYTES = 6_000_000  # of each of the two files; their writer keeps them at five
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
    """Reads the journal's newest cycle at or before this time."""
    path, from_ms = journal_path(data_dir, task_id), None
    for each in (path, older(path)):
        try:
            raw = read_lines(each)
        except OSError as error:
            return JournalMoment(None, from_ms, f"the journal cannot be read: {error.strerror}")
        found = heads_of(raw)
        if not found:
            continue
        from_ms = found[0].now_ms
        before = [place for place, line in enumerate(found) if line.now_ms <= time_ms]
        if before:
            return _decoded(raw, found, before[-1], from_ms if each != path else _beginning(older(path), from_ms))
    if from_ms is None:
        return JournalMoment(None, None, "the journal is empty: no cycle was written to it")
    return JournalMoment(None, from_ms, "the journal does not reach back that far")


def read_lines(path: Path) -> list[bytes]:
    """Returns the finished lines at the end of a file, of MOST_BYTES at most; none without a file. Raises OSError."""
    try:
        with path.open("rb") as file:
            is_cut = os.fstat(file.fileno()).st_size > MOST_BYTES
            if is_cut:
                file.seek(-MOST_BYTES, os.SEEK_END)
            lines = file.read(MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return []
    return lines[1:-1] if is_cut else lines[:-1]  # the last one was not finished, or is empty


def heads_of(lines: list[bytes]) -> list[LineHead]:
    """Returns the heads of the lines that have one."""
    heads = ((number, _TIME.match(line)) for number, line in enumerate(lines))
    return [LineHead(number, head[1] == b"0", int(head[2])) for number, head in heads if head is not None]


def _beginning(path: Path, otherwise_ms: int) -> int:
    """Returns the time of the first line of the older file, where there is one."""
    try:
        with path.open("rb") as file:
            head = _TIME.match(file.readline(MOST_BYTES))
    except OSError:
        return otherwise_ms
    return otherwise_ms if head is None else int(head[2])


def _decoded(lines: list[bytes], found: list[LineHead], wanted: int, from_ms: int) -> JournalMoment:
    """Reads the wanted line with those that it is written against."""
    first = next((place for place in range(wanted, -1, -1) if found[place].is_first), None)
    if first is None:
        return JournalMoment(None, from_ms, "the journal's line of that moment needs one that is gone")
    decoder, entry = Decoder(), None
    for line in found[first : wanted + 1]:
        try:
            entry = decoder.read(lines[line.number].decode())
        except ValueError as error:
            return JournalMoment(None, from_ms, f"the journal's line of that moment cannot be read: {error}")
    return JournalMoment(entry, from_ms, "")
