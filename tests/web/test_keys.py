"""The page without a mouse: every place by keys alone, focus that is seen and comes back, dialogs that do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.e2e.installation import Installation
from tests.web.looks import PLACES, need_screen
from tests.web.visitor import Person, Stay, Visitor, staying

LETTERS = {"gw": "/wallet", "gh": "/history", "gl": "/listings", "gb": "/bids", "go": "/", "n": "/new"}
# What has the focus: its role's name, whether it is in view, and whether something shows that it has it.
FOCUSED = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return null;
  const box = it.getBoundingClientRect();
  const style = getComputedStyle(it);
  const name = it.getAttribute("aria-label") || it.labels?.[0]?.textContent || it.textContent;
  return {
    what: `${it.localName}.${it.getAttribute("class") || ""}`,
    name: (name || "").trim(),
    inView: box.width * box.height > 0 && box.bottom > 0 && box.top < innerHeight
      && box.right > 0 && box.left < innerWidth,
    isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
  };
}"""


# Presses "/" in the moment in which the page is first drawn around a screen.
PRESSES_AT_ONCE = """() => new MutationObserver((changes, seer) => {
  if (!document.querySelector(".shell")) return;
  seer.disconnect();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }));
}).observe(document, { childList: true, subtree: true })"""


@pytest.fixture(scope="module")
def person(browser: Browser, service: Installation) -> Iterator[Person]:
    """Somebody without a task."""
    made = Person(service).sign_in()
    yield made
    made.leave()


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, person: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(person)) as made:
        yield made


@pytest.fixture
def typist(stay: Stay, person: Person) -> Visitor:
    """The browser of `person`, in which these tests go on after one another."""
    person.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
    return stay.visitor()


@pytest.fixture
def at_more(typist: Visitor) -> Page:
    """Returns the page of `person` at a place that needs no task."""
    typist.open("#/venues")
    expect(typist.page.get_by_role("heading", level=1, name="Venues")).to_be_visible()
    return see_more(typist)


def see_more(visitor: Visitor) -> Page:
    page = visitor.open("#/more")
    expect(page.get_by_role("heading", level=1, name="More")).to_be_visible()
    expect(page.get_by_role("radio", name="Run")).to_be_checked()
    return page


@pytest.fixture
def unhurried(at_more: Page) -> Iterator[Page]:
    """The same place, where a way back is offered until it is taken: else it goes after six seconds."""
    at_more.evaluate(
        """() => {
          window.hurried = window.setTimeout;
          window.setTimeout = (act, ms, ...given) => window.hurried(act, ms === 6_000 ? 600_000 : ms, ...given);
        }"""
    )
    yield at_more
    at_more.evaluate("() => { window.setTimeout = window.hurried }")


@pytest.fixture
def new(visitor: Visitor, person: Person) -> Page:
    """Returns the same place in a page that was just loaded, where nothing has had the focus yet."""
    visitor.give_token(person)
    person.ok("PUT", "/api/control", {"scope": "user", "state": "run"})
    return see_more(visitor)


def test_the_first_tab_skips_to_the_content(new: Page) -> None:
    new.keyboard.press("Tab")
    expect(new.locator("a.skip")).to_be_focused()
    new.keyboard.press("Enter")
    expect(new.locator("main")).to_be_focused()


def test_every_stop_of_the_tab_key_has_a_name_is_in_view_and_is_marked(new: Page) -> None:
    stops = []
    for _ in range(60):
        new.keyboard.press("Tab")
        stop = new.evaluate(FOCUSED)
        if stop is None or stop in stops:
            break
        stops.append(stop)

    assert len(stops) > 10
    assert [stop for stop in stops if not (stop["name"] and stop["inView"] and stop["isMarked"])] == []


@pytest.mark.parametrize(("keys", "path"), LETTERS.items())
def test_two_letters_lead_to_every_place(keys: str, path: str, at_more: Page, typist: Visitor) -> None:
    need_screen(next(place.screen for place in PLACES if place.path == path))
    at_more.keyboard.type(keys)

    expect(at_more).to_have_url(f"{typist.origin}/#{path}")
    name = at_more.get_by_role("combobox", name="Collection")  # of a new task, the first thing to write
    expect(name if path == "/new" else at_more.locator("main")).to_be_focused()


def test_going_back_shows_what_was_there(at_more: Page, typist: Visitor) -> None:
    at_more.keyboard.type("gw")
    expect(at_more).to_have_url(f"{typist.origin}/#/wallet")
    at_more.go_back()
    expect(at_more.get_by_role("heading", level=1, name="More")).to_be_visible()


def test_the_help_names_the_keys_and_gives_the_focus_back(at_more: Page) -> None:
    link = at_more.get_by_role("navigation", name="Main").get_by_role("link", name="Wallet")
    link.focus()
    at_more.keyboard.press("?")
    dialog = at_more.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    assert dialog.locator("kbd").count() > 10
    at_more.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()


def test_a_key_is_heard_as_soon_as_the_page_is_seen(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    visitor.page.add_init_script(f"({PRESSES_AT_ONCE})()")
    expect(visitor.open("#/more").get_by_role("searchbox")).to_be_focused()


def test_a_task_is_found_by_its_name(at_more: Page, typist: Visitor, person: Person, service: Installation) -> None:
    need_screen("task")
    service.put_collection("found-by-keys", [100_000])
    task = person.task(slug="found-by-keys", bidCount=1, hardcapSats=90_000)
    at_more.reload()
    expect(at_more.get_by_role("radio", name="Run")).to_be_checked()

    at_more.keyboard.press("/")
    expect(at_more.get_by_role("searchbox")).to_be_focused()
    at_more.keyboard.type("FOUND by")
    expect(at_more.get_by_role("dialog").get_by_role("link", name="found-by-keys")).to_be_visible()
    at_more.keyboard.press("Enter")

    expect(at_more).to_have_url(f"{typist.origin}/#/tasks/{task}")


def test_the_brakes_key_asks_and_escape_changes_nothing(at_more: Page, person: Person) -> None:
    at_more.keyboard.press(".")
    dialog = at_more.get_by_role("dialog", name="Halt everything?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    at_more.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    assert person.ok("GET", "/api/control")["user"]["state"] == "run"


def test_the_brake_is_one_stop_and_its_positions_are_chosen_by_arrows(unhurried: Page, person: Person) -> None:
    run, reduce = (unhurried.get_by_role("radio", name=name) for name in ("Run", "Reduce"))
    run.focus()
    unhurried.keyboard.press("ArrowRight")
    expect(reduce).to_be_focused()
    expect(run).to_be_checked()  # it is set by Enter, never by passing over it
    unhurried.keyboard.press("Enter")
    expect(reduce).to_be_checked()
    undo_in(unhurried).press("Enter")
    expect(run).to_be_checked()
    assert person.ok("GET", "/api/control")["user"]["state"] == "run"
    told = person.ok("GET", "/api/events?wait=0&limit=2&events=control")["events"]
    assert [each["data"]["state"] for each in sorted(told, key=lambda each: each["id"])] == ["reduce", "run"]


def test_undo_works_before_the_page_has_read_what_was_set(unhurried: Page, person: Person) -> None:
    held: list[Route] = []
    looks = "**/api/control"
    unhurried.route(looks, lambda route: held.append(route) if route.request.method == "GET" else route.continue_())
    for act, state in ((unhurried.get_by_role("radio", name="Reduce"), "reduce"), (undo_in(unhurried), "run")):
        with unhurried.expect_response(lambda answer: answer.request.method == "PUT"):
            act.press("Enter")
        assert person.ok("GET", "/api/control")["user"]["state"] == state
    unhurried.unroute(looks)  # which lets those go on that were held


def undo_in(page: Page) -> Locator:
    return page.get_by_role("status").get_by_role("button", name="Undo")


def test_halt_by_keys_alone(at_more: Page, person: Person) -> None:
    at_more.keyboard.press(".")
    dialog = at_more.get_by_role("dialog", name="Halt everything?")
    expect(dialog).to_be_visible()
    at_more.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Halt")).to_be_focused()
    at_more.keyboard.press("Enter")

    expect(at_more.get_by_role("radio", name="Halt")).to_be_checked()
    assert person.ok("GET", "/api/control")["user"]["state"] == "halt"


def test_keys_write_in_fields_and_do_nothing_else(at_more: Page, typist: Visitor) -> None:
    at_more.keyboard.press("/")
    at_more.keyboard.type("n.")  # the search may not be there yet
    expect(at_more.get_by_role("searchbox")).to_be_focused()
    at_more.keyboard.type("n.?gw")
    expect(at_more.get_by_role("searchbox")).to_have_value(re.compile(r"n\.\?gw$"))
    expect(at_more.get_by_role("dialog")).to_have_count(1)
    expect(at_more).to_have_url(f"{typist.origin}/#/more")
