"""The short form of `python -m bench.odd_health`: what is broken is said by all who are asked, and only that."""

from __future__ import annotations

import pytest

from bench import odd_health
from tests import postgresql
from tests.e2e.installation import PATIENCE

pytestmark = pytest.mark.slow


@postgresql.left_out("the faults of a file are SQLite's")
def test_readiness_doctor_page_and_api_say_the_same_of_each_fault() -> None:
    assert odd_health.on_file(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []


@postgresql.only
def test_readiness_doctor_page_and_api_say_the_same_while_the_server_is_away() -> None:
    assert odd_health.on_server(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []
