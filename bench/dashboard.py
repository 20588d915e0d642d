"""The dashboard's budgets in Debian's Chromium: a first visit, the time until it is usable, and the cost of watching.

An installation on the practice market has twenty live tasks of one user. The browser runs on the same machine, so a
visitor's line and processor are emulated where a row says so.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from playwright.sync_api import Browser, CDPSession, Locator, Page, expect, sync_playwright

from bench.measuring import Row
from tests.e2e.installation import Installation, installation, until
from tests.needs import LIBATOMIC, missing, path
from tests.web.visitor import ARGUMENTS, PATIENCE_MS, Person, Visitor, visiting

expect.set_options(timeout=PATIENCE_MS)

TASKS, LOOP_S, CYCLES, ROUNDS, KILLS = 20, 5, 500, 5, 3
_ASKS = [1_000_000, 1_050_000, 1_200_000]
# Chromium's own preset "Fast 4G", and a processor a quarter as fast as this machine's.
_LINE = {"offline": False, "latency": 165, "downloadThroughput": 1_012_500, "uploadThroughput": 168_750}
SLOWER = 4
# Notes when the banner appears, by the clock that this program also reads.
_WATCH_BANNER = """() => {
  window.shownAt = 0;
  new MutationObserver(() => {
    if (!window.shownAt && document.querySelector(".banner")) window.shownAt = Date.now();
  }).observe(document.body, { childList: true, subtree: true });
}"""


def first_visit_rows() -> Iterator[Row]:
    with _dashboard() as (browser, home):
        with visiting(browser, home) as visitor:
            visitor.install("unisat", Person(home))
            wire = _Wire(visitor)
            visitor.page.goto("/")
            expect(_wallet(visitor.page)).to_be_enabled()
            yield Row("sign-in, first visit: bytes on the wire", f"{wire.bytes:,}", "", "", "130,000")
            yield Row("... requests", str(wire.requests), "", "", "30")
        took = [_until_usable(browser, home) for _ in range(ROUNDS)]
        yield Row("... usable at 4G, CPU / 4", f"{statistics.median(took):.2f} s", "", "", "2 s")


def watching_rows() -> Iterator[Row]:
    with _dashboard() as (browser, home):
        owner = _with_live_tasks(home)
        with visiting(browser, home) as visitor:
            wire = _Wire(visitor)
            visitor.give_token(owner)
            page = visitor.open("#/")
            expect(_ladders(page)).not_to_have_count(0)
            yield Row(f"overview of {TASKS} tasks, first visit: bytes on the wire", f"{wire.bytes:,}", "", "", "")
            yield Row("... requests", str(wire.requests))
            yield from _while_it_runs(page, home)
        took = [_from_click_to_ladders(browser, home, owner) for _ in range(ROUNDS)]
        yield Row("click on the wallet until ladders are shown", f"{statistics.median(took):.2f} s", "", "", "1.5 s")


def away_rows() -> Iterator[Row]:
    with _dashboard() as (browser, home), visiting(browser, home) as visitor:
        visitor.give_token(Person(home).sign_in())
        page = visitor.open("#/more")
        noticed, back = [], []
        for _ in range(KILLS):
            expect(page.locator(".side .connection")).to_have_text("Live")
            page.evaluate(_WATCH_BANNER)
            killed = time.time()
            for pid in home.processes("cli.main server"):
                os.kill(pid, signal.SIGKILL)
            expect(page.locator(".banner")).to_be_visible()
            noticed.append(page.evaluate("window.shownAt") / 1000 - killed)
            expect(page.locator(".banner")).to_have_count(0)
            back.append(time.time() - killed)
        yield Row("kill -9 of the server until the page says so", f"{statistics.median(noticed):.2f} s", "", "", "1 s")
        yield Row("... until it is live again by itself", f"{statistics.median(back):.1f} s")


class _Wire:
    """Measures all that a page requests as sent over the wire: headers and compressed bodies."""

    def __init__(self, visitor: Visitor) -> None:
        self._sizes: dict[str, float] = {}
        session = visitor.context.new_cdp_session(visitor.page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.dataReceived", lambda event: self._add(event["requestId"], event["encodedDataLength"]))
        session.on("Network.loadingFinished", self._on_end)

    @property
    def bytes(self) -> int:
        return round(sum(self._sizes.values()))

    @property
    def requests(self) -> int:
        return len(self._sizes)

    def _on_request(self, event: dict[str, Any]) -> None:
        if event["request"]["url"].startswith("http"):
            self._sizes[event["requestId"]] = 0

    def _add(self, request: str, size: float) -> None:
        if request in self._sizes:
            self._sizes[request] += size

    def _on_end(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._sizes:
            self._sizes[event["requestId"]] = event["encodedDataLength"]


def _until_usable(browser: Browser, home: Installation) -> float:
    """Returns the seconds until a wallet's button can be pressed, on a phone's line and processor."""
    with visiting(browser, home) as visitor:
        visitor.install("unisat", Person(home))
        session = visitor.context.new_cdp_session(visitor.page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", _LINE)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        began = time.monotonic()
        visitor.page.goto("/", wait_until="commit")
        expect(_wallet(visitor.page)).to_be_enabled()
        return time.monotonic() - began


def _from_click_to_ladders(browser: Browser, home: Installation, owner: Person) -> float:
    with visiting(browser, home) as visitor:
        visitor.install("unisat", owner)
        visitor.page.goto("/")
        expect(_wallet(visitor.page)).to_be_enabled()
        began = time.monotonic()
        _wallet(visitor.page).click()
        expect(_ladders(visitor.page)).not_to_have_count(0)
        return time.monotonic() - began


def _while_it_runs(page: Page, home: Installation) -> Iterator[Row]:
    """Yields the page's use of resources while its tasks' cycles arrive, and whether its memory grows."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "timeTicks"})
    _cycles_later(page, home, CYCLES // 10)  # until everything that is loaded once has been loaded
    before, began, counted = _metrics(session), time.monotonic(), _cycles(home)
    _cycles_later(page, home, CYCLES)
    after, took = _metrics(session), time.monotonic() - began
    busy, script = ((after[name] - before[name]) / took for name in ("TaskDuration", "ScriptDuration"))
    grown = (after["JSHeapUsedSize"] - before["JSHeapUsedSize"]) / 2**20
    yield Row(f"main thread, {TASKS} live tasks on {LOOP_S} s cycles", f"{busy:.1%}", "", "", "5 %")
    yield Row("... scripts of it", f"{script:.1%}")
    cycles = _cycles(home) - counted
    yield Row(f"heap after {cycles} more cycles", f"{grown:+.2f} MiB", "", "", "level")
    yield Row("... of", f"{after['JSHeapUsedSize'] / 2**20:.1f} MiB, {after['Nodes']:.0f} nodes")


def _cycles_later(page: Page, home: Installation, cycles: int) -> None:
    wanted = _cycles(home) + cycles
    while _cycles(home) < wanted:
        page.wait_for_timeout(500)


def _metrics(session: CDPSession) -> dict[str, float]:
    session.send("HeapProfiler.collectGarbage")
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


def _wallet(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("UniSat"))


def _ladders(page: Page) -> Locator:
    return page.locator("main svg[role=img]")


def _cycles(home: Installation) -> int:
    """Counts the cycles of all tasks so far."""
    with closing(sqlite3.connect(f"file:{home.data_dir / 'bidkeeper.db'}?mode=ro", uri=True)) as database:
        [[count]] = database.execute("SELECT SUM(cycles) FROM tasks").fetchall()
    return int(count or 0)


def _with_live_tasks(home: Installation) -> Person:
    """Creates a user whose ladders are all open at the market."""
    owner = Person(home).sign_in()
    slugs = [f"watched-{number}" for number in range(TASKS)]
    for slug in slugs:
        home.put_collection(slug, _ASKS)
        ladder = {"bidCount": 3, "bidPercentLow": 0.1, "bidPercentHigh": 0.3, "hardcapSats": 300_000}
        owner.start(owner.task(slug=slug, loopSeconds=LOOP_S, **ladder))
    until(lambda: all(task["lastCycle"] for task in owner.ok("GET", "/api/tasks")), "a cycle of every task")
    return owner


@contextmanager
def _dashboard() -> Iterator[tuple[Browser, Installation]]:
    if reason := missing("chromium", LIBATOMIC):
        raise FileNotFoundError(reason)
    with sync_playwright() as playwright, installation() as home:
        browser = playwright.chromium.launch(executable_path=path("chromium"), args=ARGUMENTS)
        try:
            yield browser, home
        finally:
            browser.close()
