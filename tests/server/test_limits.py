"""Many requests at once never pass a limit together."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from core.setting_values import networks
from models.tasks.tasks import Task
from server.http.blocking import CallLimit
from server.http.gate import budget_key, client_ip
from tests.server.conftest import Service


async def test_64_creates_at_once_never_pass_the_plan(service: Service) -> None:
    answers = await asyncio.gather(
        *(service.ask("POST", "/api/tasks", {"slug": f"slug-{n}", "hardcapSats": 1}) for n in range(64))
    )

    assert Counter(answer.status for answer in answers) == {201: 20, 403: 44}
    assert Task.select().count() == 20


async def test_parallel_creates_of_one_slug_make_one_task(service: Service) -> None:
    answers = await asyncio.gather(
        *(service.ask("POST", "/api/tasks", {"slug": "same", "hardcapSats": 1}) for _ in range(10))
    )

    assert Counter(answer.status for answer in answers) == {201: 1, 409: 9}


def test_a_budget_starts_anew_after_a_minute() -> None:
    now = 0.0
    budget = CallLimit(2, lambda: now)

    assert [budget.take("a") for _ in range(3)] == [0, 0, 60]
    assert budget.take("b") == 0
    now = 59.5
    assert budget.take("a") == 1
    now = 60.0
    assert budget.take("a") == 0


def test_a_flood_of_addresses_does_not_fill_the_memory() -> None:
    budget = CallLimit(1, lambda: 0.0)

    for n in range(120_000):
        budget.take(str(n))

    assert len(budget._windows) <= 50_000


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("203.0.113.5", {}, "203.0.113.5"),
        ("203.0.113.5", {"X-Forwarded-For": "198.51.100.1", "X-Real-Ip": "198.51.100.2"}, "203.0.113.5"),
        ("127.0.0.1", {}, "127.0.0.1"),
        ("127.0.0.1", {"X-Forwarded-For": "198.51.100.1"}, "198.51.100.1"),
        ("::1", {"X-Real-Ip": "198.51.100.2", "X-Forwarded-For": "198.51.100.1"}, "198.51.100.2"),
        ("127.0.0.1", {"X-Forwarded-For": "6.6.6.6, 198.51.100.1"}, "198.51.100.1"),
        ("127.0.0.1", {"X-Forwarded-For": "198.51.100.1, 127.0.0.1"}, "198.51.100.1"),
        ("127.0.0.1", {"X-Forwarded-For": "nonsense"}, "127.0.0.1"),
        ("127.0.0.1", {"X-Real-Ip": "::ffff:198.51.100.3"}, "198.51.100.3"),
        ("::ffff:203.0.113.5", {}, "203.0.113.5"),
        ("2001:DB8::1", {}, "2001:db8::1"),
    ],
)
def test_only_a_proxy_on_this_machine_names_the_client(peer: str, headers: dict[str, str], expected: str) -> None:
    assert client_ip(peer, headers) == expected


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("172.17.0.1", {"X-Real-Ip": "8.8.8.8"}, "8.8.8.8"),
        ("::ffff:172.17.0.1", {"X-Real-Ip": "8.8.8.8"}, "8.8.8.8"),
        ("fd00::17", {"X-Forwarded-For": "6.6.6.6, 8.8.8.8, 172.17.0.1"}, "8.8.8.8"),
        ("127.0.0.1", {"X-Forwarded-For": "8.8.8.8, 172.17.0.1"}, "8.8.8.8"),
        ("172.17.0.1", {"X-Real-Ip": "nonsense"}, "172.17.0.1"),
        ("172.17.0.2", {"X-Real-Ip": "8.8.8.8"}, "172.17.0.2"),
        ("203.0.113.5", {"X-Real-Ip": "8.8.8.8"}, "203.0.113.5"),
    ],
)
def test_a_trusted_proxy_names_the_client_and_its_neighbour_does_not(
    peer: str, headers: dict[str, str], expected: str
) -> None:
    assert client_ip(peer, headers, networks("172.17.0.1, fd00::/64")) == expected


def test_one_ipv6_network_has_one_budget() -> None:
    assert budget_key("2001:db8:1:2:3::4") == budget_key("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert budget_key("198.51.100.1") == "198.51.100.1"
