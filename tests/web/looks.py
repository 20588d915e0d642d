"""Every place of the page, one person's data to show there, and what can be judged of any screen."""

from __future__ import annotations

import re
import secrets
from importlib import resources
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.installation import Installation, in_path, until
from tests.web.javascript import WEB
from tests.web.visitor import NARROW, Person

_ROUTES = re.findall(r'\[/\^(.+?)\$/, "(\w+)"\]', (WEB / "js" / "app.js").read_text())


def is_built(screen: str) -> bool:
    return (WEB / "js" / "screens" / f"{screen}.js").is_file()


def need_screen(screen: str) -> None:
    """Skips a test of a screen that is not there."""
    if not is_built(screen):
        pytest.skip(f"the screen {screen} is not built yet")


class Place(NamedTuple):
    """A place in the page: its pattern's text without marks (`:id` for a number), and its screen."""

    path: str
    screen: str

    @property
    def name(self) -> str:
        return self.path.strip("/").replace("/", "-").replace(":", "") or "overview"

    @property
    def is_built(self) -> bool:
        return is_built(self.screen)

    def route(self, person: Person) -> str:
        """Returns the part of the address behind the origin, of `person`'s first task or listing where it needs one."""
        if ":id" not in self.path:
            return f"#{self.path}"
        kind = "autolist" if self.path.startswith("/listings") else "tasks"
        return f"#{self.path.replace(':id', str(person.ok('GET', f'/api/{kind}')[0]['id']))}"


PLACES = [Place(pattern.replace(r"\/", "/").replace(r"(\d+)", ":id"), screen) for pattern, screen in _ROUTES]
BUILT = [place for place in PLACES if place.is_built]

BEARS, CATS, RUNE = "ordinal-bears", "quiet-cats", "FURNISHED•RUNE"
AWAY, RESTING = "not-a-collection", "a-task-that-was-never-started"


def furnish(service: Installation) -> Person:
    """Makes a person and their tasks, and waits until each has something to show."""
    person = Person(service).sign_in()
    service.put_collection(BEARS, [2_000_000, 2_050_000, 2_200_000, 2_400_000, 2_700_000])
    service.put_collection(CATS, [800_000, 810_000, 950_000])
    asks = [{"tokens": 400_000, "unitPrice": "1.00"}, {"tokens": 300_000, "unitPrice": "1.10"}]
    service.sim("PUT", f"/sim/runes/{in_path(RUNE)}", {"divisibility": 0, "asks": asks, "bids": []})

    ladder = {"bidPercentLow": 0.5, "bidPercentHigh": 0.9, "bidCount": 4, "loopSeconds": 5}
    bears = person.task(slug=BEARS, **ladder, hardcapSats=1_700_000)
    rune = person.task(slug=RUNE, type="rune", **ladder, quantity=50_000, hardcapSats=90_000)
    on_paper = person.task(slug=CATS, **ladder, hardcapSats=900_000, dryRun=True)
    away = person.task(slug=AWAY, **ladder, hardcapSats=900_000)
    person.task(slug=RESTING, **ladder, hardcapSats=900_000)
    for task in (bears, rune, on_paper, away):
        person.start(task)
    listing = _list(person)

    until(lambda: len(service.live_prices(BEARS)) == 4, "the ladder")
    until(lambda: person.bids(rune), "the rune's bids")
    service.sim("POST", "/sim/sell", {"slug": BEARS})
    until(lambda: person.ok("GET", "/api/fills")["fills"], "the fill")
    until(lambda: person.get(away)["lastError"], "the fault")
    until(lambda: (person.ok("GET", f"/api/autolist/{listing}")["listing"] or {}).get("state") == "live", "the listing")
    return person


def _list(person: Person) -> int:
    vault = person.ok("GET", "/api/wallet")["vault"]
    item = {"id": f"{secrets.token_hex(32)}i0", "collection": CATS, "name": "Quiet Cat #7"}
    person.installation.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": [item]})
    body = {"inscriptionId": item["id"], "collectionId": CATS, "pricePercent": 1.15, "loopSeconds": 5}
    task = int(person.ok("POST", "/api/autolist", body)["id"])
    person.ok("POST", f"/api/autolist/{task}/start")
    return task


# WCAG 2.2 A and AA, and what axe's makers hold good practice.
_AXE_OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"label-content-name-mismatch": {"enabled": True}},  # WCAG 2.5.3, which axe leaves off
    "resultTypes": ["violations"],
    "preload": False,  # it would ask for the styles that styles import, by wrong paths
}
_AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()


def settled(page: Page) -> None:
    """Waits until the screen is here and nothing of it is still to come."""
    expect(page.locator("main h1, main.signin h1, h1").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def violations(page: Page) -> list[str]:
    """Returns what axe-core finds wrong, one line for each element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)  # by the debugger's way in: the page's own policy would not let it
    found: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", _AXE_OPTIONS)
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {' '.join(node['failureSummary'].split())}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def too_wide(page: Page) -> list[str]:
    """Returns the elements that reach over the right edge, if the page can be moved sideways."""
    return page.evaluate("""() => {
      const wide = document.documentElement.scrollWidth;
      if (wide <= innerWidth) return [];
      const right = (each) => Math.round(each.getBoundingClientRect().right);
      const over = [...document.querySelectorAll("body *")].filter((each) => right(each) > innerWidth);
      const name = (each) => `${each.localName}.${each.getAttribute("class") || ""}`;
      return [`the page is ${wide} wide`, ...over.slice(0, 8).map((each) => `${name(each)} reaches ${right(each)}`)];
    }""")


def faults_of(page: Page, *, is_light_judged: bool) -> list[str]:
    """Returns what is wrong with a screen in the dark, in the light where that is judged, and in a narrow window."""
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    settled(page)
    found = violations(page)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    if is_light_judged:
        settled(page)
        found += violations(page)
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    settled(page)
    return [*found, *too_wide(page), *violations(page)]


def width_at_once(page: Page, width: int) -> int:
    """Makes the window this wide; returns how wide the page is before it has drawn any of its pictures again.

    `slow_to_draw` is called before the screen is opened.
    """
    page.evaluate("() => { window.drawsNothing = true }")
    page.set_viewport_size({"width": width, "height": 844})
    found: int = page.evaluate("document.documentElement.scrollWidth")
    page.evaluate("() => { window.drawsNothing = false }")
    return found


def slow_to_draw(page: Page) -> None:
    """Lets `width_at_once` keep from the page that there is another room for its pictures."""
    page.evaluate("""() => {
      const Real = window.ResizeObserver;
      window.ResizeObserver = class extends Real {
        constructor(heard) { super((...told) => window.drawsNothing || heard(...told)); }
      };
    }""")
