"""The treatment of requests by nginx, before and after the servers, seen by stand-ins for these."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.conftest import need
from tests.deploy.front import DEPLOY, Front, StandIn, configure, front, nginx, put, stand_in
from tests.e2e.installation import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Front, StandIn, StandIn]]:
    with stand_in() as first, stand_in() as second, front((first.port, second.port)) as made:
        yield made, first, second


@pytest.fixture
def nginx_and_servers(running: tuple[Front, StandIn, StandIn]) -> tuple[Front, StandIn, StandIn]:
    for server in running[1:]:
        server.seen.clear()
        server.behave = None
    return running


def seen(servers: tuple[StandIn, StandIn]) -> list[str]:
    return [f"{request.method} {request.path}" for server in servers for request in server.seen]


def test_the_shipped_file_is_right_as_it_is() -> None:
    # Where nobody but root may write its pid and logs, only that is wrong.
    checked = subprocess.run([nginx(), "-t", "-c", DEPLOY / "nginx.conf"], capture_output=True, text=True, check=False)
    assert "syntax is ok" in checked.stderr or "Permission denied" in checked.stderr, checked.stderr


def test_what_a_client_says_of_itself_is_not_passed_on(nginx_and_servers: tuple[Front, StandIn, StandIn]) -> None:
    made, *servers = nginx_and_servers
    told = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Real-IP": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
        "X-Forwarded-Proto": "https",
    }
    made.call("GET", "/api/tasks", client="127.0.0.31", **told)
    (request,) = [request for server in servers for request in server.seen]
    assert request.headers["X-Forwarded-For"] == request.headers["X-Real-IP"] == "127.0.0.31"
    assert request.headers["X-Forwarded-Proto"] == "http"
    assert "Forwarded" not in request.headers


BODY = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"0\r\n\r\n" + BODY
CONFLICTS = {
    "length and encoding": (b"Content-Length: %d\r\nTransfer-Encoding: chunked" % len(CHUNKED), CHUNKED),
    "encoding and length": (b"Transfer-Encoding: chunked\r\nContent-Length: %d" % len(CHUNKED), CHUNKED),
    "two lengths": (b"Content-Length: 0\r\nContent-Length: %d" % len(BODY), BODY),
    "a list of lengths": (b"Content-Length: 0, %d" % len(BODY), BODY),
    "a signed length": (b"Content-Length: +%d" % len(BODY), BODY),
    "a length in hex": (b"Content-Length: 0x10", BODY),
    "two encodings": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", CHUNKED),
    "an unknown encoding": (b"Transfer-Encoding: xchunked", CHUNKED),
    "a list of encodings": (b"Transfer-Encoding: gzip, chunked", CHUNKED),
    "a space before the colon": (b"Transfer-Encoding : chunked", CHUNKED),
    "a folded header": (b"X-Folded: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 3", CHUNKED),
    "a bad chunk size": (b"Transfer-Encoding: chunked", b"-1\r\n\r\n" + BODY),
    "a NUL in a header": (b"X-Nul: a\0b\r\nContent-Length: 0", BODY),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_bad_framing_is_refused_once_and_reaches_nobody(
    nginx_and_servers: tuple[Front, StandIn, StandIn], name: str
) -> None:
    made, *servers = nginx_and_servers
    framing, body = CONFLICTS[name]
    answer = made.raw(b"POST /api/tasks HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n" + body)
    assert answer.count(b"HTTP/1.1 ") == 1, answer
    assert answer.split(None, 2)[1] in (b"400", b"501"), answer
    assert b"Connection: close" in answer
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}
    assert seen((servers[0], servers[1])) == []


def test_a_chunked_body_arrives_with_one_length(nginx_and_servers: tuple[Front, StandIn, StandIn]) -> None:
    made, *servers = nginx_and_servers
    body = b'7\r\n{"a": 1\r\n1\r\n}\r\n0\r\n\r\n'
    made.raw(b"POST /api/tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + body)
    (request,) = [request for server in servers for request in server.seen]
    assert request.body == b'{"a": 1}'
    assert "Transfer-Encoding" not in request.headers


def drop(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)])
def test_only_what_may_be_done_twice_is_sent_again(
    nginx_and_servers: tuple[Front, StandIn, StandIn], method: str, times: int
) -> None:
    made, first, second = nginx_and_servers
    first.behave = second.behave = drop
    answer = made.call(method, "/api/tasks", b"{}" if method != "GET" else None)
    assert (answer.status, json.loads(answer.body)) == (502, {"error": "The service does not answer"})
    assert answer.headers["retry-after"] == "1"
    assert len(first.seen) + len(second.seen) == times


def test_events_are_passed_on_as_they_come(nginx_and_servers: tuple[Front, StandIn, StandIn]) -> None:
    made, first, second = nginx_and_servers
    received = threading.Event()
    in_time = []

    def stream(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"data: 1\n\n")
        handler.wfile.flush()
        in_time.append(received.wait(30))

    first.behave = second.behave = stream
    connection = made.connection()
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.readline() == b"data: 1\n"
    received.set()
    answer.read()
    connection.close()
    assert in_time == [True]


def test_a_page_with_a_policy_of_its_own_keeps_it(nginx_and_servers: tuple[Front, StandIn, StandIn]) -> None:
    made, first, second = nginx_and_servers

    def with_policy(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Security-Policy", "default-src 'none'")
        handler.send_header("X-Content-Type-Options", "nosniff")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    first.behave = second.behave = with_policy
    answer = made.raw(b"GET /docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").lower()
    assert answer.count(b"content-security-policy:") == 1
    assert b"default-src 'none'" in answer
    assert answer.count(b"x-content-type-options:") == 1


def test_no_version_is_told_and_no_query_logged(nginx_and_servers: tuple[Front, StandIn, StandIn]) -> None:
    made = nginx_and_servers[0]
    assert made.call("GET", "/metrics?secret=tell-nobody").headers["server"] == "nginx"
    assert made.call("GET", "/api/last-one?secret=tell-nobody").headers["server"] == "nginx"
    log = made.directory / "access.log"
    until(lambda: "/api/last-one" in log.read_text(), "the line in the log")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (lines[-1]["path"], lines[-2]["path"]) == ("/api/last-one", "/metrics")
    assert "tell-nobody" not in log.read_text()


def test_the_tls_part_is_right_once_it_is_taken_in(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    need("openssl", openssl)
    certificate, key = tmp_path / "fullchain.pem", tmp_path / "privkey.pem"
    made = [str(openssl), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", "/CN=bidkeeper.example", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *subject], check=True, capture_output=True)

    def with_tls(text: str) -> str:
        before, _, rest = text.partition("    server {\n        listen 127.0.0.1:8080")
        _, _, after = rest.partition("    }\n")
        shipped = "/etc/letsencrypt/live/bidkeeper.example"
        return put(before + after, **{"#|": "", shipped: str(tmp_path), "listen [::]:": "# [::]:"})

    file, _ = configure(tmp_path, (1, 2), with_tls)
    checked = subprocess.run([nginx(), "-t", "-c", file, "-p", tmp_path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
