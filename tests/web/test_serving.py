"""The page's files as they are sent, straight from a server process and through nginx as it is shipped."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import requests
from playwright.sync_api import Browser, expect
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPHeaderDict

from server.web import policy, web_files
from tests.deploy.front import front
from tests.e2e.installation import Installation
from tests.web.looks import settled
from tests.web.visitor import Person, Visitor

POLICY = (
    r"default-src 'none'; script-src 'self' 'sha256-[A-Za-z0-9+/]{43}='; style-src 'self'; img-src 'self' blob: data:; "
    r"font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    r"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
MODULE = "/web/js/app.js"
NOT_THERE = (
    "/web/",
    "/web/index.html",
    "/web/__init__.py",
    "/web/js",
    "/web/..%2fsetup.py",
    "/web/%2e%2e/%2e%2e/etc/passwd",
    "/web/js/app.js%00",
    "/web/js/app.js%00.css",
    "/web/js/app.js/",
    "/web/%ff",
    "/web/js%5capp.js",
    "/web/" + "a" * 1000,
)


@pytest.fixture(scope="module", params=["server", "nginx"])
def url(request: pytest.FixtureRequest, service: Installation) -> Iterator[str]:
    """The address of the page, at one of its two doors."""
    if request.param == "server":
        yield service.url
        return
    # Only the first of its two servers is there: an absent one refuses, and the other is asked.
    with front((service.port, service.port + 1)) as before:
        yield before.url


class Sent(NamedTuple):
    """An answer as it came: nothing of it unpacked, and each header as often as it was sent."""

    status_code: int
    headers: CaseInsensitiveDict[str]
    lists: HTTPHeaderDict
    body: bytes


def ask(url: str, path: str, method: str = "GET", **headers: str) -> Sent:
    named = {name.replace("_", "-"): value for name, value in headers.items()} | {"Accept-Encoding": "identity"}
    named["Accept-Encoding"] = headers.get("Accept_Encoding", "identity")
    with requests.request(method, url + path, headers=named, timeout=60, stream=True) as answer:
        body = answer.raw.read(decode_content=False)
        return Sent(answer.status_code, answer.headers, answer.raw.headers, body)


def test_the_page_has_its_exact_policy_once(url: str) -> None:
    answer = ask(url, "/")
    assert answer.status_code == 200
    policies = answer.lists.getlist("Content-Security-Policy")
    assert policies == [policy()]
    assert re.fullmatch(POLICY, policies[0])
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert set(answer.lists.getlist("Referrer-Policy")) == {"no-referrer"}
    assert set(answer.lists.getlist("X-Frame-Options")) == {"DENY"}
    assert set(answer.lists.getlist("X-Content-Type-Options")) == {"nosniff"}


def test_every_file_comes_as_it_stands(url: str) -> None:
    for name, file in web_files().items():
        answer = ask(url, "/" if name == "index.html" else f"/web/{name}", Accept_Encoding="gzip")
        assert answer.status_code == 200, name
        assert answer.headers["Content-Type"] == file.kind
        sent = answer.body
        assert (gzip.decompress(sent) if answer.headers.get("Content-Encoding") == "gzip" else sent) == file.body, name
        assert file.packed is None or len(sent) <= len(file.packed)


def test_a_file_is_kept_for_long_only_under_the_stamp_of_all_files(url: str) -> None:
    page = ask(url, "/").body.decode()
    stamp = re.findall(r'"/web/-([0-9a-f]{16})/js/app.js"', page)[0]
    assert not re.findall(r'(?:src|href)="/web/(?!-|fonts/|icon)[^"]*[.](?:js|mjs|css)"', page)
    for name in ("js/app.js", "js/texts/codes.js", "app.css", "vendor/preact.mjs"):
        plain, kept, former = (ask(url, f"/web/{part}{name}") for part in ("", f"-{stamp}/", f"-{'0' * 16}/"))
        assert plain.body == kept.body == former.body, name
        assert kept.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert plain.headers["Cache-Control"] == former.headers["Cache-Control"] == "no-cache"
    assert ask(url, f"/web/-{stamp}/index.html").status_code == 404
    assert ask(url, f"/web/-{stamp}/-{stamp}/js/app.js").status_code == 404


def test_a_known_page_is_loaded_again_with_few_requests(visitor: Visitor, person: Person) -> None:
    visitor.give_token(person)
    page = visitor.open()
    settled(page)
    page.reload()
    settled(page)
    sent = page.evaluate("""performance.getEntriesByType('resource')
      .filter((each) => /[.]m?js$/.test(each.name) && each.transferSize > 0).map((each) => each.name)""")
    assert sent == []


def test_a_file_that_the_browser_has_is_not_sent_again(url: str) -> None:
    plain, packed = ask(url, MODULE), ask(url, MODULE, Accept_Encoding="gzip")
    assert "Content-Encoding" not in plain.headers and packed.headers["Content-Encoding"] == "gzip"
    assert plain.headers["ETag"] == packed.headers["ETag"]
    assert "accept-encoding" in packed.headers["Vary"].lower()
    assert "no-cache" in plain.headers["Cache-Control"]
    for coding in ("identity", "gzip"):
        again = ask(url, MODULE, If_None_Match=plain.headers["ETag"], Accept_Encoding=coding)
        assert (again.status_code, again.body) == (304, b"")
    other = ask(url, MODULE, If_None_Match='"another"')
    assert other.status_code == 200


def test_head_tells_without_a_body(url: str) -> None:
    full, head = ask(url, MODULE), ask(url, MODULE, "HEAD")
    assert (head.status_code, head.body) == (200, b"")
    assert head.headers["ETag"] == full.headers["ETag"]
    assert head.headers["Content-Length"] == full.headers["Content-Length"] == str(len(full.body))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_file_cannot_be_written(method: str, url: str) -> None:
    assert ask(url, MODULE, method).status_code == 405


@pytest.mark.parametrize("path", NOT_THERE)
def test_nothing_else_is_there(path: str, url: str) -> None:
    answer = ask(url, path)
    # nginx refuses by itself what can be no path.
    assert answer.status_code == 404 or ("nginx" in answer.headers["Server"] and answer.status_code == 400)
    assert b"root:" not in answer.body


def test_the_page_works_behind_nginx(browser: Browser, service: Installation, visitor: Visitor, person: Person) -> None:
    with front((service.port, service.port + 1)) as before:
        visitor.origin = before.url
        visitor.give_token(person)
        visitor.page.goto(f"{before.url}/#/more")
        expect(visitor.page.locator(".side .connection")).to_have_text("Live")
        person.ok("PUT", "/api/control", {"scope": "user", "state": "reduce"})
        expect(visitor.page.get_by_role("radio", name="Reduce")).to_be_checked()
        visitor.check()
        visitor.page.close()  # before its server goes
