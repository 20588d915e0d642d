"""The last move of a task, and how often a task without one reads the market."""

from __future__ import annotations

from msgspec import Struct

from strategy.config.bid import MOST_LOOPS, BidConfig
from strategy.plan import BidPlan, Entry
from strategy.reasons import Reason

# Without a move for so long (ms), a cycle comes every so many loops. Each number is a multiple of the one before, so a
# turn of the rarest is one of all others, too, and their reads are shared.
_STEPS = ((90 * 60_000, MOST_LOOPS), (60 * 60_000, 2))
# Reasons that hold as long as config and market do. A rung that waits for anything else (money, room, an age, an
# answer) may get it any time.
_SETTLED = frozenset(
    {
        Reason.KEPT,
        Reason.RENEW,
        Reason.RENEW_WAITS,
        Reason.PLAN_BIDS,
        Reason.RANGE_EMPTY,
        Reason.RUNGS_MERGED,
        Reason.TASK_TOTAL,
        Reason.BELOW_LOT,
        Reason.NOT_HIGHEST,
        Reason.FLOOR_GUARD,
        Reason.FLOOR_DROP,
        Reason.ACTIVE_HOURS,
    }
)


class LastMove(Struct, frozen=True):
    """The last time a bid was placed, moved or cancelled, None before the first cycle. A renewal moves nothing."""

    moved_ms: int | None = None

    def after(self, entry: Entry, plan: BidPlan) -> LastMove:
        """Returns the state after one more decision."""
        has_rivals = entry.config.wants_bids and (entry.snapshot is None or entry.snapshot.bids != ())
        is_known = entry.snapshot is not None and not has_rivals and plan.raw_reference is not None
        is_kept = all(cancel.reason is Reason.RENEW for cancel in plan.to_cancel)
        is_settled = is_kept and all(note.reason in _SETTLED for note in plan.rungs)
        is_still = self.moved_ms is not None and is_known and is_settled
        return self if is_still else LastMove(entry.now_ms)

    def loops(self, config: BidConfig, now_ms: int) -> int:
        """Returns in every how many loops a cycle is due: more than one only for a task without its own loopSeconds."""
        if config.loop_seconds is not None or self.moved_ms is None:
            return 1
        still_ms = now_ms - self.moved_ms
        return next((loops for least_ms, loops in _STEPS if still_ms >= least_ms), 1)
