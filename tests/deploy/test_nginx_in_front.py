"""nginx in front of the whole service with two server processes."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest

from tests.databases import rows
from tests.deploy.front import Answer, Front, front
from tests.e2e.installation import Installation, Trader, installation, until

pytestmark = pytest.mark.slow


@dataclass
class Service:
    installation: Installation
    front: Front


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with installation(BIDKEEPER_SERVER_PROCESSES="2") as made, front((made.port, made.port + 1)) as before:
        until(lambda: servers(made), "both servers")
        yield Service(made, before)


def servers(made: Installation) -> list[int] | None:
    """Returns the pids of both servers, once both listen."""
    found = [made.processes(f"cli.main server --index {index}") for index in (0, 1)]
    log = [made.data_dir / "logs" / f"server-{index}.log" for index in (0, 1)]
    if all(len(pids) == 1 for pids in found) and all(file.exists() and "listening" in file.read_text() for file in log):
        return [pids[0] for pids in found]
    return None


def through(service: Service) -> Trader:
    """Returns a trader who knows only nginx."""
    trader = Trader(service.installation)
    trader.base_url = service.front.url
    return trader


def assert_headers(answer: Answer) -> None:
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["server"] == "nginx"
    assert "strict-transport-security" not in answer.headers


def test_a_trader_works_through_nginx(service: Service) -> None:
    service.installation.put_collection("front-demo", [1_000_000, 1_100_000])
    trader = through(service).sign_in()
    task = trader.task(slug="front-demo", bidCount=2, hardcapSats=900_000, loopSeconds=5)
    assert trader.start(task)["isRunning"]
    until(lambda: len(trader.bids(task)) == 2, "both bids")
    until(lambda: trader.stop(task)["openBids"] == 0, "the end of its bids")
    assert trader.ok("DELETE", f"/api/tasks/{task}")["success"]


@pytest.mark.parametrize(
    ("path", "client", "other"),
    [("/api/auth/challenge", "127.0.0.21", "127.0.0.22"), ("/api/auth/verify", "127.0.0.23", "127.0.0.24")],
)
def test_a_burst_of_sign_ins_is_stopped_for_that_client_only(
    service: Service, path: str, client: str, other: str
) -> None:
    answers = service.front.at_once("POST", path, b"{}", [{}] * 60, client)
    assert {answer.status for answer in answers} == {400, 429}
    refused = next(answer for answer in answers if answer.status == 429)
    assert json.loads(refused.body) == {"error": "Too many requests"}
    assert (refused.headers["content-type"], refused.headers["retry-after"]) == ("application/json", "1")
    assert_headers(refused)
    assert service.front.call("POST", path, b"{}", client=other).status == 400
    until(lambda: service.front.call("POST", path, b"{}", client=client).status == 400, "let in again")


def test_a_token_that_calls_too_often_waits_and_no_other(service: Service) -> None:
    mine, other = "Bearer " + "a" * 43, "Bearer " + "b" * 43
    # At once, since on a busy machine one after another may be no more than what is let through.
    with ExitStack() as stack:
        calls = [stack.enter_context(closing(service.front.connection())) for _ in range(900)]
        for call in calls:
            call.connect()
        for call in calls:
            call.request("GET", "/api/tasks", headers={"Authorization": mine})
        assert {call.getresponse().status for call in calls} == {401, 429}
    assert service.front.call("GET", "/api/tasks", Authorization=other).status == 401
    until(lambda: service.front.call("GET", "/api/tasks", Authorization=mine).status == 401, "let in again")


def test_the_servers_count_each_client_whatever_it_says_of_itself(service: Service) -> None:
    address = through(service).address

    def clients(front: Front) -> int:
        """How many clients have asked, by the servers' count, after these calls."""
        body = json.dumps({"address": address}).encode()
        for number in range(8):
            asked = {"X_Forwarded_For": f"203.0.113.{number}"}
            assert front.call("POST", "/api/auth/challenge", body, client="127.0.0.41", **asked).status == 200
        text = "SELECT COUNT(DISTINCT client_ip) FROM challenges WHERE address = ?"
        [(count,)] = rows(service.installation.database_url, text, [address])
        return int(count)

    assert clients(service.front) == 1
    # Told by a proxy on this machine, the server takes it for what it is: eight clients more.
    assert clients(Front(service.installation.port, service.front.directory)) == 9


def test_the_description_is_packed_and_not_sent_twice(service: Service) -> None:
    with contextlib.closing(service.front.connection()) as connection:
        connection.request("GET", "/api/openapi.json", headers={"Accept-Encoding": "gzip"})
        packed = connection.getresponse()
        body = packed.read()
    assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
    plain = service.front.call("GET", "/api/openapi.json")
    assert gzip.decompress(body).decode() == plain.body and len(body) < len(plain.body) / 4
    assert plain.headers["etag"] == packed.headers["Etag"]
    again = service.front.call("GET", "/api/openapi.json", If_None_Match=plain.headers["etag"])
    assert (again.status, again.body) == (304, "")
    head = service.front.call("HEAD", "/api/openapi.json")
    assert (head.status, head.body, head.headers["etag"]) == (200, "", plain.headers["etag"])
    assert_headers(head)


def test_a_large_body_is_refused_in_json(service: Service) -> None:
    answer = service.front.call("POST", "/api/tasks", b" " * (64 * 1024 + 1))
    assert (answer.status, json.loads(answer.body)) == (413, {"error": "Request body too large"})
    assert_headers(answer)
    largest = service.front.call("POST", "/api/tasks", b" " * (64 * 1024))
    assert largest.status == 401


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/metrics/", "/%6detrics", "//metrics", "/api/../metrics", "/metrics?x=1", "/sim/history", "/sim"],
)
def test_what_is_for_this_machine_is_denied(service: Service, path: str) -> None:
    answer = service.front.call("GET", path)
    assert (answer.status, json.loads(answer.body)) == (403, {"error": "Forbidden"})
    assert_headers(answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/api/tasks", 401),
        ("GET", "/nothing", 404),
        ("GET", "/_bidkeeper/error", 404),
        ("POST", "/healthz", 405),
        ("TRACE", "/healthz", 405),
        ("GET", "/" + "x" * 9000, 414),
        ("GET", "/%00", 400),
    ],
)
def test_every_kind_of_answer_has_the_headers(service: Service, method: str, path: str, status: int) -> None:
    answer = service.front.call(method, path)
    assert answer.status == status
    assert "error" in json.loads(answer.body) or status == 200
    assert_headers(answer)


def test_headers_that_are_too_large_are_refused_in_json(service: Service) -> None:
    answer = service.front.call("GET", "/healthz", X_Long="x" * 9000)
    assert (answer.status, json.loads(answer.body)) == (431, {"error": "Request headers too large"})
    assert_headers(answer)


def test_reading_goes_on_while_either_server_is_killed(service: Service) -> None:
    token = through(service).sign_in().session.headers["Authorization"]
    stop = threading.Event()
    statuses: list[int] = []

    def read() -> None:
        while not stop.is_set():
            statuses.append(service.front.call("GET", "/api/tasks", Authorization=str(token)).status)
            time.sleep(0.05)  # two of these stay below the limit of one token

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for index in (0, 1):
        (pid,) = service.installation.processes(f"cli.main server --index {index}")
        log = service.installation.data_dir / "logs" / f"server-{index}.log"
        starts = len(re.findall("listening", log.read_text()))
        before = len(statuses)
        os.kill(pid, signal.SIGKILL)
        until(lambda before=before: len(statuses) > before + 20, "reads with one server")
        until(lambda log=log, n=starts: len(re.findall("listening", log.read_text())) > n, "it listens again")
    stop.set()
    for reader in readers:
        reader.join()
    assert set(statuses) == {200}
