"""The HTTP interface is as the goldens have it; tests/goldens/__init__.py says how to renew them."""

from __future__ import annotations

import re

import pytest

from tests import postgresql
from tests.goldens import answers, description, faults, hold
from tests.goldens.world import BODIES, QUERIES, World, with_goldens_settings
from tests.server.conftest import Service


@pytest.mark.gen_test
async def test_the_description_says_what_its_golden_says(service: Service) -> None:
    answer = await service.api("GET", "/api/openapi.json")

    hold("description.txt", description.facts(answer.json))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@pytest.mark.gen_test
@with_goldens_settings
@pytest.mark.parametrize("operation", BODIES)
async def test_wrong_bodies_are_refused_as_their_golden_says(service: Service, operation: str) -> None:
    world = await World.of(service)
    assert set(BODIES) == world.with_a_body()
    found = [(field, value, await world.told(operation, body)) for field, value, body in world.bodies(operation)]

    hold(f"bodies/{re.sub('[^A-Za-z]+', '-', operation).strip('-')}.txt", faults.lines(operation, found))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@pytest.mark.gen_test
@with_goldens_settings
async def test_wrong_queries_are_refused_as_their_golden_says(service: Service) -> None:
    world = await World.of(service)
    assert set(QUERIES) == world.with_a_query()
    lines: list[str] = []
    for operation in sorted(QUERIES):
        asked = world.queries(operation)
        found = [(field, value, await world.told(operation, None, query)) for field, value, query in asked]
        lines += faults.lines(operation, found)

    hold("queries.txt", lines)


@pytest.mark.slow
@postgresql.left_out("it numbers rows in another way")
@pytest.mark.gen_test
@with_goldens_settings
async def test_the_answers_of_a_day_are_those_of_their_golden(service: Service) -> None:
    hold("answers.txt", await answers.lines(service))
