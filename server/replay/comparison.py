"""Two configs of one task on the same recorded cycles, side by side, with what the recording cannot tell named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Any

from server.http.json_out import iso
from server.replay.paper_market import FILL_RULE
from server.replay.part import JournalPart
from server.replay.simulation import Run, Simulation
from server.replay.summary import fill_as_json, fill_prices
from strategy.bid_config import BidConfig, is_on
from strategy.entry import Entry

MOST_FILLS = 100
_CALLS = {"asks": "asks", "bids": "bids", "ownBids": "own_bids", "place": "place", "cancel": "cancel"}
_OF_FILLS = ("fills", "spentSats", "averagePrice", "averagePriceToFloor", "averagePriceToFloor24hLater", "newestFills")
_OF_BIDS = ("placed", "cancelled", *_OF_FILLS, "firstShare")


class Gap(StrEnum):
    """Things that a recording lacks; the fields that need one are null where no cycle has it."""

    SALES = "sales"  # sales into bids: a worker reads them only when a bid of its own has vanished
    BIDS = "bids"  # the bids of others: a task that does not need them reads none
    TRAIT = "trait"  # bids and asks of this trait: another one was recorded
    BUDGET = "budget"  # the room in this budget: the task did not share it
    IGNORED = "ignored"  # orders of addresses that were ignored then
    PACE = "pace"  # the market between the recorded cycles, when this config would have looked
    FLOOR = "floor"  # the floor at the time of a fill


def compared(part: JournalPart, own: BidConfig, changed: BidConfig) -> dict[str, Any]:
    """Replays both configs and returns the result as JSON values; without a cycle of the slug `cycles` is 0.

    Raises ReplayError.
    """
    runs = [Run(Simulation(config), is_journal=True) for config in (own, changed)]
    cycles, first_ms, last_ms, others = 0, None, None, 0
    for entry in _in_order(part.entries()):
        if entry.config.type != own.type or not is_on(own, entry.config.slug):
            others += 1
            continue
        for run in runs:
            run.step(entry, run.outcome.config)
        cycles, last_ms = cycles + 1, entry.now_ms
        first_ms = entry.now_ms if first_ms is None else first_ms
    return {
        "cycles": cycles,
        "from": None if first_ms is None else iso(first_ms),
        "to": None if last_ms is None else iso(last_ms),
        "journalFrom": None if part.first_ms is None else iso(part.first_ms),
        "isCut": part.is_cut,
        "unreadCycles": part.unread,
        "otherCycles": others,
        "fillRule": FILL_RULE,
        "own": _result(runs[0].outcome, cycles),
        "changed": _result(runs[1].outcome, cycles),
    }


def _in_order(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yields the entries that are later than all before them: a clock that was set back records no second past."""
    newest_ms = None
    for entry in entries:
        if newest_ms is None or entry.now_ms > newest_ms:
            newest_ms = entry.now_ms
            yield entry


def _result(outcome: Simulation, recorded: int) -> dict[str, Any]:
    prices, fills = fill_prices(outcome), outcome.fills
    found: dict[str, Any] = {
        "cycles": outcome.cycles,
        "placed": outcome.placed,
        "cancelled": outcome.cancelled,
        "fills": len(fills),
        "spentSats": prices.spent_sats,
        "averagePrice": prices.average,
        "averagePriceToFloor": prices.to_floor,
        "averagePriceToFloor24hLater": prices.to_later,
        "fillsWithFloor": prices.with_floor,
        "fillsWithFloor24hLater": prices.with_later,
        "newestFills": [fill_as_json(fill, outcome) for fill in reversed(fills[-MOST_FILLS:])],
        "firstShare": _of(outcome.top_ms, outcome.ranked_ms),
        "firstSeconds": outcome.top_ms // 1000,
        "rankKnownSeconds": outcome.ranked_ms // 1000,
        "skipped": _skipped(outcome.skipped),
        "calls": {name: outcome.calls[key] for name, key in _CALLS.items()} | {"total": outcome.calls.total()},
    }
    gaps = list(_gaps(outcome, recorded, len(fills) - prices.with_floor))
    for gap in gaps:
        if gap["isWhole"]:
            found |= dict.fromkeys(gap["fields"])
    return found | {"unknown": gaps}


def _gaps(outcome: Simulation, recorded: int, without_floor: int) -> Iterator[dict[str, Any]]:
    """Yields each gap with the fields that it touches; `isWhole` where no cycle, or fill, has the thing."""
    decided = outcome.cycles
    of_bids = (
        (Gap.BIDS, outcome.without_bids),
        (Gap.TRAIT, outcome.without_trait),
        (Gap.BUDGET, outcome.without_budget),
        (Gap.IGNORED, outcome.without_ignored),
    )
    for gap, missing in of_bids:
        if missing:
            yield _gap(gap, _OF_BIDS, missing, decided)
    if outcome.without_pace:
        yield _gap(Gap.PACE, ("calls",), outcome.without_pace, decided)
    if outcome.without_sales:
        yield _gap(Gap.SALES, _OF_FILLS, outcome.without_sales, recorded)
    if not outcome.ranked_ms and not outcome.without_bids:
        yield _gap(Gap.BIDS, ("firstShare",), decided, decided)
    if without_floor:
        yield _gap(Gap.FLOOR, ("averagePriceToFloor",), without_floor, len(outcome.fills))


def _gap(gap: Gap, fields: tuple[str, ...], missing: int, of: int) -> dict[str, Any]:
    return {"what": gap.value, "fields": list(fields), "missing": missing, "of": of, "isWhole": missing >= of}


def _skipped(labels: Counter[str]) -> list[dict[str, Any]]:
    """Returns the reasons without their details, the most frequent first."""
    reasons = Counter[str]()
    for label, count in labels.items():
        reasons[label.partition(" ")[0]] += count
    return [{"reason": reason, "count": reasons[reason]} for reason in sorted(reasons, key=lambda r: (-reasons[r], r))]


def _of(part_ms: int, whole_ms: int) -> Decimal | None:
    return (Decimal(part_ms) / whole_ms).quantize(Decimal("0.0001")) if whole_ms else None
