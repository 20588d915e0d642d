"""The courier: each event once in the queue, per-task order, retries, bounds, and no receiver in another's way."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from core.hook_receivers import Receiver, Receivers
from core.subscription_plans import DEFAULT_PLANS
from hooks import courier as courier_file
from hooks.courier import Courier
from hooks.sender import Outcome, Sender, Unanswered
from models import outbox, users
from models.database.base import transaction
from models.hooks import queue
from models.hooks.table import DEAD, SENT, WAITING, Delivery, Hook
from tests.clock import Clock
from tests.hooks.receiver import LOOPBACK, Got, receiver

FILL = {"dry_run": False, "quantity": "1", "slug": "cats", "price": 5}
HALT = {"scope": "user", "state": "halt", "by": "you"}
NOW = 1_700_000_000_000


def make_hook(user_id: int = 1, *events: str, **values: Any) -> Hook:
    users.find_or_create(f"bc1q{user_id}", DEFAULT_PLANS, 1)
    given = {"kind": "webhook", "shown": "x", "has_secret": True, "receiver": f"r{user_id}", "created_ms": 1} | values
    return queue.add(user_id, events or ("fill", "error"), may_still=lambda: True, **given)


def happen(*names: str, user_id: int = 1, task_id: int | None = 7) -> None:
    with transaction():
        for name in names:
            outbox.tell(name, user_id, task_id, NOW, FILL | HALT | {"error": None, "cycles": 3, "action": ""})


class World:
    """A courier on a clock of ours, whose receivers answer as they are told, at once."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[str] = []
        self.answer: Callable[[str, dict[str, Any]], Outcome] = lambda receiver, body: Outcome(200, None)
        self.courier = Courier(self.send, self.clock)

    def send(self, kind: str, receiver: str, body: str, message_id: str) -> Outcome:
        event = json.loads(body)
        self.messages.append(message_id)
        self.sent.append((receiver, event))
        return self.answer(receiver, event)

    async def work(self) -> None:
        """Lets the courier do all that is to be done at this moment."""
        self.courier.look()
        self.courier.send_due()
        while self.courier._on_the_way:
            await asyncio.gather(*self.courier._on_the_way.values())
            self.courier.send_due()

    @property
    def ids(self) -> list[int]:
        return [event["id"] for _, event in self.sent]


@pytest.fixture
def world(database: str) -> World:
    return World()


def states() -> list[str]:
    return [row.state for row in Delivery.select().order_by(Delivery.id)]


async def test_what_a_hook_asks_for_is_delivered_in_order_and_nothing_else(world: World) -> None:
    happen("fill")  # before the hook: not its matter
    make_hook()
    make_hook(2, "error")
    await world.work()
    happen("fill", "cycle", "sold", "error", "recovered", "fill")
    happen("error", user_id=2)
    await world.work()

    assert [(name, event["event"], event["user"]) for name, event in world.sent if name == "r1"] == [
        ("r1", "fill", "bc1q1"),
        ("r1", "error", "bc1q1"),
        ("r1", "fill", "bc1q1"),
    ]
    assert [(name, event["event"]) for name, event in world.sent if name == "r2"] == [("r2", "error")]
    first = world.sent[0][1]
    assert (first["task"], first["text"], first["at"]) == (7, "Bought 1 of cats for 5 sats", "2023-11-14T22:13:20.000Z")
    assert set(states()) == {SENT}


async def test_a_failed_delivery_is_tried_again_as_said_and_then_dead_and_the_next_has_its_turn(world: World) -> None:
    make_hook()
    happen("fill", "error")
    world.answer = lambda receiver, event: Outcome(500, "answered 500")
    tried = [0]
    await world.work()
    for seconds in (10, 60, *[600] * 6):
        world.clock.advance(seconds - 1)
        await world.work()
        assert len(world.sent) == len(tried)  # not a second too soon
        world.clock.advance(1)
        await world.work()
        tried.append(seconds)
        assert len(world.sent) == len(tried) + (len(tried) == 9)  # the last one's death lets the next one go
    assert world.ids == [1] * 9 + [2]
    dead = Delivery.get_by_id(1)
    assert (dead.state, dead.tries, dead.status, dead.error) == (DEAD, 9, 500, "answered 500")
    assert Hook.get().is_failing


async def test_a_fault_of_connecting_is_shown_no_sooner_than_a_silent_receiver(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier_file, "NOTED_AFTER_S", 1.0)
    make_hook()
    make_hook(2)
    happen("fill")
    happen("fill", user_id=2)
    world.answer = lambda receiver, event: (
        Unanswered(ConnectionRefusedError(111, "Connection refused")) if receiver == "r1" else Outcome(200, None)
    )
    began = time.monotonic()
    world.courier.look()
    world.courier.send_due()
    await world.courier._on_the_way[2]
    assert states() == [WAITING, SENT]
    fast = world.courier._fast
    assert (fast.free, fast.room) == (courier_file.FAST, 5 * courier_file.FAST), "a wait holds no thread"
    assert [row.tries for row in Delivery.select().order_by(Delivery.id)] == [0, 1]

    await world.work()

    assert time.monotonic() - began >= 1.0
    assert [(row.tries, row.error) for row in Delivery.select().order_by(Delivery.id)] == [(1, "no answer"), (1, None)]


async def test_order_is_kept_for_each_task_while_one_waits_and_others_go_on(world: World) -> None:
    make_hook()
    happen("fill", "error", task_id=7)
    happen("fill", task_id=8)
    happen("error", task_id=None)
    world.answer = lambda receiver, event: Outcome(None, "away") if event["id"] == 1 else Outcome(200, None)
    await world.work()
    assert world.ids == [1, 3, 4] and states() == [WAITING, WAITING, SENT, SENT]
    world.answer = lambda receiver, event: Outcome(200, None)
    world.clock.advance(10)
    await world.work()
    assert world.ids == [1, 3, 4, 1, 2] and set(states()) == {SENT}


async def test_a_queue_is_bounded_and_says_what_it_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_WAITING", 3)
    monkeypatch.setattr(queue, "KEPT_DONE", 2)
    make_hook()
    world.answer = lambda receiver, event: Outcome(None, "away")
    happen(*["fill"] * 5)
    await world.work()
    assert (Delivery.select().count(), Hook.get().lost) == (3, 2)
    world.answer = lambda receiver, event: Outcome(200, None)
    world.clock.advance(10)
    happen("error")
    await world.work()
    assert Delivery.select().count() == 2 and Hook.get().lost == 3


async def test_events_that_were_let_go_before_they_were_seen_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_hook()
    happen(*["fill"] * 5)
    monkeypatch.setattr(outbox, "KEPT_LASTING", 2)
    outbox.forget_old(NOW)
    await world.work()
    assert (world.ids, Hook.get().lost) == ([4, 5], 1)


async def test_a_hook_waits_between_two_deliveries_but_not_with_a_test(world: World) -> None:
    hook = make_hook(min_interval_s=60)
    happen("fill", "fill")
    await world.work()
    assert world.ids == [1]
    queue.add_test(Hook.get_by_id(hook.id), world.clock())
    await world.work()
    assert world.sent[-1][1] == world.sent[-1][1] | {"id": None, "event": "test", "task": None}
    world.clock.advance(60)
    await world.work()
    assert world.ids == [1, None, 2]


async def test_a_test_is_not_tried_again_and_a_redelivery_has_all_its_tries(world: World) -> None:
    hook = make_hook()
    queue.add_test(hook, NOW)
    world.answer = lambda receiver, event: Outcome(404, "answered 404")
    await world.work()
    assert states() == [DEAD]
    happen("fill")
    world.answer = lambda receiver, event: Outcome(200, None)
    await world.work()
    assert queue.again(hook, 99, NOW) is None
    again = queue.again(hook, 2, NOW)
    assert again is not None and queue.again(hook, 2, NOW) is None  # it waits already
    await world.work()
    assert world.ids == [None, 1, 1] and states() == [DEAD, SENT]


async def test_every_try_has_its_deliverys_message_id_and_no_other_delivery_has_it(world: World) -> None:
    hook = make_hook()
    make_hook(receiver="r2")
    queue.add_test(hook, NOW)
    queue.add_test(hook, NOW)
    happen("fill")
    world.answer = lambda receiver, event: Outcome(500, "answered 500")
    await world.work()
    assert [receiver for receiver, _ in world.sent].count("r2") == 1
    assert len({*world.messages}) == len(world.messages) == 4
    assert all(re.fullmatch(r"msg_[0-9a-f]{32}", name) for name in world.messages)
    first = set(world.messages)
    Hook.update(receiver="moved").execute()  # with another address, the message is the same
    world.clock.advance(10)
    await world.work()
    assert len(world.messages) == 6 and set(world.messages) == first
    assert queue.again(hook, 1, NOW) is not None
    world.clock.advance(1)
    await world.work()
    assert world.messages[-1] in first


async def test_a_change_of_the_events_is_of_what_happens_from_then_on(world: World) -> None:
    hook = make_hook(1, "fill")
    happen("fill", "error")
    queue.change(hook.id, NOW, may_still=lambda: True, events="error")
    happen("fill", "error")
    await world.work()
    assert [event["event"] for _, event in world.sent] == ["fill", "error"] and world.ids == [1, 4]


async def test_receivers_that_hang_keep_no_other_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier_file, "FAST", 2)
    monkeypatch.setattr(courier_file, "SLOW", 1)
    over, count = threading.Event(), 20
    for user in range(1, count + 1):
        make_hook(user)
    world.courier = Courier(world.send, world.clock)

    def answer(receiver: str, event: dict[str, Any]) -> Outcome:
        if receiver == "r1":
            return Outcome(200, None)
        hangs[0] += 1
        if hangs[0] > 2 * count:
            over.wait(60)
        return Outcome(None, "away")

    hangs = [0]
    world.answer = answer
    for user in range(1, count + 1):
        happen("fill", user_id=user)
    await world.work()
    assert Hook.select().where(Hook.is_failing).count() == count - 1
    hangs[0] = 2 * count  # from now on they hang
    world.clock.advance(10)
    happen("fill")
    world.courier.look()
    world.courier.send_due()
    for _ in range(1000):  # what is sent is on its way until the loop has noted it, too
        if sum(name == "r1" for name, _ in world.sent) == 2 and len(world.courier._on_the_way) == 1:
            break
        await asyncio.sleep(0.01)
    assert sum(name == "r1" for name, _ in world.sent) == 2
    assert len(world.courier._on_the_way) == 1  # one thread hangs; the other hooks wait for it, and only they
    over.set()
    while world.courier._on_the_way:
        await asyncio.gather(*world.courier._on_the_way.values())


async def test_a_deleted_hook_is_sent_nothing_more(world: World) -> None:
    hook = make_hook()
    happen("fill")
    world.courier.look()
    queue.remove(hook)
    await world.work()
    assert world.sent == [] and Delivery.select().count() == 0


async def test_a_users_many_slow_receivers_keep_no_other_users_waiting(world: World) -> None:
    for number in range(10):
        make_hook(1, receiver=f"slow {number}")
    make_hook(2)
    may_end, arrived, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    def answer(receiver: str, event: dict[str, Any]) -> Outcome:
        if receiver.startswith("slow"):
            may_end.wait(60)
        else:
            loop.call_soon_threadsafe(arrived.set)
        return Outcome(200, None)

    world.answer = answer
    happen(*["fill"] * 3)
    happen("fill", user_id=2)
    world.courier.look()
    world.courier.send_due()
    try:
        await asyncio.wait_for(arrived.wait(), 60)
        async with asyncio.timeout(60):
            while len(world.sent) < 3:  # noqa: ASYNC110 - threads that come to it
                await asyncio.sleep(0.01)
        assert len(world.sent) == 3
    finally:
        may_end.set()
    await world.work()
    assert set(states()) == {SENT} and len(world.sent) == 31


async def test_a_users_dead_receivers_keep_the_others_of_the_user_waiting_no_longer_than_their_turn(
    world: World,
) -> None:
    dead = [make_hook(receiver=f"dead {number}").id for number in range(3)]
    make_hook(receiver="good")
    Hook.update(is_failing=True).where(Hook.id.in_(dead)).execute()
    world.answer = lambda receiver, event: Outcome(200, None) if receiver == "good" else Outcome(500, "answered 500")
    for task in range(20):
        happen("fill", task_id=task + 1)
    world.courier.look()
    world.courier.send_due()
    await asyncio.gather(*world.courier._on_the_way.values())
    world.courier.send_due()
    await asyncio.gather(*world.courier._on_the_way.values())
    assert {receiver for receiver, _ in world.sent} == {"dead 0", "dead 1", "dead 2", "good"}, "each had its turn"
    assert "good" in [receiver for receiver, _ in world.sent[:3]]


async def test_a_hook_whose_try_cannot_begin_holds_no_other_and_is_logged_once_a_minute(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = make_hook(receiver="bad").id
    make_hook(2)
    next_due = queue.next_due

    def broken(hook: Hook, now_ms: int) -> list[Delivery]:
        if hook.id == bad:
            raise RecursionError("on purpose")
        return next_due(hook, now_ms)

    monkeypatch.setattr(queue, "next_due", broken)
    happen("fill")
    happen("fill", user_id=2)
    for _ in range(5):
        await world.work()
    assert [receiver for receiver, _ in world.sent] == ["r2"]
    assert [record.getMessage()[:20] for record in caplog.records if record.exc_info] == ["hook 1: failed to be"]
    monkeypatch.setattr(queue, "next_due", next_due)
    world.clock.advance(60)
    await world.work()
    assert [receiver for receiver, _ in world.sent] == ["r2", "bad"], "its event waited"


async def test_a_try_that_raises_is_a_failed_one(world: World) -> None:
    make_hook()
    happen("fill")

    def raises(receiver: str, body: dict[str, Any]) -> Outcome:
        raise KeyError("task")

    world.answer = raises
    await world.work()
    [row] = Delivery.select()
    assert (row.tries, row.due_ms, row.error) == (1, NOW + 10_000, "failed to send: KeyError")


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
