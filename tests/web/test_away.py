"""A server that is killed: the page says so, keeps what it knows, and is live again by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.installation import Installation, installation
from tests.web.visitor import Person, Visitor

BANNER = "The server does not answer"


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


def test_a_killed_server_is_told_and_comes_back(visitor: Visitor, person: Person, service: Installation) -> None:
    visitor.allow("net::ERR_|status of 50[0-9]")  # the browser's own word for an answer that does not come
    visitor.give_token(person)
    page = visitor.open("#/more")
    connection, banner = page.locator(".side .connection"), page.get_by_role("alert").filter(has_text=BANNER)
    expect(connection).to_have_text("Live")
    expect(banner).to_have_count(0)

    kill_server(service)
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
