"""What a month of a config costs, and from which expiry on that fits a quota."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strategy.config import BidConfig
from strategy.monthly import fits_from_minutes, least_calls, monthly_calls, usable

CATS = BidConfig(slug="cats", hardcap_sats=100_000)
OUTBIDDING = replace(CATS, outbid_enabled=True)
RUNE = BidConfig(slug="AAA•BBB", type="rune", hardcap_sats=100_000)
QUOTA = 100_000


def test_one_bid_at_the_default_expiry_is_about_three_thousand_places() -> None:
    one, two = monthly_calls(CATS, 1), monthly_calls(CATS, 2)
    assert two.writes - one.writes == 2_979
    assert (one.reads, one.writes) == (216_000, 3 * 2_979)


def test_what_cannot_be_saved_are_the_rounds_and_one_look_in_ten_minutes() -> None:
    rounds, looks = 2_979, 4_320
    assert monthly_calls(CATS, 5).least == rounds * (5 + 2 + 3) + 2 * looks
    assert monthly_calls(OUTBIDDING, 5).least == rounds * (5 + 2 + 4) + 3 * looks
    assert monthly_calls(RUNE, 5).least == rounds * (5 + 2 + 2) + looks  # its asks are another provider's
    assert monthly_calls(CATS, 0).least == 2 * looks
    assert monthly_calls(replace(CATS, loop_seconds=3_600, bid_expiry_minutes=10_080), 0).least == 2 * 720


def test_tasks_on_one_slug_share_their_looks() -> None:
    alone = least_calls([(CATS, 5)])
    other = replace(CATS, slug="Cats ", bid_count=3)
    assert least_calls([(CATS, 5), (other, 0)]) == alone
    assert least_calls([(CATS, 5), (replace(CATS, slug="dogs"), 0)]) == alone + 2 * 4_320


@pytest.mark.parametrize("config", [CATS, OUTBIDDING, RUNE, replace(CATS, loop_seconds=600, bid_expiry_minutes=60)])
@pytest.mark.parametrize("bids", [1, 5, 30, 100])
def test_it_fits_from_the_least_expiry_on(config: BidConfig, bids: int) -> None:
    left = usable(QUOTA, taken=0)
    assert left == 90_000
    minutes = fits_from_minutes([(config, bids)], left)
    assert minutes is not None
    assert monthly_calls(replace(config, bid_expiry_minutes=minutes), bids).least <= left
    floor = max(15, -(-(2 * config.loop_s + 60) // 60))
    assert minutes >= floor
    if minutes > floor:
        assert monthly_calls(replace(config, bid_expiry_minutes=minutes - 1), bids).least > left


def test_examples() -> None:
    assert fits_from_minutes([(CATS, 5)], 90_000) == 15
    assert fits_from_minutes([(CATS, 30)], 90_000) == 21
    assert fits_from_minutes([(CATS, 100)], 90_000) == 58
    assert fits_from_minutes([(CATS, 30), (replace(CATS, slug="dogs"), 30)], 90_000) == 44
    assert fits_from_minutes([(CATS, 5)], 5_000) is None  # not even the looks
