"""Words for a task's owner on why nothing is placed though nothing has failed."""

from __future__ import annotations

from core.files import SHORT_OF_DISK
from markets.gateway_client import skew_words
from strategy.plan import BudgetRoom
from strategy.reasons import FaultCode, Reason, Step
from workers.bidding.decision import Decision
from workers.bidding.inputs import CycleInputs


def note_restraints(inputs: CycleInputs, decision: Decision) -> None:
    """Adds to the cycle's faults every restraint of the task's places."""
    config, limits, rungs = inputs.config, decision.entry.limits, decision.plan.rungs

    def note(code: FaultCode, text: str, **params: int) -> None:
        inputs.faults.add(Step.PLACE, "place", text, backs_off=False, code=code, fund=None, **params)

    if inputs.assignment.is_short_of_disk:
        note(FaultCode.DISK_FULL, SHORT_OF_DISK)
    if inputs.assignment.damage:
        note(FaultCode.DATABASE_DAMAGED, inputs.assignment.damage)
    if inputs.assignment.refusal:
        note(FaultCode.NOT_ENTITLED, inputs.assignment.refusal)
    if limits.fills_left == 0:
        text = f"as many bids were filled as maxFills ({config.max_fills}) allows"
        note(FaultCode.MAX_FILLS, text, most=config.max_fills)
    if limits.spend_left_sats == 0:
        text = f"spendCapSats ({config.spend_cap_sats}) is spent"
        note(FaultCode.SPEND_CAP, text, mostSats=config.spend_cap_sats)
    if limits.fills_left_today == 0:
        text = f"as many bids were filled within 24 hours as maxFillsPerDay ({config.max_fills_per_day}) allows"
        note(FaultCode.MAX_FILLS_PER_DAY, text, most=config.max_fills_per_day)
    if limits.spend_left_today_sats == 0:
        text = f"spendCapPerDaySats ({config.spend_cap_per_day_sats}) was spent within 24 hours"
        note(FaultCode.SPEND_CAP_PER_DAY, text, mostSats=config.spend_cap_per_day_sats)
    if limits.budget is not None and any(rung.reason is Reason.BUDGET for rung in rungs):
        note(FaultCode.BUDGET, f"the budget {limits.budget.name!r} {_left(limits.budget)}")
    if limits.hold is Reason.FILL_BURST:
        text = "several bids were filled within ten minutes, which a market that turns does: nothing is placed"
        note(FaultCode.FILL_BURST, f"{text} until that is ten minutes ago")
    if limits.hold is Reason.CLOCK_SKEW:
        skew_s = inputs.context.market.skew_s
        note(FaultCode.CLOCK_SKEW, f"{skew_words(skew_s)}; set it right", skewSeconds=round(skew_s))
    if any(rung.reason is Reason.RANGE_EMPTY and rung.detail == "hardcap" for rung in rungs):
        note(FaultCode.HARDCAP, _low_cap(inputs), hardcapSats=config.hardcap_sats)
    if limits.rungs is not None and any(rung.reason is Reason.QUOTA for rung in rungs):
        which = f"only the top {limits.rungs} of the ladder get new bids" if limits.rungs else "no new bids for now"
        note(FaultCode.QUOTA, f"the marketplace's quota of calls runs short: {which}", rungs=limits.rungs)


def _left(room: BudgetRoom) -> str:
    """Describes the room of a budget in which not all of the ladder fits."""
    found = [] if room.sats is None else [f"{max(0, room.sats)} sats"]
    found += [] if room.orders is None else [f"{max(0, room.orders)} fills"]
    return f"leaves this task {' and '.join(found)}, its open bids included"


def _low_cap(inputs: CycleInputs) -> str:
    """Describes the fault of a hard cap that leaves no price to bid, and its remedy."""
    if inputs.config.hardcap_sats < inputs.profile.min_bid:
        return "the hard cap is below the market's least bid: raise it"
    if inputs.config.bid_mode == "fixed":
        return "the hard cap is below bidFixedLow: raise it"
    return "the hard cap is below bidPercentLow of the floor: raise it or use fixed mode"
