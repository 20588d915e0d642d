"""The replay process: compares two configs of a task on the same recorded cycles.

It reads one JSON object from stdin, prints one to stdout and ends. It has low priority, limits of time and memory, no
network and no database, and writes no file, so that a replay of a large journal does not disturb trading.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct, field, structs
from msgspec.structs import replace

from core.fields import Count, Price, Quantity, Sats, Time, iso, words
from core.process import end_with_parent, give_up_network
from models.ledger.limits import fill_limits, hold
from models.ledger.orders import DAY_MS, Fills
from server.http.shapes import Answer, ReasonCode, camel, code_of, dumps, exact
from server.replay.journal import MOST_BYTES, MOST_CYCLES, JournalPart, ReplayError
from strategy.config.bid import BidConfig, is_on, load_bid_config
from strategy.decision import Entry, Limits
from strategy.replay import FILL_RULE, Fill, Run, Simulation, UndecidableError

MOST_FILLS = 100
_OF_FILLS = (
    *("fills", "spent_sats", "average_price", "average_price_to_floor", "average_price_to_floor_24h_later"),
    "newest_fills",
)
_OF_BIDS = ("placed", "cancelled", *_OF_FILLS, "first_share")

_CALLS = ("asks", "bids", "own_bids", "place", "cancel")
Share = Annotated[Decimal, Meta(description="A fraction: 1 is all of it.", extra_json_schema={"minimum": 0})]


class Gap(StrEnum):
    """Data that a recording may lack. The fields that need it are null if no cycle has it."""

    SALES = "sales"  # sales into bids, because a worker reads them only after its own bid has vanished
    BIDS = "bids"  # others' bids, because a task reads them only if its config needs them
    TRAIT = "trait"  # bids and asks for this trait, because another trait was recorded
    BUDGET = "budget"  # the remaining allowance of this budget, because the task did not share it
    IGNORED = "ignored"  # orders of addresses that were ignored then
    PACE = "pace"  # the market between the recorded cycles, at times when this config would have read it
    FLOOR = "floor"  # the floor at the time of a fill


class ReplayGap(Answer, frozen=True, kw_only=True):
    """A thing that the recording lacks, so that it says less than the truth about these fields."""

    what: Annotated[
        str,
        code_of(
            Gap,
            "`sales` into bids (a worker reads them only when a bid of its own has vanished), `bids` of others, bids "
            "and asks of this `trait`, the room in this `budget`, orders of addresses that were `ignored` then, the "
            "market at this `pace`, the `floor` at a fill.",
        ),
    ]
    fields: list[str]
    missing: Annotated[Count, words("Cycles without it; of `floor`, fills.")]
    of: Annotated[Count, words("All cycles, or fills.")]
    is_whole: Annotated[bool, words("None of them has it: the fields are null.")]


class ReplayedFill(Answer, frozen=True, kw_only=True):
    """A bid that a recorded sale would have filled."""

    time: Time
    price: Annotated[Sats, words("Sats of the whole order.")]
    quantity: Annotated[Quantity, words("Items or tokens.")]
    sold_at: Annotated[Sats, words("The price at which the recorded bidder bought it.")]
    floor: Annotated[Price | None, words("As last recorded before it; null: not recorded.")]
    floor_24h_later: Annotated[Price | None, words("A day, or up to an hour more, later; null: unknown.")]


class SkippedRungs(Answer, frozen=True, kw_only=True):
    """Rungs that got no bid for one reason, over all cycles."""

    reason: ReasonCode
    count: Count


class ReplayedCalls(Answer, frozen=True, kw_only=True):
    """Calls of the marketplace, had nothing been shared with other tasks."""

    asks: Count
    bids: Annotated[Count, words("Of others.")]
    own_bids: Count
    place: Count
    cancel: Count
    total: Count


class ReplayedConfig(Answer, frozen=True, kw_only=True):
    """The simulated result of one config. What the recording cannot tell is null, and named in `unknown`."""

    cycles: Annotated[Count, words("Decided ones: fewer than recorded with a larger `loopSeconds`.")]
    placed: Annotated[Count | None, words("Bids.")]
    cancelled: Annotated[Count | None, words("Bids.")]
    fills: Annotated[Count | None, words("Bids that recorded sales would have filled.")]
    spent_sats: Sats | None
    average_price: Annotated[Price | None, words("Of an item or token; null without a fill.")]
    average_price_to_floor: Annotated[Share | None, words("Prices of the fills to the floor at each.")]
    average_price_to_floor_24h_later: Annotated[Share | None, words("To the floor a day after each.")]
    fills_with_floor: Annotated[Count, words("Those in `averagePriceToFloor`.")]
    fills_with_floor_24h_later: Annotated[Count, words("Those in `averagePriceToFloor24hLater`.")]
    newest_fills: Annotated[list[ReplayedFill] | None, words("Newest first, at most 100.")]
    first_share: Annotated[Share | None, words("Of the time in which the others are known, as first.")]
    first_seconds: Count
    rank_known_seconds: Annotated[Count, words("The time in which the others are known.")]
    skipped: Annotated[list[SkippedRungs], words("The most frequent first.")]
    calls: ReplayedCalls | None
    unknown: list[ReplayGap]


class Compared(Answer, frozen=True, kw_only=True):
    """Two configs on the same recorded cycles."""

    cycles: Annotated[
        int,
        Meta(ge=1, le=MOST_CYCLES),
        words(f"Recorded cycles: at most the newest {MOST_CYCLES:,} of the time asked for, of {MOST_BYTES:,} bytes."),
    ]
    from_: Annotated[Time, words("The first of them.")] = field(name="from")
    to: Annotated[Time, words("The last of them.")]
    journal_from: Annotated[Time, words("Where the task's journal begins.")]
    is_cut: Annotated[bool, words("There are older ones of the time asked for, too many to take.")]
    unread_cycles: Annotated[Count, words("Lines of the journal that cannot be read.")]
    other_cycles: Annotated[Count, words("Cycles about another slug, which the task had then.")]
    fill_rule: Annotated[str, words("When a recorded sale fills a simulated bid.")]
    own: Annotated[ReplayedConfig, words("With the task's config of now.")]
    changed: Annotated[ReplayedConfig, words("With the changes.")]


class Recorded(Struct, frozen=True, kw_only=True):
    """The answer of a replay's process: the result, or the reason for none.

    `refused` is a fault of the recording. If both are missing, the journal has no cycle for the time and the slug.
    """

    compared: Compared | None = None
    refused: str = ""
    journal_from: str | None = None
    other_cycles: int = 0


def compared(part: JournalPart, own: BidConfig, changed: BidConfig) -> Recorded:
    """Replays both configs. Raises ReplayError."""
    runs = [Run(Simulation(config), after_fills, is_journal=True) for config in (own, changed)]
    times, others = list[int](), 0
    for entry in _in_order(part.entries()):
        if entry.config.type != own.type or not is_on(own, entry.config.slug):
            others += 1
            continue
        for run in runs:
            try:
                run.step(entry, run.outcome.config)
            except UndecidableError as error:
                raise undecidable(error) from None
        times.append(entry.now_ms)
    journal_from = None if part.first_ms is None else iso(part.first_ms)
    if not times or journal_from is None:
        return Recorded(journal_from=journal_from, other_cycles=others)
    result = Compared(
        cycles=len(times),
        from_=iso(times[0]),
        to=iso(times[-1]),
        journal_from=journal_from,
        is_cut=part.is_cut,
        unread_cycles=part.unread,
        other_cycles=others,
        fill_rule=FILL_RULE,
        own=_result(runs[0].outcome, len(times)),
        changed=_result(runs[1].outcome, len(times)),
    )
    return Recorded(compared=result)


def after_fills(limits: Limits, config: BidConfig, sold: Sequence[Fill], now_ms: int) -> Limits:
    """Returns a task's limits after these fills, by the ledger's rules."""
    newest = tuple(sorted((fill.sale.sold_ms for fill in sold), reverse=True)[:10])
    today = [fill.order.price_sats for fill in sold if fill.sale.sold_ms > now_ms - DAY_MS]
    fills = Fills(len(sold), sum(fill.order.price_sats for fill in sold), newest, len(today), sum(today))
    return fill_limits(replace(limits, hold=hold(config, fills, now_ms)), config, fills)


def undecidable(error: UndecidableError) -> ReplayError:
    """Returns the fault of a recording with a cycle that cannot be decided."""
    return ReplayError(f"the cycle of {iso(error.now_ms)} cannot be decided: {error}")


def _in_order(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yields the entries that are later than all before them; skips entries recorded after the clock was set back."""
    newest_ms = None
    for entry in entries:
        if newest_ms is None or entry.now_ms > newest_ms:
            newest_ms = entry.now_ms
            yield entry


def _result(outcome: Simulation, recorded: int) -> ReplayedConfig:
    prices, fills, calls = fill_prices(outcome), outcome.fills, outcome.calls
    gaps = list(_gaps(outcome, recorded, len(fills) - prices.with_floor))
    found = ReplayedConfig(
        cycles=outcome.cycles,
        placed=outcome.placed,
        cancelled=outcome.cancelled,
        fills=len(fills),
        spent_sats=prices.spent_sats,
        average_price=prices.average,
        average_price_to_floor=prices.to_floor,
        average_price_to_floor_24h_later=prices.to_later,
        fills_with_floor=prices.with_floor,
        fills_with_floor_24h_later=prices.with_later,
        newest_fills=[fill_shown(fill, outcome) for fill in reversed(fills[-MOST_FILLS:])],
        first_share=_of(outcome.top_ms, outcome.ranked_ms),
        first_seconds=outcome.top_ms // 1000,
        rank_known_seconds=outcome.ranked_ms // 1000,
        skipped=_skipped(outcome.skipped),
        calls=ReplayedCalls(total=calls.total(), **{name: calls[name] for name in _CALLS}),
        unknown=[gap for gap, _ in gaps],
    )
    unknown = {name: None for gap, names in gaps if gap.is_whole for name in names}
    return structs.replace(found, **unknown)


def _gaps(outcome: Simulation, recorded: int, without_floor: int) -> Iterator[tuple[ReplayGap, tuple[str, ...]]]:
    """Yields each gap with the fields that it affects; `isWhole` if no cycle, or no fill, has the data."""
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
        yield _gap(Gap.BIDS, ("first_share",), decided, decided)
    if without_floor:
        yield _gap(Gap.FLOOR, ("average_price_to_floor",), without_floor, len(outcome.fills))


def _gap(gap: Gap, names: tuple[str, ...], missing: int, of: int) -> tuple[ReplayGap, tuple[str, ...]]:
    shown = ReplayGap(what=gap, fields=[*map(camel, names)], missing=missing, of=of, is_whole=missing >= of)
    return shown, names


def _skipped(labels: Counter[str]) -> list[SkippedRungs]:
    """Returns the reasons without their details, the most frequent first."""
    reasons = Counter[str]()
    for label, count in labels.items():
        reasons[label.partition(" ")[0]] += count
    ordered = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    return [SkippedRungs(reason=reason, count=reasons[reason]) for reason in ordered]


def _of(part_ms: int, whole_ms: int) -> Decimal | None:
    return exact((Decimal(part_ms) / whole_ms).quantize(Decimal("0.0001"))) if whole_ms else None


class FillPrices(NamedTuple):
    """Averages over fills: sats per item or token, and the price relative to the floor then and 24 hours later.

    `with_floor` and `with_later` count the fills whose floor is recorded; an average over no fills is None.
    """

    spent_sats: int
    average: Decimal | None
    to_floor: Decimal | None
    to_later: Decimal | None
    with_floor: int
    with_later: int


def fill_prices(outcome: Simulation) -> FillPrices:
    """Returns the averages of all fills."""
    fills = outcome.fills
    units = [_share(Decimal(fill.order.price_sats), fill.order.quantity) for fill in fills]
    floors = [outcome.floor_at(fill.sale.sold_ms) for fill in fills]
    later = [outcome.floor_later(fill.sale.sold_ms) for fill in fills]
    return FillPrices(
        spent_sats=sum(fill.order.price_sats for fill in fills),
        average=_average(units),
        to_floor=_average(_ratios(units, floors)),
        to_later=_average(_ratios(units, later)),
        with_floor=sum(floor is not None for floor in floors),
        with_later=sum(floor is not None for floor in later),
    )


def fill_shown(fill: Fill, outcome: Simulation) -> ReplayedFill:
    """Returns a fill with the last floor recorded before it, and the floor 24 hours later; None if unknown."""
    floor, later = outcome.floor_at(fill.sale.sold_ms), outcome.floor_later(fill.sale.sold_ms)
    return ReplayedFill(
        time=iso(fill.sale.sold_ms),
        price=fill.order.price_sats,
        quantity=exact(fill.order.quantity),
        sold_at=fill.sale.price,
        floor=exact(floor),
        floor_24h_later=exact(later),
    )


def _share(number: Decimal, of: Decimal) -> Decimal:
    """Divides with enough digits for prices of tokens."""
    with localcontext() as context:
        context.prec = 50
        return number / of


def _ratios(units: list[Decimal], floors: list[Decimal | None]) -> list[Decimal]:
    return [_share(unit, floor) for unit, floor in zip(units, floors, strict=True) if floor is not None]


def _average(numbers: list[Decimal]) -> Decimal | None:
    """Returns the average to six decimals."""
    if not numbers:
        return None
    with localcontext() as context:
        context.prec = 60
        return exact((sum(numbers, Decimal(0)) / len(numbers)).quantize(Decimal("0.000001"), ROUND_HALF_EVEN))


NICE = 10
CPU_S = 40
MEMORY_BYTES = 512 << 20


def main(arguments: list[str]) -> int:
    """Runs the replay that stdin describes. A fault of the recording is reported as `refused`."""
    end_with_parent(int(arguments[0]))
    _be_modest()
    print(dumps(_answer(json.load(sys.stdin))))
    return 0


def _answer(asked: dict[str, Any]) -> Recorded:
    try:
        part = JournalPart([Path(each) for each in asked["paths"]], asked["from_ms"], asked["to_ms"])
        return compared(part, load_bid_config(asked["own"]), load_bid_config(asked["changed"]))
    except ReplayError as error:
        return Recorded(refused=str(error))


def _be_modest() -> None:
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A failure is accepted: on a kernel without such filters the replay still only reads its user's own files.
    give_up_network()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
