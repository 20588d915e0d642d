"""A look at whether a lease's holder has ended, by the clock of the one that stands by, and not by the database's.

The rule: a lease that has stood unchanged for as long as it was asked for is nobody's. Why that is safe, and the
database's clock is not needed for it:

- A renewal changes the row's version. Its holder has set the kernel's timer to a second less than the lease, counted
  from the moment *before* it sent that renewal. Whoever sees the version does so after it was sent. So when the lease's
  time has passed since then, by a clock that counts a machine's sleep, the holder has been dead for a second; the two
  clocks need not agree, only run equally fast, to a second in the lease.
- The lease is taken only if it still has that version, under the row's lock. A renewal that comes first changes it, and
  the watch begins anew; one that comes later finds another token, and its sender ends.
- A renewal whose answer was lost may have changed the row, while its holder's timer stands as it was: that holder ends
  earlier than it is thought to.
- A database that was away, or whose clock jumps ahead, makes nobody's lease shorter; one whose clock jumps back makes
  no dead holder's longer.

What it cannot see is a virtual machine that is frozen together with its clocks. Tokens keep its workers from ledger,
signer and gateway then, and a gateway asks for its lease before each write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Seen(NamedTuple):
    """A version of a lease, and a moment after it was read."""

    version: str
    at_s: float


class Watch:
    """A memory of a lease that another home has. All moments are of one clock, `core.death_timer.now_s`.

    `seen` is the newest version that others have seen by the same clock (sightings.py).
    """

    def __init__(self, seen: Seen | None = None) -> None:
        self.version = ""
        self._ends_s = 0.0
        self._seen = [] if seen is None else [seen]

    def hear(self, seen: Iterable[Seen]) -> None:
        """Takes what other machines' managers have seen, in moments of our clock; only before the first `note`."""
        self._seen.extend(seen)

    def note(self, version: str, seconds: int, now_s: float) -> None:
        """Notes that the lease, asked for so long, has this version; `now_s` is a moment after that was read."""
        if version == self.version:
            return
        since_s = min((seen.at_s for seen in self._seen if seen.version == version), default=now_s)
        self.version, self._ends_s = version, since_s + seconds
        self._seen = []  # a version that is read again after another one is watched anew

    def over(self, now_s: float) -> str:
        """Returns the version whose holder has ended by now; "" when there is none."""
        return self.version if now_s >= self._ends_s else ""
