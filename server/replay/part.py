"""The newest part of a task's journal within a span: so much of it as a replay takes, cycle by cycle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from server.replay.journal import heads_of, read_lines
from server.replay.recording import ReplayError
from strategy.entry import Entry
from strategy.journal_format import Decoder

MOST_BYTES = 5_000_000
MOST_CYCLES = 10_000  # three days at one every 30 seconds; ten to twenty seconds of work


class JournalPart:
    """The cycles of a journal's files (oldest first) from `from_ms` to `to_ms`, at most the newest MOST_BYTES of them.

    `first_ms` is the time of the journal's first line, None without one. `is_cut`: there are more in the span than are
    taken. `unread` counts the lines that cannot be read, known once all have been gone through. Raises ReplayError.
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
        """Yields the cycles, oldest first. The lines before them are read, too: each is written against the last."""
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
