"""From a fact to its receiver, with the processes killed anywhere: all is told, nothing invented, in order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.call import call
from core.errors import PeerError
from core.hook_receivers import Receiver, Receivers
from core.program_calls import HooksReadiness, PingHooks
from core.settings import Settings
from models.hooks import queue
from models.hooks.queue import MOST_WAITING
from models.hooks.table import WAITING, Delivery
from models.ledger.states import IS_FILLED, Order
from models.outbox import Event
from tests.hooks.receiver import Receiver as Listener
from tests.hooks.receiver import receiver
from tests.models.test_orders import running_task

ROOT = Path(__file__).resolve().parents[2]
USERS, TASKS = 2, 3
PATIENCE_S = 300
FEW = 50  # deliveries; the queue must not be full, which is a loss that is counted
FILLS = 3  # before a kill
WRITER = ("-m", "tests.hooks.writer")
# The hooks program, with no bound on a user's deliveries a minute: the storm has more.
SENDER = (
    "-c",
    "from models.hooks import table; table.MOST_A_MINUTE = 10**9; from cli.main import main; main(['hooks'])",
)


@contextmanager
def process(settings: Settings, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "BIDKEEPER_DATA_DIR": str(settings.data_dir),
        "BIDKEEPER_DATABASE_URL": settings.database_url,
        "BIDKEEPER_HOOK_NETWORKS": "127.0.0.0/8",
    }
    with (settings.data_dir / "out.log").open("ab") as out:
        started = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stderr=out
        )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def until_ready(settings: Settings) -> HooksReadiness:
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call(settings.hooks_socket, "hooks", PingHooks(), timeout=5)
        except PeerError:
            assert time.monotonic() < ends, (settings.data_dir / "out.log").read_text()[-2000:]
            time.sleep(0.05)


def until_no_more_wait_than(few: int) -> None:
    ends = time.monotonic() + PATIENCE_S
    while Delivery.select().where(Delivery.state == WAITING).count() > few:
        assert time.monotonic() < ends
        time.sleep(0.05)


def begin(writer: subprocess.Popen[bytes]) -> None:
    """Has it write, and waits for its first fills."""
    filled, ends = Order.select().where(IS_FILLED), time.monotonic() + PATIENCE_S
    before = filled.count()
    assert writer.stdin is not None
    writer.stdin.write(b"\n")
    writer.stdin.flush()
    while filled.count() < before + FILLS:
        assert time.monotonic() < ends
        time.sleep(0.01)


def make_world(settings: Settings, listener: Listener) -> None:
    for user in range(1, USERS + 1):
        for number in range(TASKS):
            running_task(f"cats-{user}-{number}", f"bc1q{user}")
        name = Receivers(settings.hooks_dir).keep(Receiver(listener.url + f"&user={user}", "s"))
        given = {"kind": "webhook", "shown": "x", "has_secret": True, "receiver": name, "created_ms": 1}
        queue.add(user, ["fill"], may_still=lambda: True, **given)


def check(listener: Listener) -> int:
    """Holds what was received against the ledger; returns the number of fills."""
    filled = {f"buy-{row.id}" for row in Order.select().where(IS_FILLED)}
    told = {row.id: row for row in Event.select().where(Event.event == "fill")}
    assert sorted(json.loads(row.data)["fill"] for row in told.values()) == sorted(filled)  # each once, none besides

    bodies: dict[int, str] = {}
    order: dict[tuple[str, int], list[int]] = {}
    for got in listener.got:
        event = got.json
        assert bodies.setdefault(event["id"], got.body) == got.body  # a second one is the same
        row = told[event["id"]]
        assert got.path.endswith(f"&user={row.user_id}") and event["task"] == row.task_id
        assert event["data"]["fill"] == json.loads(row.data)["fill"]
        seen = order.setdefault((got.path, event["task"]), [])
        if event["id"] not in seen:
            seen.append(event["id"])
    assert bodies.keys() == told.keys()
    assert all(ids == sorted(ids) for ids in order.values())
    return len(filled)


def storm(database: str, tmp_path: Path, kills: int) -> tuple[int, int]:
    """Kills writer and sender so often; returns the number of fills, and of requests that the receiver got."""
    settings, rng = Settings(data_dir=tmp_path, database_url=database), random.Random(1)
    (tmp_path / "run").mkdir()
    with receiver() as listener:
        make_world(settings, listener)
        killed = 0
        while killed < kills:
            with (
                process(settings, *WRITER, database) as writer,
                process(settings, *SENDER) as sender,
            ):
                until_ready(settings)
                until_no_more_wait_than(MOST_WAITING // 2 if killed % 4 else FEW)
                begin(writer)
                time.sleep(rng.random() * 0.5)
                sender.kill()
                killed += 1
                time.sleep(rng.random() * 0.1)
            killed += 1
        with process(settings, *SENDER):
            ends = time.monotonic() + PATIENCE_S
            while Event.select().where(Event.event == "fill").count() > len({got.json["id"] for got in listener.got}):
                assert time.monotonic() < ends
                time.sleep(0.2)
            until_no_more_wait_than(0)
        return check(listener), len(listener.got)


@pytest.mark.slow
def test_no_kill_loses_invents_or_reorders_what_is_told(database: str, tmp_path: Path) -> None:
    fills, _ = storm(database, tmp_path, 8)
    assert fills >= 4 * FILLS


@pytest.mark.faults
def test_a_thousand_kills(database: str, tmp_path: Path) -> None:
    fills, received = storm(database, tmp_path, 1_000)
    print(f"{fills} fills, received {received} times")
    assert received >= fills > 1_000
