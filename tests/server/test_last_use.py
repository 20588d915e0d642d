"""Notes of a token's last use: seldom, and never in the way of a call."""

from __future__ import annotations

import time

from models.accounts import ApiToken
from models.database.base import Sqlite, database, is_postgresql
from models.users import Session
from tests import postgresql
from tests.databases import another
from tests.server.conftest import Service

BOT = {"name": "bot", "scopes": ["read"]}


@postgresql.left_out("commits are counted by SQLite's connection")
async def test_calls_of_one_minute_are_one_commit_for_each_token(service: Service) -> None:
    """Every commit costs a write to the disk, and empties what is kept of task lists."""
    token = (await service.ask("POST", "/api/tokens", BOT)).json["token"]
    connection = database.connection()

    async def changes(seconds: int) -> int:
        before = connection.total_changes
        for _ in range(10):
            service.clock.now_ms += 100 * seconds
            assert (await service.ask("GET", "/api/tasks")).status == 200
            assert (await service.api("GET", "/api/tasks", token=token)).status == 200
        return int(connection.total_changes - before)

    assert await changes(30) == 1, "the first use of the new token"
    assert await changes(60) == 2
    assert await changes(29) <= 2


async def test_no_call_that_only_reads_waits_for_a_writer(service: Service) -> None:
    token = (await service.ask("POST", "/api/tokens", BOT)).json["token"]
    made_ms = service.clock.now_ms
    service.clock.now_ms += 120_000

    async def ask() -> list[int]:
        answers = [await service.api("GET", "/api/tasks", token=each) for each in (service.token, token)]
        return [answer.status for answer in answers]

    def used_ms() -> list[int | None]:
        return [Session.get(Session.user == service.user_id).used_ms, ApiToken.get().used_ms]

    with another(service.settings.database_url) as other:
        if is_postgresql(service.settings.database_url):
            other.rows("SELECT 1 FROM sessions, api_tokens FOR UPDATE")
        else:
            other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert await ask() == [200, 200]
        assert time.monotonic() - began < 10, "a write waits for 15 s"
        assert used_ms() == [made_ms, None]
    assert await ask() == [200, 200]
    assert used_ms() == [service.clock.now_ms] * 2
    # Other writes wait as ever.
    if isinstance(database.obj, Sqlite):
        assert database.execute_sql("PRAGMA busy_timeout").fetchone() == (15_000,)
    else:
        assert database.execute_sql("SHOW lock_timeout").fetchone() == ("15s",)
