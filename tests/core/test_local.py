from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.call import MAX_SOCKET_PATH, socket_path_problem
from core.errors import PeerRefused, PeerUnavailable
from core.local_server import serve
from tests.json_lines import Answers, ask


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
        server = await serve(path, Answers(answer))
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


def test_only_the_owner_may_open_the_socket(peer: Path) -> None:
    assert peer.stat().st_mode & 0o777 == 0o600


def test_an_absent_peer_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable):
        ask(tmp_path / "nobody.sock", "peer", {}, timeout=60)


def test_socket_paths_end_at_107_bytes() -> None:
    assert socket_path_problem(Path("/" + "x" * (MAX_SOCKET_PATH - 1))) is None
    assert socket_path_problem(Path("/" + "x" * MAX_SOCKET_PATH)) is not None
    assert socket_path_problem(Path("/" + "ü" * 60)) is not None
