"""The visitor notices what must not happen on a page: a judge that finds nothing has to be able to find something."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route

from tests.e2e.installation import Installation, until
from tests.web.visitor import Visitor, staying, visiting

# What is done on a page, and the kinds of trouble that it is.
DEEDS = {
    "an error in the console": ("console.error('so')", {"console"}),
    "a warning in the console": ("console.warn('so')", {"console"}),
    "an exception that nobody catches": ("setTimeout(() => { throw new Error('so'); })", {"exception"}),
    "a promise that nobody catches": ("void Promise.reject(new Error('so'))", {"exception"}),
    "a script within the page": (
        "document.body.append(Object.assign(document.createElement('script'), {textContent: '1'}))",
        {"policy", "console"},
    ),
    "a style within the page": ("document.body.setAttribute('style', 'color: red')", {"policy", "console"}),
    "a text as a program": ("setTimeout(() => eval('1'))", {"policy", "exception"}),
    "a picture from elsewhere": (
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/so.png'}))",
        {"policy", "console"},
    ),
    "a native dialog": ("alert('so')", {"dialog"}),
}


@pytest.fixture(scope="module")
def suspect(browser: Browser, service: Installation) -> Iterator[Visitor]:
    """A browser on a page with a policy, in which all of it is done."""
    with visiting(browser, service) as made:
        made.page.goto("/docs")
        yield made


@pytest.mark.parametrize("deed", DEEDS)
def test_it_notices(deed: str, suspect: Visitor) -> None:
    script, kinds = DEEDS[deed]
    suspect.begin_again()
    assert not suspect.trouble

    suspect.page.evaluate(f"() => {{ {script} }}")

    until(lambda: suspect.page.evaluate("1") and kinds_of(suspect) >= kinds, f"{kinds}")
    with pytest.raises(AssertionError):
        suspect.check()
    suspect.begin_again()
    suspect.check()


def test_it_notices_a_request_that_leaves_the_origin(browser: Browser, service: Installation) -> None:
    with visiting(browser, service) as visitor:
        other = f"http://127.0.0.1:{service.simulator_port}/sim/history"
        visitor.page.goto(other)  # a page without a policy

        assert [str(each) for each in visitor.trouble] == [f"foreign request: {other}"]


def test_what_a_test_declares_does_not_fail_it(visitor: Visitor) -> None:
    visitor.page.goto("/docs")
    visitor.allow(r"^console: expected \d")

    visitor.page.evaluate("console.error('expected 1')")
    visitor.page.evaluate("console.error('another')")

    assert ["another" in each.text for each in visitor.trouble] == [True]
    visitor.allow("another")


def test_a_stay_forgets_what_the_test_before_declared_and_ends_with_one_that_failed(
    browser: Browser, service: Installation
) -> None:
    with staying(browser, service, lambda visitor: None) as stay:
        first = stay.visitor()
        first.page.goto("/docs")
        first.allow("so")
        first.page.evaluate("console.error('so')")
        first.check()

        assert stay.visitor() is first
        first.check()
        first.page.evaluate("console.error('so')")
        with pytest.raises(AssertionError):
            first.check()

        first.has_failed = True
        assert stay.visitor() is not first
        stay.visitor().check()


def test_what_a_former_test_left_unanswered_is_no_trouble_of_the_next_one(
    browser: Browser, service: Installation
) -> None:
    with visiting(browser, service) as visitor:
        page = visitor.open("#/more")
        held: list[Route] = []
        visitor.context.route("**/api/tasks/*", lambda route: held.append(route))
        ask = "(path) => void fetch(path).catch(() => {})"
        page.evaluate(ask, "/api/tasks/1")
        until(lambda: page.evaluate("1") and held, "the question")

        visitor.begin_again()
        page.evaluate(ask, "/api/tasks/2")
        until(lambda: page.evaluate("1") and len(held) == 2, "another one, of the next test")
        for route in held:
            route.fulfill(status=404)
        until(lambda: page.evaluate("1") and visitor.trouble, "the trouble")

        assert ["/api/tasks/2" in each.text for each in visitor.trouble] == [True]


def kinds_of(visitor: Visitor) -> set[str]:
    return {each.kind for each in visitor.trouble}
