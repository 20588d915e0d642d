"""The database of a busy installation: signed-in users with tasks whose configs all differ."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from pathlib import Path

from core.subscription_plans import DEFAULT_PLANS
from models import schema, users
from models.database import base
from models.tasks.tasks import BIDDING, Task
from server.http.gate import hash_of
from server.task_config import rendered
from strategy.config.bid import BidConfig, dump_bid_config

USERS, TASKS_EACH = 200, 20


def make(url: str) -> list[str]:
    """Fills the empty database at `url`; returns one bearer token for each user."""
    rng, now_ms = random.Random(1), time.time_ns() // 1_000_000
    tokens = [f"{number:043d}" for number in range(USERS)]
    base.connect(url)
    try:
        schema.migrate()
        for number, token in enumerate(tokens):
            user = users.find_or_create(f"bc1q{number:038d}", DEFAULT_PLANS, now_ms)
            users.open_session(hash_of(token), user.id, now_ms)
            with base.transaction():
                Task.insert_many(_tasks(user.id, rng, now_ms)).execute()
    finally:
        base.close()
    return tokens


def _tasks(user: int, rng: random.Random, now_ms: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number in range(TASKS_EACH):
        slug = f"collection-{number}"
        config = BidConfig(slug, hardcap_sats=rng.randrange(10_000, 10**8), loop_seconds=rng.choice((None, 10, 30)))
        found.append(
            {
                "user": user,
                "kind": BIDDING,
                "venue": "simulator",
                "type": "ordinals",
                "slug": slug,
                "slug_key": slug,
                "config": dump_bid_config(config),
                "created_ms": now_ms - rng.randrange(10**9),
                "last_cycle_ms": now_ms - rng.randrange(10**6),
                "last_cycle_action": "placed 0, kept 5, cancelled 0",
            }
        )
    return found


def copy_with_shown_configs(source: Path, target: Path) -> None:
    """Copies the database with configs in the API's form, so that reads need not convert them."""
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as database:
        rows = database.execute("SELECT id, config FROM tasks").fetchall()
        database.executemany(
            "UPDATE tasks SET config = ? WHERE id = ?", [(bytes(rendered(text)).decode(), row) for row, text in rows]
        )
    database.close()
