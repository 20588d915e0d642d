"""Choosing a collection, a rune or a trait: by keys, by hand and by name, and the names and pictures in rows."""

from __future__ import annotations

import re
import secrets
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.installation import Installation
from tests.web.visitor import PHONE, Person, Visitor, type_into

HOSTILE = "<img src=x onerror=alert(1)>"
TRAITS = [[{"type": "Hat", "value": value}] for value in ("Red", "Blue", "Blue")]


@pytest.fixture
def visitor(lodger: Visitor) -> Visitor:
    """The browser of all these tests, each as another person."""
    return lodger


def opened(visitor: Visitor, person: Person, route: str) -> Page:
    visitor.give_token(person)
    visitor.allow(r"favicon|console: .* 40[04] ")
    return visitor.open(route)


def collection(service: Installation, name: str, **more: Any) -> str:
    slug = f"choice-{secrets.token_hex(4)}"
    asks = [{"price": 900_000 + 50_000 * i, "traits": traits} for i, traits in enumerate(TRAITS)]
    service.sim("PUT", f"/sim/collections/{slug}", {"name": name, "asks": asks, "bids": [], **more})
    return slug


def hold(service: Installation, person: Person, slug: str) -> None:
    """Puts an item of the collection into the vault and has it read: by that its name and picture are known."""
    vault = person.ok("GET", "/api/wallet")["vault"]
    item = {"id": f"{secrets.token_hex(32)}i0", "collection": slug}
    service.sim("PUT", f"/sim/wallets/{vault}", {"inscriptions": [item]})
    assert person.ok("GET", "/api/autolist/wallet/ordinals?refresh=1")


def slug_of(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Collection")


def choices(page: Page) -> Locator:
    return page.locator("[role='option']")  # those of a select have no role of their own


def test_a_collection_is_chosen_by_its_name_with_keys_alone(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    name = f"Proud Otters {secrets.token_hex(3)}"
    slug = collection(service, name)
    hold(service, person, slug)
    page = opened(visitor, person, "#/new")
    expect(slug_of(page)).to_be_focused()
    expect(choices(page)).to_have_count(0)

    page.keyboard.type("proud ott")
    option = choices(page).filter(has_text=slug)
    expect(option).to_contain_text(name)
    expect(option).to_contain_text("yours")
    expect(option.locator("img")).to_be_visible()
    expect(slug_of(page)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(choices(page).first).to_have_attribute("aria-selected", "true")
    chosen = slug_of(page).get_attribute("aria-activedescendant")
    assert chosen == choices(page).first.get_attribute("id")
    visitor.screenshot("choices-dark-1440")
    page.keyboard.press("Enter")

    expect(slug_of(page)).to_have_value(slug)
    expect(choices(page)).to_have_count(0)
    expect(page.locator("[name='hardcapSats']")).to_have_value("900,000")


def test_escape_closes_the_list_and_leaves_what_is_typed(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    slug = collection(service, "Any")
    person.task(slug=slug, hardcapSats=500_000)
    page = opened(visitor, person, "#/new")
    expect(slug_of(page)).to_be_focused()
    page.keyboard.type(slug[:10])
    expect(choices(page)).not_to_have_count(0)
    page.keyboard.press("Escape")
    expect(choices(page)).to_have_count(0)
    expect(slug_of(page)).to_have_value(slug[:10])


def test_half_a_name_becomes_a_fault_when_the_field_is_left(visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/new")
    with page.expect_response(lambda answer: "/tasks/floor" in answer.url) as answer:
        type_into(slug_of(page), f"no-such-{secrets.token_hex(4)}", leaves=False)
    assert answer.value.status == 404
    page.wait_for_timeout(300)
    expect(page.locator(".fault")).to_have_count(0)
    slug_of(page).blur()
    expect(page.locator(".field.faulty .fault")).to_contain_text("does not know")


def test_a_name_from_the_market_is_text(service: Installation, visitor: Visitor, person: Person) -> None:
    slug = collection(service, HOSTILE)
    hold(service, person, slug)
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), slug, leaves=False)
    expect(choices(page).filter(has_text=slug)).to_contain_text(HOSTILE)
    assert page.locator("img[src='x']").count() == 0


def test_a_rune_takes_blanks_and_gets_the_bullets_that_it_has(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    word = "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(8))
    ticker = f"OTTER•{word}•GO"
    book = {"divisibility": 0, "asks": [{"tokens": 1_000, "unitPrice": "60"}], "bids": []}
    service.sim("PUT", f"/sim/runes/{quote(ticker)}", book)
    preset = {"slug": ticker, "type": "rune", "hardcapSats": 50_000}
    person.ok("POST", "/api/presets", {"name": "a rune", "config": preset})
    page = opened(visitor, person, "#/new")
    page.get_by_role("button", name="Rune").click()
    field = page.get_by_role("combobox", name="Rune")
    type_into(field, f"otter{word.lower()} go", leaves=False)
    expect(choices(page)).to_contain_text(ticker)
    field.blur()
    expect(field).to_have_value(ticker)
    expect(page.locator(".fault")).to_have_count(0)


def test_the_plan_of_a_collection_is_not_shown_for_a_rune(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), collection(service, "Plan"))
    expect(page.locator(".plan-picture")).to_be_visible()
    page.get_by_role("button", name="Rune").click()
    expect(page.locator(".plan-picture")).to_have_count(0)
    expect(page.locator(".plan")).not_to_contain_text("of your last valid values")


def test_a_trait_is_chosen_with_its_count_and_floor(service: Installation, visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), collection(service, "Hats"))
    expect(page.locator(".plan-picture")).to_be_visible()
    page.locator("summary", has_text="Trait").click()
    page.get_by_label("Bid on").select_option("trait")
    page.get_by_role("combobox", name="Trait").click()
    expect(choices(page)).to_contain_text("Hat2 values")
    choices(page).first.click()
    expect(page.get_by_role("combobox", name="Trait")).to_have_value("Hat")
    value = page.get_by_role("combobox", name="Value")
    value.click()
    expect(choices(page)).to_have_text(
        [re.compile("Red1 item · floor 900,000"), re.compile("Blue2 items · floor 950,000")]
    )
    visitor.screenshot("traits-dark-1440")
    choices(page).nth(1).click()
    expect(value).to_have_value("Blue")
    expect(page.locator(".plan-picture")).to_be_visible()


def test_a_row_has_the_name_and_picture_of_its_collection(
    service: Installation, visitor: Visitor, person: Person
) -> None:
    name = f"Calm Bears {secrets.token_hex(3)}"
    slug = collection(service, name)
    hold(service, person, slug)
    person.task(slug=slug, hardcapSats=500_000)
    page = opened(visitor, person, "#/bids")
    row = page.locator(".task-row")
    expect(row.locator(".face-name")).to_have_text(name)
    expect(row.locator("b", has_text=slug)).to_be_visible()
    expect(row.locator(".face img")).to_be_visible()
    visitor.screenshot("rows-dark-1440")


def test_a_far_high_end_does_not_squeeze_the_chart(service: Installation, visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), collection(service, "Far"))
    expect(page.locator(".plan-picture")).to_be_visible()
    type_into(page.locator("[name='bidPercentHigh']"), "900")
    expect(page.locator(".range-beyond")).to_contain_text("far above the market")
    heights = page.locator(".plan-picture .floor").evaluate_all(
        "(lines) => lines.map((line) => Number(line.getAttribute('y1')))"
    )
    assert 20 < heights[0] < 200, "the floor keeps its room"


def test_zero_is_not_called_a_cap(service: Installation, visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), collection(service, "Uncapped"))
    expect(page.locator("[name='hardcapSats']")).to_have_value("900,000")
    type_into(page.locator("[name='hardcapSats']"), "0")
    about = page.locator(".field").filter(has=page.locator("[name='hardcapSats']"))
    expect(about).not_to_contain_text("No bid is ever above it")
    expect(about).to_contain_text("0 sets no cap")


def test_escape_leaves_the_search(visitor: Visitor, person: Person) -> None:
    page = opened(visitor, person, "#/bids")
    page.keyboard.press("/")
    page.get_by_role("dialog").get_by_role("searchbox").fill("otter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_on_a_phone_the_list_fits(service: Installation, visitor: Visitor, person: Person) -> None:
    slug = collection(service, f"Wide Whales {secrets.token_hex(3)} and a name that is very long indeed")
    hold(service, person, slug)
    visitor.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page = opened(visitor, person, "#/new")
    type_into(slug_of(page), "wide", leaves=False)
    expect(choices(page).filter(has_text=slug)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    visitor.screenshot("choices-dark-390")
    page.emulate_media(color_scheme="light")
    visitor.screenshot("choices-light-390")
