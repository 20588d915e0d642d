"""Every screen, light and dark, on a desk, on a phone and at 400 % zoom: accessible, not too wide, and pictured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal, NamedTuple
from zlib import crc32

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.installation import Installation
from tests.examples import part_of
from tests.web.looks import AWAY, BUILT, Place, furnish, need_screen, settled, too_wide, violations
from tests.web.visitor import DESKTOP, NARROW, PHONE, Person, Stay, Visitor, staying

pytestmark = pytest.mark.sampled

SIZES = (DESKTOP, PHONE, NARROW)
NOWHERE = Place("/no/such/page", "nowhere")
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
LOOKS = tuple(itertools.product(THEMES, SIZES))


@pytest.fixture(scope="module")
def owner(browser: Browser, service: Installation) -> Person:
    """Somebody with something of everything; the browser is asked for first, so that nothing is made where it lacks."""
    return furnish(service)


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, owner: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(owner)) as made:
        yield made


@pytest.fixture
def guide(stay: Stay) -> Visitor:
    """The browser of `owner`, who goes from screen to screen in it."""
    return stay.visitor()


@pytest.mark.thorough_cases("bids", "listings", "list", "history", "venues", "tasks-id-edit", "more", "no-such-page")
@pytest.mark.parametrize("place", [*BUILT, NOWHERE], ids=lambda place: place.name)
def test_a_screen(place: Place, guide: Visitor, owner: Person) -> None:
    guide.allow(f"404.*/api/market/book.*{AWAY}")  # the browser's own line about a collection that there is not
    guide.page.emulate_media(reduced_motion="reduce")
    guide.open(place.route(owner))

    found = faults(guide, place.name)
    assert not found, "\n".join(found)


def test_sign_in(visitor: Visitor) -> None:
    need_screen("signin")
    visitor.page.emulate_media(reduced_motion="reduce")
    visitor.open()

    found = faults(visitor, "signin")
    assert not found, "\n".join(found)


class Look(NamedTuple):
    """A theme and a size, and whether axe-core is asked about it, which is most of what a look costs."""

    theme: Literal["dark", "light"]
    size: tuple[int, int]
    is_judged: bool = True


def looks_of(name: str) -> list[Look]:
    """Returns the looks that this run holds a screen in: all, or each theme and each size in three of the six.

    Of the three two are judged, one in each theme. Half of the screens have the other three, and half of these and of
    those leave another one out, so that every look is seen and judged.
    """
    if part_of(len(LOOKS), dear=True) == len(LOOKS):
        return [Look(*look) for look in LOOKS]
    odd, last = crc32(name.encode()) % 2, crc32(name.encode()) // 2 % 2
    unjudged = 2 if last else 0
    return [Look(THEMES[(nth + odd) % 2], size, nth != unjudged) for nth, size in enumerate(SIZES)]


def test_every_look_is_judged_on_some_screens_and_each_screen_in_both_themes() -> None:
    names = ["signin", NOWHERE.name, *(place.name for place in BUILT)]
    judged = {name: [(look.theme, look.size) for look in looks_of(name) if look.is_judged] for name in names}

    assert {look for looks in judged.values() for look in looks} == set(LOOKS)
    assert [name for name, looks in judged.items() if {theme for theme, _ in looks} != set(THEMES)] == []


def faults(visitor: Visitor, name: str) -> list[str]:
    """Returns what is wrong with the screen in each theme and size, each with both; keeps pictures of them."""
    found = []
    page: Page = visitor.page
    for theme, (width, height), is_judged in looks_of(name):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        visitor.screenshot(f"{name}-{theme}-{width}")
        wrong = [*too_wide(page), *(violations(page) if is_judged else ())]
        found += [f"{theme}, {width} px: {each}" for each in wrong]
    return found
