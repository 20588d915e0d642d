"""The wait of a stranger's event next to users whose receivers answer 200 after 14.5 s.

Each of these users has ten hooks and a backlog of events. The real hooks program delivers over real HTTP. The stranger
has an event every few seconds; its wait is from the event's commit until its receiver has the request.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.timing import Row
from core.call import call
from core.errors import PeerError
from core.hook_receivers import Receiver, Receivers
from core.program_calls import PingHooks
from core.settings import Settings
from core.subscription_plans import DEFAULT_PLANS
from models import outbox, schema, users
from models.database import base
from models.database.base import transaction
from models.hooks import queue

USERS, HOOKS, BACKLOG = (4, 50), 10, 20
SLOW_S, EVENTS, PAUSE_S, PATIENCE_S = 14.5, 8, 3.0, 120
_FILL = {"dry_run": False, "quantity": "1", "slug": "cats", "price": 5}


def rows() -> Iterator[Row]:
    for count in USERS:
        with tempfile.TemporaryDirectory() as directory:
            waits = _waits(Path(directory), count)
        what = f"a stranger's event next to {count} users of {HOOKS} receivers of {SLOW_S} s, longest of {EVENTS}"
        yield Row(what, f"{max(waits):.1f} s", "", "", "5 s")
        yield Row("... median", f"{statistics.median(waits):.1f} s")


def _waits(directory: Path, count: int) -> list[float]:
    arrived, over = threading.Semaphore(0), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/stranger":
                arrived.release()
            else:
                over.wait(SLOW_S)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = Settings(data_dir=directory, database_url=f"sqlite:///{directory / 'bidkeeper.db'}")
    (directory / "run").mkdir()
    base.connect(settings.database_url)
    schema.migrate()
    _make_users(settings, server.server_address[1], count)
    environment = os.environ | {"BIDKEEPER_DATA_DIR": str(directory), "BIDKEEPER_HOOK_NETWORKS": "127.0.0.0/8"}
    program = subprocess.Popen([sys.executable, "-m", "cli.main", "hooks"], env=environment, stderr=subprocess.DEVNULL)
    found = []
    try:
        _until_ready(settings)
        for user in range(1, count + 1):
            _happen(user, BACKLOG)
        for _ in range(EVENTS):
            time.sleep(PAUSE_S)
            began = time.monotonic()
            _happen(count + 1, 1)
            if not arrived.acquire(timeout=PATIENCE_S):
                raise RuntimeError("the stranger's event did not arrive")
            found.append(time.monotonic() - began)
    finally:
        program.kill()
        program.wait()
        over.set()
        server.shutdown()
        server.server_close()
        base.close()
    return found


def _until_ready(settings: Settings) -> None:
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            call(settings.hooks_socket, "hooks", PingHooks(), timeout=5)
            return
        except PeerError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.1)


def _make_users(settings: Settings, port: int, count: int) -> None:
    receivers = Receivers(settings.hooks_dir)
    for user in range(1, count + 2):
        users.find_or_create(f"bc1q{user}", DEFAULT_PLANS, 1)
        path = "stranger" if user > count else "slow"
        for _ in range(1 if user > count else HOOKS):
            name = receivers.keep(Receiver(f"http://127.0.0.1:{port}/{path}", "s"))
            given = {"kind": "webhook", "shown": "x", "has_secret": True, "receiver": name, "created_ms": 1}
            queue.add(user, ["fill"], may_still=lambda: True, **given)


def _happen(user_id: int, count: int) -> None:
    with transaction():
        for task_id in range(1, count + 1):
            outbox.tell("fill", user_id, task_id, time.time_ns() // 1_000_000, _FILL)
