"""Lists, creates and changes tasks in the style of FastAPI's and SQLModel's own documentation.

`python -m bench.peers.fastapi_sqlmodel DATABASE PORT PRAGMAS`: rows by SQLModel, one session a request, answers checked
and written by `response_model`. The table's `config` is JSON with the API's names.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Rule
from pydantic.alias_generators import to_camel
from sqlalchemy import JSON, event
from sqlmodel import Column, Field, Session, SQLModel, col, create_engine, func, select

MAX_TASKS = {"beta": 100_000}
DEFAULT_VENUE = "simulator"  # of a new task that names no venue
IDLE_MS, ABSOLUTE_MS, TOUCH_MS = 24 * 3_600_000, 7 * 24 * 3_600_000, 60_000


class User(SQLModel, table=True):
    __tablename__ = "users"
    id: int | None = Field(default=None, primary_key=True)
    address: str
    ordinals_address: str
    display_name: str | None = None
    created_ms: int


class Subscription(SQLModel, table=True):
    __tablename__ = "subscriptions"
    user_id: int = Field(primary_key=True, foreign_key="users.id")
    plan: str
    started_ms: int
    expires_ms: int


class SignIn(SQLModel, table=True):
    __tablename__ = "sessions"
    token_hash: str = Field(primary_key=True)
    user_id: int = Field(foreign_key="users.id")
    created_ms: int
    used_ms: int


class Task(SQLModel, table=True):
    __tablename__ = "tasks"
    id: int | None = Field(default=None, primary_key=True)
    user_id: int = Field(foreign_key="users.id")
    kind: str = "bidding"
    venue: str = DEFAULT_VENUE
    config: dict[str, Any] = Field(sa_column=Column(JSON))
    revision: int = 1
    desired: str = "stopped"
    observed: str = "stopped"
    token: int = 0
    restarts: int = 0
    cycles: int = 0
    memory: str = "{}"
    error_cycles: int = 0
    told: str = ""
    last_cycle_ms: int | None = None
    last_cycle_action: str | None = None
    last_error: str | None = None
    last_error_code: str | None = None
    last_error_params: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))
    created_ms: int
    deleted_ms: int | None = None
    tags: list[str] = Field(default_factory=list, sa_column=Column(JSON))
    type: str
    slug: str
    slug_key: str


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Config(Camel):
    slug: str = Rule(min_length=1, max_length=100)
    type: str = "ordinals"
    bid_mode: str = "percent"
    bid_percent_low: float = Rule(0.15, gt=0, le=10)
    bid_percent_high: float = Rule(0.75, gt=0, le=10)
    bid_fixed_low: int = Rule(10_000, ge=0)
    bid_fixed_high: int = Rule(50_000, ge=0)
    bid_count: int = Rule(5, ge=1, le=100)
    hardcap_sats: int = Rule(0, ge=0)
    max_bid_total: int = Rule(0, ge=0)
    bid_expiry_minutes: int | None = None
    loop_seconds: int | None = None
    outbid_enabled: bool = False
    outbid_mode: str = "fixed"
    outbid_amount: int = Rule(1000, ge=0)
    outbid_percent: float = Rule(0.01, ge=0)
    update_bid_enabled: bool = True
    only_bid_if_highest: bool = False
    bid_type: str = "collection"
    trait_type: str = ""
    trait_value: str = ""
    quantity: float = Rule(1, gt=0)
    quantity_mode: str = "quantity"
    sats_per_order: int = Rule(0, ge=0)
    use_vwap: bool = False
    depth_sats: int = Rule(1_000_000, ge=0)
    fee_rate: str | float = "halfHourFee"
    cancel_on_stop: bool = True
    max_fills: int = Rule(0, ge=0)
    spend_cap_sats: int = Rule(0, ge=0)
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


class LastCycle(Camel):
    time: int
    action: str


class Fills(Camel):
    count: int = 0
    spent_sats: int = 0
    last: str | None = None


class TaskOut(Camel):
    id: int
    slug: str
    type: str
    is_running: bool
    config: Config
    last_cycle: LastCycle | None
    last_error: str | None
    last_error_code: str | None
    last_error_params: dict[str, Any] | None
    created_at: str
    venue: str
    tags: list[str]
    fills: Fills
    closing: None = None  # no bid has to be cancelled


FILLS = (
    "SELECT task_id, COUNT(*), SUM(COALESCE(sold_sats, price_sats)), MAX(filled_ms) FROM orders "
    "WHERE close_reason = 'filled' AND dry_run = 0 "
    "AND task_id IN (SELECT id FROM tasks WHERE user_id = ?) GROUP BY task_id"
)

database, port, pragmas = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
engine = create_engine(f"sqlite:///{database}", connect_args={"check_same_thread": False, "timeout": 15}, pool_size=40)
app = FastAPI()
bearer = HTTPBearer()


@event.listens_for(engine, "connect")
def set_pragmas(connection: Any, record: Any) -> None:
    for name, value in pragmas.items():
        connection.execute(f"PRAGMA {name}={value}")


def session() -> Iterator[Session]:
    with Session(engine) as found:
        yield found


Db = Annotated[Session, Depends(session)]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def current_user(db: Db, credentials: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> User:
    token_hash = hashlib.sha256(credentials.credentials.encode()).hexdigest()
    now = now_ms()
    query = select(SignIn, User).join(User).where(SignIn.token_hash == token_hash)
    found = db.exec(query.where(SignIn.used_ms > now - IDLE_MS, SignIn.created_ms > now - ABSOLUTE_MS)).first()
    if found is None:
        raise HTTPException(401, "Unauthorized")
    sign_in, user = found
    if now - sign_in.used_ms > TOUCH_MS:
        sign_in.used_ms = now
        db.add(sign_in)
        db.commit()
    return user


Me = Annotated[User, Depends(current_user)]


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fills_of(db: Session, user_id: int | None) -> dict[int, Fills]:
    rows = db.connection().exec_driver_sql(FILLS, (user_id,))
    return {task: Fills(count=count, spent_sats=sats, last=iso(last_ms)) for task, count, sats, last_ms in rows}


def shown(task: Task, fills: dict[int, Fills]) -> TaskOut:
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = LastCycle(time=task.last_cycle_ms // 1000, action=task.last_cycle_action or "")
    return TaskOut(
        id=task.id or 0,
        slug=task.slug,
        type=task.type,
        is_running=task.desired == "running" and task.observed != "crashed",
        config=Config.model_validate(task.config),
        last_cycle=cycle,
        last_error=task.last_error,
        last_error_code=task.last_error_code,
        last_error_params=task.last_error_params,
        created_at=iso(task.created_ms),
        venue=task.venue,
        tags=task.tags,
        fills=fills.get(task.id or 0) or Fills(),
    )


def alive(user_id: int) -> tuple[Any, ...]:
    return Task.user_id == user_id, Task.kind == "bidding", col(Task.deleted_ms).is_(None)


@app.get("/api/tasks", response_model=list[TaskOut])
def list_tasks(db: Db, user: Me) -> list[TaskOut]:
    query = select(Task).where(*alive(user.id or 0)).order_by(col(Task.id))
    fills = fills_of(db, user.id)
    return [shown(task, fills) for task in db.exec(query)]


@app.post("/api/tasks", response_model=TaskOut, status_code=201)
def create_task(db: Db, user: Me, config: Config, response: Response) -> TaskOut:
    subscription = db.get(Subscription, user.id)
    limit = MAX_TASKS.get(subscription.plan, 0) if subscription else 0
    user_id, slug_key = user.id, config.slug.lower()
    db.commit()
    db.connection().exec_driver_sql("BEGIN IMMEDIATE")
    if db.exec(select(Task.id).where(*alive(user_id), Task.slug_key == slug_key)).first() is not None:
        raise HTTPException(409, "Task already exists for this slug")
    if db.exec(select(func.count(col(Task.id))).where(*alive(user_id))).one() >= limit:
        raise HTTPException(403, "Plan task limit reached")
    task = Task(
        user_id=user_id,
        type=config.type,
        slug=config.slug,
        slug_key=slug_key,
        config=config.model_dump(by_alias=True),
        created_ms=now_ms(),
    )
    db.add(task)
    db.commit()
    db.refresh(task)
    response.headers["Location"] = f"/api/tasks/{task.id}"
    return shown(task, {})


@app.put("/api/tasks/{task_id}", response_model=TaskOut)
def change_task(db: Db, user: Me, task_id: int, body: dict[str, Any]) -> TaskOut:
    user_id = user.id
    db.commit()
    db.connection().exec_driver_sql("BEGIN IMMEDIATE")
    task = db.exec(select(Task).where(*alive(user_id), Task.id == task_id)).first()
    if task is None:
        raise HTTPException(404, "Not found")
    try:
        config = Config.model_validate(task.config | body)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    slug_key = config.slug.lower()
    if (
        db.exec(select(Task.id).where(*alive(user_id), Task.slug_key == slug_key, Task.id != task_id)).first()
        is not None
    ):
        raise HTTPException(409, "Task already exists for this slug")
    task.config, task.revision = config.model_dump(by_alias=True), task.revision + 1
    task.type, task.slug, task.slug_key = config.type, config.slug, slug_key
    db.add(task)
    db.commit()
    db.refresh(task)
    return shown(task, fills_of(db, user_id))


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=port)
