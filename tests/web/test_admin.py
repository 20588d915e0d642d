"""The administrator's screen: how the installation is, who may come in, and a user's plan; nobody else gets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.installation import Installation, until
from tests.examples import part_of
from tests.web.looks import faults_of, settled
from tests.web.visitor import Person, Stay, Visitor, staying

pytestmark = pytest.mark.thorough  # from here on test_screens.py shows each place, and tests/server what it asks for


@pytest.fixture(scope="module")
def admin(browser: Browser, service: Installation) -> Person:
    """Somebody whom the operator has made an administrator."""
    person = Person(service)
    command = [sys.executable, "-m", "cli.main", "whitelist", "add", person.address, "--admin"]
    subprocess.run(command, env=service.environment, check=True, timeout=60, capture_output=True)
    return person.sign_in()


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, admin: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(admin)) as made:
        yield made


@pytest.fixture
def operator(stay: Stay) -> Visitor:
    """The browser of `admin`, in which these tests go on after one another."""
    return stay.visitor()


def test_the_installation_is_shown_as_it_is(operator: Visitor, admin: Person) -> None:
    told = admin.ok("GET", "/api/admin/readiness")
    page = operator.open("#/admin")

    def is_all_well() -> bool:
        """The page asks once, and a program may be slow to answer just then."""
        page.reload()
        settled(page)
        return page.get_by_text("All systems up").is_visible()

    until(is_all_well, "everything to answer")
    for peer in told["peers"]:
        expect(page.locator(".rows li").filter(has_text=peer["name"]).first).to_contain_text("up")
    expect(page.locator(".number").filter(has_text="Workers")).to_contain_text(f"of {told['mostWorkers']:,}")
    expect(page.get_by_role("link", name="Admin")).to_have_attribute("aria-current", "page")
    operator.screenshot("admin-state")


def test_an_address_comes_on_the_list_and_off_it(operator: Visitor, admin: Person, service: Installation) -> None:
    operator.allow("400")
    newcomer = Person(service)
    page = operator.open("#/admin?tab=whitelist")
    field = page.get_by_label("Address to allow")
    field.fill("bc1qnotone")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".field.faulty")).to_be_visible()
    field.fill(newcomer.address)
    page.get_by_role("button", name="Add").click()
    expect(page.locator(f'code[title="{newcomer.address}"]')).to_be_visible()
    operator.screenshot("admin-whitelist")

    page.get_by_role("button", name=f"Remove {newcomer.address} from the whitelist?").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(f'code[title="{newcomer.address}"]')).to_have_count(0)
    listed = [each["address"] for each in admin.ok("GET", "/api/admin/whitelist?limit=500")["addresses"]]
    assert newcomer.address not in listed


def test_a_plan_is_ended_on_a_day(operator: Visitor, admin: Person, person: Person) -> None:
    page = operator.open(f"#/admin?tab=users&find={person.address}")
    page.get_by_role("button", name=f"Change the plan of {person.address}").click()
    page.get_by_label("Ends on").fill("2026-01-01")
    operator.screenshot("admin-plan")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Users").locator("tbody tr")).to_contain_text("expired")
    (user,) = admin.ok("GET", f"/api/admin/users?address={person.address}")["users"]
    assert (user["planIsOver"], user["planEndsAt"][:10]) == (True, "2026-01-01")


def test_others_get_nothing_of_it(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    page = visitor.open("#/admin")
    expect(page.get_by_text("This page is for administrators only.")).to_be_visible()
    expect(page.get_by_role("link", name="Admin")).to_have_count(0)
    assert not [each.url for each in visitor.requests if "/api/admin" in each.url]


@pytest.mark.sampled
@pytest.mark.parametrize("tab", ["state", "users", "whitelist"])
def test_each_part_is_accessible_and_not_too_wide(tab: str, operator: Visitor) -> None:
    page = operator.open(f"#/admin?tab={tab}")
    # Else the light theme is judged in the narrow window alone.
    assert faults_of(page, is_light_judged=part_of(2, dear=True) == 2) == []
