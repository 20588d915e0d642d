"""The cost of an inscription by the record of its purchase."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from models.ledger import to_list
from models.tasks.table import Task
from strategy.listing.listing_config import ListingConfig, load_listing_config, problems

CostSource = Literal["fill", "given"]


def with_known_cost(
    user_id: int, given: Collection[str], inscription_id: str, config: ListingConfig
) -> tuple[ListingConfig, int | None]:
    """Returns the config, with the cost by the inscription's one purchase here if the body `given` names none.

    Beside it the order that bought it, None where the cost is not from there.
    """
    known = None if "costSats" in given else to_list.cost_of(user_id, inscription_id)
    if known is None or problems(costly := replace(config, cost_sats=known.sats)):
        return config, None
    return costly, known.order_id


def cost_sources(tasks: Collection[Task]) -> Mapping[int, CostSource]:
    """Returns where each task's cost is from, by the task's id; without those that have none."""
    costs = to_list.costs([task.source_order for task in tasks if task.source_order is not None])
    found: dict[int, CostSource] = {}
    for task in tasks:
        cost_sats = load_listing_config(task.config).cost_sats
        if cost_sats is not None:
            found[task.id] = "fill" if costs.get(task.source_order) == cost_sats else "given"
    return found


def source_fill_id(task: Task) -> str | None:
    """Returns the fill that the task was made of, or has its cost from."""
    return None if task.source_order is None else f"buy-{task.source_order}"
