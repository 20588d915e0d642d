"""The practice market once, and for each test a gate before it and one of the adapters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from markets.http import Http
from tests.markets.contract.gate import Gate, Practice
from tests.markets.contract.parties import PARTIES, Party
from tests.markets.contract.town import Town


@pytest.fixture(scope="session")
def practice() -> Iterator[Practice]:
    market = Practice()
    yield market
    market.close()


@pytest.fixture(params=PARTIES, ids=str)
def party(request: pytest.FixtureRequest) -> Party:
    found: Party = request.param
    return found


@pytest.fixture
def town(party: Party, practice: Practice, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    assert Http.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Http.__init__.__kwdefaults__, "read_s", 30.0)  # enough for a busy machine
    gate = Gate(practice.port)
    town = Town(party, practice, gate)
    town.seed()
    yield town
    gate.close()
