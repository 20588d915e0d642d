"""A server that is killed: the page says so, keeps what it knows, and is live again by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.installation import Installation, installation, until
from tests.web.test_overview import row, running, said_soon
from tests.web.visitor import Person, Visitor

pytestmark = pytest.mark.thorough  # web/test_foundation.py, with answers that do not come

BANNER = "Can't reach the server"


@pytest.fixture(scope="module")
def service(browser: Browser) -> Iterator[Installation]:
    """An installation of this file's own, which it hurts."""
    with installation() as made:
        yield made


def kill_server(service: Installation) -> None:
    pids = service.processes("cli.main server")
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def killed(service: Installation, visitor: Visitor) -> Iterator[None]:
    """Kills the server, and keeps the next one from the page within: that may be there before all was looked at."""
    stream = "**/api/events*"
    visitor.context.route(stream, lambda route: route.abort())
    kill_server(service)
    yield
    visitor.context.unroute(stream)


def test_a_killed_server_is_told_and_comes_back(visitor: Visitor, person: Person, service: Installation) -> None:
    visitor.allow("net::ERR_|status of 50[0-9]")  # the browser's own word for an answer that does not come
    visitor.give_token(person)
    page = visitor.open("#/more")
    connection, banner = page.locator(".side .connection"), page.get_by_role("alert").filter(has_text=BANNER)
    expect(connection).to_have_text("Live")
    expect(banner).to_have_count(0)
    # What is not there yet would say a fault of its own.
    expect(page.get_by_role("radio", name="Reduce")).to_be_enabled()
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    with killed(service, visitor):
        expect(banner).to_be_visible()
        expect(connection).to_have_text("Offline")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("radio", name="Reduce")).to_be_disabled()
        expect(page.get_by_role("radio", name="Halt")).to_be_enabled()

    expect(connection).to_have_text("Live")
    expect(banner).to_have_count(0)
    person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    expect(page.get_by_role("radio", name="Reduce")).to_be_checked()


def test_halt_is_tried_all_the_same_and_what_came_of_it_is_said(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    visitor.allow("net::ERR_|status of 50[0-9]|net::ERR_INTERNET_DISCONNECTED")
    visitor.give_token(person)
    page = visitor.open("#/more")
    expect(page.locator(".side .connection")).to_have_text("Live")

    visitor.context.set_offline(True)
    page.get_by_role("radio", name="Halt").click()
    page.get_by_role("dialog").get_by_role("button", name="Halt", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="The brake was not set.")).to_be_visible()
    assert person.ok("GET", "/api/control")["user"]["state"] == "run"
    visitor.context.set_offline(False)


def test_other_programs_die_and_the_page_goes_on(visitor: Visitor, person: Person, service: Installation) -> None:
    """Killed at once, all but the server: what is shown stays, and the next cycles are shown as they come."""
    visitor.allow("status of 50[0-9]|status of 429")
    service.put_collection("resilient", [1_000_000, 1_100_000])
    task = person.task(slug="resilient", bidCount=2, hardcapSats=900_000, loopSeconds=5)
    person.start(task)
    person.next_cycle(task)
    visitor.give_token(person)
    page = visitor.open(f"#/tasks/{task}")
    state = page.locator(".page-head .state")
    expect(state).to_have_text("Running")

    for program in ("gateway", "signer", "facts", "hooks", "manager"):
        for pid in service.processes(f"cli.main {program}"):
            os.kill(pid, signal.SIGKILL)
    until(lambda: service.ready_again(), "the programs")
    person.next_cycle(task, 2)
    expect(page.locator(".side .connection")).to_have_text("Live")
    expect(state).to_have_text("Running")
    expect(page.get_by_role("alert").filter(has_text=BANNER)).to_have_count(0)
    until(lambda: len(service.live_prices("resilient")) == 2, "both bids")  # one may be on its way to another price


def test_a_stop_is_kept_while_the_manager_is_away(visitor: Visitor, person: Person, service: Installation) -> None:
    visitor.allow("status of 50[0-9]")
    service.put_collection("patient", [1_000_000, 1_100_000])
    task = person.task(slug="patient", bidCount=1, hardcapSats=900_000, loopSeconds=5)
    person.start(task)
    person.next_cycle(task)
    visitor.give_token(person)
    page = visitor.open(f"#/tasks/{task}")
    expect(page.locator(".page-head .state")).to_have_text("Running")

    (manager,) = service.processes("cli.main manager")
    os.kill(manager, signal.SIGSTOP)
    try:
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("dialog").get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status").filter(has_text="Your request is stored")).to_be_visible()
    finally:
        os.kill(manager, signal.SIGCONT)
    expect(page.locator(".page-head .state")).to_have_text("Stopped")
    until(lambda: not service.live_prices("patient"), "the bids to go")


def test_trouble_of_marketplace_and_server_is_said(visitor: Visitor, person: Person, service: Installation) -> None:
    task = running(person, "shaky-cats")
    visitor.give_token(person)
    visitor.allow("status of (429|50[0-9])|net::ERR")
    page = visitor.open()
    shown, looks = row(page, "shaky-cats"), page.locator(".look-row")
    expect(shown.locator(".bids-cell .num")).to_have_text("2 / 2")

    # Until the next faults take its place: after a cycle that went well nothing is said of it any more.
    service.sim("PUT", "/sim/faults", [{"operation": "own_bids", "mode": "rate_429", "count": 1000}])
    said_soon(person, task, "venue_rate_limited", looks.get_by_text("Rate limited"))
    expect(shown.locator(".state")).to_have_text("Needs attention")
    service.sim("PUT", "/sim/faults", [{"operation": "own_bids", "mode": "cut", "count": 1000}])
    said_soon(person, task, "venue_unavailable", looks.get_by_text("Can't reach the marketplace"))
    expect(page.locator(".feed")).to_contain_text("Can't reach the marketplace")

    with killed(service, visitor):
        banner = page.locator(".banner")
        expect(banner).to_contain_text("Can't reach the server. Tasks may still be running. Data is from ")
        expect(shown.locator(".bids-cell .num")).to_have_text("2 / 2")
    # It comes back as in the first test here, and the page tries it every 19 s at the longest.
    expect(banner).to_have_count(0)
    service.sim("PUT", "/sim/faults", [])


BLOCKED = """
for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });
}
"""


def test_the_page_works_where_the_browser_blocks_storage(visitor: Visitor, person: Person) -> None:
    visitor.context.add_init_script(BLOCKED)
    visitor.install("unisat", person)
    page = visitor.open("#/settings")
    page.get_by_role("button", name="UniSat").click()
    expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
    page.get_by_role("group", name="Theme").get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
