"""A listing's price over time: the steps of its schedule, counted from when it was first listed."""

from __future__ import annotations

from dataclasses import replace

from strategy.config.listing import ListingConfig

HOUR_MS = 3_600_000


def scheduled(config: ListingConfig, first_listed_ms: int | None, now_ms: int) -> ListingConfig:
    """Returns the config with the price of this hour's step in place of its own, and no schedule.

    Before the first step it is the config's own price. `first_listed_ms` is None while nothing was listed yet: the
    schedule is at its beginning then. Guard and pace are the config's, whatever the step.
    """
    if not config.price_schedule:
        return config
    listed_ms = 0 if first_listed_ms is None else max(0, now_ms - first_listed_ms)
    begun = [step for step in config.price_schedule if step.after_hours * HOUR_MS <= listed_ms]
    config = replace(config, price_schedule=())
    if not begun:
        return config
    step = begun[-1]
    if step.price_sats is not None:
        return replace(config, price_mode="fixed", price_sats=step.price_sats)
    assert step.price_percent is not None
    return replace(config, price_mode="percent", price_percent=step.price_percent)
