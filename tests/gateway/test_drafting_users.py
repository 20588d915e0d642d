"""The signer's user at the gateway, which that user asks for drafts alone."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from markets.base import Refused
from markets.verbs import OF_DRAFTS, WRITES
from tests.gateway.conftest import ORDER, Bench, soon
from tests.gateway.test_facts_program import ANSWERS, INSCRIPTION

ME, OTHER = os.getuid(), os.getuid() + 1


def test_the_signers_user_gets_no_more_than_learning_needs(make_bench: Callable[..., Bench]) -> None:
    users = {"gateway_clients": frozenset({ME, OTHER}), "signer_clients": frozenset({OTHER})}
    bench = make_bench(with_ord=True, facts_clients=frozenset({ME}), **users)
    bench.venue.answers |= ANSWERS
    client = bench.client()
    assert client.whereabouts(INSCRIPTION, 0).address == "bc1pvault"
    assert client.status()
    asked = len(bench.venue.calls)
    for refused in (
        lambda: client.broadcast("ab" * 100, deadline_ms=soon()),
        lambda: client.submit_withdrawal(ORDER.payment, "cHNidP8B", deadline_ms=soon()),
        lambda: client.place(ORDER, task=1, token=1, deadline_ms=soon()),
        lambda: client.own_bids(ORDER.payment, 0),
    ):
        with pytest.raises(Refused) as told:
            refused()
        assert told.value.code == "not_allowed"
    assert len(bench.venue.calls) == asked
    assert not OF_DRAFTS & WRITES


@pytest.mark.parametrize("signer_clients", [frozenset({ME}), frozenset()])
def test_a_user_who_trades_as_well_gets_all(make_bench: Callable[..., Bench], signer_clients: frozenset[int]) -> None:
    bench = make_bench(facts_clients=frozenset({ME}), signer_clients=signer_clients)
    bench.client().place(ORDER, task=1, token=1, deadline_ms=soon())
    assert len(bench.venue.of("/bid/place")) == 1
