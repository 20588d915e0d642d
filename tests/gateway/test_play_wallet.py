"""The verbs of the play wallet, over the real practice market; on a real one there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tornado.httpserver import HTTPServer

from markets.base import Refused, Unavailable
from markets.client import MarketClient
from simulator.app import make_app
from simulator.world import World
from tests.gateway.conftest import Bench
from tests.ports import free_ports
from wallet.bip322 import verify_ownership

TEXT = "Sign in to Bidkeeper at 127.0.0.1:8888\nNonce: 00"


class Practice:
    """A gateway, and beside it the practice market that it asks, unless that is stopped."""

    def __init__(self, make_bench: Callable[..., Bench], **settings: object) -> None:
        (port,) = free_ports(1)
        self.world = World(seed=1)
        self.bench = make_bench(simulator_port=port, **settings)
        self.server = self.bench.run(self._listen, port)

    def _listen(self, port: int) -> HTTPServer:
        server = HTTPServer(make_app(self.world))
        server.listen(port, "127.0.0.1")
        return server

    @property
    def client(self) -> MarketClient:
        return self.bench.client()

    def stop(self) -> None:
        self.bench.run(self.server.stop)
        self.bench.run(self.server.close_all_connections)


@pytest.fixture
def make_practice(make_bench: Callable[..., Bench]) -> Iterator[Callable[..., Practice]]:
    made: list[Practice] = []

    def make(**settings: object) -> Practice:
        made.append(Practice(make_bench, **settings))
        return made[-1]

    yield make
    for practice in made:
        practice.stop()


def test_the_market_signs_through_the_gateway(make_practice: Callable[..., Practice]) -> None:
    practice = make_practice(play_wallet=True)

    address, signature = practice.client.play_address(), practice.client.play_signature(TEXT)

    assert address == practice.world.play_wallet.address
    assert verify_ownership(address, TEXT, signature)


@pytest.mark.parametrize("message", ["", "x" * 2_001, 5, None])
def test_what_is_no_text_costs_the_market_no_call(make_practice: Callable[..., Practice], message: object) -> None:
    practice = make_practice(play_wallet=True)
    practice.stop()

    with pytest.raises(Refused, match="message"):
        practice.client.play_signature(message)  # type: ignore[arg-type]


def test_a_market_that_is_away_is_no_refusal(make_practice: Callable[..., Practice]) -> None:
    practice = make_practice(play_wallet=True)
    practice.stop()

    with pytest.raises(Unavailable):
        practice.client.play_address()


@pytest.mark.parametrize(
    "settings",
    [{}, {"play_wallet": True, "market": "satflow", "satflow_api_key": "k"}],
    ids=["not turned on", "real market"],
)
def test_where_it_is_not_for_everybody_the_gateway_has_no_such_verbs(
    make_practice: Callable[..., Practice], settings: dict[str, object]
) -> None:
    client = make_practice(**settings).client

    for question in (client.play_address, lambda: client.play_signature(TEXT)):
        with pytest.raises(Refused, match="no such verb"):
            question()
