"""The treatment of requests by nginx, before and after the servers, seen by stand-ins for these."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.certificates import made_for
from tests.deploy.front import (
    DEPLOY,
    Front,
    StandIn,
    by_the_guide,
    configure,
    for_this_nginx,
    front,
    nginx,
    on_free_ports,
    put,
    stand_in,
)
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


def behind_a_proxy(text: str) -> str:
    """The configuration with a proxy on this machine that names each request's client in X-Client."""
    return put(text, **{"http {": "http {\nset_real_ip_from 127.0.0.1;\nreal_ip_header X-Client;\n"})


def let_in(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture(scope="module")
def counting() -> Iterator[Front]:
    """A front whose clients may have any address, and say so in X-Client."""
    with stand_in() as first, stand_in() as second, front((first.port, second.port), behind_a_proxy) as made:
        first.behave = second.behave = let_in
        yield made


def passed(made: Front, calls: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """How many of the calls, each (client, Authorization), were let through, and the seconds that they took."""
    count, began = 0, time.monotonic()
    with contextlib.closing(made.connection()) as connection:
        for client, authorization in calls:
            connection.request("GET", "/api/tasks", headers={"X-Client": client, "Authorization": authorization})
            answer = connection.getresponse()
            answer.read()
            count += answer.status == 200
    return count, math.ceil(time.monotonic() - began)


def test_a_token_is_the_same_however_it_is_spelled_and_wherever_it_comes_from(counting: Front) -> None:
    token = "A" * 42 + "-"
    words = ("bearer", "Bearer", "BEARER", "bEaReR", "beareR")
    spelled = [f"{words[number % 5]}{' ' * (1 + number // 5)}{token}" for number in range(600)]
    count, seconds = passed(counting, [(f"198.51.100.{at % 10}", text) for at, text in enumerate(spelled)])
    assert 101 <= count <= 101 + 50 * seconds
    assert passed(counting, [("198.51.100.1", f"Bearer {token.lower()}")])[0] == 1


def test_an_address_with_a_fresh_token_in_each_call_has_a_limit(counting: Front) -> None:
    count, seconds = passed(counting, [("198.51.100.40", f"Bearer {number:043}") for number in range(1200)])
    assert 201 <= count <= 201 + 100 * seconds
    assert passed(counting, [("198.51.100.41", f"Bearer {'b' * 43}")])[0] == 1


NO_TOKENS = ("", "Bearer", "Basic {:043}", "Bearer\t{:043}", "Bearer {:0150}", "Bearer {:043}.")


@pytest.mark.parametrize("place", range(len(NO_TOKENS)))
def test_no_token_counts_for_its_address(counting: Front, place: int) -> None:
    calls = [(f"198.51.100.{60 + place}", NO_TOKENS[place].format(number)) for number in range(400)]
    count, seconds = passed(counting, calls)
    assert 101 <= count <= 101 + 50 * seconds


def test_an_ipv6_client_has_one_budget_for_its_network(counting: Front) -> None:
    """Two networks; their bytes of 10 are line ends to a pattern."""
    count, seconds = passed(counting, [(f"2001:db8:a0a:a0{at % 2}:{at:x}::a0a", "") for at in range(600)])
    assert 2 * 101 <= count <= 2 * (101 + 50 * seconds)


def test_ipv4_clients_at_an_ipv6_socket_are_told_apart(counting: Front) -> None:
    assert passed(counting, [(f"::ffff:198.51.101.{at}", "") for at in range(250)])[0] == 250


def test_sign_in_has_one_budget_for_an_ipv6_network(counting: Front) -> None:
    clients = [{"X-Client": f"2001:db8:b:c::{at:x}"} for at in range(60)]
    assert 429 in {answer.status for answer in counting.at_once("POST", "/api/auth/verify", b"{}", clients)}


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


def test_an_address_has_no_more_than_fifty_streams_open_and_another_gets_one(
    nginx_and_servers: tuple[Front, StandIn, StandIn],
) -> None:
    made, first, second = nginx_and_servers
    is_over = threading.Event()

    def stream(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: 1\n\n")
        handler.close_connection = True
        is_over.wait(60)

    first.behave = second.behave = stream

    def opened(stack: contextlib.ExitStack, client: str) -> HTTPResponse:
        connection = stack.enter_context(contextlib.closing(made.connection(client)))
        connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {len(answers):043}"})
        return connection.getresponse()

    answers = list[HTTPResponse]()
    with contextlib.ExitStack() as stack:
        stack.callback(is_over.set)
        for _ in range(51):
            answers.append(opened(stack, "127.0.0.2"))
        assert [answer.status for answer in answers] == [200] * 50 + [429]
        assert (answers[50].headers["Retry-After"], json.load(answers[50])) == ("1", {"error": "Too many requests"})
        assert opened(stack, "127.0.0.3").status == 200


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
    made = made_for("bidkeeper.example", tmp_path)
    for name in ("privkey.pem", "fullchain.pem"):
        shutil.copy(made, tmp_path / name)

    def with_tls(text: str) -> str:
        before, _, rest = text.partition("    server {\n        listen 127.0.0.1:8080")
        _, _, after = rest.partition("    }\n")
        shipped = "/etc/letsencrypt/live/bidkeeper.example"
        # Only root's nginx may change its user.
        text = put(for_this_nginx(before + after), **{"#|": "", shipped: str(tmp_path), "user www-data;": ""})
        return on_free_ports(text)

    file, _ = configure(tmp_path, (1, 2), with_tls)
    checked = subprocess.run([nginx(), "-t", "-c", file, "-p", tmp_path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "[warn]" not in checked.stderr
    assert "http2" in file.read_text()


@pytest.mark.parametrize("name", ["nginx.conf", "compose/nginx.conf"])
def test_http2_is_switched_on_as_nginx_of_today_wants_it(name: str) -> None:
    """From 1.25.1 on it warns of `listen ... http2`, and before that it does not know `http2 on`."""
    shipped = (DEPLOY / name).read_text()
    assert len(re.findall(r"^(?:#\|)? +http2 on;$", shipped, re.M)) == 1
    assert not re.search(r"listen .*http2", shipped)


def test_a_configuration_of_debian_12_is_that_of_13_after_the_guides_line() -> None:
    shipped = (DEPLOY / "nginx.conf").read_text().replace("#|", "")
    old = by_the_guide(shipped, "an old nginx")
    assert old.count("ssl http2 default_server;") == 2 and "http2 on" not in old
    assert sorted(by_the_guide(old, "Debian 13").split("\n")) == sorted(shipped.split("\n"))
