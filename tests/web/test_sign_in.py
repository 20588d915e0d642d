"""Signing in on the page: five wallets that really sign, the play wallet, and everything that may come between."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.installation import Installation, installation, until
from tests.web.visitor import DESKTOP, NARROW, PHONE, Person, Visitor, visiting

NAMES = {"unisat": "UniSat", "xverse": "Xverse", "leather": "Leather", "okx": "OKX Wallet", "phantom": "Phantom"}
WITH_TWO_ADDRESSES = ("xverse", "leather", "phantom")
PLACE = "#/more"  # somewhere that is not where the page begins
CHALLENGE_S = 25  # one test waits for its end, another signs in within it
SIGN_INS = 20  # a minute; the tests of the strict installation make 15 before they are used up on purpose


@pytest.fixture(scope="module")
def strict() -> Iterator[Installation]:
    """A practice market with its play wallet for everybody, where nobody is on the list, and time is short."""
    with installation(
        BIDKEEPER_PLAY_WALLET="true",
        BIDKEEPER_WHITELIST="",
        BIDKEEPER_CHALLENGE_SECONDS=str(CHALLENGE_S),
        BIDKEEPER_SIGN_IN_PER_MINUTE=str(SIGN_INS),
    ) as made:
        yield made


@pytest.fixture
def stranger(service: Installation) -> Person:
    """Somebody who has never been here."""
    return Person(service)


@pytest.fixture
def guest(browser: Browser, strict: Installation) -> Iterator[Visitor]:
    """A browser at the strict installation."""
    with visiting(browser, strict) as made:
        yield made
        made.check()


def put_on_the_list(made: Installation, address: str) -> None:
    command = [sys.executable, "-m", "cli.main", "whitelist", "add", address]
    subprocess.run(command, env=made.environment, check=True, capture_output=True)


def row(page: Page, wallet: str) -> Locator:
    return page.get_by_role("button", name=NAMES[wallet])


def see_signed_in(page: Page) -> None:
    """Waits for the shell with the place that was asked for before."""
    expect(page.get_by_role("heading", level=1, name="More")).to_be_visible()
    assert page.url.endswith(PLACE)


def token_in(page: Page, store: str = "sessionStorage") -> str | None:
    found: str | None = page.evaluate(f"() => {store}.getItem('token')")
    return found


def address_of(visitor: Visitor) -> str:
    """Returns the address of the session that the page holds."""
    answer = visitor.context.request.get("/api/auth/me", headers={"Authorization": f"Bearer {token_in(visitor.page)}"})
    return str(answer.json()["address"])


def see_refused(page: Page, title: str, words: str) -> None:
    note = page.get_by_role("alert")
    expect(note).to_contain_text(title)
    expect(note).to_contain_text(words)
    assert token_in(page) is None


@pytest.mark.thorough_cases("okx", "phantom", "leather")
@pytest.mark.parametrize("wallet", NAMES)
def test_each_wallet_is_found_late_may_refuse_may_be_old_and_signs_in_with_its_address_for_items(
    visitor: Visitor, stranger: Person, wallet: str
) -> None:
    visitor.install(wallet, stranger, after_ms=1000, once_seen="a.wallet", refuses=True)
    page = visitor.open(PLACE)

    # A window that is refused is no fault, whenever the wallet comes; and none is taken for another.
    row(page, wallet).click()
    see_refused(page, "Nothing was signed", "Try again whenever you like")
    expect(row(page, wallet)).to_be_enabled()
    before = page.evaluate("() => window.shownBefore")
    assert [text.endswith("Not installed") for text in before] == [True] * len(NAMES)
    expect(page.get_by_role("button", name="UniSat")).to_have_count(1 if wallet == "unisat" else 0)
    visitor.check()

    # An old one that signs otherwise is told what to pick.
    visitor.allow("status of 401")
    page.evaluate("() => { window.walletsMood.refuses = false; window.walletsMood.isOld = true; }")
    row(page, wallet).click()
    see_refused(page, "used an older signature type", "Pick a Taproot (bc1p…) or native SegWit (bc1q…) address")
    visitor.check()

    visitor.begin_again()
    page.evaluate("() => { window.walletsMood.isOld = false; }")
    row(page, wallet).click()
    see_signed_in(page)
    assert address_of(visitor) == stranger.address
    assert token_in(page, "localStorage") is None


@pytest.mark.thorough_cases("leather", "phantom")
@pytest.mark.parametrize("wallet", WITH_TWO_ADDRESSES)
def test_the_address_for_coins_can_be_chosen_and_is_remembered(visitor: Visitor, stranger: Person, wallet: str) -> None:
    visitor.install(wallet, stranger)
    page = visitor.open(PLACE)
    page.get_by_text("Which address").click()
    page.get_by_role("button", name="For coins").click()
    page.reload()

    row(page, wallet).click()

    see_signed_in(page)
    assert address_of(visitor) == stranger.payment_address


def test_xverse_is_asked_for_no_more_than_the_address_that_signs_in(visitor: Visitor, stranger: Person) -> None:
    visitor.install("xverse", stranger)
    page = visitor.open(PLACE)
    page.evaluate(
        """() => {
          const it = window.XverseProviders.BitcoinProvider, request = it.request;
          window.asked = [];
          it.request = (method, params) => {
            window.asked.push([method, params.addresses || []]);
            return request(method, params);
          };
        }"""
    )

    row(page, "xverse").click()

    see_signed_in(page)
    assert page.evaluate("() => window.asked") == [["wallet_connect", ["ordinals"]], ["signMessage", []]]


@pytest.mark.thorough
def test_an_xverse_from_before_wallet_connect_is_asked_as_it_was_then(visitor: Visitor, stranger: Person) -> None:
    visitor.install("xverse", stranger)
    page = visitor.open(PLACE)
    page.evaluate(
        """() => {
          const it = window.XverseProviders.BitcoinProvider, request = it.request;
          const none = { jsonrpc: "2.0", id: "1", error: { code: -32601, message: "no such method" } };
          it.request = async (method, params) => (method === "wallet_connect" ? none : request(method, params));
        }"""
    )

    row(page, "xverse").click()

    see_signed_in(page)
    assert address_of(visitor) == stranger.address


def test_the_text_to_be_signed_is_shown_on_demand_and_a_wait_can_be_ended(visitor: Visitor, stranger: Person) -> None:
    visitor.install("unisat", stranger)
    page = visitor.open(PLACE)
    page.evaluate(
        """() => {
          const sign = window.unisat.signMessage;
          window.unisat.signMessage = (...asked) =>
            new Promise((now) => (window.answer = () => sign(...asked).then(now)));
        }"""
    )
    page.get_by_text("What you sign").click()
    expect(page.get_by_text("32 random digits")).to_be_visible()

    row(page, "unisat").click()

    text = page.locator("details pre")
    expect(text).to_contain_text(f"Sign in to Bidkeeper at 127.0.0.1:{visitor.service.port}")
    expect(text).to_contain_text(f"Address: {stranger.address}")
    expect(page.get_by_text("Confirm in UniSat's window")).to_be_visible()
    expect(row(page, "unisat")).to_be_disabled()
    page.get_by_role("button", name="Cancel").click()
    see_refused(page, "Nothing was signed", "")
    page.evaluate("() => window.answer()")  # an answer that comes after all signs nobody in
    page.evaluate("fetch('/healthz')")  # a request that was sent before it is known when this one has its answer
    assert [each.url for each in visitor.requests if each.url.endswith("/api/auth/verify")] == []
    assert token_in(page) is None
    expect(row(page, "unisat")).to_be_enabled()


def test_a_signature_of_another_account_is_refused(visitor: Visitor, stranger: Person) -> None:
    visitor.allow("status of 401")
    visitor.install("unisat", stranger, signer=Person(stranger.installation))
    page = visitor.open(PLACE)

    row(page, "unisat").click()

    see_refused(page, "doesn't match the address", "Check that UniSat is still on the same account")


@pytest.mark.thorough_cases("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2")
@pytest.mark.parametrize(
    "address", ["tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"]
)
def test_an_address_of_another_kind_is_told_which_to_pick(visitor: Visitor, stranger: Person, address: str) -> None:
    visitor.allow("status of 400")
    stranger.address = address
    visitor.install("unisat", stranger)
    page = visitor.open(PLACE)

    row(page, "unisat").click()

    see_refused(page, "This address can't sign in", "mainnet")


def test_a_wallet_without_an_address_is_said_to_have_none(visitor: Visitor, stranger: Person) -> None:
    visitor.install("unisat", stranger)
    page = visitor.open(PLACE)
    note = page.get_by_role("alert")
    for answer in ("undefined", "[]", "[null]", "['']", "{}"):
        late = f"new Promise((now) => (window.answer = () => now({answer})))"
        page.evaluate(f"() => {{ window.unisat.requestAccounts = () => {late}; }}")
        row(page, "unisat").click()
        expect(row(page, "unisat")).to_be_disabled()
        expect(note).to_have_count(0)
        page.evaluate("() => window.answer()")

        expect(note, answer).to_contain_text(re.compile("returned no Bitcoin address|couldn't do it"))
        assert token_in(page) is None, answer


def test_what_a_wallet_says_is_shown_as_words(visitor: Visitor, stranger: Person) -> None:
    visitor.install("unisat", stranger)
    page = visitor.open(PLACE)
    page.evaluate(
        "() => { window.unisat.requestAccounts = () => Promise.reject({ message: '<img src=x onerror=alert(1)>' }); }"
    )

    row(page, "unisat").click()

    see_refused(page, "UniSat couldn't do it", "It says: <img src=x onerror=alert(1)>")


def test_staying_signed_in_on_the_device_is_for_every_tab_and_else_for_this_one(
    visitor: Visitor, stranger: Person
) -> None:
    visitor.install("leather", stranger)
    page = visitor.open(PLACE)
    row(page, "leather").click()
    see_signed_in(page)
    other = visitor.context.new_page()
    other.goto(f"/{PLACE}")
    expect(row(other, "leather")).to_be_visible()

    other.get_by_label("Stay signed in on this device").check()
    row(other, "leather").click()
    see_signed_in(other)
    third = visitor.context.new_page()
    third.goto(f"/{PLACE}")

    see_signed_in(third)
    assert token_in(third, "localStorage") and token_in(third) is None


def test_a_session_that_ended_leads_back_to_where_it_was(visitor: Visitor, stranger: Person) -> None:
    visitor.allow("status of 401")
    visitor.install("xverse", stranger)
    page = visitor.open(PLACE)
    row(page, "xverse").click()
    see_signed_in(page)

    answer = visitor.context.request.delete(
        "/api/sessions", headers={"Authorization": f"Bearer {token_in(page)}"}
    )  # as from another device

    assert answer.status == 200
    expect(page.get_by_role("alert")).to_contain_text("Your session has ended")
    row(page, "xverse").click()
    see_signed_in(page)


@pytest.mark.thorough
def test_where_there_is_no_play_wallet_none_is_offered(visitor: Visitor) -> None:
    answer = visitor.context.request.get("/api/auth/play")
    assert (answer.status, answer.json()) == (200, {"address": None})
    page = visitor.open(PLACE)

    expect(page.get_by_text("No wallet was found in this browser")).to_be_visible()
    expect(page.get_by_role("button", name="Play wallet")).to_have_count(0)
    for name in NAMES.values():
        expect(page.get_by_role("link", name=name)).to_have_attribute("rel", "noopener noreferrer")


@pytest.mark.thorough
def test_a_wallet_whose_address_is_not_on_the_list_is_told_so(guest: Visitor, strict: Installation) -> None:
    guest.allow("status of 403")
    somebody = Person(strict)
    guest.install("phantom", somebody)
    page = guest.open(PLACE)

    row(page, "phantom").click()

    see_refused(page, "This address isn't on the whitelist yet", "Send this address to the operator")
    expect(page.get_by_role("alert").get_by_title(somebody.address)).to_be_visible()


@pytest.mark.thorough
def test_a_text_that_is_too_old_is_not_the_persons_fault(guest: Visitor, strict: Installation) -> None:
    guest.allow("status of 401")
    somebody = Person(strict)
    put_on_the_list(strict, somebody.address)
    guest.install("okx", somebody, holds_ms=1000 * (CHALLENGE_S + 2))
    page = guest.open(PLACE)

    row(page, "okx").click()

    see_refused(page, "The text has expired", "Try again to get a new one")


def test_the_play_wallet_is_the_first_and_largest_choice(guest: Visitor, strict: Installation) -> None:
    guest.install("unisat", Person(strict))
    page = guest.open(PLACE)
    play = page.get_by_role("button", name="Play wallet")
    for size in (DESKTOP, PHONE, NARROW):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.reload()  # so that nothing has had the focus yet
        expect(play).to_be_visible()
        expect(row(page, "unisat")).to_be_visible()

        box = play.bounding_box()
        others = [each.bounding_box() for each in page.locator(".wallet").all()]

        assert box is not None and len(others) == len(NAMES), size
        for other in others:
            assert other is not None and other["y"] > box["y"] + box["height"], size
            assert other["width"] * other["height"] < box["width"] * box["height"], size
        assert box["y"] + box["height"] < size[1], f"at {size} it is seen without scrolling"
        page.keyboard.press("Tab")
        expect(play, f"{size}").to_be_focused()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_one_click_signs_in_as_the_play_wallet(guest: Visitor, strict: Installation) -> None:
    play = guest.context.request.get("/api/auth/play").json()["address"]
    put_on_the_list(strict, play)
    page = guest.open(PLACE)

    page.get_by_role("button", name="Play wallet").click()

    see_signed_in(page)
    assert address_of(guest) == play


def test_everybody_can_use_it(visitor: Visitor, stranger: Person) -> None:
    visitor.install("leather", stranger, refuses=True)
    page = visitor.open(PLACE)
    for name in ("What you sign", "Which address"):
        page.get_by_text(name).click()
    row(page, "leather").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was signed")

    found = []
    for (width, height), scheme in itertools.product((DESKTOP, PHONE), ("dark", "light")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        for each in Axe().run(page).response["violations"]:
            found.append((scheme, width, each["id"], [node["html"] for node in each["nodes"]]))
        visitor.screenshot(f"sign-in {scheme} {width}")
    assert found == []


@pytest.mark.thorough
def test_too_many_sign_ins_are_counted_down(guest: Visitor, strict: Installation) -> None:
    """The last of those at the strict installation: it uses its minute's calls up."""
    guest.allow("status of 429")
    guest.install("unisat", Person(strict))
    guest.page.clock.install()
    page = guest.open(PLACE)
    expect(row(page, "unisat")).to_be_visible()

    def left_s() -> int:
        """Uses up what is left of the minute's calls; returns how many seconds there are until the next minute."""
        while (answer := guest.context.request.post("/api/auth/verify", data={})).status != 429:
            pass
        return int(answer.headers["retry-after"])

    until(lambda: left_s() >= 30, "a minute that does not end before the page has asked")  # tests before began it

    row(page, "unisat").click()

    note = page.get_by_role("alert")
    expect(note).to_contain_text("Too many sign-ins from here")
    expect(note).to_contain_text(re.compile(r"Wait \d+ s, then try again"))
    expect(row(page, "unisat")).to_be_disabled()
    page.clock.run_for(70_000)  # at most a minute, and each second is shown a frame late
    expect(note).to_contain_text("You can try again now")
    expect(row(page, "unisat")).to_be_enabled()
