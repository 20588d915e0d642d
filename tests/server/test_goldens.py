"""The HTTP interface is as the goldens have it; tests/goldens/__init__.py says how to renew them."""

from __future__ import annotations

import re

import pytest

from tests import postgresql
from tests.goldens import HERE, answers, description, faults, hold
from tests.goldens.world import BODIES, QUERIES, World, with_goldens_settings
from tests.server.conftest import Service


def file_of(operation: str) -> str:
    """Returns the golden of an operation's bodies."""
    return f"bodies/{re.sub('[^A-Za-z]+', '-', operation).strip('-')}.txt"


async def test_the_description_says_what_its_golden_says(service: Service) -> None:
    answer = await service.api("GET", "/api/openapi.json")

    hold("description.txt", description.facts(answer.json))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@with_goldens_settings
@pytest.mark.parametrize("operation", BODIES)
async def test_wrong_bodies_are_refused_as_their_golden_says(service: Service, operation: str) -> None:
    world = await World.of(service)
    assert set(BODIES) == world.with_a_body()
    found = [(field, value, await world.told(operation, body)) for field, value, body in world.bodies(operation)]

    hold(file_of(operation), faults.lines(operation, found))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
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
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@with_goldens_settings
async def test_a_body_or_a_query_where_none_is_taken_is_refused_as_its_golden_says(service: Service) -> None:
    world = await World.of(service)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for operation, value, body, query in world.unasked():
        found.setdefault(operation, []).append(("", value, await world.told(operation, body, query)))

    hold("unasked.txt", [line for operation, each in found.items() for line in faults.lines(operation, each)])


@pytest.mark.slow
@postgresql.left_out("it numbers rows in another way")
@with_goldens_settings
async def test_the_answers_of_a_day_are_those_of_their_golden(service: Service) -> None:
    found = await answers.lines(service)

    described = (await service.api("GET", "/api/openapi.json")).json
    assert answers.never_answered(described, found) == {
        "GET /api/openapi.json",  # description.txt
        "GET /docs",  # the same as a page
        "GET /metrics",
        "GET /readyz",  # it depends on what else runs here
    }
    hold("answers.txt", found)


def test_each_golden_is_held_by_a_test() -> None:
    kept = {
        path.relative_to(HERE).as_posix()
        for path in HERE.rglob("*.txt")
        if not path.name.startswith(("doctor_", "journal_"))
    }
    assert kept == {"day.txt", "answers.txt", "description.txt", "queries.txt", "unasked.txt", *map(file_of, BODIES)}
