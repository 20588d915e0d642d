"""The cost in calls of a bid and its end, by venue, from its capabilities."""

from __future__ import annotations

import pytest

from markets.base import NotSupported
from markets.venues import call_costs

MINUTE, HOUR = 60, 3600


def test_satflow_takes_one_call_for_a_place_and_two_for_all_cancels() -> None:
    costs = call_costs("satflow")
    assert (costs.round(1), costs.round(5), costs.round(100)) == (3, 7, 102)
    assert not costs.own_bids_by_slug
    assert [costs.life_s(minutes * MINUTE) for minutes in (15, 16, 90)] == [15 * MINUTE, 16 * MINUTE, 90 * MINUTE]


def test_ordnet_drafts_each_place_and_ends_each_bid_alone() -> None:
    costs = call_costs("ordnet")
    assert (costs.round(1), costs.round(5)) == (3, 15)
    assert costs.own_bids_by_slug


@pytest.mark.parametrize("venue", ["ordnet", "simulator-ordnet"])
def test_lives_are_what_the_venue_has(venue: str) -> None:
    """Six hours at the least; a life that is longer than any stays as it is and is refused there."""
    wanted = [16 * MINUTE, 6 * HOUR, 6 * HOUR + 1, 24 * HOUR + 1, 2_161 * HOUR]
    assert [call_costs(venue).life_s(each) // HOUR for each in wanted] == [6, 6, 12, 168, 2_161]


def test_a_venue_without_bids_has_costs_all_the_same() -> None:
    assert call_costs("unisat").round(0) == 0


def test_no_such_venue() -> None:
    with pytest.raises(NotSupported):
        call_costs("magiceden")
