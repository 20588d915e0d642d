"""The outcome of one exchange, with real sockets: its meaning, its hosts, and the words of refusals."""

from __future__ import annotations

import contextlib
import gzip
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests
import responses

from markets.base import (
    BelowMinimum,
    InsufficientFunds,
    PriceGrid,
    RateLimited,
    Refused,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.http import LONGEST_WORDS, MAX_ANSWER, Http, Reply, may_be_asked, refusal, retry_after_s, write_fault

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[bytes | None], Http]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Makes a venue that answers every request with the given bytes, or never (None)."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []
    kept: list[socket.socket] = []

    def start(answer: bytes | None) -> Http:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                kept.append(connection)
                received = connection.recv(65536)
                if answer is not None:
                    connection.sendall(answer if received else b"")
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
        return Http(
            f"http://127.0.0.1:{listener.getsockname()[1]}", {}, connect_s=1, read_s=0.3 if answer is None else 30
        )

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(5)
    for connection in kept:
        connection.close()


CUTS = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nCont",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
    "no HTTP": b"hello\r\n\r\n",
    "bad gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    "silence": None,
}


@pytest.mark.parametrize("cut", CUTS)
def test_after_the_first_byte_a_lost_answer_is_unknown_to_a_write_only(serve: Serve, cut: str) -> None:
    http = serve(CUTS[cut])
    with pytest.raises(Unknown):
        http.write("/x", b"{}", None)
    with pytest.raises(Unavailable):
        http.read("/x")


ENDLESS = {
    "a head": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "a line of a head": (b"HTTP/1.1 200 OK\r\nX-A: ", b"b"),
    "answers that go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n", b" "),
    "a chunk's head": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n"),
}


@contextlib.contextmanager
def dripping(first: bytes, piece: bytes) -> Iterator[Http]:
    """A venue that answers `first`, and then `piece` again and again, for much longer than we wait."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_over = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(first)
                for _ in range(300):
                    connection.sendall(piece)
                    if is_over.wait(0.02):
                        break

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        try:
            yield Http(f"http://127.0.0.1:{listener.getsockname()[1]}", {}, connect_s=1, read_s=0.3)
        finally:
            is_over.set()
            thread.join(5)


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.slow
def test_an_answer_that_drips_ends_whichever_part_of_it_does(name: str) -> None:
    with dripping(*ENDLESS[name]) as http, pytest.raises(Unavailable, match="Timeout"):
        http.read("/x")
    with dripping(*ENDLESS[name]) as http, pytest.raises(Unknown, match="Timeout"):
        http.write("/x", b"{}", None)


def test_what_never_connects_was_never_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for base in (f"http://127.0.0.1:{port}", "https://venue.invalid"):
        with pytest.raises(Unavailable):
            Http(base, {}).write("/x", b"{}", None)


def test_the_permit_is_asked_when_the_connection_stands_and_nothing_is_written_without_it(serve: Serve) -> None:
    asked: list[int] = []

    def permit() -> None:
        asked.append(1)
        if len(asked) == 2:  # once before connecting, once before the first byte
            raise Refused("stale_token")

    http = serve(OK)
    with pytest.raises(Refused) as raised:
        http.write("/x", b"{}", permit)
    assert raised.value.code == "stale_token"
    assert len(asked) == 2
    assert http.write("/x", b"{}", lambda: None) == {}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_an_answer_in_gzip_is_bounded_by_what_it_unpacks_to(serve: Serve, layers: int) -> None:
    packed = b" " * 50_000_000
    for _ in range(layers):
        packed = gzip.compress(packed)
    named = ", ".join(["gzip"] * layers)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {named}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    http = serve(head + packed)
    tracemalloc.start()
    try:
        with pytest.raises(Unavailable, match="more than"):
            http.read("/x")
        assert tracemalloc.get_traced_memory()[1] < 10 * MAX_ANSWER, "no more is unpacked than is read"
    finally:
        tracemalloc.stop()


@responses.activate
@pytest.mark.parametrize(
    ("fault", "leaf"),
    [
        (requests.ConnectTimeout(), Unavailable),
        (requests.ReadTimeout(), Unknown),
        (requests.ConnectionError("reset"), Unknown),
        (requests.exceptions.ChunkedEncodingError(), Unknown),
    ],
)
def test_faults_that_the_library_names(fault: Exception, leaf: type[VenueError]) -> None:
    responses.add(responses.POST, "https://venue.example/x", body=fault)
    with pytest.raises(VenueError) as raised:
        Http("https://venue.example", {}).write("/x", b"{}", None)
    assert type(raised.value) is leaf
    assert len(responses.calls) == 1


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("7", b"", 7),
        ("0.5", b"", 0.5),
        ("99999999", b"", 900),
        ("-5", b"", None),
        ("soon", b"", None),
        ("", b'{"error": "Too many requests, retry in 3 minutes"}', 180),
        ("", b'{"error": "try again in 20 seconds"}', 20),
        ("", b"<html>", None),
    ],
)
def test_how_long_a_429_asks_to_wait(header: str, body: bytes, seconds: float | None) -> None:
    found = retry_after_s(Reply(429, {"Retry-After": header} if header else {}, body))
    assert found == seconds


def test_a_429_may_name_the_moment() -> None:
    before = datetime.now(UTC)
    moment = (before + timedelta(seconds=600)).replace(microsecond=0)
    found = retry_after_s(Reply(429, {"Retry-After": format_datetime(moment, usegmt=True)}, b""))
    assert found is not None
    assert (moment - datetime.now(UTC)).total_seconds() <= found <= (moment - before).total_seconds()


@responses.activate
def test_a_429_carries_its_wait() -> None:
    responses.add(responses.GET, "https://venue.example/x", status=429, headers={"Retry-After": "9"})
    with pytest.raises(RateLimited) as raised:
        Http("https://venue.example", {}).read("/x")
    assert raised.value.retry_after_s == 9


@responses.activate
def test_the_environments_proxies_and_passwords_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://evil.example")
    responses.add(responses.GET, "https://venue.example/x", json={})
    http = Http("https://venue.example", {})
    assert http.read("/x") == {}
    assert http._session.trust_env is False


@pytest.mark.parametrize("key", ["\ufeffs3cret", "s3cret\u0142", " s3cret", "s3cret\nx", "s3cret\udcff"])
def test_key_that_no_header_can_hold_is_a_fault_and_is_not_shown(key: str) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        http = Http(f"http://127.0.0.1:{listener.getsockname()[1]}", {"Authorization": key}, connect_s=1, read_s=1)
        for ask in (lambda: http.read("/x"), lambda: http.write("/x", b"{}", None)):
            with pytest.raises(Unavailable, match="HTTP cannot send") as caught:
                ask()
            assert "s3cret" not in str(caught.value)
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("host", "address", "may"),
    [
        ("api.satflow.com", "104.18.1.1", True),
        ("api.satflow.com", "2606:4700::1111", True),
        ("api.satflow.com", "10.0.0.5", False),
        ("api.satflow.com", "192.168.1.1", False),
        ("api.satflow.com", "172.16.0.1", False),
        ("api.satflow.com", "127.0.0.1", False),
        ("api.satflow.com", "169.254.169.254", False),
        ("api.satflow.com", "100.64.0.1", False),
        ("api.satflow.com", "0.0.0.0", False),
        ("api.satflow.com", "224.0.0.1", False),
        ("api.satflow.com", "::1", False),
        ("api.satflow.com", "fd00::1", False),
        ("api.satflow.com", "fe80::1%eth0", False),
        ("api.satflow.com", "::ffff:10.0.0.5", False),
        ("api.satflow.com", "::ffff:104.18.1.1", True),
        ("10.0.0.5", "10.0.0.5", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("localhost", "10.0.0.5", False),
    ],
)
def test_a_private_address_is_asked_only_where_the_setting_names_it(host: str, address: str, may: bool) -> None:
    assert may_be_asked(host, address) is may


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(30)
        yield made


def test_a_public_name_that_leads_here_is_sent_nothing(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]

    def leads_here(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", leads_here)
    http = Http("https://api.satflow.example", {}, connect_s=2, read_s=2)

    for ask in (lambda: http.read("/x"), lambda: http.write("/x", b"{}", None)):
        with pytest.raises(Unavailable, match="ConnectionError"):
            ask()
        connection, _ = listener.accept()
        connection.settimeout(5)
        assert connection.recv(100) == b""
        connection.close()


def test_localhost_is_this_machine(listener: socket.socket) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        http = Http(f"http://localhost:{listener.getsockname()[1]}", {}, connect_s=30, read_s=30)
        assert http.read("/x") == {}
    finally:
        thread.join(5)


@pytest.mark.parametrize(
    ("said", "leaf"),
    [
        ("Insufficient balance in bidding wallet", InsufficientFunds),
        ("not enough confirmed sats", InsufficientFunds),
        ("bid exceeds your balance", InsufficientFunds),
        ("Balance of the wallet is too low", InsufficientFunds),
        ("insufficient permissions to see the balance", Refused),
        ("insufficient privileges", Refused),
        ("not enough confirmations of the coins", Refused),
        ("Not enough data", Refused),
        ("Price must be a multiple of 1000 sats", PriceGrid),
        ("must be a multiple of 1,000 sats", PriceGrid),
        ("Bids must be in increments of 1000", PriceGrid),
        ("Invalid tick", Refused),
        ("tick not found", Refused),
        ("quantity of a bid must be a multiple of 5", Refused),
        ("expiry must be in increments of 5 minutes", Refused),
        ("Price is below the minimum of 10000 sats", BelowMinimum),
        ("price below the minimum", BelowMinimum),
        ("The payment address must hold at least 100000 sats", Refused),
        ("outputs below 330 sats are dust", Refused),
        ("fee rate is below the minimum of 1 sat/vB", Refused),
        ("min relay fee of 200 sats not met, at least 300 sats", Refused),
        ("Rate limit exceeded", RateLimited),
        ("exceeds rate limit", RateLimited),
        ("Too many requests", RateLimited),
        ("Request was throttled.", RateLimited),
        ("fee rate limit is 500", Refused),
        ("unknown collection rate-limit", Refused),
        ("unknown collection throttle-punks", Refused),
        ("too many open bids", Refused),
    ],
)
def test_refusal_is_of_the_class_that_its_words_name(said: str, leaf: type[VenueError]) -> None:
    for words in (said, said.upper(), f"{said}."):
        assert type(refusal(words)) is leaf


def test_plain_text_of_a_refusal_is_cleaned_and_bounded() -> None:
    body = "Invalid\x00 price: \x1b[31m<b>\u202e é ".encode() + b"\xff" + b"x" * 10_000
    error = write_fault(Reply(400, {}, body), "/list")
    assert isinstance(error, Refused)
    assert error.message.startswith("Invalid  price:  [31m<b>  é")
    assert len(error.message) == LONGEST_WORDS and error.message.isprintable()


def test_servers_that_label_plain_text_as_html_are_heard() -> None:
    error = write_fault(Reply(400, {"Content-Type": "text/html"}, b"collection is closed"), "/list")
    assert (type(error), error.message) == (Refused, "collection is closed")
