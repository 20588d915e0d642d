"""A chart of a year, from the request to its last byte, and what a task's samples add to its cycle and to the disk."""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from bench import traders_database
from bench.load import ask, get, press
from bench.reads_and_writes import our_server
from bench.timing import Row
from models.database import base
from models.tasks.cycles import HOUR, KEPT_MINUTES, MINUTE, Sample, add_sample
from models.tasks.tasks import Task

READS = 15
_SAMPLE = Sample(*map(Decimal, (101_500, 100_000, 78_000, 75_000, 52_000)), None, 5, 315_000)


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="bk-bench-") as name:
        home = Path(name)
        (home / "source").mkdir()
        database = home / "source" / "bidkeeper.db"
        token = traders_database.make(f"sqlite:///{database}")[0]
        bytes_before = _used(database)
        a_sample_s = _fill(database)
        grown = _used(database) - bytes_before
        with our_server(home) as server:
            year = get("/api/tasks/1/series?step=hour&from=2020-01-01", token)
            found = ask(server.port, year)
            took = []
            for _ in range(READS):
                began = time.perf_counter()
                press(server.port, iter([year]), connections=1)
                took.append(time.perf_counter() - began)
    points, size = len(found["time"]), len(json.dumps(found))
    yield Row(f"a task's year by hours, {points:,} points, {size / 1000:,.0f} kB", _ms(took), "", "", "<= 50 ms")
    yield Row("a sample, within the transaction of its cycle", f"{a_sample_s * 1e6:.0f} us", "", "", "<= 300 us")
    yield Row("samples of one task, a day and a year, on disk", f"{grown / 1e6:.2f} MB", "", "", "<= 2 MB")


def _fill(database: Path) -> float:
    """Writes a year of samples for task 1; returns the seconds that one takes."""
    base.connect(f"sqlite:///{database}")
    try:
        now = time.time_ns() // 60_000_000_000
        with base.transaction():
            for minute in range(now - KEPT_MINUTES[HOUR] + HOUR, now - KEPT_MINUTES[MINUTE], HOUR):
                add_sample(1, _SAMPLE, minute * 60_000)
            began = time.perf_counter()
            for minute in range(now - KEPT_MINUTES[MINUTE], now):
                add_sample(1, _SAMPLE, minute * 60_000)
            took = time.perf_counter() - began
        assert Task.get_by_id(1) is not None
        base.database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return took / KEPT_MINUTES[MINUTE]
    finally:
        base.close()


def _used(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


def _ms(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.1f} ms"
