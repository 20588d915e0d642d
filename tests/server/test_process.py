"""Server processes as they are really run: start, several at once, end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from models.tasks.tasks import Task
from tests.ports import free_ports
from tests.worlds.service import OWNER, new_user, token_of

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from core import settings; from server.app import run; run(settings.load(), int(sys.argv[1]))"
# Refuses to start unless the self-test is what stops it.
DISTRUSTED = "from wallet import bip322; bip322.library.verify_simple_encoded = lambda *_: None; "


class Servers:
    """Starts server processes on one database and ends them."""

    def __init__(self, data_dir: Path, database: str) -> None:
        (self.port,) = free_ports(1)
        self.environment = os.environ | {
            "BIDKEEPER_DATA_DIR": str(data_dir),
            "BIDKEEPER_DATABASE_URL": database,
            "BIDKEEPER_PORT": str(self.port),
            "BIDKEEPER_WHITELIST": "*",
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, index: int = 0, *, before: str = "", **settings: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", before + PROGRAM, str(index)],
            env=self.environment | settings,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def wait_for(self, index: int = 0) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if self.ask(index, "GET", "/healthz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not come up")

    def ask(self, index: int, method: str, path: str, body: object = None, token: str = "") -> tuple[int, object]:
        connection = HTTPConnection("127.0.0.1", self.port + index, timeout=150)
        try:
            headers = {"Authorization": f"Bearer {token}"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def signed_in() -> str:
    now_ms = int(time.time() * 1000)
    return token_of(new_user(OWNER, now_ms), now_ms)


@pytest.fixture
def servers(tmp_path: Path, database: str) -> Iterator[Servers]:
    made = Servers(tmp_path, database)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


def test_two_processes_together_never_pass_the_plan(servers: Servers) -> None:
    token = signed_in()
    for index in (0, 1):
        servers.start(index)
    for index in (0, 1):
        servers.wait_for(index)

    def create(n: int) -> int:
        return servers.ask(n % 2, "POST", "/api/tasks", {"slug": f"slug-{n}", "hardcapSats": 1}, token)[0]

    with ThreadPoolExecutor(16) as pool:
        statuses = Counter(pool.map(create, range(64)))

    assert statuses == {201: 20, 403: 44}
    assert Task.select().count() == 20


@pytest.mark.thorough_cases("2")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_while_requests_wait(servers: Servers, number: signal.Signals) -> None:
    token = signed_in()
    process = servers.start(before="from server import app; app.make_app.__kwdefaults__['manager_wait_s'] = 120.0; ")
    servers.wait_for()
    servers.ask(0, "POST", "/api/tasks", {"slug": "a", "hardcapSats": 1}, token)

    answers: list[int | None] = []

    def start() -> None:
        # No manager runs here, so this waits for two minutes.
        try:
            answers.append(servers.ask(0, "POST", "/api/tasks/1/start", None, token)[0])
        except (OSError, HTTPException):
            answers.append(None)

    waiting = threading.Thread(target=start)
    waiting.start()
    time.sleep(1)  # nothing but the request's own waiting shows that it waits
    begun = time.monotonic()
    process.send_signal(number)
    _, log = process.communicate(timeout=60)

    assert time.monotonic() - begun < 60, "it waits for no manager's answer"
    assert process.returncode == 0
    assert b"Traceback" not in log, log.decode()
    waiting.join(180)
    assert answers in ([None], [503]), "it says that it stops, or nothing"
    assert Task.get_by_id(1).desired == "stopped"


@pytest.mark.thorough_cases("-settings1-BIDKEEPER_ADMINS: *", "-settings2-cannot listen on 203.0.113.1")
@pytest.mark.parametrize(
    ("before", "settings", "said"),
    [
        ("", {"BIDKEEPER_WHITELIST": "bc1qnonsense"}, b"BIDKEEPER_WHITELIST: bc1qnonsense"),
        ("", {"BIDKEEPER_ADMINS": "*"}, b"BIDKEEPER_ADMINS: *"),
        ("", {"BIDKEEPER_HOST": "203.0.113.1"}, b"cannot listen on 203.0.113.1"),
        ("", {"BIDKEEPER_DATABASE_URL": "sqlite:///{}/empty.db"}, b"bidkeeper migrate"),
        (DISTRUSTED, {}, b"BIP-322 self-test"),
    ],
)
def test_a_server_that_cannot_do_its_work_does_not_start(
    servers: Servers, tmp_path: Path, before: str, settings: dict[str, str], said: bytes
) -> None:
    process = servers.start(before=before, **{name: text.format(tmp_path) for name, text in settings.items()})

    _, log = process.communicate(timeout=120)

    assert process.returncode == 1
    assert said in log
