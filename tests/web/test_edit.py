"""The form of a task: its plan is what is then placed, refusals land at their fields, and nothing typed is lost."""

from __future__ import annotations

import re
import secrets
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.installation import Installation, until
from tests.web.visitor import Person, Visitor, type_into

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def visitor(lodger: Visitor) -> Visitor:
    """The browser in which all of these tests go on, each as somebody else."""
    return lodger


def opened(visitor: Visitor, person: Person, route: str) -> Page:
    """Opens a route as `person` sees it."""
    visitor.give_token(person)
    visitor.allow(r"favicon|screens/(task|overview|signin)\.js|css/(task|overview|signin)\.css")
    return visitor.open(route)


def collection(service: Installation, floor: int) -> str:
    """Makes a collection of this test's own; returns its slug."""
    slug = f"form-{secrets.token_hex(4)}"
    bids = [{"price": floor * 7 // 10}, {"price": floor // 2}]
    service.put_collection(slug, [floor, floor + 50_000, floor + 90_000], bids=bids)
    return slug


def field(page: Page, name: str) -> Locator:
    return page.locator(f"[name='{name}']")


def plan_of(page: Page, bids: int) -> list[int]:
    """Prices of so many bids that the plan shows, the highest first; it must be of the values in the form."""
    expect(page.locator(".rungs .own")).to_have_count(bids)
    expect(page.locator(".plan.is-old-plan, .plan[aria-busy='true']")).to_have_count(0)
    prices = page.locator(".rungs .own .rung-price").all_inner_texts()
    return sorted((int(price.replace(",", "")) for price in prices), reverse=True)


def stored_task(person: Person, slug: str, **more: Any) -> int:
    config = {"bidPercentLow": 0.5, "bidPercentHigh": 0.8, "bidCount": 2, "hardcapSats": 900_000, **more}
    return person.task(slug=slug, **config)


def standing(person: Person, task: int) -> list[int]:
    orders = person.ok("GET", f"/api/tasks/{task}/orders")["orders"]
    return sorted((each["price"] for each in orders if each["state"] == "live"), reverse=True)


def test_what_the_plan_shows_is_placed(service: Installation, visitor: Visitor, person: Person) -> None:
    slug, page = collection(service, 1_000_000), opened(visitor, person, "#/new")
    field(page, "slug").fill(slug)
    # Until a cap is written, the cheapest one for sale is it.
    expect(field(page, "hardcapSats")).to_have_value("1,000,000")
    type_into(field(page, "bidPercentLow"), "60")
    type_into(field(page, "bidPercentHigh"), "92.5")
    type_into(field(page, "bidCount"), "4")
    type_into(field(page, "maxBidTotal"), "2600000")
    expect(field(page, "maxBidTotal")).to_have_value("2,600,000")
    expect(page.locator(".rungs li")).to_have_count(4)
    expect(page.locator(".plan-notes")).to_contain_text("This task's limit is 2,600,000 sats.")
    planned = plan_of(page, 3)
    assert planned[0] == 925_000

    page.get_by_role("button", name="Save and start").dblclick()

    until(lambda: person.ok("GET", "/api/tasks"), "the task")
    [task] = person.ok("GET", "/api/tasks")
    expect(page).to_have_url(f"{service.url}/#/tasks/{task['id']}")
    until(lambda: standing(person, task["id"]) == planned, f"bids at {planned}")
    sent = [each for each in visitor.requests if each.method == "POST" and each.url.endswith("/api/tasks")]
    assert len(sent) == 1
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('draft'))") == []


def test_a_plan_without_balance_says_how_much_to_send_where(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    wallet = person.ok("GET", "/api/wallet")["biddingWallet"]["address"]
    service.sim("PUT", f"/sim/wallets/{wallet}", {"balance": 500_000})
    slug, page = collection(service, 1_000_000), opened(visitor, person, "#/new")
    field(page, "slug").fill(slug)
    expect(page.locator(".plan-notes")).to_contain_text(re.compile(rf"Send at least [\d,]+ sats to {wallet}\."))


def test_a_pasted_address_of_a_page_becomes_the_slug(service: Installation, visitor: Visitor, person: Person) -> None:
    slug, page = collection(service, 1_000_000), opened(visitor, person, "#/new")
    field(page, "slug").fill(f"https://market.example/collection/{slug.upper()}?a=b")
    expect(field(page, "slug")).to_have_value(slug)
    expect(field(page, "hardcapSats")).to_have_value("1,000,000")


def test_a_field_left_alone_is_as_the_server_fills_it_in(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    page = opened(visitor, person, "#/new")
    expect(field(page, "slug")).to_be_visible()
    shown = page.evaluate("import('/web/js/config_shape.js').then((module) => module.defaultsOf())")

    config = person.get(person.task(slug=collection(service, 500_000), bidMode="fixed"))["config"]

    assert {**shown, "slug": config["slug"], "bidMode": "fixed"} == {**config, "venue": "", "tags": []}


def test_an_edit_says_what_is_cancelled_and_what_it_was(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    task = stored_task(person, collection(service, 1_000_000))
    person.start(task)
    until(lambda: len(standing(person, task)) == 2, "two bids")

    page = opened(visitor, person, f"#/tasks/{task}/edit?bidPercentHigh=0.7&bidCount=1")

    expect(field(page, "bidPercentHigh")).to_have_value("70")
    expect(page.locator(".changes li")).to_have_text(["Highest bid 80% → 70%", "Bids at a time 2 → 1"])
    expect(page.locator(".edit-sum")).to_contain_text("cancelled")
    changed = {"taskId": task, "bidPercentHigh": 0.7, "bidCount": 1}
    cancels = len(person.ok("POST", "/api/tasks/preview", changed)["cancels"])
    assert cancels
    expect(page.locator(".edit-sum")).to_contain_text(f"{cancels} bid")
    page.get_by_role("button", name="Save", exact=True).click()
    until(lambda: person.get(task)["config"]["bidPercentHigh"] == 0.7, "the change")
    assert person.get(task)["config"]["bidPercentLow"] == 0.5


def test_a_refusal_is_said_at_its_field(visitor: Visitor, person: Person, service: Installation) -> None:
    visitor.allow(r"console: .* 40[04] ")
    page = opened(visitor, person, "#/new")
    field(page, "slug").fill(collection(service, 400_000))
    type_into(field(page, "bidPercentLow"), "95")

    fault = page.locator(".field.faulty").filter(has=field(page, "bidPercentLow"))
    expect(fault.get_by_role("alert")).to_have_text("Must not be above the high end")
    expect(field(page, "bidPercentLow")).to_have_attribute("aria-invalid", "true")

    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing was saved. Fix 1 field above.")).to_be_visible()
    expect(field(page, "bidPercentLow")).to_have_value("95")


def test_what_was_typed_is_back_after_the_session_ended(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    visitor.allow(r"console: .* 40[14] ")
    task = stored_task(person, collection(service, 700_000))
    page = opened(visitor, person, f"#/tasks/{task}/edit")
    type_into(field(page, "bidCount"), "7")
    plan_of(page, 7)

    ends: list[int] = []

    def end_session(route: Route) -> None:
        """Ends the session as soon as the last value is asked about: before it is typed, its field may be gone."""
        if not ends and route.request.post_data_json.get("maxBidTotal") == 5_000_000:
            ends.append(person.call("POST", "/api/auth/logout").status_code)
        route.continue_()

    page.route("**/api/tasks/preview", end_session)
    type_into(field(page, "maxBidTotal"), "5000000")
    expect(page.locator(".edit-form")).to_have_count(0)
    page.unroute("**/api/tasks/preview")
    person.sign_in()
    page.evaluate("(token) => sessionStorage.setItem('token', token)", person.token)
    page.reload()

    expect(field(page, "bidCount")).to_have_value("7")
    expect(field(page, "maxBidTotal")).to_have_value("5,000,000")
    expect(page.get_by_text("Your unsaved changes are back.")).to_be_visible()
    assert person.get(task)["config"]["bidCount"] == 2


def test_a_start_asks_where_a_figure_stands_out_and_a_lost_answer_keeps_the_form(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    visitor.allow(r"console: .* net::ERR_")
    page = opened(visitor, person, "#/new")
    field(page, "slug").fill(collection(service, 800_000))
    type_into(field(page, "hardcapSats"), "1200000")
    plan_of(page, 5)
    page.get_by_role("button", name="Save and start").click()
    expect(page.get_by_role("dialog")).to_contain_text("1,200,000 sats is 150% of the floor (800,000 sats)")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert person.ok("GET", "/api/tasks") == []

    page.route("**/api/tasks", lambda route: route.abort())
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("it's unknown whether anything changed")).to_be_visible()
    expect(field(page, "hardcapSats")).to_have_value("1,200,000")


@pytest.mark.thorough
def test_a_plan_that_grows_old_takes_back_no_question_of_a_save(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    page = opened(visitor, person, "#/new")
    # What comes every half a minute comes here when it is called for.
    page.evaluate(
        """() => {
          const repeat = (window.repeat = window.setInterval);
          window.setInterval = (act, ms, ...given) =>
            ms === 30_000 ? (window.refresh = act, 0) : repeat(act, ms, ...given);
        }"""
    )
    try:
        field(page, "slug").fill(collection(service, 800_000))
        plan_of(page, 5)
        held: list[Route] = []
        # The first one is the save's.
        page.route("**/api/tasks/preview", lambda route: route.continue_() if held else held.append(route))
        page.get_by_role("button", name="Save", exact=True).click()
        until(lambda: page.evaluate("1") and held, "the save's question")
        page.evaluate("() => void window.refresh()")
        # What it would bring about is done with the picture after the next.
        page.evaluate("new Promise((end) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(end))))")
        held[0].continue_()
        until(lambda: person.ok("GET", "/api/tasks"), "the task")
    finally:
        page.evaluate("() => { window.setInterval = window.repeat }")


def test_leaving_asks_and_staying_keeps_what_is_typed(visitor: Visitor, person: Person, service: Installation) -> None:
    task = stored_task(person, collection(service, 700_000))
    page = opened(visitor, person, f"#/tasks/{task}/edit")
    type_into(field(page, "bidCount"), "6")
    page.locator(".side").get_by_role("link", name="Wallet").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(field(page, "bidCount")).to_have_value("6")
    assert page.url.endswith(f"#/tasks/{task}/edit")

    page.locator(".side").get_by_role("link", name="Wallet").click()
    page.get_by_role("dialog").get_by_role("button", name="Leave").click()
    expect(page).to_have_url(f"{service.url}/#/wallet")


@pytest.mark.thorough
def test_a_window_that_is_made_narrow_does_not_jut_out_before_the_plan_has_moved(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    """The style sheet knows the width at once, the page a moment later, which here does not come."""
    task = stored_task(person, collection(service, 1_000_000))
    opened(visitor, person, "#/settings")
    size = visitor.page.viewport_size
    assert size is not None and size["width"] > 1180
    visitor.page.evaluate("() => { MediaQueryList.prototype.addEventListener = () => {} }")
    try:
        page = visitor.open(f"#/tasks/{task}/edit")
        expect(page.locator(".edit > .plan")).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.locator(".edit > .plan")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    finally:
        visitor.page.evaluate("() => { delete MediaQueryList.prototype.addEventListener }")
        visitor.page.set_viewport_size(size)


def test_a_hostile_name_is_text(visitor: Visitor, person: Person) -> None:
    visitor.allow(r"console: .* 40[04] ")
    person.ok("POST", "/api/presets", {"name": HOSTILE, "config": {"hardcapSats": 5000, "tags": [HOSTILE]}})
    page = opened(visitor, person, "#/new")
    expect(page.get_by_label("Start from a preset")).to_contain_text(HOSTILE)
    page.get_by_label("Start from a preset").select_option(label=HOSTILE)
    type_into(field(page, "slug"), HOSTILE)

    expect(page.locator(".field.faulty").filter(has=field(page, "slug"))).to_contain_text("Must be letters")
    expect(field(page, "tags")).to_have_value(HOSTILE)
    assert page.locator("img").count() == 0


def test_a_fraction_is_what_its_digits_say(service: Installation, visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/new")
    bodies: list[dict[str, Any]] = []
    page.on("request", lambda each: bodies.append(each.post_data_json) if "preview" in each.url else None)
    field(page, "slug").fill(collection(service, 1_000_000))
    for typed in ("7", "28.9", "57.07", "0.1"):
        type_into(field(page, "bidPercentLow"), typed)
        until(lambda typed=typed: page.evaluate("1") and bodies and _low(bodies[-1]) == typed, f"a plan with {typed} %")


def _low(body: dict[str, Any]) -> str:
    return str((Decimal(repr(body.get("bidPercentLow", 0.15))) * 100).normalize())
