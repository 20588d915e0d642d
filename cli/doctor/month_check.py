"""The doctor on the tightest quota of each key: the joint cost of all running tasks, in a month or a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Check, ok, warn
from core.settings import Settings, dialect_of
from markets.call_costs import call_costs
from markets.venues import capabilities
from strategy.config.bid import DEFAULT_EXPIRY_MINUTES
from strategy.monthly import (
    Bidding,
    CallCosts,
    KeyQuota,
    MonthlyCalls,
    Task,
    all_fit_from_minutes,
    bids_carried,
    monthly_calls,
    rune_calls,
    usable,
)

RUNES_FROM = "unisat"  # whichever marketplace they bid on


def examine(settings: Settings, running: Mapping[str, Sequence[Task]] | None) -> Iterator[Check]:
    """Yields a line for each key with a quota. `running` are the tasks by venue, None when unknown."""
    if running is None:
        return
    for venue in settings.venues:
        dialect = dialect_of(venue) or ""
        quota = KeyQuota.tightest(*settings.key_calls(venue))
        if quota.calls and settings.venue_url(dialect):
            yield _period(venue, dialect, quota, running)


def _period(venue: str, dialect: str, quota: KeyQuota, running: Mapping[str, Sequence[Task]]) -> Check:
    name, costs = f"{quota.period} at {venue}", call_costs(venue)
    tasks = running.get(venue, ())
    of_runes = _of_runes(running) if dialect == RUNES_FROM else MonthlyCalls(0, 0, 0)
    cost = monthly_calls(tasks, costs) + of_runes
    carries = _carries(venue, quota, costs)
    if not cost.least:
        return ok(name, f"no task makes calls there{carries}")
    bids = sum(task.bids for task in tasks if isinstance(task, Bidding))
    who = f"{_counted(len(tasks), 'task')} with {_counted(bids, 'bid')}"
    if of_runes.least:
        who += ", and the asks of runes,"
    calls, least = quota.share(cost.reads + cost.writes), quota.share(cost.least)
    span = "a day" if quota.days == 1 else f"in {quota.days} days"
    takes = f"{who} take {calls:,} calls {span}, {least:,} with reads ten minutes old"
    if cost.least <= usable(quota.monthly):
        return ok(name, f"{takes}: within {quota.usable:,} (90 % of the quota){carries}")
    text = f"{takes}: more than {quota.usable:,} (90 % of the quota){carries}"
    minutes = all_fit_from_minutes(tasks, quota.monthly, costs, of_runes.least)
    larger = f"a larger quota ({quota_variable(venue, quota.period)})"
    if minutes is None:
        return warn(
            name, text, f"run fewer tasks, raise loopSeconds, or get {larger}; no bidExpiryMinutes is long enough"
        )
    return warn(
        name, text, f"set bidExpiryMinutes to at least {minutes} in every task, place fewer bids, or get {larger}"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _of_runes(running: Mapping[str, Sequence[Task]]) -> MonthlyCalls:
    return rune_calls((task, call_costs(venue)) for venue, tasks in running.items() for task in tasks)


def _carries(venue: str, quota: KeyQuota, costs: CallCosts) -> str:
    if not capabilities(venue).kinds:
        return ""
    return f"; the quota is enough for {bids_carried(quota.monthly, costs)} bids of {DEFAULT_EXPIRY_MINUTES} minutes"


def quota_variable(venue: str, period: str) -> str:
    """Returns the setting with the size of the quota of a month or a day."""
    often = "DAILY" if period == "day" else "MONTHLY"
    return f"BIDKEEPER_{(dialect_of(venue) or venue).upper()}_{often}_CALLS"
