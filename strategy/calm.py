"""How long nothing has moved around a task, and how often it has to look at the market then."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from strategy.config import BidConfig
from strategy.entry import Entry
from strategy.intents import Plan
from strategy.reasons import Reason

# Without a move for so long (ms), a cycle comes every so many loops. Each is a multiple of the one before it, so a turn
# of the rarest is one of all others, too, and what is read then is shared.
_STEPS = ((90 * 60_000, 4), (60 * 60_000, 2))
MOST_LOOPS = 4
# What holds as long as config and market do. A rung that waits for anything else (money, room, an age, somebody's
# answer) may have it any time.
_SETTLED = frozenset(
    {
        Reason.KEPT,
        Reason.RENEW,
        Reason.RENEW_WAITS,
        Reason.PLACE,
        Reason.PLAN_BIDS,
        Reason.RANGE_EMPTY,
        Reason.RUNGS_MERGED,
        Reason.TASK_TOTAL,
        Reason.BELOW_LOT,
        Reason.NOT_HIGHEST,
    }
)


@dataclass(frozen=True, slots=True)
class Calm:
    """What is remembered of the last move: when it was (None: nothing was seen yet), and what has stood still since.

    That is the raw reference and the price of every rung.
    """

    moved_ms: int | None = None
    raw: Decimal | None = None
    prices: tuple[int | None, ...] = ()

    def after(self, entry: Entry, plan: Plan) -> Calm:
        """The same after one more decision."""
        prices = tuple(note.price_sats for note in plan.rungs)
        is_same = self.moved_ms is not None and (self.raw, self.prices) == (plan.raw_reference, prices)
        return self if is_same and _is_known(entry, plan) else Calm(entry.now_ms, plan.raw_reference, prices)

    def loops(self, config: BidConfig, now_ms: int) -> int:
        """In every how many loops a cycle is due. Only a task without loopSeconds of its own looks less often."""
        if config.loop_seconds is not None or self.moved_ms is None:
            return 1
        still_ms = now_ms - self.moved_ms
        return next((loops for least_ms, loops in _STEPS if still_ms >= least_ms), 1)


def _is_known(entry: Entry, plan: Plan) -> bool:
    """Whether the market could be read, there are no rivals where they matter, and no rung waits for anything."""
    if plan.raw_reference is None or entry.snapshot is None:
        return False
    if entry.config.wants_bids and entry.snapshot.bids != ():
        return False
    return all(note.reason in _SETTLED for note in plan.rungs)
