"""The signer's own user, whom older settings name among the gateway's clients."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from markets.base import Unavailable, Unknown
from tests.gateway.conftest import ORDER, Bench, soon

ME, OTHER = os.getuid(), os.getuid() + 1


def test_the_gateway_does_not_answer_the_signers_user(make_bench: Callable[..., Bench]) -> None:
    users = {"gateway_clients": frozenset({ME, OTHER}), "signer_clients": frozenset({OTHER})}
    bench = make_bench(with_ord=True, facts_clients=frozenset({ME}), **users)
    client = bench.client()
    for ask in (client.status, lambda: client.place(ORDER, task=1, token=1, deadline_ms=soon())):
        with pytest.raises((Unavailable, Unknown)):
            ask()
    assert bench.venue.calls == []


@pytest.mark.parametrize("signer_clients", [frozenset({ME}), frozenset()])
def test_a_user_who_trades_as_well_gets_all(make_bench: Callable[..., Bench], signer_clients: frozenset[int]) -> None:
    users = {"gateway_clients": frozenset({ME, OTHER}), "signer_clients": signer_clients}
    bench = make_bench(facts_clients=frozenset({ME}), **users)
    bench.client().place(ORDER, task=1, token=1, deadline_ms=soon())
    assert len(bench.venue.of("/bid/place")) == 1
