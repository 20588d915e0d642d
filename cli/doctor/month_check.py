"""The doctor on the month's calls: the joint cost of all running tasks where the key has a quota."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cli.doctor.check import Check, ok, warn
from core.settings import Settings, dialect_of
from markets.call_costs import call_costs
from markets.venues import capabilities
from strategy.bid_config import DEFAULT_EXPIRY_MINUTES
from strategy.monthly import (
    Bidding,
    CallCosts,
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
        quota = settings.monthly_calls(dialect)
        if quota and settings.venue_url(dialect):
            yield _month(venue, dialect, quota, running)


def _month(venue: str, dialect: str, quota: int, running: Mapping[str, Sequence[Task]]) -> Check:
    name, costs = f"month at {venue}", call_costs(venue)
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
    takes = f"{who} take {cost.reads + cost.writes:,} calls in 30 days, {cost.least:,} with reads ten minutes old"
    if cost.least <= usable(quota):
        return ok(name, f"{takes}: within {usable(quota):,} (90 % of the quota){carries}")
    text = f"{takes}: more than {usable(quota):,} (90 % of the quota){carries}"
    minutes = all_fit_from_minutes(tasks, quota, costs, of_runes.least)
    larger = f"a larger quota ({quota_variable(venue)})"
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


def _carries(venue: str, quota: int, costs: CallCosts) -> str:
    if not capabilities(venue).kinds:
        return ""
    return f"; the quota is enough for {bids_carried(quota, costs)} bids of {DEFAULT_EXPIRY_MINUTES} minutes"


def quota_variable(venue: str) -> str:
    """Returns the setting with the size of the quota."""
    return f"BIDKEEPER_{(dialect_of(venue) or venue).upper()}_MONTHLY_CALLS"
