"""What can be judged of any screen without knowing it: accessibility, width, what was injected."""

from __future__ import annotations

from importlib import resources
from typing import Any

from playwright.sync_api import Page, expect

# WCAG 2.2 A and AA, and what axe's makers hold good practice.
_AXE_OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
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
