"""The rules by which one task is planned: the service's, and what the task says otherwise."""

from __future__ import annotations

from dataclasses import replace

from strategy.config import BidConfig
from strategy.intents import Rules


def rules_of(config: BidConfig, rules: Rules) -> Rules:
    """The service's rules with what this task's own fields say instead."""
    if config.update_tolerance is None and config.min_age_seconds is None:
        return rules
    return replace(
        rules,
        tolerance=rules.tolerance if config.update_tolerance is None else config.update_tolerance,
        min_age_ms=rules.min_age_ms if config.min_age_seconds is None else config.min_age_seconds * 1000,
    )
