"""The settings' screen: sessions, tokens, ceilings that only a wallet raises, budgets, hooks and presets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.installation import Installation, until
from tests.examples import part_of
from tests.hooks.receiver import MailServer
from tests.web.looks import faults_of
from tests.web.visitor import Person, Stay, Visitor, staying, type_into

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def owner(browser: Browser, service: Installation) -> Person:
    """Somebody with a wallet, who tries everything in one page."""
    return Person(service).sign_in()


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, owner: Person) -> Iterator[Stay]:
    def prepare(visitor: Visitor) -> None:
        visitor.give_token(owner)
        visitor.install("unisat", owner)

    with staying(browser, service, prepare) as made:
        yield made


@pytest.fixture
def setter(stay: Stay) -> Visitor:
    """The browser of `owner`."""
    return stay.visitor()


def opened(visitor: Visitor, tab: str) -> Page:
    visitor.open("#/more")
    expect(visitor.page.get_by_role("heading", level=1, name="More")).to_be_visible()
    return visitor.open(f"#/settings?tab={tab}")


def test_a_name_is_text_whatever_is_in_it(setter: Visitor, owner: Person) -> None:
    page = opened(setter, "look")
    name = "<img src=x onerror=alert(1)> & co"
    page.get_by_label("Display name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".account")).to_have_text(name)
    assert owner.ok("GET", "/api/auth/me")["displayName"] == name
    assert page.locator("img").count() == 0


def test_a_token_is_made_shown_once_and_ended(setter: Visitor, owner: Person) -> None:
    page = opened(setter, "access")
    page.get_by_role("button", name="Create token").click()
    page.get_by_label("Name").fill("A watcher")
    page.get_by_label("stop and brake").check()
    page.get_by_role("button", name="Create token").click()
    token = page.locator(".note.good code").get_attribute("title")
    assert token
    (made,) = owner.ok("GET", "/api/tokens")
    assert (made["name"], made["scopes"], made["taskId"]) == ("A watcher", ["read", "control"], None)

    page.reload()
    expect(page.get_by_role("cell", name="A watcher", exact=True)).to_be_visible()
    assert token not in page.content()
    page.get_by_role("button", name="Revoke the token A watcher").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_text("No API tokens yet")).to_be_visible()


def test_a_ceiling_falls_at_once_and_rises_with_a_signature_only(setter: Visitor, owner: Person) -> None:
    page = opened(setter, "limits")
    total = page.get_by_label("All open bids together")
    type_into(total, "2,000,000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert owner.ok("GET", "/api/ceilings")["maxExposure"] == 2_000_000

    type_into(total, "3000000")
    page.get_by_role("button", name="Approve with your wallet").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre")).to_contain_text("bids may be up to 3000000 sats in all")
    assert owner.ok("GET", "/api/ceilings")["maxExposure"] == 2_000_000
    dialog.get_by_role("button", name="UniSat").click()
    expect(dialog).to_have_count(0)
    # The dialog goes before the ceiling is sent, and the field has had its value since it was typed.
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_enabled()
    expect(total).to_have_value("3,000,000")
    assert owner.ok("GET", "/api/ceilings")["maxExposure"] == 3_000_000


def test_a_budget_is_made_and_deleted(setter: Visitor, owner: Person) -> None:
    page = opened(setter, "limits")
    page.get_by_role("button", name="New budget").click()
    page.get_by_label("Name").fill("Cats together")
    type_into(page.get_by_label("Open at a time"), "0.01 btc")
    page.get_by_role("button", name="New budget").click()
    expect(page.get_by_role("cell", name="Cats together", exact=True)).to_be_visible()
    (made,) = owner.ok("GET", "/api/budgets")
    assert (made["maxOpenSats"], made["spendCapSats"]) == (1_000_000, 0)
    page.get_by_role("button", name="Delete the budget Cats together").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No budgets yet")).to_be_visible()


def test_a_hook_is_refused_in_words_made_and_deleted(setter: Visitor, owner: Person) -> None:
    setter.allow("400")
    page = opened(setter, "hooks")
    page.get_by_role("button", name="New hook").click()
    page.get_by_label("Address").fill("http://127.0.0.1:1/in")
    page.get_by_role("button", name="New hook").click()
    expect(page.locator(".field.faulty")).to_contain_text("Must begin with https")
    expect(page.locator(".toast")).to_have_count(0)
    page.get_by_label("Address").fill("https://hooks.example/in/secret-path")
    page.get_by_role("button", name="New hook").click()
    expect(page.get_by_text("it won't be shown again")).to_be_visible()
    expect(page.locator(".hook code")).to_have_text("https://hooks.example/...")
    page.locator(".hook").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("None yet: get fills")).to_be_visible()


def test_a_mail_hook_waits_for_the_code_of_its_mail(setter: Visitor, owner: Person, mails: MailServer) -> None:
    setter.allow("400")
    page = opened(setter, "hooks")
    page.get_by_role("button", name="New hook").click()
    page.get_by_label("To", exact=True).select_option(label="Email")
    page.get_by_label("Address").fill("mailto:ann@mail.example")
    page.get_by_role("button", name="New hook").click()
    hook = page.locator(".hook")
    expect(hook.locator(".state")).to_have_text("Waiting for its code")
    expect(hook.get_by_role("button", name="Send a test")).to_have_count(0)
    until(lambda: mails.got, "the mail with the code")
    page.get_by_label("Code from the email").fill("WRNG-WRNG")
    page.get_by_role("button", name="Confirm").click()
    expect(hook.get_by_role("alert")).to_have_text("Code: is not the one in the newest mail; tries left: 4.")
    setter.screenshot("hook waits for its code")
    page.get_by_label("Code from the email").fill(f" {mails.got[-1].code} ")
    page.get_by_role("button", name="Confirm").click()
    expect(hook.locator(".state")).to_have_text("Works")
    assert not owner.ok("GET", "/api/hooks")[0]["waitsForCode"]
    hook.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(hook).to_have_count(0)


def test_presets_go_out_and_come_in_as_a_file(setter: Visitor, owner: Person, tmp_path: Path) -> None:
    setter.allow("409")
    owner.ok("POST", "/api/presets", {"name": "Low and wide", "config": {"bidCount": 3, "hardcapSats": 90_000}})
    page = opened(setter, "presets")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export to a file").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert [each["name"] for each in saved["presets"]] == ["Low and wide"]

    saved["presets"][0]["config"]["bidCount"] = 7
    file = tmp_path / "presets.json"
    file.write_text(json.dumps(saved))
    page.locator('input[type="file"]').set_input_files(file)
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    expect(page.get_by_text("Presets imported.")).to_be_visible()
    assert owner.ok("GET", "/api/presets")[0]["config"]["bidCount"] == 7


def test_signing_out_everywhere_ends_this_session_too(visitor: Visitor, person: Person) -> None:
    visitor.allow("401")
    visitor.give_token(person)
    page = visitor.open("#/settings?tab=access")
    page.get_by_role("button", name="Sign out everywhere").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_text(re.compile("session has ended", re.IGNORECASE))).to_be_visible()
    assert person.call("GET", "/api/auth/me").status_code == 401


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("tab", "form"), [("access", "Create token"), ("limits", "New budget"), ("hooks", "New hook"), ("presets", "")]
)
def test_each_part_is_accessible_and_not_too_wide(tab: str, form: str, setter: Visitor) -> None:
    page = opened(setter, tab)
    if form:
        page.get_by_role("button", name=form).click()
    # Else the light theme is judged in the narrow window alone.
    assert faults_of(page, is_light_judged=part_of(2, dear=True) == 2) == []


@pytest.mark.parametrize("next_act", ["another try", "another place"])
def test_an_error_is_shown_until_the_next_act(setter: Visitor, next_act: str) -> None:
    setter.allow("409")
    page = opened(setter, "hooks")

    def refuse(route: Route) -> None:
        if route.request.method == "POST":
            route.fulfill(status=409, json={"error": "Conflict", "message": "no room for another hook"})
        else:
            route.continue_()

    page.route("**/api/hooks", refuse)
    page.get_by_role("button", name="New hook").click()
    page.get_by_label("Address").fill("https://hooks.example/in")
    page.get_by_role("button", name="New hook").click()
    expect(page.locator(".toast.bad")).to_contain_text("No room for another hook")
    page.unroute("**/api/hooks")
    if next_act == "another try":
        page.get_by_role("button", name="New hook").click()
        expect(page.get_by_text("shown again")).to_be_visible()
        page.locator(".hook").get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    else:
        page.get_by_role("link", name="Wallet").first.click()
    expect(page.locator(".toast.bad")).to_have_count(0)


NOTIFICATIONS = """
window.shown = [];
window.Notification = class {
  static permission = localStorage.getItem("notify") ? "granted" : "default";
  static async requestPermission() { return (this.permission = "granted"); }
  constructor(title, options) { window.shown.push([title, options.tag]); }
};
"""


def test_notifications_are_asked_for_in_the_settings_and_show_fills_once(
    visitor: Visitor, person: Person, service: Installation
) -> None:
    visitor.context.add_init_script(NOTIFICATIONS)
    service.put_collection("notified-newts", [1_000_000])
    task = person.task(slug="notified-newts", bidMode="fixed", bidFixedLow=50_000, bidFixedHigh=50_000, loopSeconds=5)
    person.start(task)
    until(lambda: service.live_prices("notified-newts"), "the bid")
    visitor.give_token(person)
    page = visitor.open("#/settings?tab=hooks")
    panel = page.get_by_role("region", name="In this browser")
    assert page.evaluate("Notification.permission") == "default"
    panel.get_by_role("button", name="Turn on").click()
    expect(panel.get_by_role("button", name="Turn off")).to_be_visible()
    expect(page.locator(".connection.live").first).to_be_visible()

    page.reload()  # the choice stays on the device
    expect(panel.get_by_role("button", name="Turn off")).to_be_visible()
    expect(page.locator(".connection.live").first).to_be_visible()
    service.sim("POST", "/sim/sell", {"slug": "notified-newts"})
    until(lambda: page.evaluate("window.shown.length"), "the notification of the fill")
    [[title, tag]] = page.evaluate("window.shown")
    assert title == "Bid filled" and tag.startswith("bidkeeper-")
    person.stop_and_drain(task)
