"""Every field of a config does something: changed alone, it changes the plan."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import fields

from strategy.book import History, Snapshot
from strategy.config.bid import ActiveHours, BidConfig, BidLevel, FloorDrop, OnFill, problems, unsupported
from strategy.config.table import table_of
from strategy.decision import BidPlan
from strategy.guards import measure
from tests.shapes import replace
from tests.worlds.market import NOW, ask, bid, book, ladder_config, orders, plan, rivals, rune_ask, rune_config

MARKET = replace(rivals(book(100_000), 30_000), trait_asks=(ask(110_000),))
RUNE = Snapshot(NOW, (rune_ask("5000", "20"), rune_ask("100000", "30")), bids=(bid(9_000, "1000"),), divisibility=2)
WITH_MAKER = replace(MARKET, bids=(structs.replace(bid(30_000), maker="r" * 26),))
FALLEN = replace(MARKET, history=History(highest=Decimal(120_000), lowest=Decimal(101_000)))
OFF_TARGET = orders(70_000, 33_000)
DUE = orders(75_000, expires_ms=NOW + 80_000)

LONG_LOOP = ladder_config(loop_seconds=100, bid_expiry_minutes=15)
FIXED = ladder_config(bid_mode="fixed")
OUTBID = ladder_config(outbid_enabled=True)
BY_PERCENT = replace(OUTBID, outbid_mode="percent", outbid_percent=Decimal("0.05"))
TRAIT = ladder_config(bid_type="trait", trait_type="Hat", trait_value="Crown")
BY_QUANTITY = rune_config(quantity=Decimal(1_000))
BY_SATS = rune_config(quantity_mode="sats", sats_per_order=50_000)
VWAP = replace(BY_QUANTITY, use_vwap=True, depth_sats=500_000)

# field -> a config, what the field becomes, the market and own orders in which that shows
FLIPS: dict[str, tuple[BidConfig, Any, Snapshot, Any]] = {
    "type": (ladder_config(slug="CATS"), "rune", replace(MARKET, asks=(rune_ask("1", "99999.5"),)), ()),
    "bid_mode": (ladder_config(), "fixed", MARKET, ()),
    "bid_percent_low": (ladder_config(), Decimal("0.2"), MARKET, ()),
    "bid_percent_high": (ladder_config(), Decimal("0.7"), MARKET, ()),
    "bid_fixed_low": (FIXED, 20_000, MARKET, ()),
    "bid_fixed_high": (FIXED, 60_000, MARKET, ()),
    "bid_count": (ladder_config(), 4, MARKET, ()),
    "hardcap_sats": (ladder_config(), 70_000, MARKET, ()),
    "outbid_enabled": (ladder_config(), True, MARKET, ()),
    "outbid_mode": (replace(OUTBID, outbid_amount=5_000), "percent", MARKET, ()),
    "outbid_amount": (OUTBID, 5_000, MARKET, ()),
    "outbid_percent": (BY_PERCENT, Decimal("0.2"), MARKET, ()),
    "replace_mode": (ladder_config(), "breakFirst", MARKET, OFF_TARGET),
    "update_bid_enabled": (ladder_config(), False, MARKET, OFF_TARGET),
    "only_bid_if_highest": (ladder_config(), True, MARKET, ()),
    "bid_type": (replace(TRAIT, bid_type="collection"), "trait", MARKET, ()),
    "trait_type": (TRAIT, "Eyes", MARKET, ()),
    "trait_value": (TRAIT, "Cap", MARKET, ()),
    "quantity": (BY_QUANTITY, Decimal(2_000), RUNE, ()),
    "quantity_mode": (replace(BY_SATS, quantity_mode="quantity", quantity=Decimal(1_000)), "sats", RUNE, ()),
    "sats_per_order": (BY_SATS, 60_000, RUNE, ()),
    "use_vwap": (replace(VWAP, use_vwap=False), True, RUNE, ()),
    "depth_sats": (VWAP, 150_000, RUNE, ()),
    "bid_expiry_minutes": (LONG_LOOP, 420, MARKET, orders(75_000, expires_ms=NOW + 250_000)),
    "loop_seconds": (ladder_config(), 20, MARKET, DUE),
    "update_tolerance": (ladder_config(), Decimal("0.1"), MARKET, OFF_TARGET),
    "keep_within_gap": (ladder_config(), Decimal("0.1"), MARKET, OFF_TARGET),
    "bid_levels": (ladder_config(), (BidLevel(Decimal("0.5"), 5),), MARKET, ()),
    "ladder_shape": (ladder_config(), "geometric", MARKET, ()),
    "only_while_floor_between": (ladder_config(), (Decimal(1), Decimal(99_999)), MARKET, ()),
    "pause_on_floor_drop": (ladder_config(), FloorDrop(Decimal("0.1"), 60, 120), FALLEN, ()),
    "ignore_addresses": (OUTBID, ("r" * 26,), WITH_MAKER, ()),
    "min_age_seconds": (ladder_config(), 601, MARKET, OFF_TARGET),
}
# Fields that others use: the readers, the placing and the limits; `max_fills` and the like come as Limits.
ELSEWHERE = {
    "slug", "max_bid_total", "fee_rate", "cancel_on_stop", "max_fills", "spend_cap_sats", "dry_run",
    "pause_after_fill_seconds", "max_fills_per_day", "spend_cap_per_day_sats", "active_hours", "deliver_to", "on_fill",
    "budget_id",
}  # fmt: skip


def acts(result: BidPlan) -> tuple[Any, ...]:
    return result.to_cancel, result.to_place, [note.reason for note in result.rungs]


@pytest.mark.parametrize("name", FLIPS)
def test_a_field_that_were_ignored_would_show(name: str) -> None:
    config, value, market, own = FLIPS[name]
    other = replace(config, **{name: value})
    assert problems(config) == problems(other) == []
    assert getattr(config, name) != value

    assert acts(plan(config, market, own)) != acts(plan(other, market, own))


def test_every_field_is_here_or_used_elsewhere() -> None:
    assert FLIPS.keys().isdisjoint(ELSEWHERE)
    assert FLIPS.keys() | ELSEWHERE == {field.name for field in fields(BidConfig)}


def test_a_replay_shows_every_field_that_a_plan_obeys() -> None:
    """Of another slug or kind there is no recording."""
    table = table_of(BidConfig)
    assert {name for name in FLIPS if not table[name].is_replayed} == {"type"}


def test_what_is_used_elsewhere_changes_no_plan() -> None:
    changes = {
        "slug": "other-cats", "max_bid_total": 1, "fee_rate": "fastestFee", "cancel_on_stop": False, "max_fills": 1,
        "spend_cap_sats": 1, "dry_run": True, "pause_after_fill_seconds": 0, "max_fills_per_day": 1,
        "spend_cap_per_day_sats": 1, "active_hours": ActiveHours("UTC", "08:00", "09:00"), "deliver_to": "vault",
        "on_fill": OnFill("{}", start=True),
        "budget_id": 1,
    }  # fmt: skip
    assert changes.keys() == ELSEWHERE
    for name, value in changes.items():
        config = ladder_config(**{name: value})
        assert unsupported(config) == []
        assert acts(plan(config, MARKET, OFF_TARGET)) == acts(plan(ladder_config(), MARKET, OFF_TARGET)), name


def test_the_depth_and_the_trait_are_told_apart_in_the_history() -> None:
    ignoring = ladder_config(ignore_addresses=("b", "a"))
    assert measure(ignoring) == measure(replace(ignoring, ignore_addresses=("a", "b")))
    configs = [
        ladder_config(),
        ignoring,
        TRAIT,
        replace(TRAIT, trait_value="Cap"),
        VWAP,
        replace(VWAP, depth_sats=1_000),
    ]

    assert len({measure(config) for config in configs}) == len(configs)
