"""The overview and the list of bids, on a real installation: they show what /api says, and say at once what happens."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.installation import Installation, until
from tests.web.visitor import NARROW, Person, Visitor, visiting

# Two seconds is what a person may wait after a cycle; the machine of a test has others to serve, so that it is given
# thirty times as long: how fast the dashboard is, is measured in bench/.
SOON_S = 2.0
PATIENT = 30.0
LADDER = {"bidMode": "fixed", "bidFixedLow": 50_000, "bidFixedHigh": 80_000, "bidCount": 2, "loopSeconds": 5}
CONFIG = {**LADDER, "hardcapSats": 200_000, "minAgeSeconds": 0, "pauseAfterFillSeconds": 0}


@pytest.fixture
def visitor(lodger: Visitor) -> Visitor:
    """The browser in which all of these tests go on, each as somebody else."""
    return lodger


def running(person: Person, slug: str, asks: list[int] | None = None, **config: Any) -> int:
    """Starts a task, and waits until its bids are live."""
    person.installation.put_collection(slug, asks or [100_000, 101_000])
    task = person.task(**{"slug": slug, **CONFIG, **config})
    person.start(task)
    person.next_cycle(task)
    return task


def row(page: Page, slug: str) -> Locator:
    return page.locator(".task-row", has_text=slug)


def said_soon(person: Person, task: int, happened: str, shown: Locator, *, stops: bool = False) -> float:
    """Waits until /api tells of something, and then for the screen to say it, soon; returns after how many seconds.

    What is said of a cycle is there until the next one: with `stops` the task is stopped, so that there is none.
    """

    def told() -> str:
        found = person.get(task)
        return f"{found['lastCycle']} {found['lastErrorCode']}"

    until(lambda: re.search(happened, told()), happened)
    begin = time.monotonic()
    if stops:
        until(lambda: person.call("POST", f"/api/tasks/{task}/stop").ok, "the stop")
    expect(shown).to_be_visible(timeout=1000 * SOON_S * PATIENT)
    passed = time.monotonic() - begin
    print(f"{happened}: on the screen {passed:.2f} s after /api told it")
    assert passed < SOON_S * PATIENT
    return passed


def test_rows_show_what_the_interface_says(visitor: Visitor, person: Person) -> None:
    real = running(person, "plain-cats", onlyBidIfHighest=True)
    running(person, "paper-cats", dryRun=True)
    visitor.give_token(person)
    page = visitor.open()
    me, wallet = person.ok("GET", "/api/auth/me"), person.ok("GET", "/api/wallet")

    shown = row(page, "plain-cats")
    expect(shown.locator(".floor-cell .num")).to_have_text("100,000")
    expect(shown.locator(".bids-cell .num")).to_have_text("2 / 2")
    expect(shown.locator(".exposure-cell .num")).to_have_text(f"{sum(person.bids(real)):,}")
    expect(shown.locator(".place")).to_have_text("#1")
    expect(shown.locator(".gain-cell .num")).to_have_text("–")
    expect(row(page, "paper-cats").locator(".state")).to_have_text("On paper")
    page.get_by_role("button", name="Roomy").click()
    expect(shown.locator(".strip .own")).to_have_count(2)
    page.get_by_role("button", name="Compact").click()

    numbers = page.locator(".number")
    assert me["stats"]["openBids"] == 2
    expect(numbers.nth(0)).to_contain_text(f"{me['stats']['exposure']:,}")
    expect(numbers.nth(1)).to_contain_text(f"{wallet['ifAllFillNow']:,}")
    expect(numbers.nth(1)).to_contain_text(f"Most you could lose: {wallet['worstLoss']:,} sats")
    expect(numbers.nth(2)).to_contain_text("2 / 2")  # none of those on paper
    expect(numbers.nth(3)).to_contain_text(f"{wallet['biddingWallet']['balanceSats']:,}")
    # In one line, or in two where they went live far apart.
    for price in ("50,000 sats", "80,000 sats"):
        said = re.compile(f"plain-cats.*went live, .*{price}")
        expect(page.locator(".feed li").filter(has_text=said)).to_have_count(1)


def test_outbid_and_fill_are_said(visitor: Visitor, person: Person, service: Installation) -> None:
    config: dict[str, Any] = {"bidCount": 1, "bidFixedLow": 60_000, "outbidEnabled": True, "outbidAmount": 1_000}
    task = running(person, "busy-dogs", **config, loopSeconds=20, cancelOnStop=False)
    visitor.give_token(person)
    page = visitor.open()
    expect(row(page, "busy-dogs").locator(".bids-cell .num")).to_have_text("1 / 1")
    page.goto("/#/bids")  # which has room for what a cycle did
    book = {"asks": [{"price": 100_000}], "bids": [{"price": max(person.bids(task)) + 500}]}
    service.sim("PUT", "/sim/collections/busy-dogs", book)

    said_soon(person, task, "cancelled 1 .outbid", row(page, "busy-dogs").get_by_text("Outbid"), stops=True)
    page.goto("/#/")
    # It moved there, or went live there where it took long.
    moved = re.compile(rf"(moved from .* to|went live, at) {max(person.bids(task)):,} sats")
    expect(page.locator(".feed")).to_contain_text(moved)

    page.goto("/#/bids")
    person.start(task)
    service.sim("POST", "/sim/sell", {"slug": "busy-dogs", "bidId": live_bid(service, "busy-dogs")})
    said_soon(person, task, "filled 1", row(page, "busy-dogs").get_by_text("1 filled"), stops=True)
    page.goto("/#/")
    expect(page.locator(".feed")).to_contain_text("Bought for")
    expect(page.locator(".number").nth(2)).to_contain_text("1 fill today")


def live_bid(service: Installation, slug: str) -> str:
    gone = {event["orderId"] for event in service.history(slug=slug) if event["event"] != "accepted"}
    ours = [event for event in service.history(slug=slug, event="accepted") if event["message"]]
    return str(next(event["orderId"] for event in ours if event["orderId"] not in gone))


def test_a_halt_names_true_numbers_and_is_said(visitor: Visitor, person: Person) -> None:
    task = running(person, "halted-owls")
    visitor.give_token(person)
    page = visitor.open()
    expect(row(page, "halted-owls").locator(".bids-cell .num")).to_have_text("2 / 2")
    # Who asks before this is known, and gets no answer within a second, is told no number.
    expect(page.locator(".number").first).to_contain_text("130,000")

    page.get_by_role("radio", name="Halt").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancels 2 open bids (130,000 sats).")
    dialog.get_by_role("button", name="Halt").click()

    expect(page.get_by_role("status").filter(has_text="Your open bids are being cancelled.")).to_be_visible()
    expect(page.get_by_role("status").get_by_role("button", name="Undo")).to_be_visible()
    expect(row(page, "halted-owls").get_by_text("Halted").first).to_be_visible()
    said_soon(person, task, "control halt", row(page, "halted-owls").locator(".bids-cell", has_text="0 / 2"))
    expect(page.locator(".feed")).to_contain_text("Halted by you")


def test_hostile_words_are_text(visitor: Visitor, person: Person) -> None:
    evil = '<img src=x onerror="alert(1)">שלום•'
    person.ok("PATCH", "/api/auth/me", {"displayName": evil[:40]})
    person.task(**{"slug": "evil-cats", **CONFIG}, tags=[evil[:40], "<b>bold</b>"])
    person.task(**{"slug": "evil-dogs", **CONFIG, "bidType": "trait", "traitType": "<script>", "traitValue": evil})
    visitor.give_token(person)
    for route in ("#/", "#/bids"):
        page = visitor.open(route)
        expect(row(page, "evil-cats")).to_contain_text("<b>bold</b>")
        expect(row(page, "evil-dogs")).to_contain_text("<script>: <img src=x onerror=")
        assert page.locator("main img, main script, main .task-row b b").count() == 0


def test_nothing_to_show_says_what_to_do(browser: Browser, service: Installation, person: Person) -> None:
    with visiting(browser, service, NARROW) as visitor:
        visitor.give_token(person)
        page = visitor.open()
        expect(page.get_by_text("No task yet")).to_be_visible()
        expect(page.get_by_text("Nothing for sale")).to_be_visible()
        expect(page.get_by_text("Nothing yet.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visitor.check()


def test_bids_are_found_chosen_and_handled_together(visitor: Visitor, person: Person) -> None:
    for slug in ("one-cat", "two-cats", "one-dog"):
        person.installation.put_collection(slug, [100_000])
        person.task(**{"slug": slug, **CONFIG, "dryRun": True})
    visitor.give_token(person)
    page = visitor.open("#/bids")
    page.get_by_role("searchbox").fill("cat")
    expect(page.locator(".task-row")).to_have_count(2)
    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Tags").click()
    page.get_by_label("Tag to add").fill("meow")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".task-row .label-tag", has_text="meow")).to_have_count(2)
    assert [task["tags"] for task in person.ok("GET", "/api/tasks")] == [["meow"], ["meow"], []]
    # The rows may say so by an event before the answer comes, which ends the choice.
    expect(page.get_by_label("Select all shown")).not_to_be_checked()

    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Start").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 tasks are dry runs.")
    dialog.get_by_role("button", name="Start").click()
    expect(page.locator(".task-row .state", has_text="On paper")).to_have_count(2)
    expect(page.get_by_label("Select all shown")).not_to_be_checked()  # again the rows may be before the answer

    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_label("Type 2 to continue").fill("2")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("2 tasks deleted.")).to_be_visible()
    assert [task["slug"] for task in person.ok("GET", "/api/tasks")] == ["one-dog"]


def slugs_shown(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".task-row .name-cell b").all_inner_texts()]


def test_heads_sort_by_press_and_key_and_rows_are_as_tall_as_one_chooses(visitor: Visitor, person: Person) -> None:
    for slug in ("bee", "ant", "cow"):
        person.task(**{"slug": slug, **CONFIG})
    visitor.give_token(person)
    page = visitor.open("#/bids?sort=name")
    expect(page.locator(".task-row")).to_have_count(3)
    assert slugs_shown(page) == ["ant", "bee", "cow"]
    head = page.get_by_role("columnheader", name="Name")
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert slugs_shown(page) == ["cow", "bee", "ant"]
    assert page.url.endswith("sort=-name")

    rows = page.locator(".task-row")
    assert 36 <= rows.first.evaluate("(row) => row.offsetHeight") <= 40
    page.get_by_role("button", name="Roomy").click()
    expect(rows.first).to_have_js_property("offsetHeight", 74)
    page.reload()
    expect(rows.first).to_have_js_property("offsetHeight", 74)
    page.get_by_role("button", name="Compact").click()


def test_several_tasks_are_edited_together(visitor: Visitor, person: Person) -> None:
    for slug, cap in (("one-ox", 200_000), ("two-oxen", 300_000)):
        person.task(**{"slug": slug, **CONFIG, "hardcapSats": cap})
    visitor.give_token(person)
    page = visitor.open("#/bids")
    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Setting to change").select_option(label="Hard cap")
    expect(dialog).to_contain_text("now 200,000 sats, 300,000 sats")
    dialog.get_by_role("textbox", name="Hard cap").fill("150k")
    dialog.get_by_role("button", name="Change 2 tasks").click()
    expect(page.get_by_text("2 tasks changed.")).to_be_visible()
    configs = [task["config"] for task in person.ok("GET", "/api/tasks")]
    assert [config["hardcapSats"] for config in configs] == [150_000] * 2
    assert {config["bidCount"] for config in configs} == {2}, "nothing else has changed"


def test_the_overview_begins_with_tasks_in_trouble(visitor: Visitor, person: Person) -> None:
    person.start(person.task(**{"slug": "no-such-herd", **CONFIG}))
    person.start(person.task(**{"slug": "no-such-flock", **CONFIG}))
    visitor.give_token(person)
    page = visitor.open()
    looks = page.locator(".look-row")
    expect(looks).to_have_count(2)  # one for each fault, which names the collection
    expect(looks.first).to_contain_text("Could not find the market")
    assert looks.first.bounding_box()["y"] < page.locator(".task-row").first.bounding_box()["y"]  # type: ignore[index]
