"""The screens of listings: an item is put on the market, sold, raised, stopped and deleted as a person does it."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.installation import Installation, until
from tests.web.looks import slow_to_draw, width_at_once
from tests.web.visitor import Person, Visitor, type_into

pytestmark = pytest.mark.thorough

HOSTILE = '<img src=x onerror="alert(1)">' + "W" * 160


@pytest.fixture
def visitor(lodger: Visitor) -> Visitor:
    """The browser in which all of these tests go on, each as somebody else."""
    return lodger


class Seller:
    """A person with one item in their vault, and a collection of its own."""

    def __init__(self, person: Person, service: Installation, name: str = "The One") -> None:
        self.person, self.service, self.name = person, service, name
        self.slug = f"shop-{secrets.token_hex(4)}"
        self.inscription = f"{secrets.token_hex(32)}i0"
        self.wallet = person.ok("GET", "/api/wallet")
        service.put_collection(self.slug, [100_000, 110_000])
        self.put_into(self.wallet["vault"])

    def put_into(self, address: str) -> None:
        item = {"id": self.inscription, "collection": self.slug, "name": self.name}
        self.service.sim("PUT", f"/sim/wallets/{address}", {"inscriptions": [item]})

    def tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.person.ok("GET", "/api/autolist")
        return found

    def listed(self) -> int:
        """Creates and starts a task over HTTP; returns its id once it is on the market."""
        body = {"inscriptionId": self.inscription, "collectionId": self.slug, "minPriceSats": 80_000, "loopSeconds": 5}
        task = int(self.person.ok("POST", "/api/autolist", body)["id"])
        self.person.ok("POST", f"/api/autolist/{task}/start")
        until(lambda: self.market() == [105_000], "the listing")
        return task

    def market(self) -> list[int]:
        """Prices that buyers see for it, from the market itself."""
        history = self.service.history(kind="ask", slug=self.slug, maker=self.wallet["vault"])
        return [event["price"] for event in history[-1:] if event["event"] == "accepted"]


@pytest.fixture
def seller(person: Person, service: Installation, visitor: Visitor) -> Seller:
    """Somebody with an item to sell, who is signed in within the browser, too."""
    visitor.give_token(person)
    return Seller(person, service)


def number(page: Page, label: str) -> Locator:
    return page.locator(".number").filter(has=page.get_by_text(label, exact=True))


def asked(visitor: Visitor, method: str, path: str) -> int:
    return sum((each.method, urlsplit(each.url).path) == (method, path) for each in visitor.requests)


def test_an_item_is_listed_from_the_page_and_shown_as_sold(visitor: Visitor, seller: Seller) -> None:
    page = visitor.open("#/listings")
    page.get_by_role("link", name="List an item").first.click()
    page.get_by_role("link", name="The One").click()
    type_into(page.get_by_label("Never below"), "90000")
    page.get_by_text("Marketplace, tags").click()
    type_into(page.get_by_label("Check the market every"), "5")
    page.get_by_label("Tags").fill("quick")
    plan = page.get_by_role("region", name="What it would do now")
    expect(plan).to_contain_text("105,000 sats")
    expect(plan.locator(".facts")).to_contain_text("90,000")

    start = page.get_by_role("button", name="Create and start")
    start.dblclick()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("List The One at 105,000 sats?")
    assert seller.tasks() == [], "nothing is made before the answer"
    dialog.get_by_role("button", name="List it").dblclick()

    expect(page.get_by_role("heading", level=1)).to_have_text("The One")
    expect(number(page, "Price")).to_contain_text("105,000")
    until(lambda: seller.market() == [105_000], "the listing")
    assert (asked(visitor, "POST", "/api/autolist"), len(seller.tasks())) == (1, 1)
    assert (seller.tasks()[0]["config"]["minPriceSats"], seller.tasks()[0]["tags"]) == (90_000, ["quick"])

    seller.service.sim("POST", "/sim/sell", {"inscriptionId": seller.inscription})
    expect(number(page, "You received")).to_contain_text("★", timeout=120_000)
    proceeds = f"{seller.tasks()[0]['listing']['proceeds']:,}"
    expect(number(page, "You received")).to_contain_text(proceeds)
    visitor.open("#/listings?show=sold")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="The One"))
    expect(row).to_contain_text(f"★ {proceeds}")
    expect(row).to_contain_text("quick")


def test_a_cheaper_signature_is_told_of_until_the_end(visitor: Visitor, seller: Seller) -> None:
    task = seller.listed()
    visitor.allow(rf"404.*/api/autolist/{task}/")  # what was asked of the task just before it was gone
    page = visitor.open(f"#/listings/{task}")
    expect(number(page, "Lowest live price")).to_contain_text("105,000")

    page.get_by_role("button", name="Edit").click()
    type_into(page.get_by_label("Share of the reference"), "130")
    expect(page.get_by_role("region", name="What it would do now")).to_contain_text("130,000 sats")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("List The One at 130,000 sats?")
    dialog.get_by_role("button", name="Save").click()

    expect(number(page, "Price")).to_contain_text("130,000")
    expect(number(page, "Lowest live price")).to_contain_text("105,000")
    expect(page.get_by_role("region", name="Why")).to_contain_text("Raised")

    stays = "The signature at 105,000 sats stays valid until the inscription moves."
    page.get_by_role("button", name="Stop").click()
    expect(dialog).to_contain_text("The listing at 130,000 sats stays on the market.")
    expect(dialog).to_contain_text(stays)
    dialog.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    assert seller.market() == [130_000]

    page.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("Delists it from 130,000 sats.")
    expect(dialog).to_contain_text(stays)
    dialog.get_by_role("button", name="Cancel").click()
    assert len(seller.tasks()) == 1
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nothing is for sale yet")).to_be_visible()
    until(lambda: (seller.tasks(), seller.market()) == ([], []), "the end at the market")


def test_nothing_is_asked_of_a_listing_that_is_being_deleted(visitor: Visitor, seller: Seller) -> None:
    task = seller.listed()
    visitor.allow(rf"404.*/api/autolist/{task}/")  # what was asked of the task just before it was gone
    page = visitor.open(f"#/listings/{task}")
    past, held = f"/api/autolist/{task}/series", []

    def hold(route: Route) -> None:
        """Lets the deletion be carried out, and keeps its answer from the page."""
        held.append((route, route.fetch(timeout=120_000))) if route.request.method == "DELETE" else route.continue_()

    page.route(f"**/api/autolist/{task}", hold)
    until(lambda: page.evaluate("1") and asked(visitor, "GET", past), "the first look at the past")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    until(lambda: page.evaluate("1") and held and seller.tasks() == [], "the deletion")
    before = asked(visitor, "GET", past)
    page.get_by_role("button", name="1 h").click()
    expect(page.get_by_role("button", name="1 h")).to_have_attribute("aria-pressed", "true")
    page.evaluate("new Promise((end) => setTimeout(end, 300))")
    assert asked(visitor, "GET", past) == before

    route, answer = held.pop()
    route.fulfill(response=answer)
    expect(page.get_by_text("Nothing is for sale yet")).to_be_visible()


def test_a_listing_that_is_deleted_elsewhere_is_gone_and_not_asked_for_any_more(
    visitor: Visitor, seller: Seller
) -> None:
    task = seller.listed()
    visitor.allow(rf"404.*/api/autolist/{task}/")  # what was asked of the task just before it was gone
    page = visitor.open(f"#/listings/{task}")
    past = f"/api/autolist/{task}/series"
    minute = "import('/web/js/store.js').then(({ now }) => void (now.value += 60))"
    until(lambda: page.evaluate("1") and asked(visitor, "GET", past), "the first look at the past")
    before = asked(visitor, "GET", past)
    page.evaluate(minute)
    until(lambda: page.evaluate("1") and asked(visitor, "GET", past) > before, "the look of the next minute")

    seller.person.ok("DELETE", f"/api/autolist/{task}")
    expect(page.get_by_role("heading", level=1)).to_have_text("No such listing")
    expect(page.get_by_role("link", name="All listings")).to_be_visible()
    before = asked(visitor, "GET", past)
    page.evaluate(minute)
    page.evaluate("new Promise((end) => setTimeout(end, 300))")
    assert asked(visitor, "GET", past) == before


def test_what_is_wrong_is_said_at_its_field(visitor: Visitor, seller: Seller) -> None:
    visitor.allow("400")
    page = visitor.open(f"#/list?inscription={seller.inscription}&collection={seller.slug}")
    page.get_by_role("button", name="Fixed price").click()
    price = page.get_by_role("textbox", name="Price", exact=True)
    expect(price).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Create, start later").click()
    expect(page.get_by_text("Enter a price.")).to_be_visible()
    type_into(price, "0.0025 btc")
    expect(page.get_by_role("region", name="What it would do now")).to_contain_text("250,000 sats")
    expect(price).not_to_have_attribute("aria-invalid", "true")
    assert seller.tasks() == []


def test_an_item_elsewhere_has_to_come_to_the_vault_first(visitor: Visitor, seller: Seller) -> None:
    seller.service.sim("PUT", f"/sim/wallets/{seller.wallet['vault']}", {"inscriptions": []})
    seller.put_into(seller.wallet["ordinalsAddress"])
    page = visitor.open("#/list")
    elsewhere = page.get_by_role("region", name="At your ordinals address")
    expect(elsewhere).to_contain_text("The One")
    expect(elsewhere.locator(f'code[title="{seller.wallet["vault"]}"]')).to_have_count(1)
    expect(elsewhere.get_by_role("link")).to_have_count(0)
    visitor.open(f"#/list?inscription={seller.inscription}")
    expect(page.get_by_text("so it can't be listed yet")).to_be_visible()
    expect(page.get_by_role("button", name="Create and start")).to_have_count(0)


def test_a_hostile_name_is_text_and_a_picture_is_ours(visitor: Visitor, person: Person, service: Installation) -> None:
    visitor.give_token(person)
    seller = Seller(person, service, HOSTILE)
    page = visitor.open("#/list")
    expect(page.get_by_role("link").filter(has_text=HOSTILE)).to_be_visible()
    shown = page.locator(".list-card img")
    expect(shown).to_be_visible()
    assert (shown.get_attribute("src") or "").startswith(f"blob:{visitor.origin}/")
    assert asked(visitor, "GET", f"/api/autolist/item/{seller.inscription}/image") == 1

    task = seller.listed()
    visitor.open("#/listings")
    expect(page.get_by_role("listitem").get_by_role("link", name=HOSTILE)).to_be_visible()
    visitor.open(f"#/listings/{task}")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(HOSTILE)
    assert page.locator("img[src='x']").count() == 0
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320


def test_a_window_made_narrow_keeps_the_chart_within_at_once(visitor: Visitor, seller: Seller) -> None:
    task = seller.listed()
    until(lambda: any(seller.person.ok("GET", f"/api/autolist/{task}/series")["price"]), "something to draw")
    visitor.open("#/listings")
    slow_to_draw(visitor.page)
    page = visitor.open(f"#/listings/{task}")
    expect(page.locator(".price-chart canvas")).to_be_visible()
    assert width_at_once(page, 390) == 390
