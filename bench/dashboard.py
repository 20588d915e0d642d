"""The dashboard's budgets in Debian's Chromium: a first visit, the time until it is usable, and the cost of watching.

An installation on the practice market has twenty live tasks of one user, another one has 156. The browser runs on the
same machine, so a visitor's line and processor are emulated where a row says so.
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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Locator, Page, Playwright, expect, sync_playwright

from bench.installed import PLAN
from bench.measuring import Row
from tests.e2e.installation import Installation, installation, until
from tests.needs import LIBATOMIC, missing, path
from tests.web.visitor import ARGUMENTS, PATIENCE_MS, Person, Visitor, visiting

expect.set_options(timeout=PATIENCE_MS)

TASKS, LOOP_S, CYCLES, ROUNDS, KILLS = 20, 5, 500, 5, 3
MANY, _REST_S, _FIRST_S = 156, 900, 7
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


def many_rows() -> Iterator[Row]:
    """Yields what the overview and the list of bids take with as many tasks as a trader has, which rest after a cycle.

    A request for a file of the page is in no row: a second visit has them all.
    """
    with _dashboard(MANY) as (browser, home):
        owner = _with_live_tasks(home, MANY, bidCount=1, loopSeconds=_REST_S, bidExpiryMinutes=60)
        kept = [_visit(browser, home, owner, route) for route in ("#/", "#/bids")]
        overview, bids = kept
        yield Row(f"overview of {MANY} tasks, until whole: requests of the API", str(overview.requests), "", "", "12")
        yield Row("... bytes on the wire", f"{overview.bytes:,}", "", "", "60,000")
        yield Row("... elements", f"{overview.elements:,}", "", "", "2,500")
        yield Row("... height beyond the window", f"{overview.beyond_px} px", "", "", "0 px")
        yield Row(f"... main thread, first {_FIRST_S} s", f"{overview.busy_s:.2f} s", "", "", "0.8 s")
        yield Row("... longest task", f"{overview.longest_ms:.0f} ms", "", "", "100 ms")
        yield Row(f"bids of {MANY} tasks: elements", f"{bids.elements:,}", "", "", "2,500")
        yield Row("... height beyond the window", f"{bids.beyond_px} px", "", "", "0 px")
        yield Row("... a row's height", f"{bids.row_px} px", "", "", "40 px")
        took = [_until_rows(browser, home, owner) for _ in range(ROUNDS)]
        yield Row("overview: rows at 4G, CPU / 4", f"{statistics.median(took):.2f} s", "", "", "1.5 s")


class _Visit(NamedTuple):
    """A visit in numbers."""

    requests: int
    bytes: int
    elements: int
    beyond_px: int
    row_px: int
    busy_s: float
    longest_ms: float


def _visit(browser: Browser, home: Installation, owner: Person, route: str) -> _Visit:
    with visiting(browser, home) as visitor:
        wire = _Wire(visitor, "/api/")
        visitor.give_token(owner)
        session = visitor.context.new_cdp_session(visitor.page)
        session.send("Performance.enable", {"timeDomain": "timeTicks"})
        visitor.page.add_init_script(_WATCH_TASKS)
        page = visitor.open(route)
        expect(page.locator(".task-row .bids-cell .num").first).to_have_text(re.compile(r"^\d+ / 1$"))
        page.wait_for_timeout(1_000)  # what belongs to it is on its way
        requests, size = wire.requests, wire.bytes
        page.wait_for_timeout(1_000 * (_FIRST_S - 1))
        found = session.send("Performance.getMetrics")["metrics"]
        busy_s = next(each["value"] for each in found if each["name"] == "TaskDuration")
        return _Visit(
            requests,
            size,
            page.evaluate("document.querySelectorAll('*').length"),
            page.evaluate("document.documentElement.scrollHeight - innerHeight"),
            page.locator(".task-row").first.evaluate("(row) => row.offsetHeight"),
            busy_s,
            page.evaluate("window.longestTaskMs"),
        )


def _until_rows(browser: Browser, home: Installation, owner: Person) -> float:
    """Returns the seconds until the overview shows a task's bids, on a phone's line and processor, files at hand."""
    with visiting(browser, home) as visitor:
        visitor.give_token(owner)
        page = visitor.open("#/")
        expect(page.locator(".task-row").first).to_be_visible()
        session = visitor.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", _LINE)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        began = time.monotonic()
        page.reload(wait_until="commit")
        expect(page.locator(".task-row .bids-cell .num").first).to_have_text(re.compile(r"^\d+ / 1$"))
        return time.monotonic() - began


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


_WATCH_TASKS = """window.longestTaskMs = 0;
new PerformanceObserver((found) => {
  for (const { duration } of found.getEntries()) window.longestTaskMs = Math.max(window.longestTaskMs, duration);
}).observe({ type: "longtask", buffered: true });"""


class _Wire:
    """Measures a page's requests of addresses with `part` as sent over the wire: headers and compressed bodies."""

    def __init__(self, visitor: Visitor, part: str = "") -> None:
        self._part = part
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
        url = event["request"]["url"]
        if url.startswith("http") and self._part in url:
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
    return page.locator(".task-row .bids-cell .num", has_text=re.compile(r"^[1-9]"))


def _cycles(home: Installation) -> int:
    """Counts the cycles of all tasks so far."""
    with closing(sqlite3.connect(f"file:{home.data_dir / 'bidkeeper.db'}?mode=ro", uri=True)) as database:
        [[count]] = database.execute("SELECT SUM(cycles) FROM tasks").fetchall()
    return int(count or 0)


def _with_live_tasks(home: Installation, count: int = TASKS, **config: Any) -> Person:
    """Creates a user whose ladders are all open at the market."""
    owner = Person(home).sign_in()
    ladder = {"bidCount": 3, "bidPercentLow": 0.1, "bidPercentHigh": 0.3, "hardcapSats": 300_000}
    for number in range(count):
        home.put_collection(f"watched-{number}", _ASKS)
        owner.start(owner.task(**{"slug": f"watched-{number}", "loopSeconds": LOOP_S, **ladder, **config}))
    until(lambda: all(task["lastCycle"] for task in owner.ok("GET", "/api/tasks")), "a cycle of every task", 600)
    return owner


@contextmanager
def _dashboard(tasks: int = TASKS) -> Iterator[tuple[Browser, Installation]]:
    if reason := missing("chromium", LIBATOMIC):
        raise FileNotFoundError(reason)
    with TemporaryDirectory(prefix="bk-bench-") as name, sync_playwright() as playwright:
        config = Path(name) / "bidkeeper.toml"
        config.write_text(PLAN.format(max_tasks=tasks))
        with installation(BIDKEEPER_CONFIG=str(config)) as home, _browser(playwright) as browser:
            yield browser, home


@contextmanager
def _browser(playwright: Playwright) -> Iterator[Browser]:
    made = playwright.chromium.launch(executable_path=path("chromium"), args=ARGUMENTS)
    try:
        yield made
    finally:
        made.close()
