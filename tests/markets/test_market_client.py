"""The asker's side of the socket, against a peer that answers as scripted."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from markets import base
from markets.client import MarketClient
from markets.orders import ListingOrder, ListingToDraft

ORDER = base.BidOrder(5, Decimal("1.50"), "s", "runes", "p", "k", "r", 7, 8, "c2ln", "2", None)


def _ok(value: Any) -> bytes:
    return _answer(json.dumps({"ok": value}).encode())


def _answer(body: bytes) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Peer:
    """Each connection gets a list of answers, one for a request; at the list's end it is closed."""

    def __init__(self, path: Path, connections: list[list[bytes]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.closed = threading.Semaphore(0)  # one for each connection that it has closed
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._work, args=(connections,), daemon=True)
        self._thread.start()

    def _work(self, connections: list[list[bytes]]) -> None:
        for answers in connections:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as stream:
                for answer in answers:
                    length = 0
                    while (line := stream.readline().strip()) != b"":
                        name, _, value = line.partition(b":")
                        length = int(value) if name == b"Content-Length" else length
                    self.requests.append(json.loads(stream.read(length)))
                    connection.sendall(answer)
            self.closed.release()

    def close(self) -> None:
        self._thread.join(60)
        self._listener.close()


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Callable[..., tuple[MarketClient, Peer]]]:
    made: list[tuple[MarketClient, Peer]] = []

    def make(*connections: list[bytes]) -> tuple[MarketClient, Peer]:
        path = tmp_path / "gateway.sock"
        peer = Peer(path, list(connections))
        made.append((MarketClient(path, timeout_s=60), peer))
        return made[-1]

    yield make
    for client, peer in made:
        client.close()
        peer.close()


def _place(client: MarketClient) -> None:
    client.place(ORDER, task=1, token=2, deadline_ms=3)


def _list(client: MarketClient) -> None:
    ask = ListingToDraft(5, "i0", "v", "r", "ab" * 32, None, "t:0")
    client.list_item(ListingOrder(ask, "p", "u", ("s",), "a", "k"), task=1, token=2, deadline_ms=3)


def _delist(client: MarketClient) -> bool:
    return client.delist("v", ["i0"], "c2ln", task=1, token=2, deadline_ms=3)


def test_one_connection_serves_many_questions(scripted: Any) -> None:
    client, peer = scripted([_ok("a"), _ok("b")])
    assert (client.challenge("w"), client.challenge("w")) == ("a", "b")
    assert peer.requests[0] == {"verb": "challenge", "args": {"wallet": "w"}}


def test_a_place_carries_its_right_and_its_decimals_as_text(scripted: Any) -> None:
    client, peer = scripted([_ok(None)])
    _place(client)
    (request,) = peer.requests
    assert (request["task"], request["token"], request["deadline_ms"]) == (1, 2, 3)
    assert request["args"]["order"]["quantity"] == "1.50"


def test_sales_cross_the_socket_with_the_transaction_that_filled_each(scripted: Any) -> None:
    sale = base.Sale("s1", "cats", 75_000, Decimal("1.5"), "bc1qbuyer", "b1", "i0", 8, "ab" * 32)
    sent = base.Sales((sale, base.Sale("s2", "cats", 5, None, None, None, None, 7)), 9, 6, (7, None))
    client, _ = scripted([_ok(to_builtins(sent))])
    assert client.sales("cats", "ordinals", 6, 0) == sent


def test_a_listing_and_its_end_carry_their_right(scripted: Any) -> None:
    client, peer = scripted([_ok(None), _ok(True)])
    _list(client)
    assert _delist(client) is True
    listed, delisted = peer.requests
    assert listed["args"]["order"]["ask"]["price"] == 5 and listed["args"]["order"]["signed_secure"] == ["s"]
    assert delisted["args"] == {"wallet": "v", "inscription_ids": ["i0"], "signature": "c2ln"}
    for request in peer.requests:
        assert (request["task"], request["token"], request["deadline_ms"]) == (1, 2, 3)


@pytest.mark.parametrize(
    ("ask", "strange"),
    [
        (lambda client: client.outpoint("a:0", 0), {"outpoint": "a:0"}),
        (lambda client: client.outpoint("a:0", 0), []),
        (lambda client: client.whereabouts("i0", 0), {"inscription_id": "i0", "more": 1}),
        (lambda client: client.own_listings("v", 0), [[["too", "short"]], 1]),
        (lambda client: client.draft_listing(ListingToDraft(5, "i0", "v", "r", "k", None)), ["p"]),
    ],
)
def test_a_strange_answer_about_listings_is_none(
    scripted: Any, ask: Callable[[MarketClient], object], strange: Any
) -> None:
    client, _ = scripted([_ok(strange)])
    with pytest.raises(base.Unavailable):
        ask(client)


def test_a_connection_closed_meanwhile_is_opened_anew(scripted: Any) -> None:
    client, peer = scripted([_ok("a")], [_ok("b")], [_ok(None)])
    assert client.challenge("w") == "a"
    assert peer.closed.acquire(timeout=60)
    assert client.challenge("w") == "b"
    assert peer.closed.acquire(timeout=60)
    _place(client)
    assert len(peer.requests) == 3


def test_a_read_cut_on_a_kept_connection_is_asked_once_more(scripted: Any) -> None:
    client, peer = scripted([_ok("a"), b""], [_ok("b")])
    assert client.challenge("w") == "a"
    assert client.challenge("w") == "b"
    assert len(peer.requests) == 3


def test_a_place_that_was_handed_over_is_never_sent_again(scripted: Any) -> None:
    client, peer = scripted([_ok("a"), b""], [])
    client.challenge("w")
    with pytest.raises(base.Unknown):
        _place(client)
    assert [request["verb"] for request in peer.requests] == ["challenge", "place"]
    with pytest.raises(base.Unavailable):  # so that the peer's second connection ends, too
        client.challenge("w")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"error": {}}',
        b"X" * 20_000,
        _answer(b'{"error":{"kind":"rate_limited","message":"","retry_after_s":1' + b"0" * 400 + b"}}"),
    ],
)
@pytest.mark.parametrize("write", [_place, _list, _delist])
def test_an_answer_that_is_none_fails_a_read_and_leaves_a_write_unknown(
    scripted: Any, answer: bytes, write: Callable[[MarketClient], object]
) -> None:
    client, _ = scripted([answer], [answer])
    with pytest.raises(base.Unavailable):
        client.fees(0)
    client.close()
    with pytest.raises(base.Unknown):
        write(client)


def test_without_a_gateway_nothing_was_sent(tmp_path: Path) -> None:
    client = MarketClient(tmp_path / "nobody.sock")
    for ask in (lambda: client.fees(0), lambda: _place(client), lambda: client.fence(1, 1)):
        with pytest.raises(base.Unavailable):
            ask()


@pytest.mark.slow
def test_a_silent_gateway_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "silent.sock"))
        listener.listen()
        with MarketClient(tmp_path / "silent.sock", timeout_s=0.1) as client, pytest.raises(base.Unavailable):
            client.fees(0)
        # Long enough for the request to be handed over on a busy machine, too.
        with MarketClient(tmp_path / "silent.sock", timeout_s=2) as client, pytest.raises(base.Unknown):
            _place(client)


def test_what_the_gateway_would_not_take_is_not_sent(tmp_path: Path) -> None:
    with pytest.raises(base.Refused):
        MarketClient(tmp_path / "nobody.sock").floors(["x" * 300_000], "ordinals", 0)


@pytest.mark.parametrize(
    "error",
    [
        base.Unavailable("a"),
        base.RateLimited(2.5, "b"),
        base.RateLimited(None),
        base.Unknown("c"),
        base.Refused("stale_token", "d"),
        base.Refused(),
        *(
            leaf("e")
            for leaf in (
                base.InsufficientFunds,
                base.PriceGrid,
                base.BelowMinimum,
                base.NotFound,
                base.AuthFailed,
                base.NotSupported,
            )
        ),
    ],
)
def test_every_error_crosses_the_socket_as_itself(error: base.VenueError) -> None:
    again = base.from_wire(json.loads(json.dumps(base.to_wire(error))))
    assert (type(again), again.message) == (type(error), error.message)
    assert getattr(again, "code", None) == getattr(error, "code", None)
    assert getattr(again, "retry_after_s", None) == getattr(error, "retry_after_s", None)


@pytest.mark.parametrize("wire", [None, [], {}, {"kind": "unavailable"}, {"kind": "nonsense", "message": "x"}])
def test_what_is_no_error_is_not_taken_for_one(wire: Any) -> None:
    with pytest.raises(ValueError, match="error"):
        base.from_wire(wire)


def test_the_client_costs_a_worker_no_tls_no_http_library_and_no_loop() -> None:
    program = "import sys, markets.client; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    heavy = {"requests", "urllib3", "tornado", "ssl", "asyncio", "embit", "http.client", "email"}
    assert not heavy & set(ran.stdout.split())
