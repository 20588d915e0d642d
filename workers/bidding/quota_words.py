"""Words for a task's owner about its calls in a month or a day, while the quota is short or too small for it."""

from __future__ import annotations

from markets.call_costs import call_costs
from models.summaries import running_tasks
from strategy.monthly import Bidding, KeyQuota, MonthlyQuota, MonthlyVerdict
from workers.bidding.assignment import BiddingAssignment
from workers.context import Context

_EVERY_MS = 600_000  # the other running tasks are looked up again


class QuotaWords:
    """The words of one worker, computed again when the config has changed or some minutes have passed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._venue = context.venue.name
        self._quota = KeyQuota.tightest(*context.settings.key_calls(self._venue))
        self._known: tuple[int, Bidding, MonthlyVerdict] | None = None

    def words(self, assignment: BiddingAssignment) -> str:
        """Returns a clause for the line of the cycle; empty without a quota, and while there are calls enough."""
        quota = self._quota
        if not quota.calls:
            return ""
        found = self._verdict(assignment)
        if found.fits and not self._context.market.scarcity.stretch_s:
            return ""
        cost = f"a {quota.period} of this takes {quota.share(found.alone.least):,} calls at the least"
        if found.fits:
            return f"{cost}, which fits"
        text = f"{cost}, with all other tasks {quota.share(found.together):,} of {quota.usable:,}"
        if found.from_minutes is not None:
            return f"{text}: fits from bidExpiryMinutes {found.from_minutes} on"
        if found.all_from_minutes is not None:
            return f"{text}: fits from bidExpiryMinutes {found.all_from_minutes} in every task on"
        return f"{text}: no bidExpiryMinutes is long enough for that to fit"

    def _verdict(self, assignment: BiddingAssignment) -> MonthlyVerdict:
        config, plan, now_ms = assignment.config, assignment.plan, self._context.clock_ms()
        bids = 0 if config.dry_run else min(config.bid_count, plan.max_bids_per_task if plan else 0)
        mine = Bidding(config, bids, assignment.user.id)
        if self._known is None or self._known[1] != mine or not 0 <= now_ms - self._known[0] < _EVERY_MS:
            running = running_tasks(but=self._context.task_id)
            quota = MonthlyQuota(self._quota, call_costs(self._venue), running.get(self._venue, ()))
            self._known = now_ms, mine, quota.judged(mine)
        return self._known[2]
