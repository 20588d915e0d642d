"""A task's screen on a real installation: what it shows is what the service says, and what it does is asked first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.installation import Installation, until
from tests.web.looks import slow_to_draw, width_at_once
from tests.web.visitor import Person, Visitor

FLOOR = 1_000_000
ASKS = [FLOOR, 1_050_000, 1_100_000, 1_200_000]
RIVALS = [850_000, 700_000]


@pytest.fixture
def visitor(lodger: Visitor) -> Visitor:
    """The browser in which all of these tests go on, each as somebody else."""
    return lodger


def market(service: Installation, slug: str, bids: list[int] | None = None) -> str:
    body = {"asks": [{"price": price} for price in ASKS], "bids": [{"price": price} for price in bids or RIVALS]}
    service.sim("PUT", f"/sim/collections/{slug}", body)
    return slug


def ladder(slug: str, **more: Any) -> dict[str, Any]:
    """Rungs at 900,000, 750,000 and 600,000 of a floor of 1,000,000."""
    given = {"slug": slug, "bidPercentLow": 0.6, "bidPercentHigh": 0.9, "bidCount": 3, "hardcapSats": 950_000}
    return given | {"bidExpiryMinutes": 60, "loopSeconds": 5} | more


def running(person: Person, config: dict[str, Any]) -> int:
    """Returns a new task after its first cycle."""
    task = person.task(**config)
    person.start(task)
    until(lambda: person.get(task)["lastCycle"], "a first cycle")
    return task


def opened(visitor: Visitor, person: Person, task: int, query: str = "") -> Page:
    visitor.give_token(person)
    page = visitor.open(f"#/tasks/{task}{query}")
    expect(page.get_by_role("heading", level=1)).to_have_text(person.get(task)["slug"])
    return page


def rows(page: Page) -> Locator:
    return page.locator(".why-rungs li")


def test_the_ladder_says_of_each_rung_what_the_service_says(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    task = running(person, ladder(market(service, "task-ladder"), outbidEnabled=False, maxBidTotal=1_700_000))

    page = opened(visitor, person, task)

    expect(rows(page)).to_have_count(3)
    told = person.ok("GET", f"/api/tasks/{task}/cycles?limit=1")[0]["detail"]["rungs"]
    assert [rung["priceSats"] for rung in told] == [900_000, 750_000, 600_000]
    skipped = [rung for rung in told if rung.get("fate") != "placed" and rung["reason"] != "kept"]
    assert [rung["reason"] for rung in skipped] == ["task_total"]
    for i, (price, words) in enumerate([("900,000", "90%"), ("750,000", "75%"), ("600,000", "60%")]):
        expect(rows(page).nth(i)).to_contain_text(price)
        expect(rows(page).nth(i)).to_contain_text(words)
    expect(rows(page).nth(0)).to_have_class("on")
    expect(rows(page).nth(2)).to_have_class("off")
    expect(rows(page).nth(2)).to_contain_text("No bid: Task total")
    expect(page.locator(".why")).to_contain_text("a higher total for this task: 1,700,000 sats is reached.")
    picture = page.locator("svg.ladder")
    expect(picture).to_contain_text("No bid: Task total")
    expect(picture).to_contain_text("Floor 1,000,000")
    # The task's cycles do not read the bids of others: the screen has looked at the marketplace itself.
    expect(picture.locator(".rank")).to_have_text(["#1", "#3"])
    page.get_by_role("button", name="As numbers").first.click()
    expect(page.get_by_role("row", name="Others' bid 850,000")).to_be_visible()


@pytest.mark.thorough
def test_a_window_made_narrow_keeps_its_pictures_within_at_once(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    task = running(person, ladder(market(service, "task-narrow")))
    visitor.give_token(person)
    visitor.open("#/settings")
    slow_to_draw(visitor.page)
    page = visitor.open(f"#/tasks/{task}")
    expect(page.locator("svg.ladder")).to_be_visible()
    expect(page.locator(".timeline canvas")).to_be_visible()
    assert width_at_once(page, 390) == 390


def test_a_fill_becomes_a_star_and_its_moment_can_be_seen_again(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    slug = market(service, "task-fill")
    task = running(person, ladder(slug))
    page = opened(visitor, person, task)
    chart = page.locator(".timeline")
    expect(chart).to_have_attribute("aria-label", re.compile("3 bids open, 0 filled"))

    service.sim("POST", "/sim/sell", {"slug": slug})

    expect(chart).to_have_attribute("aria-label", re.compile("1 filled"))
    expect(page.get_by_role("cell", name="Filled")).to_be_visible()
    until(lambda: person.get(task)["fills"]["count"] == 1, "the fill")
    person.next_cycle(task, 2)

    # By keys, until the moment before the fill.
    chart.focus()
    expect(page.locator(".why h2")).to_contain_text("now")
    for _ in range(60):  # as many cycles as the page knows
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".why h2")).to_contain_text("at ")
        expect(page.locator(".is-reading")).to_have_count(0)
        if rows(page).filter(has_text="900,000").locator("xpath=self::*[@class='on']").count():
            break
    expect(rows(page).nth(0)).to_contain_text("900,000")
    expect(rows(page).nth(0)).to_have_class("on")
    assert "at=" in page.url
    # The address alone shows the same moment.
    words = page.locator(".why h2").inner_text()
    page.reload()
    expect(page.locator(".why h2")).to_have_text(words)
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".why h2")).to_contain_text("now")
    assert "at=" not in page.url


def test_pointing_at_the_chart_shows_that_moment_and_a_click_keeps_it(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    task = running(person, ladder(market(service, "task-point")))
    person.next_cycle(task)
    page = opened(visitor, person, task)
    expect(rows(page)).to_have_count(3)
    field = page.locator(".timeline .u-over")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] - 4, box["y"] + box["height"] / 2

    page.mouse.move(x, y)
    expect(page.locator(".why h2")).to_contain_text("at ")
    expect(rows(page)).to_have_count(3)
    page.mouse.move(x, 10)
    expect(page.locator(".why h2")).to_contain_text("now")
    assert "at=" not in page.url

    page.mouse.click(x, y)
    page.mouse.move(x, 10)
    expect(page.locator(".why h2")).to_contain_text("at ")
    assert "at=" in page.url
    page.get_by_role("button", name="Settings").click()
    expect(page.locator(".settings")).to_contain_text("Settings at")


@pytest.mark.thorough_cases("False-stay open until")
@pytest.mark.parametrize(("cancels", "words"), [(True, "Cancels 3 bids"), (False, "stay open until")])
def test_stop_says_first_what_becomes_of_the_bids(
    cancels: bool, words: str, visitor: Visitor, service: Installation, person: Person
) -> None:
    slug = market(service, f"task-stop-{cancels}".lower())
    task = running(person, ladder(slug, cancelOnStop=cancels))
    page = opened(visitor, person, task)
    expect(rows(page)).to_have_count(3)

    page.keyboard.press("s")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 bids (2,250,000 sats)")
    expect(dialog).to_contain_text(words)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert person.get(task)["isRunning"]

    page.keyboard.press("s")
    dialog.get_by_role("button", name="Stop").click()
    expect(page.locator(".task-head .state")).to_have_text("Stopped")
    until(lambda: service.live_prices(slug) == ([] if cancels else [900_000, 750_000, 600_000]), "the bids' fate")


@pytest.mark.thorough
def test_what_a_dialog_says_of_the_bids_follows_them(visitor: Visitor, service: Installation, person: Person) -> None:
    """They are placed and filled while somebody reads it."""
    slug = market(service, "task-stop-meanwhile")
    page = opened(visitor, person, running(person, ladder(slug)))
    expect(rows(page)).to_have_count(3)
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancels 3 bids (2,250,000 sats).")

    service.sim("POST", "/sim/sell", {"slug": slug})

    expect(dialog).to_contain_text("Cancels 2 bids (1,350,000 sats).")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_task_is_deleted_by_typing_its_name_only(visitor: Visitor, service: Installation, person: Person) -> None:
    slug = market(service, "task-delete")
    task = running(person, ladder(slug))
    page = opened(visitor, person, task)
    expect(rows(page)).to_have_count(3)
    visitor.allow("404")  # what was asked of the task before it was gone

    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Delete the task").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancels 3 bids (2,250,000 sats).")
    act = dialog.get_by_role("button", name="Delete")
    expect(act).to_be_disabled()
    dialog.get_by_role("textbox").fill("task-delet")
    expect(act).to_be_disabled()
    dialog.get_by_role("textbox").fill(slug)
    act.click()

    until(lambda: person.call("GET", f"/api/tasks/{task}").status_code == 404, "the task's end")
    until(lambda: not service.live_prices(slug), "the bids' end")
    expect(page).to_have_url(re.compile("#/bids"))


@pytest.mark.thorough
def test_who_goes_back_leaves_the_question_unanswered(visitor: Visitor, person: Person) -> None:
    task = person.task(**ladder("task-left"))
    visitor.give_token(person)
    visitor.open("#/bids")
    page = visitor.open(f"#/tasks/{task}")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Delete the task").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Bids")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert person.get(task)["slug"] == "task-left"


def test_a_start_with_unusual_numbers_is_asked_for_twice(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    task = person.task(**ladder(market(service, "task-start"), hardcapSats=2_500_000))
    page = opened(visitor, person, task)
    expect(page.get_by_text("No cycle yet")).to_be_visible()

    page.get_by_role("button", name="Start").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2,500,000 sats is 250% of the floor (1,000,000 sats)")
    dialog.get_by_role("button", name="Cancel").click()
    assert not person.get(task)["isRunning"]

    page.get_by_role("button", name="Start").click()
    dialog.get_by_role("button", name="Start").click()
    expect(page.locator(".task-head .state")).to_have_text("Running")
    expect(rows(page)).to_have_count(3)


def test_the_brake_of_one_task_takes_its_bids_alone(visitor: Visitor, service: Installation, person: Person) -> None:
    slug, other = market(service, "task-brake"), market(service, "task-brake-other")
    task = running(person, ladder(slug))
    running(person, ladder(other))
    page = opened(visitor, person, task)

    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("group", name="Brake for this task only").get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_role("button", name="Halt").click()

    until(lambda: not service.live_prices(slug), "the halted task's bids")
    expect(page.locator(".task-head .state")).to_have_text("Halted")
    expect(page.locator(".why")).to_contain_text("3 rungs, no bid: Halted.")
    assert len(service.live_prices(other)) == 3
    page.get_by_role("button", name="Run again").click()
    until(lambda: len(service.live_prices(slug)) == 3, "the bids again")


def test_a_dry_run_is_on_paper_and_an_unknown_task_is_said_to_be(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    task = running(person, ladder(market(service, "task-paper"), dryRun=True))
    page = opened(visitor, person, task)

    expect(page.locator(".task-head .state")).to_have_text("On paper")
    expect(page.locator(".why")).to_contain_text("Nothing is on the market")

    visitor.open("#/tasks/999999")
    expect(page.get_by_role("heading", level=1)).to_have_text("No such task")


@pytest.mark.thorough
def test_a_rune_has_prices_per_token_whatever_each_order_buys(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    book = {"divisibility": 0, "asks": [{"tokens": 500_000, "unitPrice": "2.5"}], "bids": []}
    service.sim("PUT", "/sim/runes/TASKSCREENRUNE", book)
    task = running(
        person,
        ladder(
            "TASKSCREENRUNE",
            type="rune",
            quantityMode="sats",
            satsPerOrder=100_000,
            bidPercentHigh=0.8,
            hardcapSats=150_000,
        ),
    )
    page = opened(visitor, person, task)

    expect(rows(page)).to_have_count(3)
    expect(page.locator("svg.ladder")).to_contain_text("Floor 2.5")
    bids = person.ok("GET", f"/api/tasks/{task}/orders")["orders"]
    assert len({bid["quantity"] for bid in bids}) > 1, "each rung buys another quantity"
    for i, bid in enumerate(sorted(bids, key=lambda bid: -bid["price"] / bid["quantity"])):
        expect(rows(page).nth(i)).to_contain_text(f"{bid['price'] / bid['quantity']:.4f}".rstrip("0").rstrip("."))


def tried(page: Page, act: Callable[[], object]) -> None:
    """Does what has the page try settings on the past; asks again where the server gave that up.

    The server lets everything else go first where it tries them, and ends what is not done after 50 s.
    """
    for _ in range(10):
        with page.expect_response("**/replay") as answer:
            act()
        if answer.value.status != 503:
            return
        act = page.get_by_role("button", name="Try again").click
    raise AssertionError("it took too long ten times")


@pytest.mark.thorough
def test_what_if_tries_other_settings_on_the_recorded_past(
    visitor: Visitor, service: Installation, person: Person
) -> None:
    visitor.allow(r"status of 503 .*/replay\)$")
    task = running(person, ladder(market(service, "task-whatif"), outbidEnabled=True))
    person.next_cycle(task, 2)
    tried(visitor.page, lambda: opened(visitor, person, task, "?tab=whatif"))
    page = visitor.page
    placed = page.get_by_role("row", name=re.compile("^Bids placed"))
    expect(placed.get_by_role("cell")).to_have_text(["3", "3"])

    tried(page, lambda: page.get_by_role("slider", name="Bids").fill("2"))

    expect(placed.get_by_role("cell")).to_have_text(["3", "2"])

    def replayed() -> Any:
        answer = person.call("POST", f"/api/tasks/{task}/replay", {"bidCount": 2})
        assert answer.status_code in (200, 503), answer.text
        return answer.json() if answer.ok else None

    told = until(replayed, "a replay that is done in time")
    assert (told["own"]["placed"], told["changed"]["placed"]) == (3, 2)
    assert person.get(task)["config"]["bidCount"] == 3, "nothing is changed by trying"
    edit = page.get_by_role("button", name="Use these")
    expect(edit).to_be_enabled()
