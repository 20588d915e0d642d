"""The rules for one task: the service's, with the task's own."""

from __future__ import annotations

from dataclasses import replace

from strategy.bid_config import BidConfig
from strategy.plan import Rules


def rules_of(config: BidConfig, rules: Rules) -> Rules:
    """Returns the service's rules with this task's own fields in their place."""
    if config.update_tolerance is None and config.min_age_seconds is None:
        return rules
    return replace(
        rules,
        tolerance=rules.tolerance if config.update_tolerance is None else config.update_tolerance,
        min_age_ms=rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000,
    )
