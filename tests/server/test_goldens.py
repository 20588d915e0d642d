"""The HTTP interface is as the goldens have it; tests/goldens/__init__.py says how to renew them."""

from __future__ import annotations

import pytest

from tests.goldens import description, hold
from tests.server.conftest import Service


@pytest.mark.gen_test
async def test_the_description_says_what_its_golden_says(service: Service) -> None:
    answer = await service.api("GET", "/api/openapi.json")

    hold("description.txt", description.facts(answer.json))
