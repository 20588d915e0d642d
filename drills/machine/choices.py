"""Choices for examples: configs, prices, and the venue's failures."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from strategy.config.bid import ActiveHours, BidConfig, BidLevel, FloorDrop, OnFill, problems
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.shapes import replace

SLUGS, TICKER = ("cats", "dogs"), "MODELRUNE"
# Of each operation of the venue, the ways in which it may fail. Left out are lies that leave nobody a way to know: a
# stale list of sales, and a stale book.
ANY = ("timeout", "cut", "error_500", "rate_429", "bad_json", "slow", "refuse_400", "auth_401")
LOST = ("late", "accept_then_timeout", "accept_then_500")
MODES = {
    "place": (*ANY, *LOST, "accept_twice"),
    "cancel": (*ANY, *LOST, "cancel_lie"),
    "own_bids": (*ANY, "stale"),
    "challenge": ANY,
    "book": ANY,
    "sales": ANY,
    "balance": ANY,
    "fees": ANY,
}
FAULTS = st.sampled_from(sorted(MODES)).flatmap(
    lambda operation: st.tuples(st.just(operation), st.sampled_from(MODES[operation]))
)
# Answers that are lost most of all. A venue that takes bids twice would hide that we send them twice.
WRITES_FAIL = st.one_of(
    st.tuples(st.just("place"), st.sampled_from((*LOST, *LOST, *ANY))),
    st.tuples(st.just("cancel"), st.sampled_from((*LOST, *ANY, "cancel_lie"))),
)
THOUSANDS = 1_000

whole = st.integers(0, 7)
floors = st.sampled_from([40, 60, 80, 100, 101, 140, 200]).map(lambda price: price * THOUSANDS)
rivals = st.lists(st.integers(10, 100).map(lambda price: price * THOUSANDS), max_size=3)
states = st.sampled_from(["run", "run", "reduce", "halt"])


def _seldom(ordinary: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([ordinary] * 10 * len(others) + list(others))


COMMON = {
    "bid_count": st.integers(1, 4),
    "hardcap_sats": st.sampled_from([40_000, 75_000, 99_000, 150_000]),
    "max_bid_total": st.sampled_from([0, 0, 60_000, 90_000, 140_000]),
    "bid_expiry_minutes": st.sampled_from([None, 15, 20]),
    "loop_seconds": st.sampled_from([20, 60, 60, 10]),
    "outbid_enabled": st.booleans(),
    "outbid_mode": st.sampled_from(["fixed", "percent"]),
    "update_bid_enabled": st.booleans(),
    "only_bid_if_highest": _seldom(False, True),
    "cancel_on_stop": st.sampled_from([True, True, True, False]),
    "max_fills": _seldom(0, 1, 2),
    "spend_cap_sats": _seldom(0, 100_000),
    "replace_mode": st.sampled_from(["auto", "auto", "breakFirst", "makeFirst"]),
    "dry_run": _seldom(False, True),
    "ladder_shape": _seldom("even", "geometric", "top"),
    "pause_after_fill_seconds": _seldom(60, 0, 600),
    "max_fills_per_day": _seldom(0, 1),
    "spend_cap_per_day_sats": _seldom(0, 100_000),
    "only_while_floor_between": _seldom(None, (Decimal(50_000), Decimal(120_000))),
    "pause_on_floor_drop": _seldom(None, FloorDrop(Decimal("0.1"), 10, 20)),
    "active_hours": _seldom(None, ActiveHours("Europe/Berlin", "08:00", "20:00")),
    "ignore_addresses": _seldom((), ("bc1qnobodyhere0000000000000",)),
    "budget_id": _seldom(None, 1),  # stands for the owner's own
}
RANGE = {
    "bid_percent_low": st.sampled_from([Decimal("0.15"), Decimal("0.4")]),
    "bid_percent_high": st.sampled_from([Decimal("0.75"), Decimal("0.9"), Decimal("1.1")]),
}
ordinals = st.builds(
    BidConfig,
    slug=st.sampled_from(SLUGS),
    bid_mode=st.sampled_from(["percent", "percent", "fixed"]),
    bid_fixed_low=st.sampled_from([10_000, 20_500, 30_000]),
    bid_fixed_high=st.sampled_from([30_000, 55_500, 90_000]),
    outbid_amount=st.sampled_from([500, 1_000, 2_500]),
    **COMMON,
    **RANGE,
)
runes = st.builds(
    BidConfig,
    slug=st.just(TICKER),
    type=st.just("rune"),
    bid_mode=_seldom("percent", "fixed"),
    bid_fixed_low=st.sampled_from([1_000, 5_000]),
    bid_fixed_high=st.sampled_from([9_999, 60_000]),
    quantity=st.sampled_from([Decimal(100), Decimal(777)]),
    quantity_mode=st.sampled_from(["quantity", "sats"]),
    sats_per_order=st.sampled_from([20_000, 33_333]),
    use_vwap=st.booleans(),
    depth_sats=st.sampled_from([10_000, 60_000]),
    **COMMON,
    **RANGE,
)
LEVELS = (BidLevel(Decimal("0.85"), 1), BidLevel(Decimal("0.6"), 2))


RULE = OnFill(dump_listing_config(ListingConfig(min_margin=Decimal("0.1"))), start=False)


def _to_vault(config: BidConfig, is_wanted: bool, rule: OnFill | None) -> BidConfig:
    return replace(config, deliver_to="vault", on_fill=rule) if is_wanted else config


def _with_levels(config: BidConfig, are_wanted: bool) -> BidConfig:
    """Returns the config with levels in place of its even ladder, where they are fractions."""
    return replace(config, bid_levels=LEVELS, bid_count=3) if are_wanted and config.bid_mode == "percent" else config


ordinals = st.builds(_with_levels, ordinals, _seldom(False, True))
ordinals = st.builds(_to_vault, ordinals, _seldom(False, True), st.sampled_from([None, RULE]))
ordinals = ordinals.filter(lambda config: not problems(config))
configs = st.one_of(ordinals, ordinals, runes.filter(lambda config: not problems(config)))
