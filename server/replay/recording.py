"""A replay's input: the entries of a task's journal, or of order books recorded by others."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from core.errors import BidkeeperError
from strategy.entry import Entry
from strategy.journal_format import Decoder


class ReplayError(BidkeeperError):
    """An unusable recording, or config to try on it; the message names the fault."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Entries in the order of time; `notes` name what was left out."""

    name: str
    entries: list[Entry]
    notes: list[str]


def lines_of(path: Path) -> list[bytes]:
    """Reads the lines of a file, without their ends and a byte order mark. Raises ReplayError."""
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}") from None


def read_journal(paths: list[Path]) -> Recording:
    """Reads the journal with the files `paths`, oldest first. Unreadable lines are left out and noted.

    After such a line everything is lost until the next self-contained one. Raises ReplayError when no cycle is left.
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
