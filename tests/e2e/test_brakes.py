"""A brake reaches the marketplace without waiting for a worker's rest, also under a fault of the machine.

`python -m bench.brakes` measures the same at random moments, more often, and longer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pytest

from tests.e2e.adversity import ADVERSITIES, FullDisk, adverse
from tests.e2e.braking import BY_NAME, FLOOR, Ladders, Market, Outcome, braked, with_admin
from tests.e2e.installation import Installation, Trader
from tests.needs import need_root
from workers.bidding.bidder import LONGEST_REST_S

pytestmark = pytest.mark.slow

MOST_S = LONGEST_REST_S / 3  # a worker that is not woken takes its whole rest
RESTARTS = ("gateway-killed", "doors")  # a program, or its socket, has to come back first
MOST_OF_RESTART_S = LONGEST_REST_S * 2 / 3
TASKS, BIDS_EACH = 3, 4
_numbers = count()

Home = tuple[Installation, Trader]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with with_admin() as made:
        yield made


def whole_ladders(service: Installation, admin: Trader, market: Market, **config: int) -> Ladders:
    """Returns a new user's twelve bids, the moment after the last of them was placed."""
    slugs = [f"brake-{next(_numbers)}" for _ in range(TASKS)]
    for slug in slugs:
        service.put_collection(slug, [FLOOR])
    ladders = Ladders(service, admin, slugs, bidCount=BIDS_EACH, **config)
    ladders.start()
    ladders.until_whole(market)
    return ladders


def assert_no_bid_is_left(outcome: Outcome, most_s: float) -> None:
    assert outcome.ends, "the test is void: no bid was open"
    assert outcome.whole_seconds < most_s, outcome
    assert outcome.faults == [], outcome


@pytest.mark.parametrize("name", ["halt", "stop", "delete", "cap", "ceiling", "expel"])
def test_a_brake_ends_all_its_bids_before_a_worker_would_wake_up(home: Home, name: str) -> None:
    service, admin = home
    market = Market(service)
    ladders = whole_ladders(service, admin, market, loopSeconds=300)  # whose workers wake up every LONGEST_REST_S

    outcome = braked(BY_NAME[name], ladders, market, patience_s=LONGEST_REST_S)

    assert_no_bid_is_left(outcome, MOST_S)
    ladders.remove()


@pytest.mark.thorough_cases("hang", "workers-stopped", "signer-disk", "signer-disk-eaten")
@pytest.mark.parametrize("name", [name for name in ADVERSITIES if name != "nothing"])
def test_a_halt_ends_all_bids_while(name: str) -> None:
    kind = ADVERSITIES[name]
    if issubclass(kind, FullDisk):
        need_root("mount a small disk")
    with adverse(kind, random.Random(1)) as (fault, admin):
        market = Market(fault.service)
        ladders = whole_ladders(fault.service, admin, market)
        try:
            outcome = braked(BY_NAME["halt"], ladders, market, fault, patience_s=LONGEST_REST_S)
        finally:
            fault.heal()

    assert_no_bid_is_left(outcome, MOST_OF_RESTART_S if name in RESTARTS else MOST_S)
