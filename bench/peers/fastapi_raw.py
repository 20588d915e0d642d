"""Tasks listed, created and changed in FastAPI, with nothing between it and SQLite: code written for speed.

`python -m bench.peers.fastapi_raw DATABASE PORT PRAGMAS`: one connection, SQL by hand, `config` spliced into the answer
as it stands in the table (JSON with the API's names), msgspec in and out.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response

MAX_TASKS = {"beta": 100_000}
DEFAULT_VENUE = "simulator"  # of a new task that names none
IDLE_MS, ABSOLUTE_MS, TOUCH_MS = 24 * 3_600_000, 7 * 24 * 3_600_000, 60_000

SESSION = (
    "SELECT s.used_ms, u.id FROM sessions s JOIN users u ON u.id = s.user_id "
    "WHERE s.token_hash = ? AND s.used_ms > ? AND s.created_ms > ?"
)
LIST = (
    "SELECT id, slug, type, config, desired, observed, last_cycle_ms, last_cycle_action, last_error, last_error_code, "
    "last_error_params, created_ms, venue, tags "
    "FROM tasks WHERE user_id = ? AND kind = 'bidding' AND deleted_ms IS NULL ORDER BY id"
)
FILLS = (
    "SELECT task_id, COUNT(*), SUM(COALESCE(sold_sats, price_sats)), MAX(filled_ms) FROM orders "
    "WHERE close_reason = 'filled' AND dry_run = 0 "
    "AND task_id IN (SELECT id FROM tasks WHERE user_id = ?) GROUP BY task_id"
)
SAME = "SELECT 1 FROM tasks WHERE user_id = ? AND slug_key = ? AND deleted_ms IS NULL"
COUNT = "SELECT COUNT(*) FROM tasks WHERE user_id = ? AND kind = 'bidding' AND deleted_ms IS NULL"
INSERT = (
    "INSERT INTO tasks (user_id, kind, venue, config, revision, desired, observed, token, restarts, cycles, memory, "
    "error_cycles, told, created_ms, tags, type, slug, slug_key) "
    "VALUES (?, 'bidding', ?, ?, 1, 'stopped', 'stopped', 0, 0, 0, '{}', 0, '', ?, '[]', ?, ?, ?)"
)
ONE = (
    "SELECT id, slug, type, config, desired, observed, last_cycle_ms, last_cycle_action, last_error, last_error_code, "
    "last_error_params, created_ms, venue, tags "
    "FROM tasks WHERE id = ? AND user_id = ? AND kind = 'bidding' AND deleted_ms IS NULL"
)
SAME_BUT = SAME + " AND id != ?"
UPDATE = "UPDATE tasks SET config = ?, revision = revision + 1, type = ?, slug = ?, slug_key = ? WHERE id = ?"


class Config(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    slug: str
    type: str = "ordinals"
    bid_mode: str = "percent"
    bid_percent_low: float = 0.15
    bid_percent_high: float = 0.75
    bid_fixed_low: int = 10_000
    bid_fixed_high: int = 50_000
    bid_count: int = 5
    hardcap_sats: int = 0
    max_bid_total: int = 0
    bid_expiry_minutes: int | None = None
    loop_seconds: int | None = None
    outbid_enabled: bool = False
    outbid_mode: str = "fixed"
    outbid_amount: int = 1000
    outbid_percent: float = 0.01
    update_bid_enabled: bool = True
    only_bid_if_highest: bool = False
    bid_type: str = "collection"
    trait_type: str = ""
    trait_value: str = ""
    quantity: float = 1
    quantity_mode: str = "quantity"
    sats_per_order: int = 0
    use_vwap: bool = False
    depth_sats: int = 1_000_000
    fee_rate: str | float = "halfHourFee"
    cancel_on_stop: bool = True
    max_fills: int = 0
    spend_cap_sats: int = 0
    dry_run: bool = False
    update_tolerance: float | None = None
    keep_within_gap: float = 0.25
    min_age_seconds: int | None = None
    replace_mode: str = "auto"
    bid_levels: list[dict[str, float]] | None = None
    ladder_shape: str = "even"
    pause_after_fill_seconds: int = 60
    max_fills_per_day: int = 0
    spend_cap_per_day_sats: int = 0
    only_while_floor_between: list[float] | None = None
    pause_on_floor_drop: dict[str, float] | None = None
    active_hours: dict[str, str] | None = None
    ignore_addresses: list[str] = []
    deliver_to: str = "ordinalsAddress"
    on_fill: dict[str, Any] | None = None
    budget_id: int | None = None


class Fills(msgspec.Struct, rename="camel"):
    count: int = 0
    spent_sats: int = 0
    last: str | None = None


class TaskOut(msgspec.Struct, rename="camel"):
    id: int
    slug: str
    type: str
    is_running: bool
    config: msgspec.Raw
    last_cycle: dict[str, Any] | None
    last_error: str | None
    last_error_code: str | None
    last_error_params: msgspec.Raw
    created_at: str
    venue: str
    tags: msgspec.Raw
    fills: Fills
    closing: None = None  # no bid has to be cancelled


path, port, pragmas = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
database = sqlite3.connect(path, timeout=15, isolation_level=None, check_same_thread=False)
for name, value in pragmas.items():
    database.execute(f"PRAGMA {name}={value}")
app = FastAPI()
encode = msgspec.json.Encoder().encode
read_config = msgspec.json.Decoder(Config).decode
read_fields = msgspec.json.Decoder(dict[str, Any]).decode


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def user_of(request: Request) -> int:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token_hash, now = hashlib.sha256(token.encode()).hexdigest(), now_ms()
    row = database.execute(SESSION, (token_hash, now - IDLE_MS, now - ABSOLUTE_MS)).fetchone()
    if scheme != "Bearer" or row is None:
        raise HTTPException(401, "Unauthorized")
    if now - row[0] > TOUCH_MS:
        database.execute("UPDATE sessions SET used_ms = ? WHERE token_hash = ?", (now, token_hash))
    return int(row[1])


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def fills_of(user: int) -> dict[int, Fills]:
    rows = database.execute(FILLS, (user,)).fetchall()
    return {task: Fills(count, sats, iso(last_ms)) for task, count, sats, last_ms in rows}


def shown(row: tuple[Any, ...], fills: dict[int, Fills]) -> TaskOut:
    task_id, slug, type_, config, desired, observed, cycle_ms, action, *error, created_ms, venue, tags = row
    cycle = None if cycle_ms is None else {"time": cycle_ms // 1000, "action": action or ""}
    running = desired == "running" and observed != "crashed"
    filled = fills.get(task_id) or Fills()
    text, code, params = error
    raw = msgspec.Raw(params or "null")
    head = (task_id, slug, type_, running, msgspec.Raw(config), cycle, text, code, raw)
    return TaskOut(*head, iso(created_ms), venue, msgspec.Raw(tags), filled)


@app.get("/api/tasks")
async def list_tasks(request: Request) -> Response:
    user = user_of(request)
    rows, fills = database.execute(LIST, (user,)).fetchall(), fills_of(user)
    return Response(encode([shown(row, fills) for row in rows]), media_type="application/json")


@app.post("/api/tasks")
async def create_task(request: Request) -> Response:
    user = user_of(request)
    try:
        config = read_config(await request.body())
    except msgspec.MsgspecError as error:
        raise HTTPException(400, str(error)) from error
    plan = database.execute("SELECT plan FROM subscriptions WHERE user_id = ?", (user,)).fetchone()
    slug_key, text, now = config.slug.strip().lower(), encode(config).decode(), now_ms()
    database.execute("BEGIN IMMEDIATE")
    try:
        if database.execute(SAME, (user, slug_key)).fetchone():
            raise HTTPException(409, "Task already exists for this slug")
        if database.execute(COUNT, (user,)).fetchone()[0] >= MAX_TASKS.get(plan[0], 0):
            raise HTTPException(403, "Plan task limit reached")
        values = (user, DEFAULT_VENUE, text, now, config.type, config.slug, slug_key)
        task_id = database.execute(INSERT, values).lastrowid
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    row = (task_id, config.slug, config.type, text.encode(), "stopped", "stopped", None, None, None, None, None, now)
    row = (*row, DEFAULT_VENUE, "[]")
    return Response(encode(shown(row, {})), 201, {"Location": f"/api/tasks/{task_id}"}, "application/json")


@app.put("/api/tasks/{task_id}")
async def change_task(task_id: int, request: Request) -> Response:
    user = user_of(request)
    row = database.execute(ONE, (task_id, user)).fetchone()
    if row is None:
        raise HTTPException(404, "Not found")
    try:
        config = msgspec.convert(read_fields(row[3]) | read_fields(await request.body()), Config)
    except msgspec.MsgspecError as error:
        raise HTTPException(400, str(error)) from error
    slug_key, text = config.slug.strip().lower(), encode(config).decode()
    database.execute("BEGIN IMMEDIATE")
    try:
        if database.execute(SAME_BUT, (user, slug_key, task_id)).fetchone():
            raise HTTPException(409, "Task already exists for this slug")
        database.execute(UPDATE, (text, config.type, config.slug, slug_key, task_id))
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    row = (task_id, config.slug, config.type, text.encode(), *row[4:])
    return Response(encode(shown(row, fills_of(user))), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=port)
