"""Plans: the users' limits. The TOML file defines them; the database holds only each user's plan and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

MOST_DAYS = 36_500  # maximum of a plan; a much later end could not be shown as a date


class SubscriptionPlan(Struct, frozen=True):
    """The limits of one plan; exposure and price in sats."""

    name: str
    max_tasks: int
    max_bids_per_task: int
    max_exposure: int
    price_sats: int
    duration_days: int


FIRST_PLAN = "beta"  # given at the first sign-in
DEFAULT_PLANS = {FIRST_PLAN: SubscriptionPlan("Beta", 20, 20, 50_000_000, 0, 365)}


def read_plans(tables: Any) -> tuple[dict[str, SubscriptionPlan], list[str]]:
    """Adds the plans in the TOML tables `[plans.KEY]` to the default plans; returns all plans and the faults."""
    plans = dict(DEFAULT_PLANS)
    problems: list[str] = []
    if not isinstance(tables, Mapping):
        return plans, ["plans must be tables such as [plans.beta]"]
    for key, table in tables.items():
        plan, faults = _plan(key, table)
        problems += faults
        if plan:
            plans[key] = plan
    return plans, problems


def _plan(key: str, table: Any) -> tuple[SubscriptionPlan | None, list[str]]:
    names = list(SubscriptionPlan.__struct_fields__)
    if not isinstance(table, Mapping):
        return None, [f"plans.{key} must be a table"]
    problems = [f"plans.{key}: unknown setting {name}" for name in table if name not in names]
    problems += [f"plans.{key}: {name} is missing" for name in names if name not in table]
    for name in names[1:]:
        value = table.get(name, 0)
        most = MOST_DAYS if name == "duration_days" else 2**53 - 1
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            problems.append(f"plans.{key}: {name} must be a whole number from 0 to {most}, not {value!r}")
    if not isinstance(table.get("name", ""), str):
        problems.append(f"plans.{key}: name must be text")
    return (None if problems else SubscriptionPlan(**table)), problems
