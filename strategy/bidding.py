"""The decision of one cycle: config, market, own orders and limits in, a plan out.

The steps, in order: reference price, range, rungs, what the range forbids, the walk of the rungs through the budget
with the own orders that stand for them, what becomes of the other live bids, renewals and new bids. The plan assumes
that its cancels succeed; whoever carries it out reserves each new bid on its own, which guards the limits when a
cancel fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strategy.book import Profile, Snapshot
from strategy.config import BidConfig, unsupported
from strategy.decision import Decision
from strategy.intents import BidNote, CancelIntent, Limits, Memory, OwnOrder, PlaceIntent, Plan, Rules, RungNote
from strategy.ladder import order_tick, price_range, targets
from strategy.pricing import reference
from strategy.reasons import Reason

__all__ = [
    "BidNote",
    "CancelIntent",
    "Limits",
    "Memory",
    "OwnOrder",
    "PlaceIntent",
    "Plan",
    "Reason",
    "Rules",
    "RungNote",
    "plan_bids",
    "without_places",
]


def plan_bids(
    config: BidConfig,
    profile: Profile,
    snapshot: Snapshot | None,
    own: Sequence[OwnOrder],
    limits: Limits,
    rules: Rules,
    memory: Memory,
    now_ms: int,
) -> Plan:
    """What to cancel and what to place now, with one reason for every rung and every own order.

    `snapshot` is None when the market could not be read. `own` are the open orders of this task, in any order.
    The config must be free of `problems`. Raises ValueError when it asks for what is not built (`unsupported`):
    it must never be treated as something else.
    """
    if asked := unsupported(config):
        raise ValueError("; ".join(f"{problem.field}: {problem.text}" for problem in asked))
    price = reference(snapshot, rules.stale_after_ms, now_ms)
    is_blind = price is None and config.bid_mode == "percent"
    since = memory.no_reference_since_ms
    memory = Memory(no_reference_since_ms=(now_ms if since is None else since) if is_blind else None)
    allowed = price_range(config, profile, price, price)
    decision = Decision(config, profile, limits, rules, memory, now_ms, allowed, price)
    decision.sort(own)
    if is_blind:
        decision.rest_without_reference()
    elif allowed.is_empty:
        decision.skip_all(Reason.RANGE_EMPTY, allowed.cause)
        decision.walk([])
    else:
        decision.walk(targets(allowed.low, allowed.high, decision.count, order_tick(config, profile)))
    return decision.plan()


def without_places(plan: Plan, reason: Reason, *, soft_cancels: bool) -> Plan:
    """The same plan with nothing placed and nothing renewed, for cycles that may only cancel.

    `soft_cancels` False leaves the hard cancels only: our own bids could not be read (`own_bids_unknown`). True is
    what control level reduce asks for. Rungs and bids that lose their action get `reason`.
    """
    left = tuple(c for c in plan.to_cancel if c.hard or (soft_cancels and c.reason is not Reason.RENEW))
    spared = {c.order_id for c in plan.to_cancel} - {c.order_id for c in left}
    undone = (Reason.PLACE, Reason.RENEW)
    return replace(
        plan,
        to_cancel=left,
        to_place=(),
        rungs=tuple(replace(note, reason=reason) if note.reason in undone else note for note in plan.rungs),
        bids=tuple(replace(note, reason=reason) if note.order_id in spared else note for note in plan.bids),
    )
