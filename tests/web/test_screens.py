"""Every screen, light and dark, on a desk, on a phone and at 400 % zoom: accessible, not too wide, and pictured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal
from zlib import crc32

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.installation import Installation
from tests.examples import part_of
from tests.web.furnished import AWAY, furnish
from tests.web.looks import settled, too_wide, violations
from tests.web.places import BUILT, Place, need_screen
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


def looks_of(name: str) -> list[tuple[Literal["dark", "light"], tuple[int, int]]]:
    """Returns the looks that this run holds a screen in: all, or each theme and each size in three of the six.

    Half of the screens have the other three, so that every look is seen.
    """
    if part_of(len(LOOKS), dear=True) == len(LOOKS):
        return list(LOOKS)
    odd = crc32(name.encode()) % 2
    return [(THEMES[(nth + odd) % 2], size) for nth, size in enumerate(SIZES)]


def faults(visitor: Visitor, name: str) -> list[str]:
    """Returns what is wrong with the screen in each theme and size, each with both; keeps pictures of them."""
    found = []
    page: Page = visitor.page
    for theme, (width, height) in looks_of(name):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        visitor.screenshot(f"{name}-{theme}-{width}")
        found += [f"{theme}, {width} px: {each}" for each in (*too_wide(page), *violations(page))]
    return found
