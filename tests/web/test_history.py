"""The history's and the venues' screens: the server's own figures, files of them, and filters that a link keeps."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.installation import Installation, until
from tests.web.looks import settled
from tests.web.visitor import Person, Stay, Visitor, staying

pytestmark = pytest.mark.thorough

LYNXES = "lynxes-of-history"


@pytest.fixture(scope="module")
def buyer(browser: Browser, service: Installation) -> Iterator[Person]:
    """Somebody who has bought one item, and has a bid that was cancelled."""
    person = Person(service).sign_in()
    service.put_collection(LYNXES, [1_000_000, 1_100_000])
    task = person.task(slug=LYNXES, bidCount=2, hardcapSats=900_000, loopSeconds=5, cancelOnStop=True)
    person.start(task)
    until(lambda: len(service.live_prices(LYNXES)) == 2, "the bids")
    service.sim("POST", "/sim/sell", {"slug": LYNXES})
    until(lambda: person.ok("GET", "/api/fills")["fills"], "the fill")
    person.stop(task)
    until(lambda: not service.live_prices(LYNXES), "the cancel")
    yield person


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, buyer: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(buyer)) as made:
        yield made


@pytest.fixture
def visitor(stay: Stay) -> Visitor:
    """The browser of `buyer`, in which these tests go on after one another."""
    return stay.visitor()


def opened(visitor: Visitor) -> Page:
    """Opens the history without a filter, wherever one was before."""
    visitor.open("#/more")
    expect(visitor.page.get_by_role("heading", level=1, name="More")).to_be_visible()
    return visitor.open("#/history")


def test_what_was_bought_is_there_by_the_servers_figures(visitor: Visitor, buyer: Person) -> None:
    (fill,) = buyer.ok("GET", "/api/fills")["fills"]
    page = opened(visitor)
    row = page.get_by_role("region", name="Trades").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(f"{fill['price']:,}")
    expect(row).to_contain_text(LYNXES)
    held = page.locator(".number").filter(has_text="Held now")
    expect(held).to_contain_text(f"{buyer.ok('GET', '/api/pnl')['rows'][0]['held']['costSats']:,}")

    page.get_by_role("button", name="Bids", exact=True).click()
    fates = page.get_by_role("region", name="Bids").locator("tbody tr")
    expect(fates.filter(has_text="★ Filled")).to_have_count(1)
    expect(fates.filter(has_text="Cancelled").first).to_be_visible()


def test_a_filter_stands_in_the_address(visitor: Visitor) -> None:
    page = opened(visitor)
    page.get_by_role("button", name="Sold", exact=True).click()
    expect(page.get_by_text("Nothing was bought or sold in this period.")).to_be_visible()
    assert "side=sell" in page.url
    page.reload()
    expect(page.get_by_role("button", name="Sold", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("Nothing was bought or sold in this period.")).to_be_visible()


def test_trades_go_out_as_a_file(visitor: Visitor) -> None:
    page = opened(visitor)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "bidkeeper-plain.csv"
    (row,) = csv.DictReader(Path(download.value.path()).read_text().splitlines())
    assert (row["side"], row["slug"]) == ("buy", LYNXES)


def test_every_marketplace_says_what_it_takes(visitor: Visitor, buyer: Person) -> None:
    venues = buyer.ok("GET", "/api/venues")
    page = visitor.open("#/venues")
    cards = {venue["name"]: page.get_by_role("region", name=venue["title"], exact=True) for venue in venues}

    def do_all_answer() -> bool:
        """Tells whether all are said to; the page asks once, and the gateway may be slow to answer just then."""
        settled(page)
        if all(card.get_by_text("Connected", exact=True).first.is_visible() for card in cards.values()):
            return True
        page.reload()
        return False

    until(do_all_answer, "every marketplace to answer")
    for venue in venues:
        card = cards[venue["name"]]
        expect(card).to_contain_text("Connected")
        expect(card).to_contain_text("collections" if venue["kinds"] else "takes no bids")


def test_a_marketplace_whose_key_has_a_day_shows_what_is_left_of_it(visitor: Visitor, buyer: Person) -> None:
    venues = buyer.ok("GET", "/api/venues")
    for venue in venues:
        venue["limits"]["callsPerDay"] = 2_000
        venue |= {"quotaLeftToday": 1_100, "quotaYoursToday": {"used": 300, "share": 850}}
    page = visitor.page
    page.route("**/api/venues", lambda route: route.fulfill(json=venues))
    try:
        visitor.open("#/venues")
        page.reload()  # it may have been open
        card = page.get_by_role("region", name=venues[0]["title"], exact=True)
        expect(card).to_contain_text("1,100 of 2,000 left")
        expect(card).to_contain_text("yours: 300 of your share of 850")
        expect(card.get_by_role("meter", name="Calls today")).to_have_attribute("aria-valuenow", "900")
        expect(card).not_to_contain_text("no known limit")
    finally:
        page.unroute("**/api/venues")
