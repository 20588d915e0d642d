"""Plain HTTP: methods, headers, sizes, framing, representations, and the page's files."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from core.version import VERSION, running
from server import web
from server.urls import ROUTES
from strategy.reasons import page_module
from tests.server.matrix import operations
from tests.worlds.service import Answer, Service

PATHS = sorted({path for path, handler in ROUTES if handler.is_of_interface})
# Less than the 15 s after which the server drops a connection whose body does not come: that proves nothing here.
PATIENCE_S = 10.0
TYPES = {"/docs": "text/html; charset=utf-8", "/metrics": "text/plain; version=0.0.4; charset=utf-8"}


def filled(path: str) -> str:
    return (
        path.replace("([0-9]+)", "1")
        .replace("([1-9][0-9]*)", "1")
        .replace("([^/]+)", "x")
        .replace("([A-Za-z0-9]+)", "x")
    )


async def answer_to(service: Service, request: bytes, *, rest: bytes = b"") -> tuple[str, Any]:
    """Head and JSON of the first answer to `request`; `rest` is sent while it may be on its way."""
    where = urlsplit(service.api.base_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(request)
        await writer.drain()
        writer.write(rest)
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode()
        length = int(head.split("Content-Length: ")[1].split("\r")[0])
        return head, json.loads(await asyncio.wait_for(reader.readexactly(length), PATIENCE_S))
    finally:
        writer.close()


async def raw(service: Service, request: bytes) -> bytes:
    """Returns everything the server says to `request` until it closes the connection."""
    where = urlsplit(service.api.base_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()


def test_each_path_matches_one_pattern_so_their_order_does_not_matter() -> None:
    patterns = [path for path, _ in ROUTES]
    for path in map(filled, patterns):
        assert sum(re.fullmatch(pattern, path) is not None for pattern in patterns) == 1, path


@pytest.mark.slow
async def test_other_methods_are_405_and_name_those_there_are(service: Service) -> None:
    there = operations()
    for path in PATHS:
        allowed = {method for method, known in there if known == path}
        allowed |= {"HEAD"} if "GET" in allowed else set()
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO"} - allowed:
            for token in ("", service.token):
                answer = await service.api(method, filled(path), token=token)
                assert answer.status == 405, (method, path)
                assert set(answer.headers["Allow"].split(", ")) == allowed
                assert method == "HEAD" or answer.json == {"error": "Method Not Allowed"}


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/tasks/",
        "/api/tasks//1",
        "/api/tasks/abc",
        "/api/tasks/-1",
        "/api/tasks/1.0",
        "/api/tasks/%31",
        "/api/tasks/1%00",
        "/api/tasks/%00",
        "/api/tasks/%FF",
        "/api/tasks/%ED%A0%80",
        "/api/tasks/%D9%A1",
        "/api/tasks/9223372036854775807",
        "/api/tasks/9223372036854775808",
        "/api/tasks/99999999999999999999999999",
        "/api/tasks/" + "9" * 5000,
        "/api/tasks/0",
        "/api/tasks/1/start/x",
        "/api/tasks/1/../../healthz",
        "/api/autolist/9223372036854775808",
        "/api/autolist/item/",
        "/%00",
        "/%",
        "/%zz",
        "//api/tasks",
        "/API/tasks",
    ],
)
async def test_unknown_and_hostile_paths_are_404_in_json(service: Service, path: str) -> None:
    for method in ("GET", "DELETE") if path.startswith("/api/tasks/9") else ("GET",):
        answer = await service.ask(method, path)
        assert (answer.status, answer.json) == (404, {"error": "Not found"}), path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_every_answer_says_nosniff_and_those_of_the_api_no_store(service: Service) -> None:
    for path in ["/healthz", "/readyz", "/nothing", "/api/nothing", *map(filled, PATHS)]:
        answer = await service.api("GET", path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        kept = {"/docs": "no-cache", "/api/openapi.json": "no-cache"}.get(path)
        assert answer.headers.get("Cache-Control") == (kept or ("no-store" if path.startswith("/api") else None)), path
        assert answer.headers["Content-Type"] == TYPES.get(path, "application/json")
        assert "Set-Cookie" not in answer.headers and "Access-Control-Allow-Origin" not in answer.headers


async def test_a_body_of_64_kib_is_read_and_one_byte_more_is_413(service: Service) -> None:
    fits = b'{"slug":"a","hardcapSats":1}'.ljust(64 * 1024)

    exact = await service.ask("POST", "/api/tasks", fits)
    more = await service.ask("POST", "/api/tasks", fits + b" ")
    far_more = await service.api("POST", "/api/auth/verify", b" " * 5_000_000)
    unknown_route = await service.api("POST", "/nothing", fits + b" ")

    assert exact.status == 201
    for answer in (more, far_more, unknown_route):
        assert (answer.status, answer.json["error"]) == (413, "Request body too large")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(service: Service) -> None:
    head = b"POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    where = urlsplit(service.api.base_url)
    for length in (64 * 1024 + 1, 10**9, 10**18, int("9" * 4000)):
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(head % length)
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert line.startswith(b"HTTP/1.1 413 "), line
        writer.close()


async def test_chunked_bodies_are_taken_and_counted(service: Service) -> None:
    head = b"POST /api/auth/challenge HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    small = await answer_to(service, head + b"2\r\n{}\r\n0\r\n\r\n")
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    many = await answer_to(service, head + chunk * 16, rest=chunk * 4 + b"0\r\n\r\n")
    one = await answer_to(service, head + b"%x\r\n" % (1 << 40) + b" " * 70_000)

    assert small[1] == {
        "error": "Invalid Bitcoin address format",
        "details": ["address: is required"],
    }
    for said, body in (many, one):
        assert said.startswith("HTTP/1.1 413 "), said
        assert "nosniff" in said
        assert body["error"] == "Request body too large"


async def test_a_chunked_body_that_is_too_large_is_read_to_its_end_before_the_connection_closes(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /api/auth/challenge HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    # The server hands on what it has while it waits for the rest of a chunk, and refuses at that moment.
    for sizes in ([70_000, 3_000_000], [40_000, 40_000, 10]):
        where = urlsplit(service.api.base_url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(head)
        for size in sizes:
            writer.write(b"%x\r\n" % size + b" " * (size - 10))
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(b" " * 10 + b"\r\n")
        writer.write(b"0\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()

        assert said.startswith(b"HTTP/1.1 413 ") and said.count(b"HTTP/1.1") == 1, said
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


SMUGGLED = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
FRAMINGS = [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: gzip, chunked\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: identity\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: xchunked\r\n\r\n" + SMUGGLED,
    b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + SMUGGLED,
    b"Content-Length: -1\r\n\r\n" + SMUGGLED,
    b"Content-Length: +5\r\n\r\n" + SMUGGLED,
    b"Content-Length: 0x5\r\n\r\n" + SMUGGLED,
    b"Content-Length: 5 5\r\n\r\n" + SMUGGLED,
    b"Content-Length: 5,6\r\n\r\n" + SMUGGLED,
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + SMUGGLED,
    b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n" + SMUGGLED,
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX" + SMUGGLED,
    b"Transfer-Encoding : chunked\r\n\r\n" + SMUGGLED,
    b"X: a\x00b\r\nContent-Length: 5\r\n\r\n" + SMUGGLED,
]


async def test_badly_framed_requests_get_one_400_and_smuggle_nothing(service: Service) -> None:
    answers = await asyncio.gather(
        *(raw(service, b"POST /api/tasks HTTP/1.1\r\nHost: x\r\n" + framing) for framing in FRAMINGS)
    )
    for framing, answer in zip(FRAMINGS, answers, strict=True):
        assert answer.startswith(b"HTTP/1.1 400 "), (framing, answer)
        assert answer.count(b"HTTP/1.1") == 1, (framing, answer)


async def test_multipart_is_refused_and_other_types_are_read_as_json(service: Service) -> None:
    body = b'{"slug": "a", "hardcapSats": 1}'
    multipart = {"Content-Type": "Multipart/Form-Data; boundary=x", "Authorization": f"Bearer {service.token}"}

    refused = await service.api("POST", "/api/tasks", body, headers=multipart)
    as_form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Bearer {service.token}"}
    form = await service.api("POST", "/api/tasks", b"slug=a&hardcapSats=1", headers=as_form)
    taken = await service.api("POST", "/api/tasks", body, headers=as_form)

    assert (refused.status, form.status, taken.status) == (415, 400, 201)


async def test_the_log_has_one_line_a_request_without_query_or_secrets(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="server.access")

    await service.api("GET", "/api/tasks/floor?slug=a%0d%0aFORGED&token=topsecret", token=service.token)
    await service.api("GET", "/api/%0d%0aFORGED")

    lines = [record.getMessage() for record in caplog.records if record.name == "server.access"]
    assert [line.rsplit(" ", 1)[0] for line in lines] == ["GET /api/tasks/floor 400", "GET /api/%0d%0aFORGED 404"]
    assert service.token not in caplog.text and "topsecret" not in caplog.text


async def test_a_fault_of_ours_is_a_plain_500(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("server.tasks.bidding_task_list", broken)

    answer = await service.api("GET", "/api/tasks?tag=topsecret", token=service.token)

    assert (answer.status, answer.json) == (500, {"error": "Internal Server Error"})
    assert answer.headers["Cache-Control"] == "no-store"
    assert "secret detail" in caplog.text and "topsecret" not in caplog.text


async def test_a_client_that_goes_away_leaves_nothing_behind(service: Service) -> None:
    where = urlsplit(service.api.base_url)
    _, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(b"POST /api/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    assert (await service.api("GET", "/healthz")).status == 200
    async with asyncio.timeout(PATIENCE_S):
        while service.app.settings["services"].in_flight:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /api/tasks?slug=" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /api/tasks HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n", 431),
    ],
)
async def test_a_head_that_is_too_large_is_answered(service: Service, head: bytes, status: int) -> None:
    answer, body = await answer_to(service, head)
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "nosniff" in answer
    assert body["error"] in ("Path too long", "Headers too large")


READS = sorted(path for method, path in operations() if method == "GET")
TAGGED = ["/docs", "/api/openapi.json", "/api/tasks", "/api/autolist"]


def shown(answer: Answer) -> dict[str, str]:
    """Returns the headers that describe the body."""
    return {name: answer.headers[name] for name in answer.headers if name not in ("Date", "Server")}


@pytest.mark.parametrize("path", READS)
async def test_head_is_get_without_its_body(service: Service, path: str) -> None:
    await service.new_task()
    for token in (service.token, ""):
        got = await service.api("GET", filled(path), token=token)
        head = await service.api("HEAD", filled(path), token=token)
        assert (head.status, head.text) == (got.status, "")
        if path not in ("/metrics", "/readyz"):  # these say another thing each time
            assert shown(head) == shown(got)


async def test_head_of_what_is_no_read_is_refused(service: Service) -> None:
    answer = await service.api("HEAD", "/api/auth/verify")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert (await service.api("HEAD", "/nothing")).status == 404


@pytest.mark.parametrize("path", TAGGED)
async def test_what_has_not_changed_is_not_sent_again(service: Service, path: str) -> None:
    first = await service.api("GET", path, token=service.token)
    tag = first.headers["Etag"]
    assert tag.startswith('W/"') and first.text
    again = await service.api("GET", path, token=service.token, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status, again.text, again.headers["Etag"]) == (304, "", tag)
    assert (await service.api("GET", path, token=service.token, headers={"If-None-Match": '"other"'})).status == 200


async def test_a_list_that_has_changed_has_another_tag_and_a_stranger_sees_none(service: Service) -> None:
    before = (await service.api("GET", "/api/tasks", token=service.token)).headers["Etag"]
    await service.new_task()
    after = await service.api("GET", "/api/tasks", token=service.token, headers={"If-None-Match": before})
    assert after.status == 200 and after.headers["Etag"] != before
    stranger = await service.api("GET", "/api/tasks", headers={"If-None-Match": after.headers["Etag"]})
    assert stranger.status == 401 and "Etag" not in stranger.headers


async def test_a_write_is_not_tagged(service: Service) -> None:
    answer = await service.api("POST", "/api/tasks", {"slug": "a", "hardcapSats": 1}, token=service.token)
    assert answer.status == 201 and "Etag" not in answer.headers


async def test_large_texts_are_packed_for_who_takes_gzip(service: Service) -> None:
    async def asked(path: str, accepted: str) -> tuple[str | None, bytes]:
        request = {"Accept-Encoding": accepted, "Authorization": f"Bearer {service.token}"}
        reply = await service.api.raw(path, request)
        return reply.headers.get("Content-Encoding"), reply.body

    for slug in range(8):
        await service.new_task(slug=f"slug-{slug}")
    for path in ("/api/openapi.json", "/docs", "/api/tasks"):
        (encoding, packed), (none, plain) = await asked(path, "gzip"), await asked(path, "identity")
        assert (encoding, none) == ("gzip", None)
        assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 3
    alive = {"status": "ok", "version": VERSION, "commit": running().commit or None}
    encoding, sent = await asked("/healthz", "gzip")
    assert encoding is None and json.loads(sent) == alive


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
        "manifest-src 'self'",
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
