"""Variants of the worked examples with numbers that were computed by hand from the rules, before they were run.

Each row says how its numbers come about. Unless it says otherwise: tick 1,000, least bid 10,000, balance ample, bids
that live older than the least age, outbidding off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec import structs

from strategy.book import Snapshot, VenueProfile
from strategy.config.bid import BidConfig, problems
from strategy.decision import Limits, Memory, OwnOrder
from tests.worlds import market as m

YOUNG = {"created_ms": m.NOW - 59_999}
OLD_RIVAL, NEW_RIVAL = m.NOW - 3_600_000, m.NOW - 1_000
RESERVED = structs.replace(m.ORDINALS, balance_model="reserved")
NO_EQUALS = structs.replace(m.ORDINALS, equal_bids_allowed=False)


@dataclass(frozen=True)
class Variant:
    """`rungs` are the labels of all rungs, `cancels` are (price, hard, reason); None is not looked at."""

    why: str
    config: BidConfig
    market: Snapshot | None
    places: list[int]
    rungs: list[str] | None = None
    own: Sequence[OwnOrder] = ()
    limits: Limits = m.AMPLE
    cancels: Sequence[tuple[int, bool, str]] = ()
    profile: VenueProfile | None = None
    memory: Memory = Memory()  # noqa: RUF009 - frozen
    marks: list[str] | None = None


def percent(low: str, high: str, count: int = 5, hardcap: int = 1_000_000, **more: Any) -> BidConfig:
    return m.ladder_config(
        bid_percent_low=Decimal(low), bid_percent_high=Decimal(high), bid_count=count, hardcap_sats=hardcap, **more
    )


def fixed(low: int, high: int, count: int = 5, **more: Any) -> BidConfig:
    limits = {"bid_mode": "fixed", "bid_fixed_low": low, "bid_fixed_high": high, "bid_count": count}
    return m.ladder_config(**{"hardcap_sats": 0, **limits, **more})


def outbid(low: int, high: int, count: int = 1, **more: Any) -> BidConfig:
    return fixed(low, high, count, outbid_enabled=True, **more)


def by_percent(share: str) -> dict[str, Any]:
    return {"outbid_mode": "percent", "outbid_percent": Decimal(share)}


def rune(**more: Any) -> BidConfig:
    percents = {"bid_percent_low": Decimal("0.5"), "bid_percent_high": Decimal("0.9")}
    return m.rune_config(**{**percents, "quantity": Decimal(1000), "bid_count": 3, **more})


def sats(per_order: int, count: int = 2, low: str = "0.5", high: str = "0.75", **more: Any) -> BidConfig:
    ends = {"bid_percent_low": Decimal(low), "bid_percent_high": Decimal(high), "bid_count": count}
    return m.rune_config(quantity_mode="sats", sats_per_order=per_order, **ends, **more)


def lots(*asks: tuple[str, str], **more: Any) -> Snapshot:
    return Snapshot(m.NOW, tuple(m.rune_ask(*each) for each in asks), **more)


def trait(low: str = "0.5", high: str = "0.8", count: int = 2, **more: Any) -> BidConfig:
    return percent(low, high, count, **{"bid_type": "trait", "trait_type": "Hat", "trait_value": "Crown", **more})


LADDER = m.ladder_config()
HUNDRED = m.book(100_000)


def holds(each: Variant) -> None:
    """Fails unless the plan is the row's."""
    assert problems(each.config) == []

    result = m.plan(each.config, each.market, each.own, each.limits, profile=each.profile, memory=each.memory)

    assert m.placed(result) == each.places
    assert m.cancelled(result) == list(each.cancels)
    if each.rungs is not None:
        assert [note.label for note in result.rungs] == each.rungs
    if each.marks is not None:
        assert [str(mark) for mark in result.marks] == each.marks
