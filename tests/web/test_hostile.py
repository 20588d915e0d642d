"""Names that others choose are text wherever they stand: none becomes an element, a script or a wider page."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.installation import Installation, until
from tests.web.looks import BUILT, Place, settled, too_wide
from tests.web.visitor import NARROW, Person, Stay, Visitor, staying

pytestmark = pytest.mark.thorough  # test_edit.py and test_overview.py show hostile names, too

INJECTED = "<img src=x onerror=\"window.pwned='img'\"><script>window.pwned='script'</script><b class=injected>bold</b>"
RIGHT_TO_LEFT = "מחיר (מאה) ١٢٣ sats"  # marks of direction are refused by the service
LONG = "W" * 200
TEMPLATE = "${window.pwned='template'}{{7*7}}`'\"&amp;&lt;"
NAMES = (INJECTED, RIGHT_TO_LEFT, LONG, TEMPLATE)


@pytest.fixture(scope="module")
def victim(browser: Browser, service: Installation) -> Person:
    """Somebody whose display name, traits, items, presets, tokens and sessions have such names."""
    person = Person(service)
    person.session.headers["User-Agent"] = "<b class=injected>agent</b>"
    person.sign_in()
    person.ok("PATCH", "/api/auth/me", {"displayName": "<img src=x onerror=window.pwned=1>"})
    person.ok("POST", "/api/tokens", {"name": "<b class=injected>token</b>", "scopes": ["read"]})
    vault = person.ok("GET", "/api/wallet")["vault"]
    items = []
    for number, name in enumerate(NAMES):
        slug = f"hostile-{number}"
        service.put_collection(slug, [1_000_000 + number])
        trait = {"bidType": "trait", "traitType": name, "traitValue": name}
        person.task(slug=slug, bidCount=1, hardcapSats=900_000, **trait)
        items.append({"id": f"{secrets.token_hex(32)}i0", "collection": slug, "name": name, "traits": {name: name}})
    service.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": items})
    listing = {"inscriptionId": items[0]["id"], "collectionId": "hostile-0", "loopSeconds": 5}
    task = person.ok("POST", "/api/autolist", listing)["id"]
    person.ok("POST", f"/api/autolist/{task}/start")
    first = person.ok("GET", "/api/tasks")[0]["id"]
    person.start(first)
    until(lambda: person.get(first)["lastCycle"], "a cycle of the first task")
    return person


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, victim: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(victim)) as made:
        yield made


@pytest.fixture
def visitor(stay: Stay) -> Visitor:
    """The browser of `victim`, who goes from screen to screen in it."""
    return stay.visitor()


@pytest.mark.parametrize("place", BUILT, ids=lambda place: place.name)
def test_hostile_names_are_text(place: Place, visitor: Visitor, victim: Person) -> None:
    page = visitor.open(place.route(victim))
    settled(page)

    expect(page.locator(".top .account")).to_have_text("<img src=x onerror=window.pwned=1>")
    expect(page.locator("img[src=x], [onerror], .injected, script:not([src]):not([type=importmap])")).to_have_count(0)
    assert page.evaluate("window.pwned === undefined")
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    settled(page)
    visitor.screenshot(f"hostile-{place.name}")
    found = too_wide(page)
    assert not found, "\n".join(found)
