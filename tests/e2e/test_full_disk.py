"""A disk that is filled to the last byte in the middle of trading: cancels are sent, and trading resumes afterwards."""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core import files
from tests import postgresql
from tests.databases import rows
from tests.disks import fill, small_disk
from tests.e2e.installation import Installation, Trader, until

pytestmark = [pytest.mark.slow, postgresql.left_out("the database is another disk's")]

_DISK_BYTES = 320 << 20
_SLUG = "full"


@pytest.fixture
def data_on_small_disk() -> Iterator[Installation]:
    """An installation whose data directory, with the output of `up` in it, is a small disk."""
    made = Installation()
    with small_disk(made.data_dir, _DISK_BYTES):
        made.data_dir.chmod(0o700)
        try:
            made.up()
            yield made
        finally:
            made.destroy()
    made.data_dir.rmdir()


@pytest.fixture
def signer_on_small_disk() -> Iterator[tuple[Installation, Path]]:
    directory = Path(tempfile.mkdtemp(prefix="bk-"))
    with small_disk(directory, _DISK_BYTES):
        made = Installation(BIDKEEPER_SIGNER_DIR=str(directory))
        try:
            made.up()
            yield made, directory
        finally:
            made.destroy()
    directory.rmdir()


def trading(service: Installation) -> tuple[Trader, int]:
    """Returns a trader with a task whose three bids are live: 75,000, 45,000 and 15,000 sats."""
    service.put_collection(_SLUG, [100_000, 110_000])
    trader = Trader(service).sign_in()
    task = trader.task(
        slug=_SLUG, hardcapSats=90_000, bidCount=3, bidPercentLow=0.15, bidPercentHigh=0.75, loopSeconds=5
    )
    trader.start(task)
    until(lambda: service.live_prices(_SLUG) == [75_000, 45_000, 15_000], "three bids")
    return trader, task


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Keeps the disk full: whatever is freed meanwhile, the reserve and files that are replaced, is taken again."""
    fillers: list[Path] = []
    is_over = threading.Event()

    def keep_full() -> None:
        while not is_over.wait(0.05):
            fillers.append(fill(disk).rename(disk / f"filler-{len(fillers)}"))

    filler = threading.Thread(target=keep_full)
    filler.start()
    try:
        until(lambda: len(fillers) > 5, "a full disk")
        yield
    finally:
        is_over.set()
        filler.join()
        for path in fillers:
            path.unlink()


def agrees(service: Installation) -> bool:
    """Tells whether ledger and marketplace have the same live bids."""
    found = rows(service.database_url, "SELECT price_sats FROM orders WHERE state = 'live' ORDER BY price_sats DESC")
    return [price for (price,) in found] == service.live_prices(_SLUG)


def another_task(trader: Trader, number: int) -> int:
    """Returns the status of the answer to a new task."""
    status = trader.call("POST", "/api/tasks", {"slug": f"another-{number}", "hardcapSats": 50_000}).status_code
    assert status in (201, 403, 507)
    return int(status)


def test_a_full_data_directory_keeps_no_bid_above_the_market(data_on_small_disk: Installation) -> None:
    service = data_on_small_disk
    trader, task = trading(service)
    until(lambda: (service.data_dir / files.RESERVE).exists(), "the reserve")
    programs = {*service.processes("cli.main"), *service.processes("supervisord")}
    with full(service.data_dir):
        service.put_collection(_SLUG, [40_000, 50_000])
        until(lambda: max(service.live_prices(_SLUG), default=0) <= 30_000, "no bid above the range of the new floor")
        service.put_collection(_SLUG, [18_000, 20_000])
        until(lambda: max(service.live_prices(_SLUG), default=0) <= 13_500, "nor above that of the next")
        numbers = itertools.count()
        until(lambda: another_task(trader, next(numbers)) == 507, "a refusal for want of room")
        assert programs <= set(service.processes()), "no program ended"

    service.put_collection(_SLUG, [100_000, 110_000])
    until(lambda: 75_000 in service.live_prices(_SLUG), "bids again", 600)
    until(lambda: trader.get(task)["lastError"] is None and agrees(service), "one story, and no error")
    until(lambda: (service.data_dir / files.RESERVE).exists(), "the reserve again")
    trader.stop_and_drain(task)
    assert service.live_prices(_SLUG) == []


def test_a_full_signer_directory_signs_cancels_and_no_bid(signer_on_small_disk: tuple[Installation, Path]) -> None:
    service, directory = signer_on_small_disk
    trader, task = trading(service)
    until(lambda: agrees(service), "one story of ledger and marketplace")

    def refusal() -> Any:
        found = trader.get(task)
        return found["lastErrorCode"] == "signer_refused" and found["lastErrorParams"]

    with full(directory):
        service.put_collection(_SLUG, [40_000, 50_000])
        until(lambda: service.live_prices(_SLUG) == [15_000], "no bid above the range of the new floor")
        assert until(refusal, "a refusal by the signer")["rule"] == "disk-full"
        trader.ok("PUT", "/api/control", {"scope": "user", "state": "halt"})
        until(lambda: service.live_prices(_SLUG) == [], "no bid after a halt")

    trader.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
    until(lambda: len(service.live_prices(_SLUG)) == 3, "bids again")
    until(lambda: trader.get(task)["lastError"] is None and agrees(service), "one story, and no error")


def test_a_supervisord_that_ended_by_itself_is_started_again() -> None:
    service = Installation()
    try:
        service.up()
        [former] = service.processes("supervisord")
        os.kill(former, signal.SIGKILL)
        until(lambda: [pid for pid in service.processes("supervisord") if pid != former], "another supervisord")
        until(service.ready_again, "the programs again")
        service.down()
    finally:
        service.destroy()
