"""The cost of one user's streams and long answers to another: the latency of the other's `GET /api/tasks`.

A server process with a big database: each of the users who send load has all the events that are kept, 20,000 orders
(half of them filled), a year of samples, long cycles and a long journal. The other user asks every few milliseconds
over a kept connection, first alone, then while ten connections of one user ask without pause, in the same run."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bench import traders_database
from bench.measuring import Row, get, serving
from core.layout import journal_path, log_path
from models.database import base
from models.ledger.states import Order
from models.outbox import Event
from models.tasks.cycles import HOUR, KEPT_MINUTES, Cycle, Sample, add_sample
from strategy.book import Ask, Bid, Snapshot
from strategy.decision import Entry
from tests.ports import free_ports
from tests.replay.recorded import LOOP, entry
from workers.bidding.moment import Journal

CONNECTIONS, PRESSING_USERS, SECONDS = 10, 4, 6.0
LASTING, PASSING, ORDERS, CYCLES = 10_000, 1_000, 20_000, 4_000
_PAUSE_S = 0.004
_STREAM = "Accept: text/event-stream\r\nLast-Event-ID: {after}\r\n"
_AIM = "90th <= 20 ms"


class Press(NamedTuple):
    """Requests that `users` send without pause, each over ten connections; `{task}` is one of the user's tasks.

    With `missed` they are streams that start that many events ago, and end after the first bytes (`leaves`) or once no
    more events arrive.
    """

    what: str
    path: str
    users: int = 1
    missed: int | None = None
    leaves: bool = False


STREAMS = (
    Press("ten streams that reconnect, all events missed", "/api/events", missed=LASTING + PASSING),
    Press("... 1,900 missed", "/api/events", missed=1_900),
    Press("... left at the first bytes", "/api/events", missed=1_900, leaves=True),
    Press("... of four users", "/api/events", users=4, missed=1_900),
)
READS = (
    Press("GET /api/events?limit=500", "/api/events?after=1&limit=500"),
    Press("GET /api/trades.csv", "/api/trades.csv"),
    Press("GET /api/pnl", "/api/pnl?groupBy=slug"),
    Press("GET /api/fills?limit=500", "/api/fills?limit=500"),
    Press("GET /api/orders?limit=500", "/api/orders?limit=500"),
    Press("GET /api/tasks/:id/orders?limit=500", "/api/tasks/{task}/orders?limit=500"),
    Press("GET /api/tasks/:id/series, a year", "/api/tasks/{task}/series?step=hour&from=2020-01-01"),
    Press("GET /api/tasks/:id/cycles?limit=200", "/api/tasks/{task}/cycles?limit=200"),
    Press("GET /api/tasks/:id/log?lines=1000", "/api/tasks/{task}/log?lines=1000"),
    Press("GET /api/tasks/:id/at", "/api/tasks/{task}/at?time={then}"),
    Press("GET /api/tasks", "/api/tasks"),
    Press("GET /api/openapi.json", "/api/openapi.json"),
)


def stream_rows() -> Iterator[Row]:
    yield from _rows(STREAMS)


def read_rows() -> Iterator[Row]:
    yield from _rows(READS)


def _rows(presses: tuple[Press, ...]) -> Iterator[Row]:
    with _server() as (port, tokens):
        stranger = tokens[-1]
        for press in presses:
            time.sleep(2.0)  # until earlier requests are answered
            alone = _latencies(port, stranger)
            with _pressing(port, tokens, press) as answers:
                beside = _latencies(port, stranger)
                per_s = answers.value / SECONDS
            yield Row(f"{press.what}, {per_s:.0f} a second", _told(beside), _told(alone), "", _AIM)


def _told(found: list[float]) -> str:
    ninetieth = statistics.quantiles(found, n=10, method="inclusive")[-1]
    return f"{ninetieth * 1e3:.1f} / {max(found) * 1e3:.0f} ms"


def _latencies(port: int, token: str) -> list[float]:
    """Returns the seconds of each answer to the other user."""
    found, ends = list[float](), time.monotonic() + SECONDS
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        while time.monotonic() < ends:
            time.sleep(_PAUSE_S)
            began = time.perf_counter()
            connection.request("GET", "/api/tasks", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            found.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"the stranger was answered {answer.status}")
    return found


@contextmanager
def _pressing(port: int, tokens: list[str], press: Press):  # type: ignore[no-untyped-def]
    """While the body runs, sends load from another process, which counts its answers."""
    context = multiprocessing.get_context("spawn")
    answers = context.Value("i", 0)
    process = context.Process(target=_press, args=(port, tokens[: press.users], press, answers), daemon=True)
    process.start()
    try:
        time.sleep(2.0)
        answers.value = 0
        yield answers
    finally:
        process.terminate()
        process.join()


def _press(port: int, tokens: list[str], press: Press, answers) -> None:  # type: ignore[no-untyped-def]
    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for user, token in enumerate(tokens):
                for _ in range(CONNECTIONS):
                    group.create_task(_client(port, _request(press, user, token), press, answers))

    asyncio.run(all_of_them())


def _request(press: Press, user: int, token: str) -> bytes:
    then = datetime.fromtimestamp(time.time() - 0.9 * CYCLES * LOOP / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    request = get(press.path.format(task=1 + user * traders_database.TASKS_EACH, then=then), token)
    if press.missed is None:
        return request
    # The events of all users who send load are written in turn.
    after = PRESSING_USERS * (LASTING + PASSING - press.missed)
    return request[:-2] + _STREAM.format(after=max(1, after)).encode() + b"\r\n"


async def _client(port: int, request: bytes, press: Press, answers) -> None:  # type: ignore[no-untyped-def]
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(request)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if press.missed is None:
                await _answered(reader, writer, request, answers)
            else:
                await _caught_up(reader, press)
        answers.value += 1
        writer.close()


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, answers) -> None:  # type: ignore[no-untyped-def]
    """Asks over the kept connection until it ends."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
        await reader.readexactly(length)
        answers.value += 1
        writer.write(request)


async def _caught_up(reader: asyncio.StreamReader, press: Press) -> None:
    """Reads until the newest event, a reset or a refusal has arrived."""
    last = f"id: {PRESSING_USERS * (LASTING + PASSING) - PRESSING_USERS + 1}".encode()[:-1]
    text = b""
    while piece := await reader.read(1 << 20):
        text = text[-64:] + piece
        if press.leaves or last in text or b"event: reset" in text or text.startswith(b"HTTP/1.1 4"):
            return


@contextmanager
def _server() -> Iterator[tuple[int, list[str]]]:
    with tempfile.TemporaryDirectory(prefix="bk-bench-") as name:
        home, (port,) = Path(name), free_ports(1)
        url = f"sqlite:///{home / 'bidkeeper.db'}"
        tokens = traders_database.make(url)
        base.connect(url)
        try:
            _fill(home)
        finally:
            base.close()
        environment = {"BIDKEEPER_DATA_DIR": name, "BIDKEEPER_PORT": str(port), "BIDKEEPER_WHITELIST": "*"}
        with serving([sys.executable, "-m", "cli.main", "server"], port, home / "server.log", environment):
            yield port, tokens


def _fill(home: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    data = (
        '{"order":7,"venue":"simulator","slug":"collection-3","trait":null,"price":1234567,"quantity":"1","dry_run":false'
        ',"inscription_id":null,"sale_id":"sale-7","placed_ms":1800000000000,"sold_ms":1800000000000'
        ',"action":"placed 1, kept 4","error":null}'
    )
    with base.transaction():
        events = (
            {
                "user_id": user,
                "task_id": 1,
                "event": "fill" if number < LASTING else "cycle",
                "at_ms": now_ms,
                "is_passing": number >= LASTING,
                "data": data,
            }
            for number in range(LASTING + PASSING)
            for user in range(1, 1 + PRESSING_USERS)
        )
        _insert(Event, events)
        _insert(Order, (_order(number, now_ms) for number in range(ORDERS)))
        detail = '{"rungs":[' + ",".join(['{"price_sats":123456,"reason":"kept","fate":"live"}'] * 200) + "]}"
        cycle = {"task_id": 1, "time_ms": now_ms, "action": "placed 0", "error": None, "detail": detail}
        _insert(Cycle, (cycle for _ in range(200)))
        now = now_ms // 60_000
        prices = map(Decimal, (101_500, 100_000, 78_000, 75_000, 52_000))
        sample = Sample(*prices, None, 5, 315_000)
        for minute in range(now - KEPT_MINUTES[HOUR] + HOUR, now, HOUR):
            add_sample(1, sample, minute * 60_000)
    log = log_path(home, 1)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("2026-11-28 12:00:00 INFO bidding placed 1, kept 4\n" * 20_000)
    path = journal_path(home, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(path)
    for number in range(CYCLES):
        journal.write(_decision(number, now_ms - (CYCLES - number) * LOOP))


def _insert(table, rows) -> None:  # type: ignore[no-untyped-def]
    rows = list(rows)
    for begin in range(0, len(rows), 500):
        table.insert_many(rows[begin : begin + 500]).execute()


def _order(number: int, now_ms: int) -> dict[str, object]:
    is_filled = number % 2 == 0
    return {
        "intent": f"{number:032d}",
        "task_id": 1 + number % 20,
        "user_id": 1,
        "venue": "simulator",
        "wallet": "bc1qwallet",
        "slug": f"collection-{number % 20}",
        "price_sats": 100_000 + number,
        "quantity": "1",
        "expires_ms": now_ms + number,
        "token": 1,
        "state": "closed",
        "close_reason": "filled" if is_filled else "cancelled",
        "created_ms": now_ms - 10**9 + number,
        "updated_ms": now_ms,
        "closed_ms": now_ms - 10**9 + number + 60_000,
        "filled_ms": now_ms - 10**8 + number if is_filled else None,
        "sale_id": f"sale-{number}" if is_filled else None,
        "inscription_id": f"{number:064x}i0" if is_filled else None,
        "network_fee_sats": 500,
    }


def _decision(number: int, at_ms: int) -> Entry:
    """Returns a cycle that saw two books of 200 rows, of which ten are new."""
    asks = [Ask(f"ask-{row}", 100_000 + row, Decimal(1), Decimal(100_000 + row), "bc1qseller") for row in range(200)]
    for row in range(number % 190, number % 190 + 10):
        asks[row] = Ask(f"ask-{row}-{number}", 90_000, Decimal(1), Decimal(90_000), "bc1qseller")
    bids = [Bid(f"bid-{row}", 60_000 - row, Decimal(1), Decimal(60_000 - row), "bc1qrival", None) for row in range(200)]
    return replace(entry(number), now_ms=at_ms, snapshot=Snapshot(at_ms, tuple(asks), bids=tuple(bids)))
