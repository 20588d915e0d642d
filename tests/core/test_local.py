from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused, PeerUnavailable
from core.local import MAX_SOCKET_PATH, ask, socket_path_problem
from core.local_server import serve


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["op"] == "no":
        raise PeerRefused("peer", "not-today", "come back tomorrow", request.get("highest"))
    if request["op"] == "broken":
        raise ZeroDivisionError
    return {"echo": request}


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Path]:
    """A peer that answers on its own thread, as another process would."""
    path = tmp_path / "peer.sock"
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def main() -> None:
        server = await serve(path, answer)
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()

    task = loop.create_task(main())

    def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    yield path
    loop.call_soon_threadsafe(task.cancel)
    thread.join(60)


def test_asks_and_is_answered(peer: Path) -> None:
    assert ask(peer, "peer", {"op": "yes", "text": "ü\n"}, timeout=60) == {"echo": {"op": "yes", "text": "ü\n"}}


def test_a_refusal_keeps_its_code(peer: Path) -> None:
    with pytest.raises(PeerRefused) as caught:
        ask(peer, "peer", {"op": "no"}, timeout=60)
    assert (caught.value.code, caught.value.message) == ("not-today", "come back tomorrow")
    assert caught.value.highest is None


@pytest.mark.parametrize(("told", "highest"), [(7, 7), ("7", None), (True, None), ([7], None), (7.5, None)])
def test_a_refusal_brings_the_highest_token_that_was_seen(told: Any, highest: int | None, peer: Path) -> None:
    with pytest.raises(PeerRefused) as caught:
        ask(peer, "peer", {"op": "no", "highest": told}, timeout=60)
    assert caught.value.highest == highest


def test_a_fault_inside_the_peer_is_a_refusal_without_details(peer: Path) -> None:
    with pytest.raises(PeerRefused) as caught:
        ask(peer, "peer", {"op": "broken"}, timeout=60)
    assert caught.value.code == "internal"


@pytest.mark.parametrize("line", [b"[" * 200_000, b'{"a":' * 100_000, b"{", b"\xff", b"9" * 5_000, b"[]"])
def test_what_is_no_request_is_answered_as_such(line: bytes, peer: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(peer))
        connection.sendall(line + b"\n")
        assert b'"error": "unreadable"' in connection.recv(1_000)


def test_only_the_owner_may_open_the_socket(peer: Path) -> None:
    assert peer.stat().st_mode & 0o777 == 0o600


def test_an_absent_peer_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable):
        ask(tmp_path / "nobody.sock", "peer", {}, timeout=60)


def test_socket_paths_end_at_107_bytes() -> None:
    assert socket_path_problem(Path("/" + "x" * (MAX_SOCKET_PATH - 1))) is None
    assert socket_path_problem(Path("/" + "x" * MAX_SOCKET_PATH)) is not None
    assert socket_path_problem(Path("/" + "ü" * 60)) is not None
