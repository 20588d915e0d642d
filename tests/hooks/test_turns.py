"""Turns between users: slow receivers of some keep no event of another waiting."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from core.hook_receivers import Receiver, Receivers
from hooks import courier as courier_file
from hooks.courier import Courier
from hooks.sender import Outcome, Sender
from models.hooks.table import SENT, Hook
from tests.hooks.receiver import LOOPBACK, Got, receiver
from tests.hooks.test_courier import NOW, World, happen, make_hook, states


@pytest.fixture
def world(database: str) -> World:
    return World()


async def beside_slow_users(tmp_path: Path, users: int, hooks_each: int) -> tuple[int, int]:
    """Returns the numbers of slow requests that had begun and had ended when a stranger's event arrived."""
    begun, ended, arrived, over = [], [], asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def behave(handler: BaseHTTPRequestHandler, got: Got) -> int:
        if "slow" in got.path:
            begun.append(got)
            over.wait(14.5)
            ended.append(got)
        else:
            loop.call_soon_threadsafe(arrived.set)
        return 200

    with receiver() as listener:
        listener.behave = behave
        names = Receivers(tmp_path)
        for user in range(1, users + 1):
            for _ in range(hooks_each):
                make_hook(user, receiver=names.keep(Receiver(f"http://127.0.0.1:{listener.port}/slow", "s")))
        make_hook(users + 1, receiver=names.keep(Receiver(listener.url, "s")))
        sender = Sender(names, LOOPBACK, None)
        courier = Courier(sender.send, lambda: NOW)
        for user in range(1, users + 1):
            happen("fill", "error", user_id=user)
        courier.look()
        courier.send_due()
        async with asyncio.timeout(60):
            while len(begun) < 8:  # noqa: ASYNC110 - threads that come to it
                await asyncio.sleep(0.01)
        happen("fill", user_id=users + 1)  # when the slow ones are on their way
        work = asyncio.create_task(courier.run())
        try:
            await asyncio.wait_for(arrived.wait(), 60)
            return len(begun), len(ended)
        finally:
            over.set()
            work.cancel()
            while courier._on_the_way:
                await asyncio.gather(*courier._on_the_way.values())
            courier._threads.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(("users", "hooks_each", "slow_s"), [(4, 10, 3.0), (50, 2, 0.3)])
async def test_a_strangers_event_arrives_before_any_slow_receiver_answers(
    database: str, tmp_path: Path, users: int, hooks_each: int, slow_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_file, "SLOW_S", slow_s)
    begun, ended = await beside_slow_users(tmp_path, users, hooks_each)
    assert begun >= 8 and ended == 0


async def test_a_slow_receiver_is_served_after_fast_ones_until_it_is_fast_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_file, "SLOW_S", 0.05)
    slow, over = make_hook(1, receiver="slow"), threading.Event()
    world.answer = lambda receiver, event: Outcome(200, None if over.wait(20) else "late")
    happen("fill")
    world.courier.look()
    world.courier.send_due()
    while world.courier._fast.of_user[1]:  # noqa: ASYNC110 - the courier's own task frees it
        await asyncio.sleep(0.01)
    assert world.courier._slow.of_user[1] == 1, "it has left the fast lane before it ended"
    over.set()
    await world.work()
    assert (world.courier._fast.free, world.courier._slow.free) == (16, 8)

    over.clear()
    world.courier = Courier(world.send, world.clock)
    happen("fill")
    world.courier.look()
    world.courier.send_due()
    assert world.courier._slow.of_user[1] == 1, "a restart keeps it there"
    over.set()
    await world.work()
    monkeypatch.setattr(courier_file, "SLOW_S", 20.0)
    Hook.update(took_ms=21_000).execute()
    happen("fill")
    world.courier.look()
    world.courier.send_due()
    assert world.courier._slow.of_user[1] == 1
    await world.work()
    assert Hook.get_by_id(slow.id).took_ms < 20_000, "a fast answer"
    over.clear()
    happen("fill")
    world.courier.look()
    world.courier.send_due()
    assert world.courier._fast.of_user[1] == 1, "it is back"
    over.set()
    await world.work()
    assert set(states()) == {SENT}


@pytest.mark.slow
async def test_a_failing_hook_has_its_turns_next_to_new_hooks_that_turn_out_slow(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_file, "SLOW_S", 0.05)
    count, over, loop = 20, threading.Event(), asyncio.get_running_loop()
    begun, arrived = [], asyncio.Semaphore(0)

    def answer(receiver: str, event: dict[str, object]) -> Outcome:
        if receiver == "victim":
            loop.call_soon_threadsafe(arrived.release)
        else:
            begun.append(receiver)
            over.wait(60)
        return Outcome(200, None)

    world.answer = answer
    for user in range(1, count + 1):
        for _ in range(5):
            make_hook(user)  # new, so it enters by the fast lane
    victim = make_hook(count + 1, receiver="victim")
    for user in range(1, count + 1):
        happen("fill", user_id=user)
    work = asyncio.create_task(world.courier.run())
    try:
        async with asyncio.timeout(60):
            while len(begun) < 4 * count:  # noqa: ASYNC110 - threads that come to it
                await asyncio.sleep(0.01)
            for _ in range(3):
                Hook.update(is_failing=True).where(Hook.id == victim.id).execute()
                happen("fill", user_id=count + 1)
                await arrived.acquire()
                while victim.id in world.courier._on_the_way:  # noqa: ASYNC110 - until it is noted
                    await asyncio.sleep(0.01)
        assert len(begun) == 4 * count, "all of them hang still"
        assert world.courier._threads._max_workers == 88
    finally:
        over.set()
        work.cancel()
        while world.courier._on_the_way:
            await asyncio.gather(*world.courier._on_the_way.values())
        world.courier._threads.shutdown()
