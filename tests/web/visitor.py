"""A visitor: one person's browser on the dashboard, which keeps everything that must not happen there."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from embit import script
from embit.ec import PrivateKey
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    WebError,
    expect,
)

from tests.e2e.installation import Installation, Trader
from wallet.keystore.keys import sign_message

ROOT = Path(__file__).resolve().parents[2]
# Root may not use Chromium's sandbox; nothing but the installation's own pages is ever opened in it.
ARGUMENTS = (
    *("--no-sandbox", "--disable-component-update", "--disable-background-networking", "--no-first-run"),
    "--renderer-process-limit=1",  # a context's pages in one process: a second one costs a tenth of a visit
)
PATIENCE_MS = 120_000  # generous: how fast the dashboard is, is measured in bench/
DESKTOP, PHONE, NARROW = (1440, 900), (390, 844), (320, 640)

_TOKEN_KEY = "token"  # where web/js/api.js keeps a session's token
_WALLETS = Path(__file__).with_name("injected_wallets.js")
_REPORTS_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


class Person(Trader):
    """A trader with a Taproot address, whose key signs in wallets, too."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation)
        self.key = PrivateKey(secrets.token_bytes(32))
        self.address = str(script.p2tr(self.key.get_public_key()).address())

    @property
    def public_key(self) -> str:
        return str(self.key.get_public_key().sec().hex())

    @property
    def token(self) -> str:
        return str(self.session.headers["Authorization"]).removeprefix("Bearer ")

    @property
    def payment_address(self) -> str:
        """The wallet's address for coins, beside that for items."""
        return str(script.p2wpkh(self.key.get_public_key()).address())

    def signature(self, message: str, address: str = "") -> str:
        """Signs as a wallet does that was asked for BIP-322, for the Taproot address unless it is told the other."""
        return sign_message(self.key, "p2wpkh" if address == self.payment_address else "p2tr", message)

    def sign_in(self) -> Person:
        challenge = self.ok("POST", "/api/auth/challenge", {"address": self.address})
        proof = {"challengeId": challenge["challengeId"], "address": self.address}
        proof["signature"] = self.signature(challenge["message"])
        self.session.headers["Authorization"] = "Bearer " + self.ok("POST", "/api/auth/verify", proof)["token"]
        return self

    def leave(self) -> None:
        """Stops what still acts for them: each task would take calls and time from the tests that follow."""
        if self.call("GET", "/api/auth/me").status_code != 200:
            self.sign_in()
        for kind in ("tasks", "autolist"):
            for task in self.ok("GET", f"/api/{kind}"):
                self.call("DELETE", f"/api/{kind}/{task['id']}")


class Trouble(NamedTuple):
    """Something that must not happen: a message in the console, an exception, a blocked source, a foreign request."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Visitor:
    """A fresh browser context at one installation: its page, its person, its trouble."""

    def __init__(
        self, browser: Browser, service: Installation, size: tuple[int, int] = DESKTOP, locale: str = "en-GB"
    ) -> None:
        self.service = service
        self.origin = service.url
        self.requests: list[Request] = []
        self._trouble: list[Trouble] = []
        self._allowed: list[re.Pattern[str]] = []
        self._open: set[Request] = set()  # what has no answer yet
        self.has_failed = False  # a test, with this browser
        self.context: BrowserContext = browser.new_context(
            base_url=service.url,
            viewport={"width": size[0], "height": size[1]},
            locale=locale,
            timezone_id="UTC",
            color_scheme="dark",
            service_workers="block",
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.on("console", self._on_console)
        self.context.on("weberror", self._on_error)
        self.context.on("request", self._on_request)
        self.context.on("requestfinished", lambda request: self._open.discard(request))
        self.context.on("requestfailed", lambda request: self._open.discard(request))
        self.context.on("dialog", self._on_dialog)
        self.context.expose_function("reportViolation", lambda text: self._note("policy", text))
        self.context.add_init_script(_REPORTS_VIOLATIONS)
        self.page: Page = self.context.new_page()

    def allow(self, pattern: str) -> None:
        """Declares what this test brings about: trouble whose text matches does not fail it."""
        self._allowed.append(re.compile(pattern))

    @property
    def trouble(self) -> list[Trouble]:
        """All that happened and was not declared."""
        return [each for each in self._trouble if not any(allowed.search(str(each)) for allowed in self._allowed)]

    def check(self) -> None:
        """Raises AssertionError when anything happened that must not."""
        for page in self.context.pages:
            page.evaluate("1")  # what the page has reported before is here after this
        assert not self.trouble, "\n".join(map(str, self.trouble))

    def begin_again(self) -> None:
        """Forgets what a former test asked for, declared and brought about; the page stays as it is."""
        for page in self.context.pages:
            if page != self.page:
                page.close()
        self.page.unroute_all()
        self.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
        self.page.emulate_media(color_scheme="dark", reduced_motion="null")
        # At once: one that goes by itself just then would be waited for.
        self.page.evaluate("document.querySelectorAll('.toast > button.plain').forEach((end) => end.click())")
        self._trouble.clear()
        self._allowed.clear()
        # Of a task that was deleted at that test's end: its answer is no trouble of the next one.
        for request in self._open:
            self.allow(rf"status of 404 .*\({re.escape(request.url)}\)$")
        self.requests.clear()

    def open(self, route: str = "#/") -> Page:
        """Opens a route of the dashboard; returns the page."""
        self.page.goto(f"/{route}")
        return self.page

    def sign_out(self) -> None:
        """Ends the session of the page that is open, in it alone, and waits at a place where no test begins."""
        self.page.evaluate("import('/web/js/api.js').then(({ token }) => void (token.value = ''))")
        expect(self.page.locator("main.signin h1")).to_be_visible()
        self.page.evaluate("sessionStorage.clear(), localStorage.clear(), (location.hash = '#/more')")

    def give_token(self, person: Person, page: Page | None = None) -> None:
        """Lets a tab begin with a real session of `person`, as if they had signed in there; the page may be open."""
        if page is None and self.page.url != "about:blank":
            begin = "(token) => import('/web/js/api.js').then(({ beginSession }) => beginSession(token, false))"
            self.page.evaluate(begin, person.token)
            expect(self.page.get_by_role("heading", level=1, name="More")).to_be_visible()
            return
        # Once: the tab's name tells whether it was done, so that a sign-out lasts.
        once = f"""if (!window.name) {{
          window.name = "given";
          sessionStorage.setItem({json.dumps(_TOKEN_KEY)}, {json.dumps(person.token)});
        }}"""
        (page or self.page).add_init_script(once)

    def install(
        self,
        wallet: str,
        person: Person,
        *,
        refuses: bool = False,
        after_ms: int = 0,
        once_seen: str = "",
        holds_ms: int = 0,
        is_old: bool = False,
        signer: Person | None = None,
    ) -> None:
        """Gives the browser a wallet with `person`'s key, which really signs; not within a page that is open already.

        It gives a signature of another kind, like the real one, unless it is asked for BIP-322 in its own way; an old
        one (`is_old`) always does. It comes `after_ms`, counted from when the page shows what `once_seen` selects if
        that is given (`shownBefore` are then the texts of it), takes `holds_ms` to sign, and has the key of `signer`.
        """
        self.context.expose_function("personSigns", (signer or person).signature)
        given = {
            "wallet": wallet,
            "address": person.address,
            "paymentAddress": person.payment_address,
            "publicKey": person.public_key,
            "refuses": refuses,
            "afterMs": after_ms,
            "onceSeen": once_seen,
            "holdsMs": holds_ms,
            "isOld": is_old,
        }
        self.context.add_init_script(f"({_WALLETS.read_text()})({json.dumps(given)})")

    def screenshot(self, name: str) -> None:
        """Keeps a picture of the page where pictures are wanted."""
        if os.environ.get("BIDKEEPER_SCREENS"):
            picture(self.page, name)

    def _note(self, kind: str, text: str) -> None:
        self._trouble.append(Trouble(kind, text))

    def _on_console(self, message: ConsoleMessage) -> None:
        # A busy machine draws late, which does not count as trouble of the page.
        if message.type in ("error", "warning", "assert") and "preloaded using link preload" not in message.text:
            self._note("console", f"{message.text} ({message.location['url']})")

    def _on_error(self, error: WebError) -> None:
        self._note("exception", error.error.stack or str(error.error))

    def _on_request(self, request: Request) -> None:
        self.requests.append(request)
        self._open.add(request)
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self._note("foreign request", request.url)

    def _on_dialog(self, dialog: Dialog) -> None:
        self._note("dialog", f"{dialog.type} {dialog.message}")
        dialog.dismiss()


def type_into(field: Locator, text: str, *, leaves: bool = True) -> None:
    """Types a text key by key in place of what a field holds, and `leaves` the field after that, as people do."""
    field.focus()
    field.press("ControlOrMeta+a")
    field.press_sequentially(text) if text else field.press("Backspace")
    if leaves:
        field.blur()


@contextmanager
def visiting(
    browser: Browser, service: Installation, size: tuple[int, int] = DESKTOP, locale: str = "en-GB"
) -> Iterator[Visitor]:
    """Opens a fresh context, and closes it at the end."""
    made = Visitor(browser, service, size, locale)
    try:
        yield made
    finally:
        made.context.close()


class Stay:
    """One browser for several tests of a file: the page is loaded by the first, and they go from place to place in it.

    A load costs twenty times what going to another place does. After a test that failed there is a new one. What needs
    a page that was just loaded, ends the session or changes the browser for good is no test to stay for.
    """

    def __init__(self, browser: Browser, service: Installation, prepare: Callable[[Visitor], None] | None) -> None:
        self._make = lambda: Visitor(browser, service)
        self._prepare = prepare
        self._made: Visitor | None = None

    def visitor(self) -> Visitor:
        """Returns it for the next test."""
        if self._made is not None and self._made.has_failed:
            self.end()
        if self._made is None:
            self._made = self._make()
            if self._prepare is not None:
                self._prepare(self._made)
        else:
            if self._prepare is None:
                self._made.sign_out()
            self._made.begin_again()
        return self._made

    def end(self) -> None:
        if self._made is not None:
            self._made.context.close()
            self._made = None


@contextmanager
def staying(
    browser: Browser, service: Installation, prepare: Callable[[Visitor], None] | None = None
) -> Iterator[Stay]:
    """Opens a browser that several tests use; `prepare` gives each one that is made its token or its wallet.

    Without it each test finds a page in which nobody is signed in, and gives it the token of a person of its own.
    """
    made = Stay(browser, service, prepare)
    try:
        yield made
    finally:
        made.end()


def pictures() -> Path:
    """Returns the directory of the artefacts."""
    return Path(os.environ.get("BIDKEEPER_SCREENS") or ROOT / "build" / "screens")


def picture(page: Page, name: str) -> Path:
    """Writes a picture of the whole page, named by `name`; returns its file."""
    file = pictures() / f"{re.sub(r'[^a-z0-9.-]+', '-', name.lower()).strip('-')}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file, full_page=True)
    return file
