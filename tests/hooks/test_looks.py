"""From events to deliveries: no user's events hold the deliveries of another, nor the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from models.hooks import queue
from tests.hooks.test_courier import World, happen, make_hook


@pytest.fixture
def world(database: str) -> World:
    return World()


async def test_events_that_make_no_deliveries_hold_no_other_users_and_are_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, write = make_hook().id, queue._write
    make_hook(2)

    def broken(hook_id: int, *values: Any) -> None:
        if hook_id == bad:
            raise ValueError("on purpose")
        write(hook_id, *values)

    monkeypatch.setattr(queue, "_write", broken)
    for _ in range(5):
        happen("fill")
        happen("fill", user_id=2)
        await world.work()
    assert [receiver for receiver, _ in world.sent] == ["r2"] * 5
    assert [record.getMessage()[:20] for record in caplog.records if record.exc_info] == ["hook 1: failed to ma"]
    monkeypatch.setattr(queue, "_write", write)
    world.clock.advance(60)
    await world.work()
    assert [receiver for receiver, _ in world.sent] == ["r2"] * 5 + ["r1"] * 5, "none is lost"


async def test_others_have_a_turn_of_the_loop_between_two_users_deliveries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    write = queue._write

    def noted(*values: Any) -> None:
        write(*values)
        done.append("made")

    async def others() -> None:
        while True:
            done.append("other")
            await asyncio.sleep(0)

    for user in (1, 2, 3):
        make_hook(user)
        happen("fill", user_id=user)
    monkeypatch.setattr(queue, "_write", noted)
    tasks = [asyncio.create_task(others()), asyncio.create_task(world.courier.run())]
    try:
        async with asyncio.timeout(60):
            while len(world.sent) < 3:  # noqa: ASYNC110 - threads that come to it
                await asyncio.sleep(0.01)
    finally:
        for task in tasks:
            task.cancel()
    first = done.index("made")
    assert done[first : first + 5] == ["made", "other"] * 2 + ["made"]
    await world.work()
