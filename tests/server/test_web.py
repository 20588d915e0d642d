"""The page's files over HTTP: only they, with their kinds, packed, tagged, and under a policy."""

from __future__ import annotations

import gzip
import re

from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from server import web
from strategy.reasons import page_module
from tests.server.conftest import Service


async def fetch(service: Service, path: str, **headers: str) -> HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await AsyncHTTPClient().fetch(
        service.api.base_url + path, headers=named, raise_error=False, decompress_response=False
    )


async def test_the_page_has_a_policy_that_names_its_import_map_only(service: Service) -> None:
    answer = await fetch(service, "/")
    assert answer.code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    kept = re.sub(r"'sha256-[A-Za-z0-9+/]{43}='", "HASH", answer.headers["Content-Security-Policy"])
    assert kept.split("; ") == [
        "default-src 'none'",
        "script-src 'self' HASH",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.body.decode()
    assert not re.search(r"<style|style=| on[a-z]+=", text), "nothing inline"
    assert "://" not in text, "nothing is asked elsewhere"


async def test_a_file_is_packed_once_and_asked_for_by_its_tag(service: Service) -> None:
    plain = await fetch(service, "/web/js/app.js")
    packed = await fetch(service, "/web/js/app.js", Accept_Encoding="gzip")
    assert plain.code == packed.code == 200
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)
    assert plain.headers["Etag"] == packed.headers["Etag"]
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
    again = await fetch(service, "/web/js/app.js", If_None_Match=plain.headers["Etag"], Accept_Encoding="gzip")
    assert (again.code, again.body) == (304, b"")


async def test_every_file_has_its_kind(service: Service) -> None:
    for name in web.web_files():
        answer = await fetch(service, "/" if name == "index.html" else f"/web/{name}")
        assert answer.code == 200, name
        assert answer.headers["Content-Type"] != "application/octet-stream"
    codes = await fetch(service, "/web/js/texts/codes.js")
    assert codes.body.decode() == page_module() and '"kept": ["Kept", ' in page_module()
    icon = await fetch(service, "/favicon.ico")
    assert (icon.code, icon.headers["Content-Type"]) == (200, "image/svg+xml")
    font = await fetch(service, "/web/fonts/inter-latin.woff2", Accept_Encoding="gzip")
    assert "Content-Encoding" not in font.headers, "it is packed by itself"


async def test_nothing_else_is_there(service: Service) -> None:
    for path in (
        "/web/",
        "/web/index.html",
        "/web/__init__.py",
        "/web/js",
        "/web/js/",
        "/web/../setup.py",
        "/web/..%2fsetup.py",
        "/web/%2e%2e/setup.py",
        "/web/js/app.js%00",
        "/web/js/app.js/",
        "/web//js/app.js",
        "/web/%ff",
        "/web/js\\app.js",
    ):
        answer = await fetch(service, path)
        assert answer.code == 404, path
