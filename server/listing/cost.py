"""The cost of an inscription by its purchase: proved by the chain, or only claimed by a marketplace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal

from models.ledger import purchases, to_list
from models.tasks.table import Task
from strategy.listing.listing_config import ListingConfig, load_listing_config, problems
from strategy.purchases import ProvenPurchase

CostSource = Literal["fill", "claimed", "given"]
UNPROVED = (
    "a marketplace says that your bid bought this, and the chain has not proved it:"
    " its cost stays unknown unless you give costSats"
)


def with_known_cost(
    user_id: int, given: Collection[str], inscription_id: str, config: ListingConfig
) -> tuple[ListingConfig, int | None]:
    """Returns the config, with the cost by the inscription's one proved purchase here if the body `given` names none.

    With it the order that bought it, or is said to have; None where the cost is not asked from there.
    """
    known = None if "costSats" in given else purchases.of_inscription(user_id, inscription_id)
    if not isinstance(known, ProvenPurchase):
        return config, None if known is None else known.order_id
    costly = replace(config, cost_sats=to_list.cost(known))
    return (config, None) if problems(costly) else (costly, known.order_id)


def cost_sources(tasks: Collection[Task]) -> Mapping[int, CostSource]:
    """Returns where each task's cost is from, by the task's id; without those that have none, nor a claim of one."""
    orders = [task.source_order for task in tasks if task.source_order is not None]
    proofs, claims = purchases.of_orders(orders), purchases.claimed_costs(orders)
    found: dict[int, CostSource] = {}
    for task in tasks:
        cost_sats, proof = load_listing_config(task.config).cost_sats, proofs.get(task.source_order)
        if proof is not None and cost_sats == to_list.cost(proof):
            found[task.id] = "fill"
        elif task.source_order in claims and cost_sats in (None, *claims[task.source_order]):
            found[task.id] = "claimed"
        elif cost_sats is not None:
            found[task.id] = "given"
    return found


def source_fill_id(task: Task) -> str | None:
    """Returns the fill that the task was made of, or has its cost from."""
    return None if task.source_order is None else f"buy-{task.source_order}"
