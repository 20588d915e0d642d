"""What every screen stands on: whose answer is shown, which tab leads, what the clock goes by, what is never lost."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import requests
from playwright.sync_api import Browser, Error, Page, Request, Route, expect

from tests.e2e.installation import Installation, until
from tests.web.visitor import PHONE, Person, Stay, Visitor, staying, type_into

SLUG = "voles-of-the-former"
# A page tries a server that is away every 19 s at the longest, and this machine may be slow.
BACK_MS = 120_000


def streams(requests: list[Request]) -> list[Request]:
    return [each for each in requests if each.headers.get("accept") == "text/event-stream"]


@pytest.fixture(scope="module")
def resident(browser: Browser, service: Installation) -> Person:
    """Somebody who leaves everything as it was."""
    return Person(service).sign_in()


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, resident: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(resident)) as made:
        yield made


@pytest.fixture
def quiet(stay: Stay, resident: Person) -> Page:
    """Returns a screen that asks for little, once it follows what happens: the same page for all these tests."""
    page = stay.visitor().open("#/settings")
    expect(page.locator(".connection.live").first).to_be_visible()
    expect(page.get_by_text(resident.address[:6]).first).to_be_visible()
    return page


@pytest.fixture
def local(stay: Stay) -> Visitor:
    """The same browser, at a place where none of its tests begins."""
    made = stay.visitor()
    made.open("#/more")
    expect(made.page.get_by_role("heading", level=1, name="More")).to_be_visible()
    return made


def beside(visitor: Visitor, person: Person) -> Page:
    """Returns another tab of the same browser and session."""
    page = visitor.context.new_page()
    page.goto("/healthz")
    page.evaluate("token => sessionStorage.setItem('token', token)", person.token)
    return page


def has_stopped(page: Page) -> bool:
    """Tells whether the page's clock could be stopped at a moment that was not over when this arrived there.

    It is a near one: half a minute on, the page would take its stream for dead.
    """
    try:
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 5)
    except Error as error:
        assert "to the past" in str(error), error
        return False
    return True


def draw(page: Page) -> None:
    """Waits for the next picture: what was put off until then has been done."""
    page.evaluate("new Promise((drawn) => requestAnimationFrame(drawn))")


def test_an_answer_to_the_former_session_is_not_shown_to_the_next(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    service.put_collection(SLUG, [1_000_000])
    person.task(slug=SLUG, hardcapSats=900_000)
    other = Person(service).sign_in()
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.headers["authorization"] == f"Bearer {person.token}":
            held.append(route)
        else:
            route.continue_()

    visitor.page.route("**/api/tasks", hold)
    visitor.give_token(person)
    page = visitor.open("#/settings")
    expect(page.get_by_text(person.address[:6]).first).to_be_visible()
    until(lambda: page.evaluate("1") and held, "the question")
    page.evaluate("async (token) => (await import('/web/js/api.js')).beginSession(token, false)", other.token)
    expect(page.get_by_text(other.address[:6]).first).to_be_visible()
    for route in held:
        route.continue_()
    page.wait_for_timeout(1_000)
    asked = "import('/web/js/store.js').then(({ tasks }) => tasks.value !== null)"
    until(lambda: page.evaluate(asked), "the next one's own answer")
    known = page.evaluate("async () => (await import('/web/js/store.js')).tasks.value.map((task) => task.slug)")
    assert known == []


@pytest.mark.thorough
def test_a_session_that_ended_takes_no_other_one_off_the_device(visitor: Visitor, person: Person) -> None:
    visitor.allow("401|signin")
    visitor.give_token(person)
    page = visitor.open("#/settings")
    page.evaluate("localStorage.setItem('token', 'of another tab')")
    expect(page.locator(".connection.live").first).to_be_visible()
    person.ok("POST", "/api/auth/logout")
    page.evaluate("async () => (await import('/web/js/api.js')).get('/tasks').catch(() => {})")
    assert page.evaluate("[sessionStorage.getItem('token'), localStorage.getItem('token')]") == [None, "of another tab"]


@pytest.mark.thorough
def test_what_an_event_had_put_off_is_not_asked_after_the_session(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    visitor.page.clock.install()
    page = visitor.open("#/more")
    expect(page.locator(".connection.live").first).to_be_visible()
    page.evaluate("""async () => {
        const { onEvent } = await import('/web/js/events.js');
        onEvent(({ event }) => (document.title += ` ${event}`));
    }""")
    until(lambda: has_stopped(page), "a clock that stands")
    person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    expect(page).to_have_title(re.compile("control"))
    out = page.get_by_role("button", name="Sign out")
    out.click()
    expect(out).to_have_count(0)
    asked = len(visitor.requests)
    page.clock.run_for(5_000)
    page.evaluate("fetch('/healthz')")  # a request that was sent before it is known when this one has its answer
    assert [each.url for each in visitor.requests[asked:] if "/api/control" in each.url] == []


@pytest.mark.thorough
def test_the_clock_does_not_go_by_what_the_browser_kept(quiet: Page) -> None:
    headers = {"Date": "Mon, 01 Jan 2024 00:00:00 GMT", "Content-Type": "image/png"}
    quiet.route("**/api/kept", lambda route: route.fulfill(headers=headers | {"Cache-Control": "private, max-age=9"}))
    quiet.route("**/api/new", lambda route: route.fulfill(headers=headers | {"Cache-Control": "no-store"}))
    ahead = """async (path) => {
        const { clockAheadMs, get } = await import('/web/js/api.js');
        await get(path);
        return clockAheadMs.value;
    }"""
    assert abs(quiet.evaluate(ahead, "/kept")) < 60_000
    assert quiet.evaluate(ahead, "/new") < -60_000


@pytest.mark.thorough
def test_a_fresh_plan_is_fresh_where_this_machines_clock_is_slow(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    service.put_collection(slug := "voles-of-the-slow", [500_000], bids=[])
    visitor.give_token(person)
    visitor.page.clock.install(time=time.time() - 300)

    page = visitor.open("#/new")
    page.locator("[name='slug']").fill(slug)

    expect(page.locator(".plan-age")).to_contain_text(re.compile(r"as of \d+ s ago"))
    assert abs(page.evaluate("Date.now()") / 1000 + 300 - time.time()) < 100, "the clock of this test is slow"


def test_an_answer_that_breaks_off_is_told_as_one_that_did_not_come(quiet: Page) -> None:
    quiet.route("**/api/broken", lambda route: route.fulfill(content_type="application/json", body='{"half": '))
    status = "import('/web/js/api.js').then(({ get }) => get('/broken')).catch(({ status }) => status)"
    assert quiet.evaluate(status) == 0


def test_a_tab_that_takes_over_goes_on_where_the_former_one_was(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    first = visitor.open("#/settings")
    expect(first.locator(".connection.live").first).to_be_visible()
    second = beside(visitor, person)
    heard: list[Request] = []
    second.on("request", lambda request: heard.append(request))
    second.goto("/#/settings")
    expect(second.locator(".connection.live").first).to_be_visible()
    assert not streams(heard)
    with second.expect_request(lambda request: request.headers.get("accept") == "text/event-stream"):
        first.close()
    (taken,) = streams(heard)
    assert taken.headers["last-event-id"].isdigit()


@pytest.mark.thorough
def test_a_tab_that_is_looked_at_takes_over_from_one_that_sleeps(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    first = visitor.open("#/settings")
    expect(first.locator(".connection.live").first).to_be_visible()
    second = beside(visitor, person)
    heard: list[Request] = []
    second.on("request", lambda request: heard.append(request))
    second.clock.install()
    second.goto("/#/settings")
    expect(second.locator(".connection.live").first).to_be_visible()
    assert not streams(heard)

    def has_taken_over() -> bool:
        """Lets it hear nothing for 70 s, at one leap; a word of the first tab that comes just then begins them anew."""
        second.clock.fast_forward(70_000)
        second.wait_for_timeout(1_000)
        return bool(streams(heard))

    until(has_taken_over, "the second tab's stream")
    expect(second.locator(".connection.live").first).to_be_visible()
    person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
    expect(first.get_by_role("radio", name="Reduce")).to_be_checked()
    assert not first.is_closed()


def test_a_link_leads_to_the_top_and_the_way_back_to_where_one_was(local: Visitor) -> None:
    local.page.set_viewport_size({"width": 1000, "height": 400})
    page = local.open("#/wallet")
    expect(page.get_by_role("button", name="Preview")).to_be_visible()
    page.evaluate("scrollTo(0, 200)")
    page.get_by_role("link", name="Venues").click()
    expect(page.get_by_role("heading", level=1, name="Venues")).to_be_visible()
    page.get_by_role("link", name="Wallet").click()
    expect(page.get_by_role("button", name="Preview")).to_be_visible()
    draw(page)
    assert page.evaluate("scrollY") == 0
    page.evaluate("scrollTo(0, 150)")
    page.get_by_role("link", name="Venues").click()
    expect(page.get_by_role("heading", level=1, name="Venues")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="Preview")).to_be_visible()
    draw(page)
    until(lambda: page.evaluate("scrollY") == 150, "the place where one was")


@pytest.mark.thorough_cases("/no/such/page-No such page")
@pytest.mark.parametrize(("path", "title"), [("/venues", "Venues"), ("/no/such/page", "No such page")])
def test_a_link_from_elsewhere_leads_straight_there(path: str, title: str, visitor: Visitor, person: Person) -> None:
    """Other screens are opened so by their own tests."""
    visitor.give_token(person)
    page = visitor.open(f"#{path}")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_role("radio", name="Run")).to_be_checked()


def test_an_amount_that_cannot_be_read_is_not_all_there_is(local: Visitor) -> None:
    page = local.open("#/wallet")
    type_into(page.get_by_label("Amount to receive"), "half of it")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Amount to receive")).to_be_focused()
    page.wait_for_timeout(500)
    assert not [each for each in local.requests if each.url.endswith("/api/wallet/withdraw")]


def test_a_withdrawal_that_was_changed_meanwhile_is_not_offered_for_sending(local: Visitor, resident: Person) -> None:
    held: list[Route] = []
    local.page.route("**/api/wallet/withdraw", lambda route: held.append(route))
    page = local.open("#/wallet")
    type_into(page.get_by_label("Amount to receive"), "1000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("button", name="Preview")).to_be_disabled()
    type_into(page.get_by_label("Amount to receive"), "")
    until(lambda: page.evaluate("1") and held, "the question")
    quote = {"destination": resident.address, "sentSats": 1000, "feeSats": 200, "leftOut": []}
    held[0].fulfill(json=quote)
    expect(page.get_by_role("button", name="Preview")).to_be_enabled()
    expect(page.get_by_role("button", name="Hold to send")).to_have_count(0)


def test_a_text_is_marked_beyond_a_dialog_without_ending_it(quiet: Page) -> None:
    quiet.get_by_role("radio", name="Halt").click()
    box = quiet.get_by_role("dialog").get_by_role("paragraph").first.bounding_box()
    assert box is not None
    quiet.mouse.move(box["x"] + 20, box["y"] + 10)
    quiet.mouse.down()
    quiet.mouse.move(5, 5)
    quiet.mouse.up()
    expect(quiet.get_by_role("dialog")).to_be_visible()
    quiet.mouse.click(5, 5)
    expect(quiet.get_by_role("dialog")).to_have_count(0)


def test_the_second_press_of_a_double_click_leaves_the_dialog_that_the_first_opened(quiet: Page) -> None:
    quiet.get_by_role("radio", name="Halt").click()
    expect(quiet.get_by_role("dialog")).to_be_visible()
    quiet.mouse.move(5, 5)
    quiet.mouse.down(click_count=2)
    quiet.mouse.up(click_count=2)
    expect(quiet.get_by_role("dialog")).to_be_visible()
    quiet.mouse.click(5, 5)
    expect(quiet.get_by_role("dialog")).to_have_count(0)


def test_halt_is_reached_by_keys_while_the_server_is_away(quiet: Page) -> None:
    quiet.route("**/api/events*", lambda route: route.abort())
    quiet.reload()
    expect(quiet.get_by_role("radio", name="Run")).to_be_disabled()
    expect(quiet.get_by_role("radio", name="Halt")).to_have_attribute("tabindex", "0")
    quiet.unroute("**/api/events*")
    expect(quiet.get_by_role("radio", name="Run")).to_be_enabled(timeout=BACK_MS)


def test_a_screen_that_could_not_be_fetched_comes_once_the_server_answers(local: Visitor) -> None:
    local.allow("net::ERR_|no style of venues")
    page = local.page
    away = ("**/api/events*", "**/css/venues.css", "**/js/screens/venues.js")
    for path in away:
        page.route(path, lambda route: route.abort())
    page.reload()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Venues").click()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator(".side .connection")).to_have_text("Offline")
    for path in away:
        page.unroute(path)
    expect(page.get_by_role("heading", level=1, name="Venues")).to_be_visible(timeout=BACK_MS)
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_the_foot_names_the_version_of_the_server(local: Visitor, service: Installation) -> None:
    page, told = local.page, requests.get(f"{service.url}/readyz", timeout=30).json()
    commit = f" ({told['commit']})" if told["commit"] else ""
    expect(page.locator(".side .version")).to_have_text(f"Version {told['version']}{commit}")
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    expect(page.locator(".page .version")).to_be_visible()
    page.route("**/healthz", lambda route: route.fulfill(json={"status": "ok", "version": "9.8.7", "commit": None}))
    page.reload()
    expect(page.locator(".page .version")).to_have_text("Version 9.8.7")


def test_a_filter_keeps_the_cursor_while_one_types(local: Visitor) -> None:
    page = local.open("#/history?days=7")
    page.get_by_label("Collection or rune").press_sequentially("voles", delay=120)
    expect(page.get_by_label("Collection or rune")).to_have_value("voles")


def test_a_screen_that_cannot_be_drawn_leaves_the_brake(local: Visitor) -> None:
    local.allow("RangeError|Invalid time")
    page = local.open("#/history?days=1e300")
    expect(page.get_by_role("alert")).to_contain_text("couldn't be drawn")
    expect(page.get_by_role("radio", name="Halt")).to_be_enabled()
    page.get_by_role("link", name="Venues").click()
    expect(page.get_by_role("heading", level=1, name="Venues")).to_be_visible()


def test_a_limit_that_cannot_be_read_is_not_no_limit(local: Visitor, resident: Person) -> None:
    page = local.open("#/settings?tab=limits")
    page.get_by_role("button", name="New budget").click()
    page.get_by_label("Name").fill("small")
    type_into(page.locator("form").last.get_by_role("textbox").nth(1), "a million")
    page.locator("form").last.get_by_role("button").last.click()
    page.wait_for_timeout(500)
    assert resident.ok("GET", "/api/budgets") == []


def test_nothing_is_said_to_be_unchanged_where_that_is_not_known(quiet: Page) -> None:
    words = """async (refusals) => {
        const { Refusal } = await import('/web/js/api.js');
        const { wordsOf } = await import('/web/js/parts/states.js');
        return refusals.map(([status, body]) => wordsOf(new Refusal(status, body)));
    }"""
    away = {"error": "The signer cannot be asked", "message": "Whether it was sent comes out by itself"}
    by_proxy, unanswered, ours = quiet.evaluate(words, [[504, None], [0, None], [503, away]])
    assert by_proxy == unanswered
    assert ours == "The signer cannot be asked. Whether it was sent comes out by itself."


def test_a_stop_is_only_said_to_be_kept_where_it_could_be_stored(quiet: Page) -> None:
    words = """async (bodies) => {
        const { Refusal } = await import('/web/js/api.js');
        const { wordsOf } = await import('/web/js/parts/states.js');
        return bodies.map((body) => wordsOf(new Refusal(503, body), { isStop: true }));
    }"""
    errors = ["The manager is away", "The database cannot be asked", "The database is damaged", "Not in force"]
    manager, *others = quiet.evaluate(words, [{"error": error, "message": "Look"} for error in errors])
    assert manager == "The task manager is down. Your request is stored: the task stops as soon as it is back."
    assert others == [f"{error}. Look." for error in errors[1:]]


def test_a_brake_counts_the_bids_that_are_still_open(quiet: Page) -> None:
    since, left = "2026-11-28T10:00:00.000Z", [(11, 1), (11, 1), (5, 0), (0, 1)]

    def answer(route: Route) -> None:
        found = {"open": left[0][0], "unknown": left[0][1], "since": since} if left else None
        route.fulfill(json=route.fetch().json() | {"closing": found})

    quiet.route("**/api/control", answer)
    quiet.evaluate("import('/web/js/store.js').then(({ readControl }) => void readControl())")
    said = quiet.get_by_role("status").filter(has_text="Cancelling")
    expect(said).to_have_text("Cancelling: 12 of 12 bids still open")
    while left:
        bids = sum(left.pop(0))
        if left and sum(left[0]) != bids:
            expect(said).to_have_text(f"Cancelling: {sum(left[0])} of 12 bids still open")
    expect(said).to_have_count(0)


def test_an_older_answer_does_not_take_the_place_of_a_newer_one(quiet: Page) -> None:
    held: list[Route] = []
    quiet.route("**/api/control", lambda route: held.append(route))
    quiet.evaluate("import('/web/js/store.js').then(({ readControl }) => void [readControl(), readControl()])")
    until(lambda: quiet.evaluate("1") and len(held) >= 2, "both questions")
    older, newer = held[:2]
    told = older.fetch().json()
    newer.fulfill(json=told | {"user": {"state": "halt"}})
    expect(quiet.get_by_role("radio", name="Halt")).to_be_checked()
    older.fulfill(json=told)
    quiet.wait_for_timeout(300)
    expect(quiet.get_by_role("radio", name="Halt")).to_be_checked()
