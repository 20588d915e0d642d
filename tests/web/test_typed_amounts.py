"""Amounts as people give them to the page: typed key by key or pasted, in browsers of four locales."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.installation import Installation
from tests.web.javascript import WEB
from tests.web.visitor import Person, Visitor, type_into, visiting

COMMAS, POINTS = ("de-DE", "fr-CH"), ("en-US", "en-IN")
BTC = 100_000_000


@pytest.fixture(scope="module", params=[*COMMAS, *POINTS])
def locale(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def trader(service: Installation, locale: str) -> Iterator[Person]:
    """A person for each locale, because a user may look up a few names a minute."""
    made = Person(service).sign_in()
    yield made
    made.leave()


@pytest.fixture(scope="module")
def browsing(browser: Browser, service: Installation, trader: Person, locale: str) -> Iterator[Visitor]:
    """One browser for all tests of a locale."""
    with visiting(browser, service, locale=locale) as made:
        made.give_token(trader)
        yield made


@pytest.fixture
def visitor(browsing: Visitor) -> Visitor:
    if browsing.page.url != "about:blank":
        browsing.begin_again()
        # A form that is left with changes would ask first.
        browsing.page.evaluate("sessionStorage.removeItem('draft'), (location.hash = '#/more')")
        leave = browsing.page.get_by_role("button", name="Leave")
        expect(browsing.page.get_by_role("heading", level=1, name="More").or_(leave)).to_be_visible()
        if leave.is_visible():
            leave.click()
    browsing.allow(r"status of 429 .*/preview")  # a plan is asked for with each key, and waits once these are too many
    return browsing


def collection(service: Installation) -> str:
    slug = f"typed-{secrets.token_hex(4)}"
    service.put_collection(slug, [1_000_000, 1_050_000, 1_100_000])
    return slug


def field(page: Page, name: str) -> Locator:
    return page.locator(f"[name='{name}']")


def described(field: Locator) -> str:
    """Returns the description that a screen reader adds to a field's name."""
    return str(
        field.evaluate(
            """(it) => (it.getAttribute("aria-describedby") || "").split(" ")
              .map((id) => document.getElementById(id)?.innerText || "").join(" ")"""
        )
    )


def sats_in(words: str) -> list[int]:
    """Returns the amounts in sats that a text names, whatever separates their groups."""
    return [int(re.sub(r"\D", "", each)) for each in re.findall(r"(\d[\d.,'’\s]*) sats", words)]


def typed_slowly(field: Locator, text: str) -> None:
    """Types key by key, and checks that the field shows no more and no less than what was typed."""
    type_into(field, "", leaves=False)
    for at, key in enumerate(text, 1):
        field.press_sequentially(key)
        expect(field).to_have_value(text[:at])


def pasted(page: Page, field: Locator, text: str) -> None:
    """Copies a text elsewhere on the page, and pastes it in place of what a field holds."""
    page.evaluate(
        """(text) => {
          const from = document.body.appendChild(document.createElement("textarea"));
          from.value = text;
          from.select();
          document.execCommand("copy");
          from.remove();
        }""",
        text,
    )
    field.focus()
    field.press("ControlOrMeta+a")
    field.press("ControlOrMeta+v")
    expect(field).to_have_value(text)


def refused(field: Locator, readings: list[int]) -> None:
    """Checks that a field which was left is at fault, keeps its text, and names each reading."""
    text = field.input_value()
    field.blur()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value(text)
    alert = field.locator("xpath=ancestor::*[contains(@class, 'field')][1]").get_by_role("alert")
    expect(alert).to_contain_text("Did you mean")
    assert sats_in(described(field)) == readings


@pytest.mark.parametrize(
    ("text", "sats", "wrong"), [("0,05 btc", 5_000_000, 5 * BTC), ("1,5 btc", 150_000_000, 15 * BTC)]
)
def test_a_typed_decimal_comma_is_a_decimal_comma_or_a_fault(
    service: Installation, visitor: Visitor, trader: Person, locale: str, text: str, sats: int, wrong: int
) -> None:
    visitor.allow(r"console: .* 40[04] ")
    page, slug = visitor.open("#/new"), collection(service)
    field(page, "slug").fill(slug)
    expect(page.locator(".rungs .own").first).to_be_visible()
    cap = field(page, "hardcapSats")
    typed_slowly(cap, text)
    if locale in POINTS:
        refused(cap, [sats, wrong])
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Nothing was saved")).to_be_visible()
        assert [each for each in trader.ok("GET", "/api/tasks") if each["slug"] == slug] == []
        typed_slowly(cap, text.replace(",", "."))

    expect(cap).not_to_have_attribute("aria-invalid", "true")
    assert sats_in(described(cap))[0] == sats, "what is read is said while it is typed"
    assert "BTC" in described(cap)
    cap.blur()
    assert int(re.sub(r"\D", "", cap.input_value())) == sats
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.or_(page.locator(".task-page"))).to_be_visible()
    if dialog.is_visible():
        dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".task-page")).to_be_visible()
    (task,) = [each for each in trader.ok("GET", "/api/tasks") if each["slug"] == slug]
    assert task["config"]["hardcapSats"] == sats


def test_a_part_of_a_sat_protects_no_listing(service: Installation, visitor: Visitor, trader: Person) -> None:
    visitor.allow(r"console: .* 40[04] ")
    slug, inscription = collection(service), f"{secrets.token_hex(32)}i0"
    item = {"id": inscription, "collection": slug, "name": "Guarded"}
    service.sim("PUT", f"/sim/wallets/{trader.ok('GET', '/api/wallet')['vault']}", {"inscriptions": [item]})
    page = visitor.open(f"#/list?inscription={inscription}&collection={slug}")
    least = page.get_by_label("Never below")
    typed_slowly(least, "0,05")
    refused(least, [5_000_000, 5])

    page.get_by_role("button", name="Create, start later").click()
    expect(page.get_by_role("button", name="Create, start later")).to_be_enabled()
    expect(page.get_by_role("heading", level=1, name="List an item")).to_be_visible()
    assert [each for each in trader.ok("GET", "/api/autolist") if each["inscriptionId"] == inscription] == []

    typed_slowly(least, "90000")
    page.get_by_role("button", name="Create, start later").click()
    expect(page.get_by_role("heading", level=1, name="Guarded")).to_be_visible()
    (task,) = [each for each in trader.ok("GET", "/api/autolist") if each["inscriptionId"] == inscription]
    assert task["config"]["minPriceSats"] == 90_000


def test_a_pasted_part_of_a_sat_is_refused(visitor: Visitor) -> None:
    page = visitor.open("#/new")
    cap = field(page, "hardcapSats")
    pasted(page, cap, "2520000,5")
    refused(cap, [2_520_000, 25_200_005])

    pasted(page, cap, "2,520,000 sats")
    cap.blur()
    expect(cap).not_to_have_attribute("aria-invalid", "true")
    assert re.sub(r"\D", "", cap.input_value()) == "2520000"


def test_a_pasted_part_of_a_sat_is_not_withdrawn(visitor: Visitor) -> None:
    page = visitor.open("#/wallet")
    arrives = page.get_by_label("Amount to receive")
    pasted(page, arrives, "20000,00")
    arrives.press("Enter")
    refused(arrives, [20_000, 2_000_000])
    page.get_by_role("button", name="Preview").click()
    expect(arrives).to_be_focused()
    assert [each for each in visitor.requests if each.url.endswith("/api/wallet/withdraw")] == []


def test_a_percent_with_a_comma_is_read_or_refused(visitor: Visitor, service: Installation, locale: str) -> None:
    visitor.allow(r"console: .* 40[04] ")
    page = visitor.open("#/new")
    field(page, "slug").fill(collection(service))
    expect(page.locator(".rungs .own").first).to_be_visible()
    high = field(page, "bidPercentHigh")
    typed_slowly(high, "92,5")
    if locale in POINTS:
        high.blur()
        expect(high).to_have_attribute("aria-invalid", "true")
        assert "92.5% or 925%" in described(high)
        typed_slowly(high, "92.5")
    high.blur()
    expect(high).to_have_value("92,5" if locale in COMMAS else "92.5")
    expect(page.locator(".rungs .own .rung-price").first).to_have_text(re.compile("^925,000"))

    count = field(page, "bidCount")
    typed_slowly(count, "1,5")
    count.blur()
    expect(count).to_have_attribute("aria-invalid", "true")
    assert "Did you mean 1 or 15?" in described(count)


def test_a_whole_number_is_grouped_once_its_field_is_left(visitor: Visitor, locale: str) -> None:
    visitor.allow(r"console: .* 40[04] ")
    page = visitor.open("#/new")
    cap = field(page, "hardcapSats")
    typed_slowly(cap, "1234567")
    cap.press("Home")
    cap.press("ArrowRight")
    cap.press_sequentially("99")
    expect(cap).to_have_value("199234567")
    cap.blur()
    mark = {"de-DE": ".", "fr-CH": "[ '’\u202f\u00a0]"}.get(locale, ",")
    groups = ["19", "92", "34", "567"] if locale == "en-IN" else ["199", "234", "567"]
    expect(cap).to_have_value(re.compile(f"^{mark.replace('.', '[.]').join(groups)}$"))
    cap.focus()
    expect(cap).to_have_value("199234567")
    cap.press_sequentially("1.5m")
    cap.press("Enter")
    assert re.sub(r"\D", "", cap.input_value()) == "1500000"


def test_each_screen_has_no_field_that_reads_numbers_by_itself() -> None:
    """A browser's own number field drops a comma that its locale does not have."""
    texts = {file.name: file.read_text() for file in (WEB / "js").rglob("*.js")}
    assert [name for name, text in texts.items() if re.search(r'type="?\$?\{?"?number', text)] == []
    readers = [
        name for name, text in texts.items() if "parseFloat" in text or "parseInt" in text or "valueAsNumber" in text
    ]
    assert readers == []
    assert {name for name, text in texts.items() if "Number(event.target.value)" in text} == {"range.js", "whatif.js"}
