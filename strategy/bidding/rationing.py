"""Shares of the room under the signer's ceilings: renewals first, then missing bids, moves last.

A new signature costs its price until it expires, and a cancel gives nothing back. So a ladder that moves too often
could not renew its bids. Each bid therefore leaves room for the more important ones:

- a renewal: nothing;
- a raise, and a bid that is missing: the renewals of all that is held beside it, at prices that may be half as high
  again by then; under a ceiling that other tasks share, those of their bids, too, up to an eighth of it;
- a bid that another one makes way for: the same for one whole ladder, and for the bids of others up to a quarter of
  the ceiling, which is all that may be live under it at once.

Example: a task's ceiling of 1,200,000 and rungs of 90,000, 70,000 and 50,000, which may cost 315,000 to renew. All
three are moved while no more than 675,000 are signed; only the top one while it is no more than 795,000; all are
renewed while it is no more than 990,000.

A bid that waits says which ceiling, whether the rest of it is kept for renewals, and when enough signatures will have
expired for it and for the waiting bids above it. New signatures may postpone that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from strategy.plan import SignedRoom
from strategy.reasons import Reason
from strategy.rungs import Rung

_NOTHING, _EIGHTH, _QUARTER = 0, 8, 4  # parts of a ceiling, for the bids of others that share it


class Ration:
    """The room of one cycle. `rooms` empty: nothing is signed, and nothing is rationed."""

    def __init__(self, rooms: Iterable[SignedRoom], now_ms: int) -> None:
        self._rooms = tuple(rooms)
        self._now_ms = now_ms
        self._taken = 0
        self._ahead = 0  # the sats of the missing bids that wait, from the top

    def share_out(
        self, rungs: Iterable[Rung], due: Collection[int], raising: Collection[Rung], free: int
    ) -> int | None:
        """Bars the renewals (of orders `due`) and refuses the missing rungs that have no room.

        From the top; below the first missing rung that waits all others wait for it. `raising` are the rungs that
        outbid, `free` is the number of missing ones that need no other bid to make way. Returns how many bids may make
        way for the rest, None if nothing waits.
        """
        if not self._rooms:
            return None
        rungs = list(rungs)
        held = 0
        for rung in rungs:
            if rung.order is None:
                continue
            held += max(rung.price_sats, rung.order.price_sats)
            if rung.order.id in due and rung.barred is None and (waits := self._take(rung, 0, _NOTHING)):
                rung.barred, rung.detail = Reason.SIGNED_LIMIT, waits
        return self._fill([rung for rung in rungs if rung.is_missing], held, raising, free)

    def _fill(self, missing: list[Rung], held: int, raising: Collection[Rung], free: int) -> int | None:
        ladder = held + sum(rung.price_sats for rung in missing)
        moved = 0
        waits = ""
        for rung in missing:
            is_raise = any(rung is each for each in raising)
            is_move = free <= 0 and not is_raise
            left, part = (ladder, _QUARTER) if is_move else (held + self._ahead, _EIGHTH)
            waits = self._take(rung, left, part) or waits
            if waits:
                rung.refused, rung.detail = Reason.SIGNED_LIMIT, waits
                self._ahead += rung.price_sats
                continue
            held += rung.price_sats
            moved += is_move
            free -= not is_raise
        return moved if waits else None

    def _take(self, rung: Rung, left: int, part: int) -> str:
        """Counts the rung's bid if it leaves `left`, and that part of a shared ceiling, and no missing bid above waits.

        Else returns the words for the ceiling that keeps it waiting for the longest time.
        """
        left = left * 3 // 2
        waits: list[tuple[bool, int, str]] = []
        for room in self._rooms:
            others = min(room.others_sats * 3 // 2, room.most_sats // part) if part else 0
            signed = room.signed_sats + self._taken + rung.price_sats
            if (more := signed + self._ahead + max(left, others) - room.most_sats) > 0:
                free_at_ms = room.free_at_ms(more)
                said = self._words(room.whose, free_at_ms, is_kept=signed <= room.most_sats)
                waits.append((free_at_ms is None, free_at_ms or 0, said))
        if not waits and not self._ahead:
            self._taken += rung.price_sats
        return max(waits)[2] if waits else ""

    def _words(self, whose: str, free_at_ms: int | None, *, is_kept: bool) -> str:
        """Writes, for example, `task, kept for renewals, frees in 42 s`; without a time where none is known."""
        kept = ", kept for renewals" if is_kept else ""
        left = "" if free_at_ms is None else f", frees in {max(0, -(-(free_at_ms - self._now_ms) // 1000))} s"
        return f"{whose}{kept}{left}"
