"""Several tabs of one browser share one stream; one that closes hands it over; what one tab does the others show."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests.e2e.installation import Installation, until
from tests.web.looks import need_screen
from tests.web.visitor import Person, Visitor

pytestmark = pytest.mark.thorough


def streams(visitor: Visitor) -> list[Request]:
    """Returns the requests for a stream: a look for what was missed asks the same address with a query."""
    return [each for each in visitor.requests if urlsplit(each.url)[2:4] == ("/api/events", "")]


def opened(visitor: Visitor, person: Person) -> Page:
    page = visitor.page if visitor.page.url == "about:blank" else visitor.context.new_page()
    visitor.give_token(person, page)
    page.goto("/#/more")
    expect(page.locator(".side .connection")).to_have_text("Live")
    return page


def test_two_tabs_have_one_stream_and_both_hear_it(visitor: Visitor, person: Person) -> None:
    tabs = [opened(visitor, person) for _ in range(3)]
    assert len(streams(visitor)) == 1

    person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    for tab in tabs:
        expect(tab.get_by_role("radio", name="Reduce")).to_be_checked()


def test_a_closed_tab_hands_the_stream_over(visitor: Visitor, person: Person) -> None:
    first, second = (opened(visitor, person) for _ in range(2))
    first.close()
    until(lambda: second.evaluate("1") and len(streams(visitor)) == 2, "the second tab's stream")

    person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    expect(second.get_by_role("radio", name="Reduce")).to_be_checked()


def test_tabs_of_two_people_hear_only_their_own(visitor: Visitor, person: Person, service: Installation) -> None:
    other = Person(service).sign_in()
    mine, theirs = opened(visitor, person), opened(visitor, other)
    assert len(streams(visitor)) == 2

    other.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    expect(theirs.get_by_role("radio", name="Reduce")).to_be_checked()
    expect(mine.get_by_role("radio", name="Run")).to_be_checked()


def test_a_session_that_ends_in_one_tab_ends_in_that_tab(visitor: Visitor, person: Person) -> None:
    """The tabs of one session are all signed out: the server says so to each."""
    need_screen("signin")
    tabs = [opened(visitor, person) for _ in range(2)]
    person.ok("POST", "/api/auth/logout")
    visitor.allow("status of 401")
    for tab in tabs:
        expect(tab.get_by_role("navigation", name="Main")).to_have_count(0)
