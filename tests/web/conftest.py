"""Fixtures for tests of the dashboard: a real installation, a real browser, and a visitor who notices everything.

A test that takes `visitor` or `page` fails on each message of warning or error in the console, each exception, each
violation of the page's policy, each native dialog and each request to another origin, unless it declared it by
`visitor.allow`. A file whose tests go on in one browser has a `Stay`. Wait with locators: the page's policy forbids
what `wait_for_function` does with a text.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.conftest import pytest_runtest_makereport as tells_logs
from tests.e2e.installation import Installation, installation
from tests.hooks.receiver import MailServer, mail_server
from tests.needs import LIBATOMIC, need, path
from tests.web.javascript import Modules, modules
from tests.web.visitor import (
    ARGUMENTS,
    PATIENCE_MS,
    Person,
    Stay,
    Visitor,
    picture,
    staying,
    visiting,
)

expect.set_options(timeout=PATIENCE_MS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow each test here that takes a browser or an installation."""
    for item in items:
        if "tests/web/" in item.nodeid and {"browser", "service"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


# Of the package, not of the session: as long as Playwright runs, its event loop is this thread's, and other tests have
# loops of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, one for each process of a parallel run."""
    need("chromium", LIBATOMIC)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path("chromium"), args=ARGUMENTS, timeout=180_000)
        yield made
        made.close()


@pytest.fixture(scope="package")
def mails() -> Iterator[MailServer]:
    """The mail server of `service`."""
    with mail_server() as made:
        yield made


@pytest.fixture(scope="package")
def service(mails: MailServer) -> Iterator[Installation]:
    """An installation on the practice market, one for each process; a file that hurts it has a fixture of its own.

    It is shared by all these tests, so a test takes a person and collections of its own and resets nothing.
    """
    with installation(BIDKEEPER_SMTP_URL=mails.url, BIDKEEPER_MAIL_FROM="bot@mail.example") as made:
        yield made


@pytest.fixture(scope="module")
def javascript() -> Iterator[Modules]:
    """The dashboard's modules without a browser."""
    with modules() as made:
        yield made


@pytest.fixture
def visitor(browser: Browser, service: Installation) -> Iterator[Visitor]:
    """A browser that nobody has signed in with yet."""
    with visiting(browser, service) as made:
        yield made


@pytest.fixture(scope="module")
def lodging(browser: Browser, service: Installation) -> Iterator[Stay]:
    """One browser for the tests of a file, each with a person of its own who signs in after the former one."""
    with staying(browser, service) as made:
        yield made


@pytest.fixture
def lodger(lodging: Stay) -> Visitor:
    """A browser that others of this file have used, in which nobody is signed in."""
    return lodging.visitor()


@pytest.fixture
def page(visitor: Visitor) -> Page:
    """Returns the page of `visitor`."""
    return visitor.page


@pytest.fixture
def person(service: Installation) -> Iterator[Person]:
    """Somebody who has signed in over HTTP, with no task yet; what they make ends with the test."""
    made = Person(service).sign_in()
    yield made
    made.leave()


def visitors(item: pytest.Item) -> list[Visitor]:
    return [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Visitor)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails a test in which something happened that must not."""
    found = yield
    for visitor in visitors(item):
        visitor.check()
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Tells of a failure what the programs said last, what went wrong in the browser, and keeps a picture of it."""
    report: Any = yield from tells_logs(item, call)
    if report.failed:
        for visitor in visitors(item):
            visitor.has_failed = True
    if report.when == "call" and report.failed:
        for visitor in visitors(item):
            report.sections.append(("trouble in the browser", "\n".join(map(str, visitor.trouble)) or "none"))
            for page in visitor.context.pages:
                report.sections.append((f"picture of {page.url}", str(picture(page, f"failed/{item.name}"))))
    return report
