"""The time of the next cycle: tasks on one slug share a moment, faults back off, workers are spread over the loop."""

from __future__ import annotations

import random
import zlib

_JITTER = 0.2
# All turns are in the first two fifths of each loop: within half a loop, the age up to which a cycle reuses another's
# reads. So one read of a wallet serves all its tasks, as one of a book serves all tasks on its slug.
_SPREAD = 0.4
_EACH_FIRST_S, _LONGEST_FIRST_S = 0.03, 12.0
_LEAST_GAP = 0.25  # of a loop, between two turns of one task


def until_first_cycle(slug_key: str, starting: int) -> float:
    """Returns the seconds before a worker's first cycle when `starting` others start with it.

    A venue that answers 5 requests a second would make all of them fail if they asked at once: of 300 on as many slugs,
    33 begin a second. A few starts are not held up.
    """
    return _place(slug_key) * min(_LONGEST_FIRST_S, starting * _EACH_FIRST_S)


def until_cycle(slug_key: str, loop_s: float, now_s: float) -> float:
    """Returns the seconds from `now_s` (Unix time) until this slug's next turn, from a quarter of a loop on.

    Tasks with the same loop wake up together, so that they share one read of the book; different slugs are spread. With
    a loop of 10 s and a slug whose turn is at 1.5 s: 4 s at 7.5, 10 s at 1.5, 11 s at 0.5.
    """
    turn_s = _place(slug_key) * _SPREAD * loop_s
    wait_s = (turn_s - now_s) % loop_s
    return wait_s if wait_s >= _LEAST_GAP * loop_s else wait_s + loop_s


def until_rare_cycle(first_s: float, loop_s: float, now_s: float, *, every: int, due_s: float) -> float:
    """Returns the seconds until the first turn with something to do; the next turn is in `first_s`.

    That is one turn in `every`, the same for all tasks with this loop, and the first one after `due_s` (Unix time).
    """
    wait_s = first_s
    while now_s + wait_s < due_s and _number(now_s + wait_s, loop_s) % every:
        wait_s += loop_s
    return wait_s


def _number(turn_s: float, loop_s: float) -> int:
    """Returns the number of the loop that a turn is in, safe from rounding: turns are in its first two fifths."""
    return int(turn_s / loop_s + (1 - _SPREAD) / 2)


def _place(slug_key: str) -> float:
    """Returns the slug's fixed position in [0, 1), equal in every process."""
    return zlib.crc32(slug_key.encode()) / 2**32


class Backoff:
    """The seconds between tries: `first_s`, twice that, and so on up to `longest_s`, each up to a fifth shorter."""

    def __init__(self, first_s: float, longest_s: float, rng: random.Random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._rng = rng
        self._next_s = first_s

    def reset(self) -> None:
        """Starts over after a success."""
        self._next_s = self._first_s

    def delay(self, at_least_s: float = 0.0) -> float:
        """Returns the seconds until the next try.

        `at_least_s` is the venue's wish. Above `longest_s` it is cut: the gateway keeps the venue's own pause, so that
        asking the gateway again costs the venue nothing.
        """
        delay = self._next_s * (1 - _JITTER * self._rng.random())
        self._next_s = min(2 * self._next_s, self._longest_s)
        return min(max(delay, at_least_s), self._longest_s)
