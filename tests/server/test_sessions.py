"""Sessions over HTTP: how long they last and how many there are."""

from __future__ import annotations

import pytest

from models.sessions import ABSOLUTE_MS, IDLE_MS
from models.users import User
from tests.server.api import START_MS, token_of
from tests.server.conftest import Service


@pytest.mark.gen_test
async def test_logout_ends_this_session_only(service: Service) -> None:
    second = token_of(User.get_by_id(service.user_id))

    answer = await service.ask("POST", "/api/auth/logout")

    assert (answer.status, answer.json) == (200, {"success": True})
    assert (await service.ask("GET", "/api/tasks")).status == 401
    assert (await service.api("GET", "/api/tasks", token=second)).status == 200


@pytest.mark.gen_test
async def test_a_session_ends_after_a_day_without_use(service: Service) -> None:
    for _ in range(3):
        service.clock.now_ms += IDLE_MS - 1
        assert (await service.ask("GET", "/api/tasks")).status == 200
    service.clock.now_ms += IDLE_MS
    assert (await service.ask("GET", "/api/tasks")).status == 401


@pytest.mark.gen_test
async def test_a_session_ends_after_seven_days_in_any_case(service: Service) -> None:
    while service.clock.now_ms < START_MS + ABSOLUTE_MS - 1:
        service.clock.now_ms = min(service.clock.now_ms + IDLE_MS // 2, START_MS + ABSOLUTE_MS - 1)
        assert (await service.ask("GET", "/api/tasks")).status == 200
    service.clock.now_ms += 1
    assert (await service.ask("GET", "/api/tasks")).status == 401


@pytest.mark.gen_test
async def test_the_eleventh_session_ends_the_oldest(service: Service) -> None:
    tokens = [token_of(User.get_by_id(service.user_id), START_MS + n) for n in range(1, 11)]

    assert (await service.ask("GET", "/api/tasks")).status == 401
    for token in tokens:
        assert (await service.api("GET", "/api/tasks", token=token)).status == 200
