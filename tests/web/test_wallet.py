"""The wallet's screen: what lies where, and a way out that no slip of a finger takes."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.installation import until
from tests.web.looks import too_wide, violations
from tests.web.visitor import Person, Visitor, type_into

HOME = "Everything goes to the address you sign in with"


def test_every_address_is_there_with_what_it_is_for(visitor: Visitor, person: Person) -> None:
    told = person.ok("GET", "/api/wallet")
    visitor.give_token(person)
    page = visitor.open("#/wallet")

    for address in (told["payment"], told["vault"], told["biddingWallet"]["address"]):
        expect(page.locator(f'code[title="{address}"]')).to_have_count(1)
    expect(page.get_by_text(HOME)).to_contain_text(person.address)
    balance = f"{told['biddingWallet']['balanceSats']:,}"
    expect(page.locator(".number").filter(has_text="Bidding balance").locator("b")).to_contain_text(balance)

    page.get_by_role("button", name="QR code").first.click()
    expect(page.get_by_role("img", name="QR code of bc1")).to_be_visible()
    page.get_by_label("Amounts in sats").click()
    shown = f"{told['biddingWallet']['balanceSats'] / 100_000_000:.8f}"
    expect(page.locator(".number").filter(has_text="Bidding balance").locator("b")).to_contain_text(shown)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_term_is_explained_by_key_and_by_pointer_until_escape(
    visitor: Visitor, person: Person, theme: Literal["dark", "light"]
) -> None:
    visitor.give_token(person)
    visitor.page.emulate_media(color_scheme=theme)
    page = visitor.open("#/wallet")
    ask = page.get_by_role("button", name="What does “Signing limit” mean?")
    meaning = page.get_by_text("A signed bid counts until it expires")
    expect(meaning).to_be_hidden()

    ask.press("Enter")
    expect(meaning).to_be_visible()
    assert violations(page) == [] and too_wide(page) == []
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()
    expect(ask).to_be_focused()

    ask.click()
    expect(meaning).to_be_in_viewport(ratio=1)
    page.get_by_role("heading", level=1).click()
    expect(meaning).to_be_hidden()


def test_sats_go_home_once_the_button_was_held(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    page = visitor.open("#/wallet")
    type_into(page.get_by_label("Amount to receive"), "0.0005 btc")
    expect(page.get_by_text("That is 50,000 sats.")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    plan = page.get_by_role("status").filter(has_text="Preview of the withdrawal")
    expect(plan).to_contain_text("50,000")
    expect(plan.locator(f'code[title="{person.address}"]')).to_have_count(1)

    hold = page.get_by_role("button", name="Hold to send")
    hold.scroll_into_view_if_needed()
    # At once: on a busy machine the two ends of a click may be so far apart that it is a hold.
    hold.evaluate(
        """(it) => {
          for (const kind of ["pointerdown", "pointerup"]) it.dispatchEvent(new PointerEvent(kind, { bubbles: true }));
          it.click();
        }"""
    )
    page.wait_for_timeout(300)
    assert sent(person) == [], "a click is no hold"

    press(page, hold.bounding_box())
    until(lambda: sent(person), "the withdrawal")
    page.mouse.up()
    expect(page.get_by_role("region", name="Latest withdrawals").locator("tbody tr")).to_have_count(1)
    assert [(row["sentSats"], row["destination"]) for row in sent(person)] == [(50_000, person.address)]


def test_a_refusal_is_said_and_nothing_is_sent(visitor: Visitor, person: Person) -> None:
    visitor.allow("409")
    visitor.give_token(person)
    page = visitor.open("#/wallet")
    type_into(page.get_by_label("Amount to receive"), "2,000,000,000,000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert").filter(has_text="The coins do not pay")).to_be_visible()
    expect(page.get_by_role("button", name="Hold to send")).to_have_count(0)
    assert sent(person) == []


def sent(person: Person) -> list[dict[str, object]]:
    found: list[dict[str, object]] = person.ok("GET", "/api/wallet")["withdrawals"]
    return found


def press(page: Page, box: object) -> None:
    """Presses the pointer on the middle of a box, and leaves it there."""
    assert isinstance(box, dict)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
