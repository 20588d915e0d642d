"""A short month divided between two users, asked over the socket: each is told, and held to, their own share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from markets.base import Refused
from markets.client import AMPLE, MarketClient
from tests.gateway.conftest import ORDER, Bench, soon
from tests.gateway.listing_examples import ASK, VAULT
from tests.gateway.listing_examples import ORDER as LISTING
from tests.gateway.test_listings import CONTENTS, INTENT, LIST, TAKEN, _page
from tests.gateway.test_quota_gateway import Make, short

GREEDY, MODEST = 7, 8


@pytest.fixture
def divided(make_bench: Make) -> Bench:
    """A bench whose month has begun just now; of a thousand calls one user has used a tenth."""
    bench = short(make_bench, 0)
    bench.venue.answers |= {CONTENTS: _page([]), INTENT: {"data": {"seller": {}}}, LIST: TAKEN}
    for user, calls in {GREEDY: 107, MODEST: 1}.items():
        for _ in range(calls):
            bench.gateway.venues.markets["simulator"].quota.count(user)
    return bench


def worker_of(bench: Bench, user: int) -> MarketClient:
    client = bench.client()
    client.user = user
    return client


def test_workers_are_told_the_scarcity_of_their_own_user(divided: Bench) -> None:
    greedy, modest = worker_of(divided, GREEDY), worker_of(divided, MODEST)
    modest.asks("goosinals", 15)
    greedy.asks("goosinals", 15)
    assert (greedy.scarcity.stretch_s, greedy.scarcity.rungs) == (600, 0)
    assert modest.scarcity == AMPLE


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("/address/bids", lambda client: client.own_bids(ORDER.payment, 0)),
        (CONTENTS, lambda client: client.own_listings(VAULT, 0)),
    ],
)
def test_restarts_read_anew_within_the_share_only(
    divided: Bench, path: str, read: Callable[[MarketClient], object]
) -> None:
    for user in (MODEST, GREEDY, GREEDY, GREEDY):
        read(worker_of(divided, user))
    assert len(divided.venue.of(path)) == 1
    read(worker_of(divided, MODEST))
    assert len(divided.venue.of(path)) == 2


def test_after_a_write_what_was_read_before_is_not_good_enough(divided: Bench) -> None:
    greedy = worker_of(divided, GREEDY)
    greedy.own_bids(ORDER.payment, 0)
    greedy.cancel(ORDER.payment, ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())
    greedy.own_bids(ORDER.payment, 0)
    assert len(divided.venue.of("/address/bids")) == 2


def test_nothing_is_listed_where_no_bid_would_be_placed(divided: Bench) -> None:
    greedy, modest = worker_of(divided, GREEDY), worker_of(divided, MODEST)
    for list_it in (
        lambda client: client.draft_listing(ASK),
        lambda client: client.list_item(LISTING, task=1, token=1, deadline_ms=soon()),
    ):
        with pytest.raises(Refused) as refused:
            list_it(greedy)
        assert refused.value.code == "quota"
    assert divided.venue.calls == []
    modest.list_item(LISTING, task=2, token=1, deadline_ms=soon())
    assert len(divided.venue.of(LIST)) == 1
