"""The gateway as a process: it ends when told, is alone, and its askers find it again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.settings import load
from markets.base import Unavailable, Unknown, VenueError
from markets.client import MarketClient
from tests.gateway.conftest import ORDER, eventually, soon

pytestmark = pytest.mark.slow
# Less than the 50 s for which RUN has a venue that hangs waited for; an end of its own takes a moment.
AT_ONCE_S = 40.0
RUN = """
from core.process import end_with_parent
from core.settings import load
from gateway.app import run
from markets.http import Http

Http.__init__.__kwdefaults__["read_s"] = 50
end_with_parent()
run(load(), lambda task: 0)
"""


def _answers(path: Path) -> bool:
    try:
        with MarketClient(path) as client:
            return client.profile().venue == "simulator"
    except VenueError:
        return False


class Process:
    """One gateway process on a data directory."""

    def __init__(self, directory: str, satflow: str) -> None:
        self.environment = {
            **os.environ,
            "BIDKEEPER_DATA_DIR": directory,
            "BIDKEEPER_SATFLOW_URL": satflow,
        }
        self.path = load(self.environment).gateway_socket
        self.child = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        root = Path(__file__).resolve().parents[2]
        child = subprocess.Popen([sys.executable, "-c", RUN], env=self.environment, cwd=root, stderr=subprocess.PIPE)
        eventually(lambda: child.poll() is not None or _answers(self.path))
        return child

    def end(self, number: int = signal.SIGTERM) -> float:
        """Signals the process; gives the seconds that it took to end."""
        started = time.monotonic()
        self.child.send_signal(number)
        self.child.wait(60)
        return time.monotonic() - started

    def close(self) -> None:
        self.child.kill()
        self.child.communicate(timeout=60)


@pytest.fixture
def silent_venue() -> Iterator[socket.socket]:
    """A venue that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def process(silent_venue: socket.socket) -> Iterator[Process]:
    with tempfile.TemporaryDirectory(prefix="gw") as directory:
        made = Process(directory, f"http://127.0.0.1:{silent_venue.getsockname()[1]}")
        yield made
        made.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_told(process: Process, number: int) -> None:
    assert process.end(number) < AT_ONCE_S
    assert process.child.returncode == 0


def test_a_hanging_venue_does_not_keep_it_and_the_asker_does_not_know(
    process: Process, silent_venue: socket.socket
) -> None:
    failed: list[VenueError] = []

    def place() -> None:
        try:
            with MarketClient(process.path, timeout_s=60) as client:
                client.place(ORDER, task=1, token=1, deadline_ms=soon())
        except VenueError as error:
            failed.append(error)

    asker = threading.Thread(target=place)
    asker.start()
    silent_venue.settimeout(60)
    connection, _ = silent_venue.accept()
    connection.recv(10)
    assert process.end() < AT_ONCE_S, "it has waited for the venue"
    assert process.child.returncode == 0
    asker.join(60)
    connection.close()
    assert [type(error) for error in failed] == [Unknown]


def test_askers_find_a_restarted_gateway_with_their_kept_connection(process: Process) -> None:
    client = MarketClient(process.path)
    client.profile()
    process.end(signal.SIGKILL)
    with pytest.raises(Unavailable):
        client.profile()
    process.child.communicate(timeout=60)
    process.child = process.start()
    assert client.profile().venue == "simulator"
    client.close()


def test_a_second_gateway_of_an_installation_does_not_start(process: Process) -> None:
    root = Path(__file__).resolve().parents[2]
    second = subprocess.run(
        [sys.executable, "-c", RUN], env=process.environment, cwd=root, capture_output=True, timeout=120, check=False
    )
    assert second.returncode != 0
    assert b"another gateway" in second.stderr
    assert _answers(process.path)


def test_its_socket_is_for_its_own_user_only(process: Process) -> None:
    assert process.path.stat().st_mode & 0o777 == 0o600
