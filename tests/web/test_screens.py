"""Every screen, light and dark, on a desk, on a phone and at 400 % zoom: accessible, not too wide, and pictured."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.installation import Installation
from tests.web.furnished import furnish
from tests.web.looks import settled, too_wide, violations
from tests.web.places import BUILT, Place, need_screen
from tests.web.visitor import DESKTOP, NARROW, PHONE, Person, Visitor

SIZES = (DESKTOP, PHONE, NARROW)
NOWHERE = Place("/no/such/page", "nowhere")
THEMES = ("dark", "light")


@pytest.fixture(scope="module")
def owner(browser: Browser, service: Installation) -> Person:
    """Somebody with something of everything; the browser is asked for first, so that nothing is made where it lacks."""
    return furnish(service)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("place", [*BUILT, NOWHERE], ids=lambda place: place.name)
def test_a_screen(place: Place, theme: str, visitor: Visitor, owner: Person) -> None:
    visitor.give_token(owner)
    visitor.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    visitor.open(place.route(owner))

    found = faults(visitor, f"{place.name}-{theme}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("theme", THEMES)
def test_sign_in(theme: str, visitor: Visitor) -> None:
    need_screen("signin")
    visitor.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    visitor.open()

    found = faults(visitor, f"signin-{theme}")
    assert not found, "\n".join(found)


def faults(visitor: Visitor, name: str) -> list[str]:
    """Returns what is wrong with the screen at each size, each with the size; keeps a picture of each."""
    found = []
    page: Page = visitor.page
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        settled(page)
        visitor.screenshot(f"{name}-{width}")
        found += [f"{width} px: {each}" for each in (*too_wide(page), *violations(page))]
    return found
